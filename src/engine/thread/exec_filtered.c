// SPDX-License-Identifier: MIT
//
// execve under the client's seccomp filters. They have to be the kernel's when the new
// program starts, and they can never be taken back: if the execve fails, the engine goes
// on and must not be under them. Filters belong to a thread, and a process may execute a
// program from any of its threads. So a thread is made that installs them and makes the
// call; if it fails, only that thread is lost.
//
//     caller      blocks all signals, lends its ThreadCtx and %fs, waits
//     borrower    client's mask, filters, execve: the caller is gone, or
//                 leaves the result and ends; the kernel wakes the caller
//
// The borrower is no thread of ours: no libc, no record, raw calls only. A signal that
// comes to it finds the caller's context as if it were the caller in the gateway.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/raw_syscall.h"
#include "engine/gateway/gateway.h"
#include "engine/log/log.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

#define BORROWER_FLAGS                                                                             \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |            \
     CLONE_CHILD_CLEARTID)
#define NO_RESULT INT64_MIN
#define WAIT_NS (20 * 1000 * 1000)

typedef struct Borrower {
    ThreadCtx *ctx;
    const ExecCall *call;
    i32 death_signal; // PR_SET_PDEATHSIG does not pass to a new thread by itself
    i64 result;       // atomic
} Borrower;

static i64 install_and_exec(ThreadCtx *ctx, const ExecCall *call)
{
    signal_prepare_exec(ctx);
    i64 result = exec_filters_hook(ctx);
    return result < 0 ? result : exec_native_call(call);
}

static void borrower_main(void *data)
{
    Borrower *b = data;

    if (b->death_signal)
        raw_syscall2(SYS_prctl, PR_SET_PDEATHSIG, (u64)b->death_signal);
    i64 result = install_and_exec(b->ctx, b->call);
    __atomic_store_n(&b->result, result, __ATOMIC_RELEASE);
    raw_syscall1(SYS_exit, 0);
    // A filter that forbids even this: nothing of the process can go on under it.
    for (;;)
        raw_syscall1(SYS_exit_group, 128 + SIGSYS);
}

// The word in the record is cleared by the kernel at the borrower's end. It is not enough:
// a child of vfork that has executed its program clears it late, in the memory of a parent
// that may be waiting for another child's borrower by then.
static i64 await_result(ThreadRecord *record, Borrower *b, i32 tid)
{
    const struct timespec pause = { .tv_nsec = WAIT_NS };
    u64 pid = (u64)raw_syscall0(SYS_getpid);

    while (raw_syscall3(SYS_tgkill, pid, (u64)tid, 0) == 0) {
        if (__atomic_load_n(&record->exec_tid, __ATOMIC_ACQUIRE))
            raw_syscall4(SYS_futex, (u64)&record->exec_tid, FUTEX_WAIT, 1, (u64)&pause);
        else
            raw_syscall0(SYS_sched_yield);
    }
    i64 result = __atomic_load_n(&b->result, __ATOMIC_ACQUIRE);
    return result == NO_RESULT ? -EPERM : result; // a filter has killed the borrower
}

static i64 exec_by_borrower(ThreadCtx *ctx, const ExecCall *call, u8 *stack)
{
    ThreadRecord *record = ctx->thread.record;
    Borrower b = { .ctx = ctx, .call = call, .result = NO_RESULT };
    const CloneArgs args = { .flags = BORROWER_FLAGS, .child_tid = (u64)&record->exec_tid };

    raw_syscall2(SYS_prctl, PR_GET_PDEATHSIG, (u64)&b.death_signal);
    __atomic_store_n(&record->exec_tid, 1, __ATOMIC_RELEASE);
    i64 tid = native_clone_on_stack(&args, stack, EXEC_STACK_BYTES, 0, borrower_main, &b);
    return tid < 0 ? NO_RESULT : await_result(record, &b, (i32)tid);
}

// Where a thread cannot be had (after unshare(CLONE_NEWPID)), or would be the wrong one
// (a tracer waits for this one's execve). If that fails, the filters stay.
static i64 exec_here(ThreadCtx *ctx, const ExecCall *call)
{
    i64 result = install_and_exec(ctx, call);

    log_note("an execve failed after its seccomp filters were installed: they hold for the "
             "engine, too");
    return result;
}

i64 exec_filtered(ThreadCtx *ctx, const ExecCall *call, u8 *stack)
{
    if (!silence_signals(ctx))
        return GATEWAY_RESTART;
    i64 result = signal_is_traced ? NO_RESULT : exec_by_borrower(ctx, call, stack);
    if (result == NO_RESULT)
        result = exec_here(ctx, call);
    signal_exec_failed(ctx);
    return result;
}
