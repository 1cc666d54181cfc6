// SPDX-License-Identifier: MIT
//
// What the files of signal/ share: the kernel's own layouts, and masks as
// plain 64-bit words (bit sig-1), which is what the kernel's ABI uses.
#ifndef MUNINN_ENGINE_SIGNAL_INTERNAL_H
#define MUNINN_ENGINE_SIGNAL_INTERNAL_H

#include <time.h>

#include "base/futex_lock.h"
#include "engine/signal/signal.h"

#define SIGNAL_COUNT 64
#define SIGSET_BYTES 8
#define SIG_BIT(sig) (1ull << ((sig) - 1))
#define MASK_SYNCHRONOUS                                                                           \
    (SIG_BIT(SIGSEGV) | SIG_BIT(SIGBUS) | SIG_BIT(SIGILL) | SIG_BIT(SIGFPE) | SIG_BIT(SIGTRAP))
#define MASK_UNBLOCKABLE (SIG_BIT(SIGKILL) | SIG_BIT(SIGSTOP))
#define MASK_ALL (~0ull)
#define MASK_IGNORED_BY_DEFAULT                                                                    \
    (SIG_BIT(SIGCHLD) | SIG_BIT(SIGURG) | SIG_BIT(SIGWINCH) | SIG_BIT(SIGCONT))
#define MASK_STOPPING (SIG_BIT(SIGTSTP) | SIG_BIT(SIGTTIN) | SIG_BIT(SIGTTOU))

#define KERNEL_SA_RESTORER 0x04000000ull
#define KERNEL_SA_EXPOSE_TAGBITS 0x800ull
#define KERNEL_SS_AUTODISARM (1u << 31)
#define KERNEL_MINSIGSTKSZ 2048

#define HANDLER_DFL 0ull
#define HANDLER_IGN 1ull

// struct sigaction of rt_sigaction(2).
typedef struct KernelAction {
    u64 handler;
    u64 flags;
    u64 restorer;
    u64 mask;
} KernelAction;
_Static_assert(sizeof(KernelAction) == 32, "the kernel's layout");

struct SignalActions {
    Lock lock; // protects action[], and the host's actions that mirror them
    u32 refs;  // atomic
    KernelAction action[SIGNAL_COUNT + 1];
};
typedef struct SignalActions SignalActions;

static inline bool signal_is_synchronous(int sig)
{
    return (SIG_BIT(sig) & MASK_SYNCHRONOUS) != 0;
}

static inline bool action_is_handler(const KernelAction *action)
{
    return action->handler != HANDLER_DFL && action->handler != HANDLER_IGN;
}

// The kernel's mask for a client's mask when nothing is pending (R3).
static inline u64 mask_for_host(u64 client_mask)
{
    return client_mask & ~MASK_SYNCHRONOUS;
}

// --- host.c: the host's signal calls
void host_set_mask(u64 mask);
u64 host_get_mask(void);
void host_set_action(int sig, const KernelAction *action);
void host_get_action(int sig, KernelAction *ret_action);
// Puts a signal that our handler took back into the kernel's queue.
void host_requeue(const siginfo_t *info);
// Put a signal into the queue of the calling thread, or of another thread of this process. The
// kernel does not let a thread send another one a signal with the code of kill(), so
// host_hand_over() gives it the code HANDED_OVER.
i64 host_queue_to_self(const siginfo_t *info);
i64 host_hand_over(i32 tid, const siginfo_t *info);
#define HANDED_OVER (-0x4d55)
// A SIGTRAP with this code is signal_kick()'s.
#define KICKED (-0x4d4b)
_Noreturn void host_die_by(const siginfo_t *info);

// --- actions.c
void actions_init(void);
extern SignalActions process_actions; // the main thread's
// Returns the client's action for a signal that is about to be delivered, and applies SA_RESETHAND.
KernelAction actions_take(SignalActions *actions, int sig);
i64 actions_change(SignalActions *actions, int sig, const KernelAction *act, KernelAction *ret_old);
bool death_is_reported(int sig, const KernelAction *client);
KernelAction action_for_host(int sig, const KernelAction *client);

