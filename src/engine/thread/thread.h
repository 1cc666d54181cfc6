// SPDX-License-Identifier: MIT
//
// Threads and processes: clone in all its shapes, exit and exec. Every client
// thread is an engine pthread with a kernel thread of its own, so tids, robust
// lists, CLONE_CHILD_CLEARTID, priorities and affinity are the kernel's and need
// no emulation.
//
// What must stay true
//   T1  Locks are taken in this order: thread_lock, engine_lock, the locks of
//       the fork hooks, that of the signal actions, that of the live threads (ctx/).
//   T2  libc's thread functions, and malloc inside them, run only under
//       thread_lock or in threads that are on the list of leaving threads. A fork
//       holds thread_lock and waits until the list is empty.
//   T3  A stack is used again only when its thread no longer exists in the kernel.
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
    void (*create)(ThreadCtx *ctx); // in a thread that is about to make another thread
    // In the new thread, before its first instruction. Must not call ctx_for_each().
    // False: no memory; the client's clone fails with EAGAIN.
    bool (*start)(ThreadCtx *ctx);
    void (*end)(ThreadCtx *ctx); // in the thread that ends
    // Before a fork takes engine_lock. This hook may wait for other threads.
    void (*fork_soon)(ThreadCtx *ctx);
    // The fork holds thread_lock and engine_lock around all three.
    void (*fork_prepare)(ThreadCtx *ctx);
    void (*fork_parent)(ThreadCtx *ctx);
    void (*fork_child)(ThreadCtx *ctx);
    // vfork_child: in the child of a vfork, on its parent's ctx and memory. vfork_parent: in the
    // parent when it goes on; its ctx is as before the call.
    void (*vfork_child)(ThreadCtx *ctx);
    void (*vfork_parent)(ThreadCtx *ctx);
    // exec: the process is about to execute another program. exec_failed: it could not.
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

// True if an access at `address` failed because the thread's stack is full; *ret_stack_bytes is the
// stack's size then. Takes engine_lock.
bool thread_overflowed_stack(const ThreadCtx *ctx, GuestAddr address, u64 *ret_stack_bytes);

// --- stopping the others
// Stops all other threads until thread_resume_others(): each stands still where it holds no lock,
// or sleeps in the kernel. The caller may run client code meanwhile. Calls nest. While one thread
// is the caller, a second one that calls this waits, and counts as standing still. False: some
// threads did not stop in time and run on; thread_resume_others() is needed all the same.
bool thread_stop_others(ThreadCtx *ctx);
void thread_resume_others(ThreadCtx *ctx);
// The same when the process ends: the others are never resumed. Threads that sleep in the kernel
// are taken out of their system call, so that they do not take input, for instance, after the end.
bool thread_stop_others_for_good(ThreadCtx *ctx);
// While this is not 0, the loop of every other thread must call thread_wait_while_stopped().
extern u32 thread_stopper; // atomic: tid of the thread that has stopped the others
void thread_wait_while_stopped(ThreadCtx *ctx);

// --- work on several processors (workers.c), while the other threads stand still
// Runs fn(argument, 0 … count-1, count) in parallel, the first of them on the calling thread, and
// waits for all. `count` is at most `wanted` and THREAD_WORKERS_MAX, and less if the kernel refuses
// threads. fn must use neither thread-local variables nor a Lock.
#define THREAD_WORKERS_MAX 16
void thread_run_workers(u32 wanted, void (*fn)(void *argument, u32 worker, u32 count),
                        void *argument);
u32 thread_processors(void); // the number of processors that the calling thread may run on

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
// Makes the calling thread the one that ends this process. If another thread is that already, the
// call does not return: the calling thread stands still until the kernel ends it.
void process_end_claim(ThreadCtx *ctx);
// Ends the process with `status` and calls no hook. Any thread may call it, with any lock held,
// also while another thread ends the process. All host signals must be blocked.
_Noreturn void process_exit_at_once(ThreadCtx *ctx, int status);

// Ends the calling thread because of `info`, a signal that is not delivered. If others can see how
// the thread ends (it is the first or the last thread of the process), last_call(signo) ends it
// when all else is done. last_call() must not return.
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
    bool is_followed; // set by the hook: the engine will run the program
    int filters_fd;   // set by the hook: to be closed if the call fails; or -1
} ExecRequest;

// NULL: executed programs are not followed, and the kernel gets the client's own
// pointers. Else the hook may rewrite the request so that the program starts under the engine;
// a negative result is the client's -errno.
extern i64 (*exec_follow_hook)(ThreadCtx *ctx, ExecRequest *request);
// Gives the calling thread the seccomp filters of `ctx` in the kernel, before an execve. Always
// set.
extern i64 (*exec_filters_hook)(const ThreadCtx *ctx);
// The path of the client's executable, for a client that executes /proc/self/exe.
extern const char *(*exec_own_path_hook)(void);

#endif
