// SPDX-License-Identifier: MIT
//
// The counters that --stats prints, from stats.def; the tool adds its own.

#include <time.h>

#include "base/raw_syscall.h"
#include "engine/cache/cache.h"
#include "engine/log/log.h"
#include "engine/redirect/redirect.h"
#include "engine/run/run.h"
#include "engine/perform/perform.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/translate.h"

typedef struct Sums {
    u64 dispatches, indirect_misses, syscalls, signals;
} Sums;

// The time-stamp counter is read around each translation, because a system call
// would cost as much as two instructions' translation; its rate is measured over
// the whole run.
static u64 start_ticks, start_ns;

static u64 now_ns(void)
{
    struct timespec t;
    raw_syscall2(SYS_clock_gettime, CLOCK_MONOTONIC, (u64)&t);
    return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

void stats_init(void)
{
    start_ticks = __builtin_ia32_rdtsc();
    start_ns = now_ns();
}

static u64 ticks_to_ns(u64 ticks)
{
    double rate = (double)(now_ns() - start_ns) / (double)(__builtin_ia32_rdtsc() - start_ticks);
    return (u64)((double)ticks * rate);
}

static Sums ended; // atomic; of threads that are no more

static void add(ThreadCtx *ctx, void *arg)
{
    Sums *s = arg;
    s->dispatches += ctx->stats.dispatches;
    s->indirect_misses += ctx->stats.indirect_misses;
    s->syscalls += ctx->stats.syscalls;
    s->signals += ctx->stats.signals;
}

static void hand_over(u64 *from, u64 *to)
{
    __atomic_fetch_add(to, *from, __ATOMIC_RELAXED);
    *from = 0; // the thread stays in the registry for a while
}

void stats_thread_end(ThreadCtx *ctx)
{
    hand_over(&ctx->stats.dispatches, &ended.dispatches);
    hand_over(&ctx->stats.indirect_misses, &ended.indirect_misses);
    hand_over(&ctx->stats.syscalls, &ended.syscalls);
    hand_over(&ctx->stats.signals, &ended.signals);
}

void stats_print(void)
{
    Sums sums = ended;
    ctx_for_each(add, &sums);
#define STAT(name, value, meaning) log_line("stats: %s %lu", name, (unsigned long)(value));
#include "engine/run/stats.def"
#undef STAT
    if (tool->stats)
        tool->stats();
}