// --- host_handler_x64.c
void on_host_signal(int sig, siginfo_t *info, void *ucontext);
void host_restorer(void);

// --- deferred.c: synchronous signals that somebody sent
void deferred_put(ThreadCtx *ctx, const siginfo_t *info);
void deferred_put_own(ThreadCtx *ctx, const siginfo_t *info); // for this thread only
// The set of deferred signals that this thread may take, those sent to the whole process included.
u64 deferred_set(const ThreadCtx *ctx);
// Takes a deferred signal that is in `allowed`. False: there is none.
bool deferred_take(ThreadCtx *ctx, u64 allowed, siginfo_t *ret_info);
void deferred_drop(ThreadCtx *ctx, int sig);
// Hands each deferred signal that was sent to the process to a thread that does not block it, if
// there is one.
void deferred_place(ThreadCtx *ctx);

// --- lend.c: the kernel keeps deferred signals while the thread sleeps
void lend_signals(ThreadCtx *ctx, u64 nr, u64 takes);
void take_signals_back(ThreadCtx *ctx);
// Replaces HANDED_OVER by the code of kill() in a siginfo that the kernel gave to the client.
void hide_hand_over(GuestAddr code_address);

// --- sleep.c: calls that sleep, and interruptions that are not the client's
typedef struct Sleep {
    u64 nr;
    const u64 *original; // the client's arguments
    u64 args[6];         // the arguments of the next attempt
    u64 started;         // the time stamp counter when the call began
    i64 done;            // bytes that earlier attempts have transferred
    bool begun;          // the kernel has begun the call at least once
    bool tells_left;     // the kernel writes the time that remains to `left`
    struct timespec left;
} Sleep;
void sleep_begin(Sleep *sleep, u64 nr, const u64 args[6]);
// To be called after an attempt that gave *result, if ctx->relay.kicked. True: the caller makes the
// next attempt.
bool sleep_goes_on(ThreadCtx *ctx, Sleep *sleep, i64 *result);
i64 sleep_end(ThreadCtx *ctx, Sleep *sleep, i64 result); // returns the client's result

// The host's mask during a call that may sleep, if the client wants `mask`.
static inline u64 mask_for_sleep(const ThreadCtx *ctx, u64 mask)
{
    bool lent = !signal_kicks || (deferred_set(ctx) & SIG_BIT(WIRE_KICK_SIGNAL));

    return lent ? mask : mask & ~SIG_BIT(WIRE_KICK_SIGNAL);
}

// --- ending.c: signals that no mask of ours blocks once the process ends; 0 before that
extern u64 host_always_open;

// --- string_rest_x64.c
// The registers of a thread that was stopped at or in a repeated string instruction of the cache.
typedef struct StringState {
    u64 rip, di, si, cx, ax;
    bool is_down;
} StringState;
// Finds the range that the instruction has yet to store to. False: it is no `rep movs` or `rep
// stos`, or the range is empty or absurdly large.
bool string_rest_range(const StringState *state, GuestAddr *ret_start, u64 *ret_size);
// Runs the rest of the instruction, in a handler. False: a part is left, because of a fault for
// instance; *state says how far the instruction came.
bool string_rest_run(StringState *state);

// --- altstack.c
bool altstack_contains(const stack_t *stack, u64 sp); // does not look at SS_AUTODISARM
u32 altstack_flags(const ThreadCtx *ctx, u64 sp);      // SS_DISABLE, SS_ONSTACK or 0
i64 altstack_change(ThreadCtx *ctx, const stack_t *stack, u64 sp);

// --- frame_x64.c
// Builds the frame and points the client at its handler. False: the client's
// stack cannot take it, and ctx is unchanged.
bool frame_push(ThreadCtx *ctx, const KernelAction *action, const PendingSignal *signal);
// The opposite. False: no valid frame at the client's rsp.
bool frame_pop(ThreadCtx *ctx);

#endif
