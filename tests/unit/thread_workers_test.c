// SPDX-License-Identifier: MIT
//
// Workers of the engine's own: each runs once, at the same time as the others, and is gone
// afterwards.
#include <signal.h>
#include <unistd.h>

#include "base/raw_syscall.h"
#include "engine/thread/thread.h"

#include "unit.h"

typedef struct Meeting {
    u32 came[THREAD_WORKERS_MAX];
    u32 count;
    u32 there; // atomic
    i32 tids[THREAD_WORKERS_MAX];
} Meeting;

// Waits for all others: nobody would come out if they ran one after the other.
static void meet(void *argument, u32 worker, u32 count)
{
    Meeting *meeting = argument;

    meeting->came[worker]++;
    meeting->tids[worker] = (i32)raw_syscall0(SYS_gettid);
    __atomic_store_n(&meeting->count, count, __ATOMIC_RELAXED);
    __atomic_add_fetch(&meeting->there, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&meeting->there, __ATOMIC_ACQUIRE) < count)
        raw_syscall0(SYS_sched_yield);
}

TEST(workers_run_at_the_same_time_and_are_gone_afterwards)
{
    for (u32 wanted = 1; wanted <= THREAD_WORKERS_MAX + 1; wanted++) {
        Meeting meeting = { 0 };
        thread_run_workers(wanted, meet, &meeting);
        CHECK_EQ(meeting.count, wanted < THREAD_WORKERS_MAX ? wanted : THREAD_WORKERS_MAX);
        CHECK_EQ(meeting.tids[0], gettid());
        for (u32 i = 0; i < meeting.count; i++) {
            CHECK_EQ(meeting.came[i], 1);
            for (u32 k = 0; k < i; k++)
                CHECK(meeting.tids[i] != meeting.tids[k]);
        }
    }
}

static void take_mask(void *argument, u32 worker, u32 count)
{
    u64 *masks = argument;

    (void)count;
    raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, 0, (u64)&masks[worker], 8);
}

TEST(only_faults_come_to_a_worker_and_the_callers_mask_is_restored)
{
    u64 masks[3] = { 0 }, before = 1ull << (SIGUSR1 - 1), after = 0;

    raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, (u64)&before, 0, 8);
    thread_run_workers(3, take_mask, masks);
    raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, 0, (u64)&after, 8);
    CHECK_EQ(after, before);
    for (u32 i = 0; i < 3; i++) {
        CHECK(masks[i] & 1ull << (SIGUSR1 - 1) && masks[i] & 1ull << (SIGTERM - 1));
        CHECK(!(masks[i] & 1ull << (SIGSEGV - 1)) && !(masks[i] & 1ull << (SIGBUS - 1)));
    }
}

TEST(there_is_a_processor)
{
    CHECK(thread_processors() >= 1 && thread_processors() <= 8192);
}
