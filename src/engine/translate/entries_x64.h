// SPDX-License-Identifier: MIT
//
// Entries of blocks for indirect branches; private to translate/.
#ifndef MUNINN_ENGINE_TRANSLATE_ENTRIES_X64_H
#define MUNINN_ENGINE_TRANSLATE_ENTRIES_X64_H

#include "engine/cache/cache.h"
#include "engine/emit/emit.h"

// How an entry compares: by `loop` or, where that is slow, by `jrcxz`. True before entries_init().
extern bool entries_by_loop;
// `other` is for tests of the other way.
void entries_init(bool other);
// What leads to the code that follows, which is to be the block's body.
void emit_entry(Emitter *e, Block *block, EntryKind kind);

#endif
