// SPDX-License-Identifier: MIT
//
// The allocation functions that are replaced.
#ifndef MUNINN_TOOLS_MEMCHECK_HEAP_FUNCTIONS_H
#define MUNINN_TOOLS_MEMCHECK_HEAP_FUNCTIONS_H

#include "engine/toolapi/toolapi.h"
#include "tools/heap/heap.h"

// ToolFunction.data: the HeapKind, and
#define HEAP_DATA_SIZE_FIRST 0x100  // size before alignment
#define HEAP_DATA_WHOLE_PAGES 0x200 // pvalloc
#define HEAP_DATA_ARRAY 0x400       // reallocarray
#define HEAP_DATA_THROWS 0x800      // operator new: fails by an exception
#define HEAP_DATA_CXX 0x1000        // operator new(size, alignment): refuses bad alignments
// Of what a function that frees is told besides the block; the size comes first unless
// HEAP_DATA_ALIGN_FIRST.
#define HEAP_DATA_SIZED 0x2000
#define HEAP_DATA_ALIGNED 0x4000
#define HEAP_DATA_ALIGN_FIRST 0x8000
#define HEAP_DATA_UNTOLD 0x10000 // it may be any of them: neither size nor alignment are checked

ToolReplaceFn replace_malloc, replace_calloc, replace_memalign, replace_aligned_alloc,
    replace_posix_memalign, replace_valloc, replace_free, replace_realloc, replace_usable_size;
ToolReplaceFn replace_arena_malloc, replace_arena_calloc, replace_arena_realloc,
    replace_arena_memalign, replace_arena_free;

// Tool.alias: linkers that fold identical code, and allocators that give one function several
// names, leave no way to tell which of them was called.
const ToolFunction *heap_alias(const ToolFunction *known, const ToolFunction *other);

// All functions that the tool replaces: those of the heap, and strings.def, in every object and
// once more for what C libraries hide.
enum {
    MEMCHECK_CXX_FREERES = 39, // not replaced: where they are is what matters
    MEMCHECK_LIBC_FREERES,
    HEAP_FUNCTIONS,
#define STRING(name, handler, data) +1
    STRING_FUNCTIONS = 0
#include "tools/memcheck/strings/strings.def"
    ,
#define STRING(name, handler, data) +1
#define LEGACY(name, handler, data) +1
    STRING_FUNCTIONS_LIBC = 0
#include "tools/memcheck/strings/strings.def"
    ,
    MEMCHECK_MALLOC = 0,
    MEMCHECK_CALLOC,
    MEMCHECK_REALLOC,
    MEMCHECK_FREE = 4,
    MEMCHECK_MEMALIGN = 8,
    MEMCHECK_FUNCTIONS = HEAP_FUNCTIONS + STRING_FUNCTIONS + 2 * STRING_FUNCTIONS_LIBC,
};
extern const ToolFunction memcheck_functions[MEMCHECK_FUNCTIONS];

// HeapHooks
void heap_mark_noaccess(GuestAddr start, u64 size);
void heap_mark_soon(GuestAddr start);
void heap_mark_copied(GuestAddr from, GuestAddr to, u64 size); // and copies it
void heap_mark_allocated(GuestAddr start, u64 size, bool is_zeroed, u32 context);
void heap_mark_adopted(GuestAddr start, u64 size, bool is_zeroed, u32 context);

// The stack of a call; and that which a block keeps of it, 0: none.
u32 heap_context_of(ToolThread *thread, const ToolCall *call);
u32 heap_kept_context(ToolThread *thread, const ToolCall *call, bool of_free);

// An argument is used here. False: it was not defined, which has been reported.
bool heap_check_argument(ToolThread *thread, const ToolCall *call, unsigned reg);
// An alignment must be a power of two and, if `multiple` is not 0, a multiple of that.
bool heap_is_alignment(u64 alignment, u64 multiple);
void heap_report_alignment(ToolThread *thread, const ToolCall *call, u64 alignment, u64 multiple);

// The live block that begins there; false: there is none, or nobody counts (count.h).
bool heap_find_counted(u64 start, HeapBlock *ret_block);

// Ends a block, and reports what speaks against it. NULL is in order.
HeapResult heap_release(ToolThread *thread, ToolCall *call, u64 start, HeapKind kind);
void heap_report_bad_free(ToolThread *thread, const ToolCall *call, HeapResult result,
                          GuestAddr address, const HeapBlock *block);

// "malloc(size)": what a report calls the argument.
// --alignment: of all blocks, at least.
extern u64 heap_alignment;
const char *heap_function_name(const ToolFunction *function);
bool heap_store_pointer(ToolThread *thread, GuestAddr at, u64 pointer);
void report_realloc_zero(ToolThread *thread, const ToolCall *call, GuestAddr old);

#endif
