// SPDX-License-Identifier: MIT
//
// From the client's registers to the kernel and back. What is emulated or
// steered stands in emulated.def; everything else is passed through.
#include "engine/perform/perform.h"

#include <asm/prctl.h>
#include <errno.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/fdtrack/fdtrack.h"
#include "engine/gateway/gateway.h"
#include "engine/limits/limits.h"
#include "engine/log/log.h"
#include "engine/perform/file_writes.h"
#include "engine/perform/inject.h"
#include "engine/procview/procview.h"
#include "engine/relay/relay.h"
#include "engine/seccomp/seccomp.h"
#include "engine/signal/signal.h"
#include "engine/syscall/syscall.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/trace.h"
#include "engine/translate/translate.h"

enum { SYSCALL_BYTES = 2 }; // `syscall` is 0f 05

typedef i64 SyscallHandler(ThreadCtx *ctx, const u64 args[6]);

// ------------------------------------------------- calls of other folders, unpacked

static i64 do_mmap(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_mmap(a[0], a[1], a[2], a[3], a[4], a[5]);
}

static i64 do_munmap(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_munmap(a[0], a[1]);
}

static i64 do_mprotect(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_mprotect(a[0], a[1], a[2]);
}

static i64 do_pkey_mprotect(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_pkey_mprotect(a[0], a[1], a[2], a[3]);
}

static i64 do_mremap(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_mremap(a[0], a[1], a[2], a[3], a[4]);
}

static i64 do_madvise(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_madvise(a[0], a[1], a[2]);
}

static i64 do_brk(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_brk(a[0]);
}

static i64 do_mlockall(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_mlockall(a[0]);
}

static i64 do_shmat(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_shmat(a[0], a[1], a[2]);
}

static i64 do_shmdt(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_shmdt(a[0]);
}

static i64 do_io_setup(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_io_setup(a[0], a[1]);
}

static i64 do_io_destroy(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_io_destroy(a[0]);
}

static i64 do_remap_file_pages(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    return sys_remap_file_pages(a[0], a[1], a[2], a[3], a[4]);
}

// ---------------------------------------------------------------- own handlers

// The segment bases are kept in the context (%fs is the engine's).
static i64 do_arch_prctl(ThreadCtx *ctx, const u64 a[6])
{
    switch (a[0]) {
    case ARCH_SET_FS:
    case ARCH_SET_GS:
        if (a[1] >> 47)
            return -EPERM;
        if (a[0] == ARCH_SET_FS)
            translate_set_fs(ctx, a[1]);
        else
            ctx->client_gs = a[1];
        return 0;
    case ARCH_GET_FS: return guest_write(a[1], &ctx->client_fs, 8) ? 0 : -EFAULT;
    case ARCH_GET_GS: return guest_write(a[1], &ctx->client_gs, 8) ? 0 : -EFAULT;
    case 0x5001: // ARCH_SHSTK_ENABLE: a hardware shadow stack knows only real calls
        return -EOPNOTSUPP;
    default: return gateway_syscall(NR_arch_prctl, a[0], a[1], 0, 0, 0, 0);
    }
}

// rseq: the kernel would compare its ranges with our pc, not the client's.
// modify_ldt: its selectors would never reach the hardware.
static i64 do_not_offered(ThreadCtx *ctx, const u64 a[6])
{
    (void)ctx;
    (void)a;
    return -ENOSYS;
}

static bool unguard_all(void)
{
    lock_acquire(&engine_lock);
    bool any = aspace_unguard_all();
    lock_release(&engine_lock);
    return any;
}

static i64 pass_through(ThreadCtx *ctx, u64 nr, const u64 a[6]);

// The kernel would turn away the engine's own calls, and compare its range with our pc.
static i64 do_prctl(ThreadCtx *ctx, const u64 a[6])
{
    i64 result;

    if (a[0] == PR_SET_SYSCALL_USER_DISPATCH)
        return -EINVAL; // as kernels before 5.11
    if (seccomp_set_mode(ctx, NR_prctl, a, &result))
        return result;
    result = pass_through(ctx, NR_prctl, a);
    if (a[0] == PR_SET_CHILD_SUBREAPER && a[1] && result == 0)
        relay_adopts_orphans = true;
    return result;
}

static i64 do_seccomp(ThreadCtx *ctx, const u64 a[6])
{
    i64 result;

    if (seccomp_set_mode(ctx, NR_seccomp, a, &result))
        return result;
    return pass_through(ctx, NR_seccomp, a);
}

static i64 do_limit(ThreadCtx *ctx, const u64 a[6])
{
    i64 result;

    if (limits_call(ctx, ctx->gpr[RAX], a, &result))
        return result;
    return pass_through(ctx, ctx->gpr[RAX], a);
}

static i64 do_ptrace(ThreadCtx *ctx, const u64 a[6])
{
    i64 result = pass_through(ctx, NR_ptrace, a);
    if (a[0] == PTRACE_TRACEME && result == 0)
        signal_is_traced = true;
    return result;
}

