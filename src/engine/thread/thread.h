// SPDX-License-Identifier: MIT
//
// Threads and processes: clone in all its shapes, exit and exec. Every client
// thread is an engine pthread with a kernel thread of its own, so tids, robust
// lists, CLONE_CHILD_CLEARTID, priorities and affinity are the kernel's and need
// no emulation.
//
// What must stay true
//   T1  Locks are taken in this order: thread_lock, engine_lock, those of
//       the fork hooks, the signal actions', that of the live threads (ctx/).
//   T2  libc's thread functions, and malloc inside them, run only under
//       thread_lock or in threads that are on the list of the leaving; a fork
//       holds the one and waits for the other.
//   T3  A stack is used again only when the kernel knows its thread no longer.
#ifndef MUNINN_ENGINE_THREAD_THREAD_H
#define MUNINN_ENGINE_THREAD_THREAD_H

#include "base/futex_lock.h"
#include "base/types.h"
#include "engine/ctx/ctx.h"

// Makes the calling thread the first client thread: registry, xsave area,
// signal actions, mask and host stack. After signal_init(). False: no memory.
bool thread_init_main(ThreadCtx *ctx);

// What other parts of the engine do at the turns of a thread's life. Any of
// them may be NULL. Registered at start, called in order of registration
// (fork_parent, fork_child and end in the opposite order).
typedef struct ThreadHooks {
    void (*create)(ThreadCtx *ctx); // in the thread that is about to make another
    // In the new thread, before its first instruction. Must not call ctx_for_each().
    // False: no memory; the client's clone fails with EAGAIN.
    bool (*start)(ThreadCtx *ctx);
    void (*end)(ThreadCtx *ctx); // in the thread that ends
    // Before a fork takes engine_lock: it may wait for other threads.
    void (*fork_soon)(ThreadCtx *ctx);
    // The fork holds thread_lock and engine_lock around all three.
    void (*fork_prepare)(ThreadCtx *ctx);
    void (*fork_parent)(ThreadCtx *ctx);
    void (*fork_child)(ThreadCtx *ctx);
    // In the child of a vfork, on its parent's ctx and memory; and in the
    // parent when it goes on, its ctx as before the call.
    void (*vfork_child)(ThreadCtx *ctx);
    void (*vfork_parent)(ThreadCtx *ctx);
    // The process is about to execute another program; and could not.
    void (*exec)(ThreadCtx *ctx);
    void (*exec_failed)(ThreadCtx *ctx, int error);
    // The process ends by exit_group() or by the exit() of its last thread. Returns the
    // status that it ends with.
    int (*process_end)(ThreadCtx *ctx, int status);
} ThreadHooks;

// Runs the client on the calling thread, for ever. Set before the first thread is made.
extern void (*thread_run_hook)(ThreadCtx *ctx) __attribute__((noreturn));

#define THREAD_HOOKS_MAX 16
void thread_add_hooks(const ThreadHooks *hooks); // the object must live for ever

// True: an access at the address failed because the thread's stack is full, of which it tells the
// size. Takes engine_lock.
bool thread_overflowed_stack(const ThreadCtx *ctx, GuestAddr address, u64 *ret_stack_bytes);

// --- stopping the others. All other threads stand still, at a point where they hold no lock or
// in the kernel, until thread_resume_others(); the caller may run client code meanwhile. Calls
// nest. One caller at a time: another waits, standing still. False: some did not come to a
// halt in time; what they do is their own. thread_resume_others() is needed all the same.
bool thread_stop_others(ThreadCtx *ctx);
void thread_resume_others(ThreadCtx *ctx);
// The same when the process ends: they are not resumed. Those that sleep in the kernel are taken
// out of it, for what they wait for (input, say) is no longer theirs to take.
bool thread_stop_others_for_good(ThreadCtx *ctx);
// For the loop of a thread: its turn to wait comes while this is not 0.
extern u32 thread_stopper; // atomic: tid of the one that goes on
void thread_wait_while_stopped(ThreadCtx *ctx);

// --- work on several processors (workers.c), while the others stand still. Runs
// fn(argument, 0 … count-1, count) at once, the first on the caller, and waits; count is at
// most `wanted` and THREAD_WORKERS_MAX, less where threads are not to be had. fn must not use
// thread-local variables nor a Lock.
#define THREAD_WORKERS_MAX 16
void thread_run_workers(u32 wanted, void (*fn)(void *argument, u32 worker, u32 count),
                        void *argument);
u32 thread_processors(void); // that the calling thread may run on

// Held while threads are made and while the process forks.
extern Lock thread_lock;

// --- the client's system calls. They may return GATEWAY_RESTART.
i64 sys_clone(ThreadCtx *ctx, const u64 args[6]);
i64 sys_clone3(ThreadCtx *ctx, const u64 args[6]);
i64 sys_fork(ThreadCtx *ctx, const u64 args[6]);
i64 sys_vfork(ThreadCtx *ctx, const u64 args[6]);
i64 sys_exit(ThreadCtx *ctx, const u64 args[6]);
i64 sys_exit_group(ThreadCtx *ctx, const u64 args[6]);
i64 sys_set_tid_address(ThreadCtx *ctx, const u64 args[6]);
i64 sys_set_robust_list(ThreadCtx *ctx, const u64 args[6]);
i64 sys_get_robust_list(ThreadCtx *ctx, const u64 args[6]);
i64 sys_execve(ThreadCtx *ctx, const u64 args[6]);
i64 sys_execveat(ThreadCtx *ctx, const u64 args[6]);

// Ends the whole process with `status`, hooks included.
_Noreturn void process_exit(ThreadCtx *ctx, int status);
// The calling thread is the one that ends this process. If another one is, this does not return:
// the thread stands still until the kernel ends it.
void process_end_claim(ThreadCtx *ctx);
// Ends the process with `status`, and calls no hook: from wherever the thread is, whatever locks
// are held, and also while another thread ends the process. All host signals must be blocked.
_Noreturn void process_exit_at_once(ThreadCtx *ctx, int status);

// Ends the calling thread because of `info`, a signal that is not delivered. If its end
// is visible (the process's first thread, or its last) last_call(signo), which must not
// return, brings it about when all else is done.
_Noreturn void thread_end_by(ThreadCtx *ctx, const siginfo_t *info, void (*last_call)(int sig));

// --- exec
// What the client asked for, in engine memory. The hook may replace any of it
// by memory that lives until the call.
typedef struct ExecRequest {
    int dirfd; // AT_FDCWD for execve
    u32 flags; // of execveat
    const char *path;
    char **argv;
    char **envp;
    bool is_followed; // set by the hook: the engine is what will run
    int filters_fd;   // set by the hook: to be closed if the call fails; or -1
} ExecRequest;

// NULL: children are not followed and the kernel gets the client's own
// pointers. Else it may rewrite the request to start under the engine again;
// a negative result is the client's -errno.
extern i64 (*exec_follow_hook)(ThreadCtx *ctx, ExecRequest *request);
// Gives the calling thread the seccomp filters of `ctx` in the kernel, before an execve. Always
// set.
extern i64 (*exec_filters_hook)(const ThreadCtx *ctx);
// The path of the client's executable, for a client that executes /proc/self/exe.
extern const char *(*exec_own_path_hook)(void);

#endif
