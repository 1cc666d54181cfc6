// SPDX-License-Identifier: MIT
//
// The counters that --stats prints, from stats.def.

#include "engine/cache/cache.h"
#include "engine/log/log.h"
#include "engine/redirect/redirect.h"
#include "engine/run/run.h"
#include "engine/thread/thread.h"
#include "engine/translate/translate.h"

typedef struct Sums {
    u64 dispatches, indirect_misses, syscalls, signals;
} Sums;

static Sums ended; // of threads that are no more

static void add(ThreadCtx *ctx, void *arg)
{
    Sums *s = arg;
    s->dispatches += ctx->stat_dispatches;
    s->indirect_misses += ctx->stat_indirect_misses;
    s->syscalls += ctx->stat_syscalls;
    s->signals += ctx->stat_signals;
}

void stats_thread_end(ThreadCtx *ctx)
{
    add(ctx, &ended);
}

void stats_print(void)
{
    Sums sums = ended;
    thread_for_each(add, &sums);
#define STAT(name, value, meaning) log_line("stats: %s %lu", name, (unsigned long)(value));
#include "engine/run/stats.def"
#undef STAT
}
