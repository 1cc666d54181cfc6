// SPDX-License-Identifier: MIT
//
// What the loop and the light exit share; private to run/.
#ifndef MUNINN_ENGINE_RUN_LIGHT_H
#define MUNINN_ENGINE_RUN_LIGHT_H

#include "engine/cache/cache.h"

// The kind of entry that the target block lacked: with it the thread would not have left the cache.
EntryKind run_entry_kind(const ThreadCtx *ctx);

// The version of the block to enter at ctx->pc.
u32 run_version(ThreadCtx *ctx);

// Links the exit by which the thread has left the cache to the block `to`, unless the exit's own
// block has been retired since. Engine lock held.
void run_link_exit(const ThreadCtx *ctx, Block *to);

#endif
