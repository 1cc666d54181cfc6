// SPDX-License-Identifier: MIT
//
// From guest instructions to a block in the cache: copy and annotate.
//
// A block starts at one guest pc, goes on past conditional branches that are
// not taken and along direct jumps, and ends at a call, a return, an indirect
// branch, a system call, or its size limit. Registers are identity mapped, so
// most instructions are copied byte for byte. Where an expansion needs a
// scratch register it spills it to ctx->translate.spill; marks say from which host
// offset on which registers are spilled, so that the client's state can be
// rebuilt at any instruction that may fault.
#ifndef MUNINN_ENGINE_TRANSLATE_TRANSLATE_H
#define MUNINN_ENGINE_TRANSLATE_TRANSLATE_H

#include "base/types.h"
#include "engine/cache/cache.h"

typedef enum FetchResult {
    FETCH_OK,
    FETCH_NO_ACCESS, // the client may not execute there: SIGSEGV
    FETCH_BAD_CODE,  // no instruction: SIGILL
    FETCH_TOO_LONG,  // more than 15 bytes: a general protection fault
} FetchResult;

typedef struct TranslateStats {
    u64 blocks, instructions, ticks; // ticks of the time-stamp counter
    u64 flag_regions;
} TranslateStats;
extern TranslateStats translate_stats;

// Where the addresses in the code of blocks are noted (emit/emit.h), one block after the other;
// NULL where nobody wants to know them.
extern EmitAddresses *translate_addresses;

// `max_insns` bounds a block (--stress=tiny-blocks lowers it), `other_entries` is --stress=entries.
void translate_init(unsigned max_insns, bool other_entries);

// Bytes of the cache that a block of the tool chosen may need, stubs included.
size_t translate_code_room(void);

// Makes the block for (pc, version) and puts it into the cache, with the prefix
// for the kind of indirect branch that leads here. Engine lock held. On
// failure *ret_fault is the address that could not be fetched or decoded.
Block *translate_block(GuestAddr pc, u32 version, EntryKind entry, FetchResult *ret_result,
                       GuestAddr *ret_fault);

// Gives a block that was translated without it such a prefix. Engine lock
// held. False when the block's unit has no room: look the block up in C then.
bool translate_add_entry(Block *block, EntryKind kind);

// The client's base of fs changes; or another thread begins, which has its own. No lock held.
void translate_set_fs(ThreadCtx *ctx, u64 base);
void translate_fs_varies(void);

// The client has a handler for a fault: from now on it sees the flags before an instruction that
// faults. Until then nobody does, and a tool may change them there. No lock held.
void translate_faults_are_seen(void);

// Where the code at `at` goes on if it is the compare of an early guard
// (tool_shadow_guard_early()), which has faulted: as if it had failed. Else NULL.
CodePtr translate_early_guard_failed(CodePtr at);

#endif
