// SPDX-License-Identifier: MIT
//
// What the files of thread/ share: the record of a thread, the arguments of
// clone in one shape, and the calls between the files.
#ifndef MUNINN_ENGINE_THREAD_INTERNAL_H
#define MUNINN_ENGINE_THREAD_INTERNAL_H

#include "engine/thread/thread.h"

// The head of the memory that a thread runs on:
//
//     record | xsave area | guard page | stack, with libc's thread block at its top
typedef struct ThreadRecord {
    struct ThreadRecord *next; // in the list of leaving threads
    LiveThread live;
    i32 tid;
    i32 pid; // set when the thread is leaving
    u32 *ended;      // a word on which the parent sleeps until this thread has ended; or NULL
    // For a thread that has lent its thread block to a borrower, a process that shares its memory:
    u32 borrower_pid; // the borrower's pid; 0: not known yet; or -errno
    struct ThreadRecord *borrower;
    bool clear_handlers; // the borrower asked for CLONE_CLEAR_SIGHAND
    u8 *xsave;
    u8 *stack; // lowest byte
    u64 stack_size;
    u8 *exec_area;  // copy of an execve's arguments, see exec.c
    u32 exec_tid;   // atomic: 1 while exec_filtered()'s thread lives
    void *leave[5]; // __builtin_setjmp buffer of the thread's start function
} ThreadRecord;

// clone and clone3 in one shape. Addresses are the client's.
typedef struct CloneArgs {
    u64 flags; // without the exit signal
    u64 exit_signal;
    GuestAddr stack; // the child's rsp, or 0: as the parent's
    GuestAddr stack_lowest; // 0: not told
    GuestAddr pidfd, parent_tid, child_tid;
    u64 tls;
    u64 set_tid, set_tid_size;
    u64 cgroup;
    bool is_clone3; // the client's environment allows clone3
} CloneArgs;

// --- registry.c
// thread_lock must be held for all five.
ThreadRecord *record_new(void);            // a new or a recycled one; NULL: no memory
void record_discard(ThreadRecord *record); // a record on which no thread ever ran
void record_leave(ThreadRecord *record);   // its own thread is about to end
void record_wait_for_leaving(void);        // T2
void record_tid_is_taken(i32 tid);         // by a new thread

// --- hooks.c
void hooks_create(ThreadCtx *ctx);
bool hooks_start(ThreadCtx *ctx);
void hooks_end(ThreadCtx *ctx);
void hooks_fork_soon(ThreadCtx *ctx);
void hooks_fork_prepare(ThreadCtx *ctx);
void hooks_fork_parent(ThreadCtx *ctx);
void hooks_fork_child(ThreadCtx *ctx);
void hooks_vfork_child(ThreadCtx *ctx);
void hooks_vfork_parent(ThreadCtx *ctx);
int hooks_process_end(ThreadCtx *ctx, int status);
void hooks_exec(ThreadCtx *ctx);
void hooks_exec_failed(ThreadCtx *ctx, int error);

// --- create.c
i64 clone_thread(ThreadCtx *ctx, const CloneArgs *args);
// A process of its own in the same memory, running beside its parent.
i64 clone_sharing_process(ThreadCtx *ctx, const CloneArgs *args);
// The calling thread ends: wakes a parent that has waited for it (CLONE_VFORK).
void thread_tell_end(ThreadRecord *record);
// Back to the start function of the calling thread.
_Noreturn void thread_leave(ThreadCtx *ctx);

// --- process.c
i64 clone_fork(ThreadCtx *ctx, const CloneArgs *args);
i64 clone_vfork(ThreadCtx *ctx, const CloneArgs *args);
// To be called when a task that ran on the caller's thread block has died: frees the locks that the
// dead task held.
void locks_free_those_of(i32 own_tid, i32 dead_tid);

// --- exec.c
// The system call as the kernel gets it. The addresses are the client's or ours.
typedef struct ExecCall {
    int dirfd;
    u32 flags;
    u64 path, argv, envp;
} ExecCall;

void exec_area_close(ThreadRecord *record);
i64 exec_native_call(const ExecCall *call);

// --- exec_filtered.c
#define EXEC_STACK_BYTES (256 * KiB)
// For a thread that has seccomp filters; `stack` is for the thread that makes the call.
i64 exec_filtered(ThreadCtx *ctx, const ExecCall *call, u8 *stack);

// --- exit.c
void exit_reset_after_fork(void);

// --- stop.c
// To be called when the calling thread only waits for its end: if it has stopped the others, they
// are resumed.
void stop_give_up(const ThreadCtx *ctx);

// --- clone_x64.c
// The kernel's clone or clone3 with the child on the caller's own stack (a copy).
i64 native_clone(const CloneArgs *args);
// The same with the child at the top of `stack`, calling child(data), which
// must not return. `tls` is the child's %fs base, or 0: the parent's.
i64 native_clone_on_stack(const CloneArgs *args, u8 *stack, u64 stack_size, u64 tls,
                          void (*child)(void *), void *data);

// Blocks all host signals. False: one is pending, and the call that wanted the
// silence returns GATEWAY_RESTART (the mask is as before).
bool silence_signals(ThreadCtx *ctx);

#endif
