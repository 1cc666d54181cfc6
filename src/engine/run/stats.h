// SPDX-License-Identifier: MIT
//
// --stats.
#ifndef MUNINN_ENGINE_RUN_STATS_H
#define MUNINN_ENGINE_RUN_STATS_H

#include "engine/run/run.h"

void stats_print(void);
void stats_thread_end(ThreadCtx *ctx); // keeps a thread's counters beyond its end

#endif
