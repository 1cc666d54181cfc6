// SPDX-License-Identifier: MIT
//
// ToolFunction.quick of the string functions: what nearly all calls are, a few bytes that are
// defined and may be touched. Private to its folder.
//
// What must stay true
//   Q1  A fast form does what its handler would do, and tells nothing: whatever there is to
//       tell is left to the handler, which begins anew. So what it writes can be written again.
#ifndef MUNINN_TOOLS_MEMCHECK_STRINGS_QUICK_H
#define MUNINN_TOOLS_MEMCHECK_STRINGS_QUICK_H

#include "engine/toolapi/toolapi.h"

TOOL_QUICK quick_copy(u64 to, u64 from, u64 size, u64 unused);
TOOL_QUICK quick_copy_end(u64 to, u64 from, u64 size, u64 unused);
TOOL_QUICK quick_copy_checked(u64 to, u64 from, u64 size, u64 room);
TOOL_QUICK quick_fill(u64 to, u64 value, u64 size, u64 unused);
TOOL_QUICK quick_fill_checked(u64 to, u64 value, u64 size, u64 room);
TOOL_QUICK quick_memcmp(u64 a, u64 b, u64 size, u64 unused);
TOOL_QUICK quick_strcmp(u64 a, u64 b, u64 unused, u64 unused_too);
TOOL_QUICK quick_strncmp(u64 a, u64 b, u64 limit, u64 unused);
TOOL_QUICK quick_strlen(u64 start, u64 unused, u64 unused_too, u64 unused_three);
TOOL_QUICK quick_strnlen(u64 start, u64 limit, u64 unused, u64 unused_too);
TOOL_QUICK quick_strchr(u64 start, u64 needle, u64 unused, u64 unused_too);
TOOL_QUICK quick_strchrnul(u64 start, u64 needle, u64 unused, u64 unused_too);
TOOL_QUICK quick_memchr(u64 start, u64 needle, u64 limit, u64 unused);
TOOL_QUICK quick_rawmemchr(u64 start, u64 needle, u64 unused, u64 unused_too);
TOOL_QUICK quick_strspn(u64 start, u64 set, u64 unused, u64 unused_too);
TOOL_QUICK quick_strcspn(u64 start, u64 set, u64 unused, u64 unused_too);
TOOL_QUICK quick_strpbrk(u64 start, u64 set, u64 unused, u64 unused_too);

#endif
