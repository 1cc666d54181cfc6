// SPDX-License-Identifier: MIT
//
// What the loop and the light exit share; private to run/.
#ifndef MUNINN_ENGINE_RUN_LIGHT_H
#define MUNINN_ENGINE_RUN_LIGHT_H

#include "engine/cache/cache.h"

// The kind of entry that would have spared the thread this way out of the cache.
EntryKind run_entry_kind(const ThreadCtx *ctx);

// The version of the block to enter at ctx->pc.
u32 run_version(ThreadCtx *ctx);

// Links the exit by which the thread has left the cache, if it is still there.
// Engine lock held.
void run_link_exit(const ThreadCtx *ctx, Block *to);

#endif
