// SPDX-License-Identifier: MIT
//
// Ranges of which the program has told something, and blocks that it has named.
#ifndef MUNINN_TOOLS_MEMCHECK_SHADOW_RANGES_H
#define MUNINN_TOOLS_MEMCHECK_SHADOW_RANGES_H

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

#endif
