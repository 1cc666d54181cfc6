// SPDX-License-Identifier: MIT
//
// Signals: the client's actions, masks and alternate stacks, and the way of a
// signal from the kernel through our own handler to a frame on the client's
// stack. The kernel keeps queueing, default actions, job control and system
// call restarts; we only move the moment of delivery to a safe point.
//
// What must stay true
//   S1  The five synchronous signals (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP)
//       always have our host handler and are never blocked on the host (R3), except
//       in system calls that may sleep or read the pending signals. If the monitor may
//       kick, the kick's signal stays open even there, unless the kernel keeps one of
//       that number for the client (S5).
//   S2  Any other signal has our host handler exactly while the client has a
//       handler for it; otherwise the host's action is the client's SIG_DFL or
//       SIG_IGN, and the kernel acts. (With signal_reports_death also while the
//       client's SIG_DFL would kill it.)
//   S3  Our handler waits for no lock. If it interrupted the cache, where the thread
//       holds no lock, it tries to take the engine lock.
//   S4  A signal that arrives while `pending` is taken goes back to the kernel's queue.
//   S5  A synchronous signal that was sent while the client blocks it waits in
//       our memory, and during system calls that may sleep in the kernel's queue.
#ifndef MUNINN_ENGINE_SIGNAL_SIGNAL_H
#define MUNINN_ENGINE_SIGNAL_SIGNAL_H

#include <signal.h>

#include "base/types.h"
#include "engine/ctx/ctx.h"

// Once, before the first client instruction: installs the host handlers and
// takes over the dispositions that the process inherited.
void signal_init(void);

// For the main thread, after signal_init(): the inherited actions and mask
// become the client's. Other threads get both from their parent (thread/).
void signal_adopt_process(ThreadCtx *ctx);

// Gives the calling thread the alternate stack for our host handler. False: no memory.
bool signal_thread_init(ThreadCtx *ctx);
void signal_thread_end(ThreadCtx *ctx); // all host signals must be blocked

// --- actions, for thread/
struct SignalActions *signal_actions_share(struct SignalActions *actions);
// A private copy, as for a child without CLONE_SIGHAND. NULL: no memory.
struct SignalActions *signal_actions_copy(struct SignalActions *actions);
void signal_actions_release(struct SignalActions *actions);
// As CLONE_CLEAR_SIGHAND: every handler becomes SIG_DFL, here and on the host.
void signal_actions_clear_handlers(struct SignalActions *actions);
void signal_actions_lock(struct SignalActions *actions); // around fork
void signal_actions_unlock(struct SignalActions *actions);
void signal_actions_reset_lock(struct SignalActions *actions); // in the fork's child
// Puts the host's action for `sig` right again after somebody else changed it.
void signal_actions_reinstall(struct SignalActions *actions, int sig);

// --- masks
// Sets the client's mask, and the host's mask accordingly.
void signal_set_client_mask(ThreadCtx *ctx, u64 mask);
// Blocks everything on the host, the synchronous signals included. Undone by
// signal_restore_host_mask(), which establishes R3 again.
void signal_block_host(void);
// Blocks all signals on the host except SIGSEGV and SIGBUS, which it unblocks: guest_read() needs
// them to survive bad memory. Returns the old mask, for signal_put_host_mask().
u64 signal_admit_faults(void);
void signal_put_host_mask(u64 mask);
void signal_restore_host_mask(ThreadCtx *ctx);
// To be called when the client has ended and functions of it may run once more: from now on no
// signal reaches the client, but a fault of these functions is deliverable.
void signal_admit_last_faults(ThreadCtx *ctx);
// signal_prepare_exec() gives the host the mask and the ignored signals that execve() must pass on.
// signal_exec_failed() undoes that.
void signal_prepare_exec(ThreadCtx *ctx);
void signal_exec_failed(ThreadCtx *ctx);
// Forgets pending signals, since a new process starts with none.
void signal_forget_pending(ThreadCtx *ctx);
// As the kernel's sas_ss_reset(): a thread that shares its parent's memory starts without an
// alternate stack.
void signal_reset_altstack(ThreadCtx *ctx);

