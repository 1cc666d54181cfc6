// SPDX-License-Identifier: MIT
//
// Entries of blocks for indirect branches; private to translate/.
#ifndef MUNINN_ENGINE_TRANSLATE_ENTRIES_X64_H
#define MUNINN_ENGINE_TRANSLATE_ENTRIES_X64_H

#include "engine/cache/cache.h"
#include "engine/emit/emit.h"

// Whether entries compare by `loop` or, on processors where that is slow, by `jrcxz`. True before
// entries_init().
extern bool entries_by_loop;
// With `other` true, entries use the instruction that this processor would not get (for tests).
void entries_init(bool other);
// Emits the entry of that kind. The block's body must follow it directly.
void emit_entry(Emitter *e, Block *block, EntryKind kind);

#endif
