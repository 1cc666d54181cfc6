// SPDX-License-Identifier: MIT
//
// Work of the engine's own on several processors, while the client stands still. A worker
// is a bare thread of the kernel's: no libc, no record, and the %fs of the caller, which runs on as
// one of the workers. So what it runs may neither keep thread-local things nor take locks of
// base/futex_lock.h, which notes there what is held.
//
//     caller      blocks signals, makes workers, opens the gate, is worker 0, waits
//     worker      waits at the gate, runs the function, ends: the kernel clears its word
//
// Only faults come to a worker, for guest_read(), whose handler needs no thread.
#include <linux/futex.h>
#include <linux/sched.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread_internal.h"

#define WORKER_FLAGS                                                                               \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |            \
     CLONE_CHILD_CLEARTID)
#define STACK_BYTES (256 * KiB)

typedef struct Team {
    void (*fn)(void *argument, u32 worker, u32 count);
    void *argument;
    u32 count; // atomic: 0 until all are there
} Team;

typedef struct Member {
    Team *team;
    u32 number;
    u32 tid; // atomic: not 0 while the thread lives; the kernel clears and wakes
    u8 *stack;
} Member;

static void worker_main(void *data)
{
    const Member *member = data;
    Team *team = member->team;
    u32 count;

    while ((count = __atomic_load_n(&team->count, __ATOMIC_ACQUIRE)) == 0)
        raw_syscall4(SYS_futex, (u64)&team->count, FUTEX_WAIT_PRIVATE, 0, 0);
    team->fn(team->argument, member->number, count);
    for (;;)
        raw_syscall1(SYS_exit, 0);
}

static bool start(Member *member)
{
    const CloneArgs args = { .flags = WORKER_FLAGS, .child_tid = (u64)&member->tid };

    member->stack = pages_map(STACK_BYTES);
    if (!member->stack)
        return false;
    __atomic_store_n(&member->tid, 1, __ATOMIC_RELEASE);
    if (native_clone_on_stack(&args, member->stack, STACK_BYTES, 0, worker_main, member) > 0)
        return true;
    pages_unmap(member->stack, STACK_BYTES);
    return false;
}

static void await_end(Member *member)
{
    while (__atomic_load_n(&member->tid, __ATOMIC_ACQUIRE))
        raw_syscall4(SYS_futex, (u64)&member->tid, FUTEX_WAIT, 1, 0); // the kernel wakes so
    pages_unmap(member->stack, STACK_BYTES);
}

void thread_run_workers(u32 wanted, void (*fn)(void *argument, u32 worker, u32 count),
                        void *argument)
{
    Member members[THREAD_WORKERS_MAX];
    Team team = { .fn = fn, .argument = argument };
    u32 count = 1;
    u64 mask = signal_admit_faults(); // workers inherit it

    // A tracer would be told of threads that are not the client's, and could stop them.
    while (count < wanted && count < THREAD_WORKERS_MAX && !signal_is_traced) {
        members[count] = (Member){ .team = &team, .number = count };
        if (!start(&members[count]))
            break;
        count++;
    }
    __atomic_store_n(&team.count, count, __ATOMIC_RELEASE);
    raw_syscall3(SYS_futex, (u64)&team.count, FUTEX_WAKE_PRIVATE, INT32_MAX);
    fn(argument, 0, count);
    for (u32 i = 1; i < count; i++)
        await_end(&members[i]);
    signal_put_host_mask(mask);
}

u32 thread_processors(void)
{
    u64 set[128] = { 0 }; // 8,192 processors
    i64 bytes = raw_syscall3(SYS_sched_getaffinity, 0, sizeof(set), (u64)set);
    u32 count = 0;

    for (i64 i = 0; i < bytes / 8; i++)
        count += (u32)__builtin_popcountll(set[i]);
    return count ? count : 1;
}
