// SPDX-License-Identifier: MIT
//
// System calls: what the kernel is given must be defined and there, what it writes is
// defined afterwards. Everything about the calls comes from the engine's tables.
#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "engine/syscall/syscall.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

static const u8 argument_register[SYSCALL_ARGS] = {RDI, RSI, RDX, R10, R8, R9};

static void report(ToolThread *thread, const char *what, bool points_to, bool unaddressable,
                   GuestAddr address, Origin origin)
{
    RelayPart parts[MEMCHECK_PARTS_MAX + 1];
    enum { SYSCALL_BYTES = 2 };
    u32 count = points_to ? describe_address(thread, address, parts) : 0;
    if (!unaddressable) {
        count += origins_part(origin, &parts[count]);
        __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    }
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_SYSCALL_PARAM,
        .key = 1 + points_to + 2 * unaddressable, // each may be wrong of the same argument
        .syscall_param = {
            .points_to = points_to,
            .unaddressable = unaddressable,
            .param = what,
        },
        .context = tool_context(thread, thread->pc - SYSCALL_BYTES),
        .part_count = count,
        .parts = parts,
    });
}

static void check_registers(ToolThread *thread, const SyscallCall *call)
{
    Definedness *d = definedness_of(thread);
    const SyscallRow *row = syscall_resolve(call);
    char text[128];
    for (unsigned i = 0; row && i < SYSCALL_ARGS; i++) {
        u8 reg = argument_register[i];
        unsigned bytes = syscall_kind_bytes(row->args[i].kind);
        u64 mask = bytes == 8 ? ~0ull : (1ull << 8 * bytes) - 1;
        if (!(d->gpr[reg] & mask) || !syscall_arg_is_used(call, row, i))
            continue;
        report(thread, syscall_arg_text(call->nr, row, i, text, sizeof(text)), false, false, 0,
               origins_of_member(thread, reg));
        d->gpr[reg] = 0;
        d->set &= ~MEMBER_GPR(reg);
    }
}

// Tells of the first byte that is wrong.
static void check_range(const SyscallRange *range, void *arg)
{
    ToolThread *thread = arg;
    char text[128];
    GuestAddr start = range->address;
    GuestAddr bad = shadow_first_noaccess(thread, start, range->size_bytes);
    GuestAddr undefined = bad;
    if (range->dir == RANGE_IN && memcheck_options->undef_value_errors)
        undefined = shadow_first_undefined(start, bad - start);
    if (undefined < bad)
        report(thread, syscall_range_text(range, text, sizeof(text)), true, false, undefined,
               origins_of_memory(thread, undefined));
    else if (bad - start < range->size_bytes) // a negative size has no end behind its start
        report(thread, syscall_range_text(range, text, sizeof(text)), true, true, bad, 0);
}

static void mark_written(const SyscallRange *range, void *arg)
{
    ToolThread *thread = arg;
    if (range->dir == RANGE_OUT && shadow_is_mapped(range->address, range->size_bytes))
        shadow_define_touchable(thread, range->address, range->size_bytes);
}

// What a request of io_uring has brought is defined when its completion can be seen.
static void settle(ToolThread *thread, void *unused)
{
    (void)unused;
    uring_settle(mark_written, thread);
}

void syscalls_settle_rings(ToolThread *thread)
{
    if (uring_has_news())
        relay_outside(thread, settle, NULL);
}

// The call must be the same in both phases; a thread makes one at a time.
static __thread SyscallCall current;

void syscalls_before(ToolThread *thread, const ToolSyscall *call)
{
    current = (SyscallCall){.nr = call->nr, .read_guest = guest_read};
    for (unsigned i = 0; i < SYSCALL_ARGS; i++)
        current.args[i] = call->args[i];
    if (definedness_of(thread)->set)
        check_registers(thread, &current);
    syscalls_settle(thread);
    uring_before(call->nr, call->args, check_range, thread);
    syscall_ranges(&current, SYSCALL_BEFORE, check_range, thread);
}

bool syscalls_have_userfaults;

static void note_userfaults(const ToolSyscall *call)
{
    enum { UFFDIO_REGISTER = 0xc020aa00 };
    if (call->nr == NR_ioctl && (u32)call->args[1] == (u32)UFFDIO_REGISTER && call->result == 0)
        syscalls_have_userfaults = true;
}

void syscalls_after(ToolThread *thread, const ToolSyscall *call)
{
    current.result = (u64)call->result;
    syscall_ranges(&current, SYSCALL_AFTER, mark_written, thread);
    note_userfaults(call);
    uring_after(call->nr, call->args, call->result, mark_written, thread);
    syscalls_answered(thread);
}

void syscalls_answered(ToolThread *thread)
{
    static const u8 written[] = {RAX, RCX, R11};
    Definedness *d = definedness_of(thread);
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        d->gpr[written[i]] = 0;
        d->set &= ~MEMBER_GPR(written[i]);
    }
}
