// SPDX-License-Identifier: MIT
//
// The allocation functions that are replaced; private to memcheck/.
#ifndef MUNINN_TOOLS_MEMCHECK_HEAP_FUNCTIONS_H
#define MUNINN_TOOLS_MEMCHECK_HEAP_FUNCTIONS_H

#include "engine/toolapi/toolapi.h"

// ToolFunction.data: the HeapKind, and
#define HEAP_DATA_SIZE_FIRST 0x100  // size before alignment
#define HEAP_DATA_WHOLE_PAGES 0x200 // pvalloc
#define HEAP_DATA_ARRAY 0x400       // reallocarray
#define HEAP_DATA_THROWS 0x800      // operator new: fails by an exception

ToolReplaceFn replace_malloc, replace_calloc, replace_memalign, replace_posix_memalign,
    replace_valloc, replace_free, replace_realloc, replace_usable_size;

// All functions that the tool replaces: those of the heap, and strings.def, in every object and
// once more for what C libraries hide.
enum {
    MEMCHECK_CXX_FREERES = 34, // not replaced: where they are is what matters
    MEMCHECK_LIBC_FREERES,
    HEAP_FUNCTIONS,
#define STRING(name, handler, data) +1
    STRING_FUNCTIONS = 0
#include "tools/memcheck/strings.def"
    ,
#define STRING(name, handler, data) +1
#define LEGACY(name, handler, data) +1
    STRING_FUNCTIONS_LIBC = 0
#include "tools/memcheck/strings.def"
    ,
    MEMCHECK_MALLOC = 0,
    MEMCHECK_FUNCTIONS = HEAP_FUNCTIONS + STRING_FUNCTIONS + 2 * STRING_FUNCTIONS_LIBC,
};
extern const ToolFunction memcheck_functions[MEMCHECK_FUNCTIONS];

// HeapHooks
void heap_mark_noaccess(GuestAddr start, u64 size);
void heap_mark_soon(GuestAddr start);
void heap_mark_copied(GuestAddr from, GuestAddr to, u64 size); // and copies it
void heap_mark_allocated(GuestAddr start, u64 size, bool is_zeroed, u32 context);
void heap_mark_adopted(GuestAddr start, u64 size, bool is_zeroed, u32 context);

// What a call may change is defined after it.
void set_result_defined(ToolThread *thread);
// "malloc(size)": what a report calls the argument.
// --alignment: of all blocks, at least.
extern u64 heap_alignment;
const char *heap_fishy_text(const ToolFunction *function);
bool heap_store_pointer(ToolThread *thread, GuestAddr at, u64 pointer);
void report_realloc_zero(ToolThread *thread, const ToolCall *call, GuestAddr old);

#endif
