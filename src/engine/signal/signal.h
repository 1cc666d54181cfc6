// SPDX-License-Identifier: MIT
//
// Signals: the client's actions, masks and alternate stacks, and the way of a
// signal from the kernel through our own handler to a frame on the client's
// stack. The kernel keeps queueing, default actions, job control and system
// call restarts; we only move the moment of delivery to a safe point.
//
// What must stay true
//   S1  The five synchronous signals (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP)
//       always have our host handler and are never blocked on the host (R3),
//       but within system calls that may sleep or look at what is pending. Where the
//       monitor may kick, that signal is open there too, unless one is lent (S5).
//   S2  Any other signal has our host handler exactly while the client has a
//       handler for it; otherwise the host's action is the client's SIG_DFL or
//       SIG_IGN, and the kernel acts. (With signal_reports_death also while the
//       client's SIG_DFL would kill it.)
//   S3  Our handler waits for no lock. It tries the engine lock when it interrupted
//       the cache, where the thread holds none.
//   S4  A signal that finds `pending` taken goes back to the kernel's queue.
//   S5  A synchronous signal that was sent while the client blocks it waits in
//       our memory, and in the kernel's queue during such calls.
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

// Gives the calling thread its host alternate stack. False: no memory.
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
// Changes the client's mask and the host's with it.
void signal_set_client_mask(ThreadCtx *ctx, u64 mask);
// Blocks everything on the host, the synchronous signals included. Undone by
// signal_restore_host_mask(), which establishes R3 again.
void signal_block_host(void);
// Blocks everything but SIGSEGV and SIGBUS, which guest_read() needs where it may meet bad
// memory, and opens those. Returns what signal_put_host_mask() takes.
u64 signal_admit_faults(void);
void signal_put_host_mask(u64 mask);
void signal_restore_host_mask(ThreadCtx *ctx);
// The client has ended, but its functions may run once more: no signal reaches it from now on; a
// fault of theirs is deliverable.
void signal_admit_last_faults(ThreadCtx *ctx);
// The mask and the ignored signals exactly as execve() must pass them on, and back.
void signal_prepare_exec(ThreadCtx *ctx);
void signal_exec_failed(ThreadCtx *ctx);
// What a new process starts with: nothing pending.
void signal_forget_pending(ThreadCtx *ctx);
// As the kernel's sas_ss_reset(): a thread that shares memory starts without.
void signal_reset_altstack(ThreadCtx *ctx);

// --- delivery
// At a safe point: delivers all that is deliverable, that is, changes ctx so
// that the client goes on in its handler, or dies. On return R3 holds.
void signal_deliver_pending(ThreadCtx *ctx);
// True when signal_deliver_pending() would have something to do.
bool signal_is_deliverable(const ThreadCtx *ctx);
// A fault of the instruction at ctx->pc that emitted code or C found.
// With `signal_is_traced` (the client asked by PTRACE_TRACEME) it goes through
// the kernel, so that the tracer sees it.
extern bool signal_is_traced;
void signal_raise_synchronous(ThreadCtx *ctx, int sig, int code, GuestAddr addr);
// A signal that the system call just made brings upon itself, as the kernel forces it. False:
// another one is pending, is to be delivered first, and the call is to be repeated.
bool signal_raise_by_call(ThreadCtx *ctx, const siginfo_t *info);
// The end of the process by an uncaught signal.
_Noreturn void signal_die(const siginfo_t *info);
// The trap after an instruction that ran with the client's trap flag set.
void signal_raise_trace(ThreadCtx *ctx);

// Makes a call of the client's that may sleep, or read the queue of signals, by way
// of gateway_syscall().
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
// Returns the restored rax; pc and every register are the frame's.
i64 sys_rt_sigreturn(ThreadCtx *ctx, const u64 args[6]);

// Makes a thread leave the cache, if it is there; the client does not notice.
void signal_kick(i32 tid);

// --- the end of the process (ending.c)
// From now on the user's signals to end the process, such as SIGTERM, are for the engine: the first
// is to be heeded by the calling thread (signal_ending_is_urged()), the second calls cut_short() in
// a handler, on any thread, which must not return. All other host signals are blocked.
void signal_ending_begin(ThreadCtx *ctx, void (*cut_short)(int sig));
void signal_ending_forget(ThreadCtx *ctx); // in a fork's child
bool signal_ending_is_urged(void);
// Makes the calling thread leave the cache each time that it has run for so long, and counts.
// False: there is no such clock.
bool signal_ending_clock(u64 period_ns);
void signal_ending_clock_stop(void);
u32 signal_ending_ticks(void);
// Dies by the signal and tells nobody. From a handler, too.
_Noreturn void signal_end_now(int sig);

// The monitor may interrupt threads (W5 in wire/wire.h): who answers it, outside the cache or where
// a thread sleeps. NULL: nobody does. Set before signal_init().
typedef struct SignalKicks {
    void (*answer)(ThreadCtx *ctx);
    u64 (*elapsed_ns)(u64 stamp); // since the time stamp counter was `stamp`
} SignalKicks;
extern const SignalKicks *signal_kicks;

// --stress=signals: now and then a thread is single-stepped for some host
// instructions after it has entered the cache, and taken out wherever it is then.
extern bool signal_stress;

// --- hooks, set once at start
// A fault of engine code itself. Must not return; NULL panics.
extern void (*signal_crash_hook)(int sig, siginfo_t *info, void *ucontext);
// The client is about to die by `info`, an uncaught signal.
// With `signal_reports_death`, set before signal_init(), also by one that is sent.
extern bool signal_reports_death;
extern void (*process_dying_hook)(ThreadCtx *ctx, const siginfo_t *info);

#endif