// Paths may lead into /proc of this process.
static i64 do_path_call(ThreadCtx *ctx, const u64 a[6])
{
    ProcCall call;
    if (procview_intercept(ctx->gpr[RAX], a, &call))
        return call.result;
    u64 nr = ctx->gpr[RAX];
    i64 result = pass_through(ctx, nr, call.args);
    if (result >= 0 && (nr == NR_open || nr == NR_openat))
        aspace_opened((int)result, a[nr == NR_openat]);
    if (call.counts_hidden && result == 0)
        procview_uncount(ctx->gpr[RAX], &call);
    return result;
}

static i64 do_read(ThreadCtx *ctx, const u64 a[6])
{
    if (UNLIKELY(procview_open_files))
        procview_refresh((int)a[0], ctx->gpr[RAX] == NR_pread64 ? (i64)a[3] : -1);
    return pass_through(ctx, ctx->gpr[RAX], a);
}

static i64 plain_poll(ThreadCtx *ctx, const u64 a[6])
{
    return pass_through(ctx, NR_poll, a);
}

static i64 do_poll(ThreadCtx *ctx, const u64 a[6])
{
    return descriptors_poll(ctx, a, plain_poll);
}

static i64 do_ppoll(ThreadCtx *ctx, const u64 a[6])
{
    return descriptors_poll(ctx, a, sys_ppoll);
}

static i64 do_getdents(ThreadCtx *ctx, const u64 a[6])
{
    i64 result;
    do {
        result = pass_through(ctx, ctx->gpr[RAX], a);
        if (result <= 0)
            return result;
        result = procview_filter_listing(ctx->gpr[RAX], (int)a[0], a[1], result);
    } while (result == 0);
    return result;
}

// ------------------------------------------------------------------- dispatch

static SyscallHandler *const handlers[NR_LIMIT] = {
#define EMULATED(name, handler) [NR_##name] = handler,
#include "engine/perform/emulated.def"
#undef EMULATED
};

