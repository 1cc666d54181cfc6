// SPDX-License-Identifier: MIT
//
// New threads. The engine's libc creates them, because the engine's own C code
// needs a libc thread block under %fs; what the client's clone promises is
// then established by the child itself before its first client instruction.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/descriptors/descriptors.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

#define ROBUST_LIST_BYTES 24
#define END_TRIES 10000
#define SHARING_PROCESS_FAILED 127 // its exit status when there is no memory to begin with
// libc's private signals, whose handlers its first pthread_create() installs.
#define LIBC_SIGNAL_FIRST 32
#define LIBC_SIGNAL_LAST 33

// Shared by parent and child until `result` is set; lives on the parent's stack.
typedef struct ThreadStart {
    ThreadCtx *parent;
    const CloneArgs *args;
    ThreadRecord *record;
    u64 fs_base; // of a donor
    u32 result;  // 0: not yet; else the tid or -errno
    u32 ended;   // 1: a thread that was made with CLONE_VFORK has ended
} ThreadStart;

static void publish(u32 *word, i32 result)
{
    __atomic_store_n(word, (u32)result, __ATOMIC_RELEASE);
    // The parent may be gone from here on; a stray wake-up is harmless.
    raw_syscall3(SYS_futex, (u64)word, FUTEX_WAKE_PRIVATE, 1);
}

static i32 await(u32 *word)
{
    for (;;) {
        i32 result = (i32)__atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (result != 0)
            return result;
        raw_syscall4(SYS_futex, (u64)word, FUTEX_WAIT_PRIVATE, 0, 0);
    }
}

// Registers, vector state and mask are the parent's, as after any clone.
static void inherit(ThreadCtx *ctx, const ThreadCtx *parent, const CloneArgs *args,
                    ThreadRecord *record)
{
    ctx->gateway.self = ctx;
    memcpy(ctx->gpr, parent->gpr, sizeof(ctx->gpr));
    ctx->gpr[RAX] = 0;
    if (args->stack)
        ctx->gpr[RSP] = args->stack;
    ctx->thread.stack_lowest = args->stack_lowest;
    ctx->pc = parent->pc;
    ctx->flags = parent->flags;
    ctx->client_fs = args->flags & CLONE_SETTLS ? args->tls : parent->client_fs;
    ctx->client_gs = parent->client_gs;
    ctx->xsave = record->xsave;
    ctx->xsave_size = parent->xsave_size;
    memcpy(ctx->xsave, parent->xsave, parent->xsave_size);
    ctx->signal.client_mask = parent->signal.client_mask;
    ctx->seccomp.filter = parent->seccomp.filter;
    signal_reset_altstack(ctx);
    ctx->thread.record = record;
    record->live.ctx = ctx;
    ctx->live = &record->live;
}

static void write_tids(const CloneArgs *args, i32 tid)
{
    // As the kernel, which forgets about failures here.
    if (args->flags & CLONE_PARENT_SETTID)
        guest_write(args->parent_tid, &tid, sizeof(tid));
    if (args->flags & CLONE_CHILD_SETTID)
        guest_write(args->child_tid, &tid, sizeof(tid));
}

// libc has made a thread that shares everything and has a robust list and a
// clear-tid address of libc's own; the client may have asked for less.
static void make_native(const CloneArgs *args)
{
    const u64 shareable = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM;
    u64 unshared = ~args->flags & shareable;

    raw_syscall2(SYS_set_robust_list, 0, ROBUST_LIST_BYTES);
    raw_syscall1(SYS_set_tid_address, args->flags & CLONE_CHILD_CLEARTID ? args->child_tid : 0);
    if (unshared)
        raw_syscall1(SYS_unshare, unshared);
    if (unshared & CLONE_FILES)
        descriptors_table_is_split();
}

// The kernel gives the descriptor to the parent's table before the child is born: the
// child gets it while it still shares the table of its parent.
static i64 open_pidfd(const CloneArgs *args, i32 tid)
{
    const u64 pidfd_thread = O_EXCL;
    i64 fd = raw_syscall2(SYS_pidfd_open, (u64)tid, pidfd_thread);

    if (fd < 0)
        return fd; // before Linux 6.9 there are none for threads
    i32 number = (i32)fd;
    if (guest_write(args->pidfd, &number, sizeof(number)))
        return fd;
    raw_syscall1(SYS_close, (u64)fd);
    return -EFAULT;
}

static i64 establish(const CloneArgs *args, i32 tid)
{
    i64 pidfd = args->flags & CLONE_PIDFD ? open_pidfd(args, tid) : 0;

    if (pidfd < 0)
        return pidfd;
    make_native(args);
    if ((args->flags & CLONE_PIDFD) && !(args->flags & CLONE_FILES))
        raw_syscall1(SYS_close, (u64)pidfd);
    write_tids(args, tid);
    return 0;
}

