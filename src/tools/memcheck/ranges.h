// SPDX-License-Identifier: MIT
//
// Ranges of which the program has told something, and walks over what is mapped. Private to
// memcheck/.
#ifndef MUNINN_TOOLS_MEMCHECK_RANGES_H
#define MUNINN_TOOLS_MEMCHECK_RANGES_H

#include "tools/memcheck/memcheck.h"

// --- ranges_hot.c: light
// Errors of accesses there are not wanted, or are again. False: the range is empty, or
// there are too many.
bool ranges_set_ignored(GuestAddr start, u64 size, bool is_ignored, bool by_program);
// The lowest range from `at` on that the program does not want to hear of.
bool ranges_next_of_program(GuestAddr at, GuestAddr *ret_start, GuestAddr *ret_end);
// Whether the program, or the user by an option, does not want to hear of an access there.
bool ranges_is_ignored(ToolThread *thread, GuestAddr address);
// What an option has said of ranges holds no more.
void ranges_ignore_none_by_option(void);
// --ignore-range-below-sp: at these distances, both included.
void ranges_ignore_below_sp(u64 high, u64 low);

// Blocks that have a name (CREATE_BLOCK).
enum { NAMED_MAX = 8192 };
i32 ranges_name(const NamedBlock *block); // its number; -1: there are too many
bool ranges_forget_name(u64 number);      // false: there is none of that number
bool ranges_find_named(GuestAddr address, NamedBlock *ret_block);
void ranges_fork_prepare(void);
void ranges_fork_done(bool in_child);

// --- requests.c
bool requests_run(ToolThread *thread, const u64 args[6], u64 *ret_result); // Tool.request
// An answer was written there: it is defined, if the program may touch it, and told of if not.
void requests_answered(ToolThread *thread, GuestAddr start, u64 size); // Tool.answered
// Calls fn for those parts of a range that are client memory, in order, under the engine lock.
typedef void MappedVisit(void *data, GuestAddr start, u64 size);
void requests_for_mapped(GuestAddr start, u64 size, MappedVisit *fn, void *data);
bool requests_is_mapped(GuestAddr start, u64 size); // all of it
// The first byte of each kind in a range; ~0: none.
typedef struct RequestSearch {
    GuestAddr noaccess, undefined;
} RequestSearch;
RequestSearch requests_search(ToolThread *thread, GuestAddr start, u64 size);
// What a finding says of the innermost call: the instruction at which the thread is.
u32 requests_context(ToolThread *thread);

#endif