static i64 call_kernel(ThreadCtx *ctx, u64 nr, const u64 a[6])
{
    const SyscallRow *row = syscall_row(nr);

    if (!row || (row->flags & SYS_BLOCKS))
        return signal_sleeping_call(ctx, nr, a);
    return gateway_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void lift_guard(const SyscallRange *range, void *arg)
{
    (void)arg;
    if (range->dir != RANGE_OUT || !aspace_may_be_guarded(range->address, range->size_bytes))
        return;
    lock_acquire(&engine_lock);
    aspace_unguard_range(range->address, range->size_bytes);
    lock_release(&engine_lock);
}

// Calls that write where their row does not say, and have no harm done when they are repeated.
static bool writes_elsewhere(u64 nr)
{
    return nr == NR_process_vm_writev || nr == NR_io_uring_enter || nr == NR_io_submit;
}

// Pages that only we have made read-only must not be in the kernel's way: it would have taken
// what it cannot write, and the datagram is lost. True: where this call writes is known.
static bool lift_guards(u64 nr, const u64 a[6])
{
    SyscallCall call = {
        .nr = nr, .args = {a[0], a[1], a[2], a[3], a[4], a[5]}, .read_guest = guest_read,
    };
    const SyscallRow *row = syscall_resolve(&call);

    syscall_ranges(&call, SYSCALL_BEFORE, lift_guard, NULL);
    return row && !row->sub && !writes_elsewhere(nr);
}

static i64 pass_through(ThreadCtx *ctx, u64 nr, const u64 a[6])
{
    u64 guards = aspace_guards_made();
    bool is_known = guards == 0 || lift_guards(nr, a);
    i64 result = call_kernel(ctx, nr, a);
    // Another thread may have set one meanwhile.
    if (result == -EFAULT && (!is_known || guards != aspace_guards_made()) && unguard_all())
        result = call_kernel(ctx, nr, a);
    return result;
}

// Calls younger than the table are passed on, and said to be, once each.
static void note_unknown(u64 nr)
{
    static u64 noted[16];
    if (nr >= 64 * ARRAY_LEN(noted))
        return;
    u64 bit = 1ull << nr % 64;
    if (!(__atomic_fetch_or(&noted[nr / 64], bit, __ATOMIC_RELAXED) & bit))
        log_note("system call %lu is unknown: passed to the kernel as it is", nr);
}

static i64 perform(ThreadCtx *ctx, u64 nr, const u64 args[6])
{
    SyscallHandler *handler = nr < ARRAY_LEN(handlers) ? handlers[nr] : NULL;
    if (!syscall_row(nr))
        note_unknown(nr);
    if (descriptors_refuse(nr, args))
        return -EBADF;
    i64 result;
    if (handler && aspace_guards_made())
        lift_guards(nr, args);
    file_writes_before(nr, args);
    do
        result = handler ? handler(ctx, args) : pass_through(ctx, nr, args);
    while (descriptors_settle(nr, args, &result));
    file_writes_after(nr, args, result);
    return result;
}

// A listener may tell the kernel to go on with the call as it is, which for some calls would
// be the engine's end: mappings in the wrong place, a process without an engine.
static bool kernel_may_perform(u64 nr)
{
    SyscallHandler *handler = nr < ARRAY_LEN(handlers) ? handlers[nr] : NULL;

    return !handler || handler == do_path_call || handler == do_getdents || handler == do_limit ||
           handler == do_prctl || handler == do_ptrace;
}

static bool ask_listener(ThreadCtx *ctx, const ToolSyscall *call, i64 *ret_result)
{
    static u32 noted;

    if (kernel_may_perform(call->nr)) {
        *ret_result = pass_through(ctx, call->nr, call->args);
        return true;
    }
    if (!__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
        log_note("a seccomp listener is not asked about %s: the engine performs it",
                 syscall_row(call->nr)->name);
    return false;
}

// What the client's own filters leave to be done. False: nothing, the registers are final.
static bool passes_filters(ThreadCtx *ctx, const ToolSyscall *call)
{
    i64 result;

    switch (seccomp_judge(ctx, call->nr, call->args, &result)) {
    case SECCOMP_PERFORM: return true;
    case SECCOMP_NOTIFY:
        if (!ask_listener(ctx, call, &result))
            return true;
        break;
    case SECCOMP_ANSWERED: break;
    case SECCOMP_SIGNALLED: return false;
    case SECCOMP_AGAIN: result = GATEWAY_RESTART; break;
    }
    if (UNLIKELY(trace_bits & TRACE_SYSCALLS))
        trace_syscall_result(ctx, call->nr, result);
    if (result == GATEWAY_RESTART)
        ctx->pc -= SYSCALL_BYTES;
    else
        ctx->gpr[RAX] = (u64)result;
    return false;
}

// The client has ended: this call is not made, and only its result is told.
static void answer_last_call(ThreadCtx *ctx, ToolSyscall *call)
{
    call->result = last_call_answer(call->nr, call->args);
    if (UNLIKELY(trace_bits & TRACE_SYSCALLS))
        trace_syscall_result(ctx, call->nr, call->result);
    ctx->gpr[RAX] = (u64)call->result;
    if (tool->syscall_answered)
        tool->syscall_answered(ctx);
}

// The tool must not take what a call that was not performed would have done for done.
static void tell_tool(ThreadCtx *ctx, ToolSyscall call, bool is_faked)
{
    if (is_faked && call.result >= 0)
        call.result = -ENOSYS;
    if (tool->syscall_after)
        tool->syscall_after(ctx, &call);
}

void syscall_run(ThreadCtx *ctx)
{
    ToolSyscall call = {
        .nr = ctx->gpr[RAX],
        .args = {ctx->gpr[RDI], ctx->gpr[RSI], ctx->gpr[RDX], ctx->gpr[R10], ctx->gpr[R8],
                 ctx->gpr[R9]},
    };
    if (UNLIKELY(trace_bits & TRACE_SYSCALLS))
        trace_syscall(ctx, call.nr, call.args);
    if (UNLIKELY(ctx->dispatch.makes_last_call) && !last_call_permits(call.nr, call.args)) {
        answer_last_call(ctx, &call);
        return;
    }
    bool is_faked = UNLIKELY(inject_is_on) && !ctx->dispatch.makes_last_call &&
                    inject_enter(ctx, call.nr, &call.result);
    if (UNLIKELY(seccomp_is_on(ctx)) && !is_faked && !ctx->dispatch.makes_last_call &&
        !passes_filters(ctx, &call))
        return;
    if (tool->syscall_before)
        tool->syscall_before(ctx, &call);
    if (UNLIKELY(fdtrack_mode != TRACK_FDS_NO) && !is_faked)
        fdtrack_before(ctx, call.nr, call.args);
    if (LIKELY(!is_faked))
        call.result = perform(ctx, call.nr, call.args);
    if (UNLIKELY(fdtrack_numbers != MODIFY_FDS_NO) && !is_faked)
        call.result = fdtrack_renumber(ctx, call.nr, call.args, call.result);
    if (UNLIKELY(fdtrack_mode != TRACK_FDS_NO) && !is_faked)
        fdtrack_after(ctx, call.nr, call.args, call.result);
    if (UNLIKELY(trace_bits & TRACE_SYSCALLS))
        trace_syscall_result(ctx, call.nr, call.result);
    if (UNLIKELY(inject_is_on))
        inject_leave(ctx, call.nr, call.result == GATEWAY_RESTART);
    if (call.result == GATEWAY_RESTART) {
        ctx->pc -= SYSCALL_BYTES;
        return;
    }
    ctx->gpr[RAX] = (u64)call.result;
    tell_tool(ctx, call, is_faked);
}