static void unbegin(ThreadCtx *ctx)
{
    hooks_end(ctx);
    signal_thread_end(ctx);
    signal_actions_release(ctx->signal.actions);
}

static bool begin(ThreadStart *start)
{
    ThreadCtx *ctx = &thread_ctx;

    memset(ctx, 0, sizeof(*ctx));
    inherit(ctx, start->parent, start->args, start->record);
    ctx->thread.tid = (i32)raw_syscall0(SYS_gettid);
    start->record->tid = ctx->thread.tid;
    lock_set_owner((u32)ctx->thread.tid);
    ctx->signal.actions = signal_actions_share(start->parent->signal.actions);
    if (signal_thread_init(ctx)) {
        if (hooks_start(ctx))
            return true;
        signal_thread_end(ctx);
    }
    signal_actions_release(ctx->signal.actions);
    return false;
}

static void *thread_main(void *arg)
{
    ThreadStart *start = arg;
    ThreadCtx *ctx = &thread_ctx;

    // libc's first pthread_create() opens its private signals, which the client's
    // libc may aim at this thread as soon as its tid is known.
    signal_block_host();
    if (!begin(start)) {
        publish(&start->result, -EAGAIN);
        return NULL;
    }
    i64 r = establish(start->args, ctx->thread.tid);
    if (r < 0) {
        unbegin(ctx);
        publish(&start->result, (i32)r);
        return NULL;
    }
    if (start->args->flags & CLONE_VFORK)
        ctx->thread.record->ended = &start->ended;
    ctx_live_add(ctx->live); // before it can be in the cache: C3 counts the live ones
    publish(&start->result, ctx->thread.tid);
    if (__builtin_setjmp(ctx->thread.record->leave) == 0) {
        signal_restore_host_mask(ctx);
        thread_run_hook(ctx);
    }
    // sys_exit() has ended the client's part; libc ends its own.
    return NULL;
}

void thread_tell_end(ThreadRecord *record)
{
    if (record->ended)
        publish(record->ended, 1);
}

// The kernel wakes such a parent when it has cleared the child's tid: so the thread is to be
// gone, unless its number has another owner already.
static void await_end(ThreadStart *start, i32 tid)
{
    const u64 pid = (u64)raw_syscall0(SYS_getpid);

    await(&start->ended);
    for (int i = 0; i < END_TRIES; i++) {
        if (raw_syscall3(SYS_tgkill, pid, (u64)tid, 0) == -ESRCH)
            return;
        raw_syscall0(SYS_sched_yield);
    }
}

void thread_leave(ThreadCtx *ctx)
{
    __builtin_longjmp(ctx->thread.record->leave, 1);
}

// The first call installs libc's handler for a signal that the client's libc
// uses for the same purpose; ours goes back in its place.
static void restore_libc_signals(ThreadCtx *ctx)
{
    static bool done; // thread_lock

    if (done)
        return;
    done = true;
    for (int sig = LIBC_SIGNAL_FIRST; sig <= LIBC_SIGNAL_LAST; sig++)
        signal_actions_reinstall(ctx->signal.actions, sig);
}

static bool spawn(ThreadCtx *ctx, ThreadRecord *record, void *(*entry)(void *), ThreadStart *start)
{
    pthread_attr_t attr;
    pthread_t ignored;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int r = pthread_attr_setstack(&attr, record->stack, record->stack_size);
    if (r == 0)
        r = pthread_create(&ignored, &attr, entry, start);
    pthread_attr_destroy(&attr);
    restore_libc_signals(ctx);
    return r == 0;
}

static i64 spawn_and_await(ThreadCtx *ctx, ThreadStart *start, void *(*entry)(void *))
{
    hooks_create(ctx);
    start->record = record_new();
    if (!start->record)
        return -EAGAIN;
    if (!spawn(ctx, start->record, entry, start)) {
        record_discard(start->record);
        return -EAGAIN;
    }
    i32 result = await(&start->result);
    if (result < 0)
        record_leave(start->record);
    else
        record_tid_is_taken(result);
    return result;
}

i64 clone_thread(ThreadCtx *ctx, const CloneArgs *args)
{
    ThreadStart start = { .parent = ctx, .args = args };

    if (!silence_signals(ctx))
        return GATEWAY_RESTART;
    lock_acquire(&thread_lock);
    i64 result = spawn_and_await(ctx, &start, thread_main);
    lock_release(&thread_lock);
    if (result > 0 && (args->flags & CLONE_VFORK))
        await_end(&start, (i32)result);
    signal_restore_host_mask(ctx);
    return result;
}