// --- delivery
// At a safe point: delivers each signal that is deliverable, that is, changes ctx so
// that the client goes on in its handler, or lets the client die. On return R3 holds.
void signal_deliver_pending(ThreadCtx *ctx);
// True when signal_deliver_pending() would have something to do.
bool signal_is_deliverable(const ThreadCtx *ctx);
// Raises a fault of the instruction at ctx->pc, which emitted code or C has found.
// With `signal_is_traced` (the client asked for a tracer by PTRACE_TRACEME) the signal goes
// through the kernel, so that the tracer sees it.
extern bool signal_is_traced;
void signal_raise_synchronous(ThreadCtx *ctx, int sig, int code, GuestAddr addr);
// Raises a signal that the client's system call causes, as the kernel forces it. False: another
// signal is pending and must be delivered first; then the system call must be repeated.
bool signal_raise_by_call(ThreadCtx *ctx, const siginfo_t *info);
// Ends the process by an uncaught signal.
_Noreturn void signal_die(const siginfo_t *info);
// Raises the trap after an instruction that ran with the client's trap flag set.
void signal_raise_trace(ThreadCtx *ctx);

// Makes a system call of the client's that may sleep or read the queue of signals, through
// gateway_syscall().
i64 signal_sleeping_call(ThreadCtx *ctx, u64 nr, const u64 args[6]);

// --- the client's system calls. They may return GATEWAY_RESTART.
i64 sys_rt_sigaction(ThreadCtx *ctx, const u64 args[6]);
i64 sys_rt_sigprocmask(ThreadCtx *ctx, const u64 args[6]);
i64 sys_rt_sigpending(ThreadCtx *ctx, const u64 args[6]);
i64 sys_rt_sigsuspend(ThreadCtx *ctx, const u64 args[6]);
i64 sys_rt_sigtimedwait(ThreadCtx *ctx, const u64 args[6]);
i64 sys_sigaltstack(ThreadCtx *ctx, const u64 args[6]);
i64 sys_ppoll(ThreadCtx *ctx, const u64 args[6]);
i64 sys_pselect6(ThreadCtx *ctx, const u64 args[6]);
i64 sys_epoll_pwait(ThreadCtx *ctx, const u64 args[6]);
i64 sys_epoll_pwait2(ThreadCtx *ctx, const u64 args[6]);
i64 sys_io_pgetevents(ThreadCtx *ctx, const u64 args[6]);
i64 sys_signalfd(ThreadCtx *ctx, const u64 args[6]); // and signalfd4
// Takes pc and all registers from the signal frame. Returns the restored rax.
i64 sys_rt_sigreturn(ThreadCtx *ctx, const u64 args[6]);

// Makes a thread leave the cache if it is there. The client cannot notice that.
void signal_kick(i32 tid);

// --- the end of the process (ending.c)
// From now on the user's signals to end the process, such as SIGTERM, are the engine's. After the
// first, signal_ending_is_urged() is true: the calling thread should end soon. The second calls
// cut_short() in a handler, on any thread; cut_short() must not return. All other host signals are
// blocked.
void signal_ending_begin(ThreadCtx *ctx, void (*cut_short)(int sig));
void signal_ending_forget(ThreadCtx *ctx); // in a fork's child
bool signal_ending_is_urged(void);
// Makes the calling thread leave the cache after each period of CPU time, and counts the periods
// (signal_ending_ticks()). False: the kernel gives no such clock.
bool signal_ending_clock(u64 period_ns);
void signal_ending_clock_stop(void);
u32 signal_ending_ticks(void);
// Dies by the signal without a report. May be called from a handler.
_Noreturn void signal_end_now(int sig);

// The monitor may interrupt a thread (W5 in wire/wire.h). `answer` is then called, outside the
// cache or in a system call that sleeps. NULL: no monitor may do so. Set before signal_init().
typedef struct SignalKicks {
    void (*answer)(ThreadCtx *ctx);
    u64 (*elapsed_ns)(u64 stamp); // nanoseconds since the time stamp counter was `stamp`
} SignalKicks;
extern const SignalKicks *signal_kicks;

// --stress=signals: now and then a thread is single-stepped for some host
// instructions after it has entered the cache, and is then taken out, wherever it is.
extern bool signal_stress;

// --- hooks, set once at start
// A fault of engine code itself. Must not return; NULL panics.
extern void (*signal_crash_hook)(int sig, siginfo_t *info, void *ucontext);
// The client is about to die by `info`, an uncaught signal: a fault of its own or, with
// `signal_reports_death` (set before signal_init()), also a signal that was sent.
extern bool signal_reports_death;
extern void (*process_dying_hook)(ThreadCtx *ctx, const siginfo_t *info);

#endif
