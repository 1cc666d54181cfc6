// SPDX-License-Identifier: MIT
//
// Signals: a handler begins with defined registers and a defined frame, and what the
// registers were before comes back when it ends. So does a function that is called for the
// tool. A fault is an access or a jump that went wrong: it is told before its signal is
// delivered.
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

// The kernel's frame starts below the handler's return address.
enum { RETURN_BYTES = 8 };
enum { RED_ZONE = 128 };

void signals_written(ToolThread *thread, GuestAddr start, u64 size)
{
    (void)thread;
    if (shadow_is_mapped(start, size))
        shadow_make_defined(start, size);
}

void signals_delivered(ToolThread *thread, int sig, GuestAddr old_sp)
{
    MemcheckThread *mt = memcheck_thread(thread);
    (void)sig;
    stacks_interrupted(thread, old_sp);
    if (definedness_of(thread)->set == 0)
        return;
    SavedDefinedness *saved = pages_map(sizeof(*saved));
    if (saved) {
        saved->defined = *definedness_of(thread);
        saved->sp = thread->gpr[RSP];
        saved->outer = mt->interrupted;
        mt->interrupted = saved;
    }
    memset(definedness_of(thread), 0, sizeof(*definedness_of(thread)));
}

// A function that somebody else than the program calls: as a handler.
void signals_client_call(ToolThread *thread, GuestAddr old_sp)
{
    signals_written(thread, thread->gpr[RSP], RETURN_BYTES);
    signals_delivered(thread, 0, old_sp);
}

// The kernel's frame lies between the handler and the red zone of what it interrupted, unless the
// handler had an alternate stack.
static void leave_kernel_frame(ToolThread *thread, GuestAddr frame)
{
    const MemcheckThread *mt = memcheck_thread(thread);
    GuestAddr end = thread->gpr[RSP] - RED_ZONE;
    if (frame < end && end - frame < KERNEL_FRAME_MAX &&
        is_in_home(mt, frame) == is_in_home(mt, end) && shadow_is_mapped(frame, end - frame))
        shadow_make_undefined(frame, end - frame);
}

// Handlers that were left by longjmp lie below: what they interrupted is forgotten.
void signals_returned(ToolThread *thread, GuestAddr handler_sp)
{
    MemcheckThread *mt = memcheck_thread(thread);
    memset(definedness_of(thread), 0, sizeof(*definedness_of(thread)));
    leave_kernel_frame(thread, handler_sp - RETURN_BYTES);
    stacks_interruption_ended(thread, handler_sp);
    while (mt->interrupted && mt->interrupted->sp <= handler_sp - RETURN_BYTES) {
        SavedDefinedness *saved = mt->interrupted;
        if (saved->sp == handler_sp - RETURN_BYTES)
            *definedness_of(thread) = saved->defined;
        mt->interrupted = saved->outer;
        pages_unmap(saved, sizeof(*saved));
    }
}

static bool may_be_touched(GuestAddr address)
{
    lock_acquire(&engine_lock);
    const Mapping *mapping = aspace_find(address);
    bool is_open = mapping && mapping->prot != PROT_NONE;
    lock_release(&engine_lock);
    return is_open;
}

static bool decode_at(GuestAddr pc, Insn *ret_insn)
{
    static __thread u8 bytes[16];
    size_t size = sizeof(bytes);
    while (size && !guest_read(pc, bytes, size))
        size--;
    return size && decode_insn(pc, bytes, size, ret_insn) == DECODE_OK;
}

void signals_fault(ToolThread *thread, const siginfo_t *info)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    GuestAddr address = (GuestAddr)info->si_addr;
    MemcheckThread *mt = memcheck_thread(thread);
    Insn insn;
    if (info->si_signo != SIGSEGV || (info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR))
        return;
    if (address == thread->pc) {
        error_jump(thread, address);
        return;
    }
    if (may_be_touched(address) || address == mt->told_address || !decode_at(thread->pc, &insn))
        return;
    definedness_prepare(&insn, step);
    DefinednessAccess access = definedness_access(step);
    error_access(thread, address, access.size ? access.size : 8, access.writes && !access.reads);
}