// ---------------------------------------------------------------- processes that share memory

// A child of this process, so that a thread of it may wait; who reaps it is the client's affair.
static void await_process(i32 pid)
{
    siginfo_t info;

    raw_syscall6(SYS_waitid, P_PID, (u64)pid, (u64)&info, WEXITED | WNOWAIT | __WALL, 0, 0);
}

// What the process could not do for itself: all of it, if it was killed. Before thread_lock is
// taken: somebody may hold that and wait for the dead to leave the cache (C3).
static void end_sharing_process(ThreadRecord *child, ThreadCtx *ctx, i32 pid)
{
    if (pid > 0)
        locks_free_those_of((i32)raw_syscall0(SYS_gettid), pid);
    if (ctx_live_remove_if_there(&child->live))
        hooks_end(ctx);
    signal_actions_release(ctx->signal.actions);
}

// Lends its thread block, and the ThreadCtx in it, to a process that has no
// libc thread of its own, and sleeps for as long as that lives.
static void *donor_main(void *arg)
{
    ThreadStart *start = arg;
    ThreadRecord *record = start->record;

    signal_block_host();
    record->live.ctx = &thread_ctx;
    record->tid = (i32)raw_syscall0(SYS_gettid);
    start->fs_base = (u64)__builtin_thread_pointer();
    publish(&start->result, record->tid);
    i32 pid = await(&record->borrower_pid);
    if (pid > 0)
        await_process(pid);
    if (record->borrower)
        end_sharing_process(record->borrower, &thread_ctx, pid);
    lock_acquire(&thread_lock);
    if (record->borrower)
        record_discard(record->borrower);
    record_leave(record);
    lock_release(&thread_lock);
    return NULL;
}

static void sharing_process_main(void *arg)
{
    ThreadCtx *ctx = arg;

    ctx->thread.tid = (i32)raw_syscall0(SYS_gettid);
    ctx->thread.record->tid = ctx->thread.tid;
    lock_set_owner((u32)ctx->thread.tid);
    if (!signal_thread_init(ctx) || !hooks_start(ctx))
        process_exit(ctx, SHARING_PROCESS_FAILED);
    if (ctx->thread.record->clear_handlers)
        signal_actions_clear_handlers(ctx->signal.actions);
    signal_restore_host_mask(ctx);
    thread_run_hook(ctx);
}

// The child's ThreadCtx is the donor's. It is visible in the registry, since its
// thread runs in the cache like any other.
static ThreadRecord *prepare_sharing_process(ThreadCtx *ctx, const CloneArgs *args,
                                             ThreadCtx *child)
{
    // The donor sleeps on its own stack; the child needs another.
    ThreadRecord *record = record_new();
    if (!record)
        return NULL;
    memset(child, 0, sizeof(*child));
    child->signal.actions = args->flags & CLONE_SIGHAND ? signal_actions_share(ctx->signal.actions)
                                                 : signal_actions_copy(ctx->signal.actions);
    if (!child->signal.actions) {
        record_discard(record);
        return NULL;
    }
    inherit(child, ctx, args, record);
    child->thread.vfork_depth = 1; // its exit is not the end of the process we report on
    record->live.is_process = true;
    record->clear_handlers = args->flags & CLONE_CLEAR_SIGHAND;
    ctx_live_add(&record->live);
    return record;
}

static i64 start_sharing_process(ThreadCtx *ctx, const CloneArgs *args)
{
    ThreadStart start = { .parent = ctx, .args = args };
    i64 donor = spawn_and_await(ctx, &start, donor_main);

    if (donor < 0)
        return donor;
    ThreadCtx *child = start.record->live.ctx;
    ThreadRecord *record = prepare_sharing_process(ctx, args, child);
    if (!record) {
        publish(&start.record->borrower_pid, -ENOMEM);
        return -ENOMEM;
    }
    start.record->borrower = record;
    if (!(args->flags & CLONE_FILES))
        descriptors_table_is_split();
    i64 result = native_clone_on_stack(args, record->stack, record->stack_size, start.fs_base,
                                       sharing_process_main, child);
    if (result < 0)
        ctx_live_remove(&record->live); // the donor does the rest, but for hooks that never began
    publish(&start.record->borrower_pid, (i32)result);
    return result;
}

i64 clone_sharing_process(ThreadCtx *ctx, const CloneArgs *args)
{
    if (!silence_signals(ctx))
        return GATEWAY_RESTART;
    lock_acquire(&thread_lock);
    i64 result = start_sharing_process(ctx, args);
    lock_release(&thread_lock);
    signal_restore_host_mask(ctx);
    return result;
}
