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

// If set, the addresses of the engine that the code of blocks holds (emit/emit.h) are noted here,
// block after block. NULL: they are not noted.
extern EmitAddresses *translate_addresses;

// `max_insns` bounds a block (--stress=tiny-blocks lowers it), `other_entries` is --stress=entries.
void translate_init(unsigned max_insns, bool other_entries);

// How many bytes of the cache a block may need with the tool of this run, stubs included.
size_t translate_code_room(void);

// Makes the block for (pc, version) and puts it into the cache, with the entry
// prefix of kind `entry`. Engine lock held. Returns NULL on failure: *ret_result says why, and
// *ret_fault is the address that could not be fetched or decoded.
Block *translate_block(GuestAddr pc, u32 version, EntryKind entry, FetchResult *ret_result,
                       GuestAddr *ret_fault);

// Gives a block that was translated without an entry prefix of that kind one. Engine lock
// held. False when the block's unit has no room: then the caller must find the block in C.
bool translate_add_entry(Block *block, EntryKind kind);

// Sets the client's base of fs. No lock held.
void translate_set_fs(ThreadCtx *ctx, u64 base);
// To be called when a second thread begins: blocks must no longer hold the base as a constant,
// since each thread has its own. No lock held.
void translate_fs_varies(void);

// To be called when the client sets a handler for a fault: from now on the handler can see the
// flags that an instruction found when it faulted. Before that nobody can, and what a tool inserts
// before an instruction may change its flags if nothing else reads them. No lock held.
void translate_faults_are_seen(void);

// If the instruction at `at` is the compare of an early guard (tool_shadow_guard_early()) and has
// faulted, returns where the guard goes on when it fails. Else NULL.
CodePtr translate_early_guard_failed(CodePtr at);

#endif
