// SPDX-License-Identifier: MIT
//
// The table of allocation functions, and what their handlers need outside the cache.
#include "tools/memcheck/heap/functions.h"

#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "tools/heap/heap.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/heap/quick.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/strings/strings.h"

#define FAST (TOOL_FUNCTION_FAST)
#define NEW_ALIGNED (HEAP_DATA_SIZE_FIRST | HEAP_DATA_CXX)
#define ROW(name_, handler, data_) \
    {.name = name_, .flags = FAST, .replace = handler, .data = data_}
#define HEAP_ROW(name_, handler, data_, quick_) \
    {.name = name_, .flags = FAST, .replace = handler, .data = data_, .quick_at = quick_}
#define QUICK_ROW(name_, handler, data_, quick_) \
    {.name = name_, .flags = FAST, .replace = handler, .data = data_, .quick = quick_}
#define HIDDEN_ROW(object_, name_, handler, data_, quick_) \
    {.object = object_, .name = name_, .flags = FAST | TOOL_FUNCTION_LOCAL, \
     .replace = handler, .data = data_, .quick = quick_}

static void do_nothing(ToolThread *thread, ToolCall *call)
{
    (void)thread;
    (void)call;
}

// Sizes in mangled names are `m`, unsigned long.
const ToolFunction memcheck_functions[MEMCHECK_FUNCTIONS] = {
    [MEMCHECK_MALLOC] = HEAP_ROW("malloc", replace_malloc, HEAP_MALLOC, quick_malloc),
    [MEMCHECK_CALLOC] = HEAP_ROW("calloc", replace_calloc, HEAP_MALLOC, quick_calloc),
    [MEMCHECK_REALLOC] = HEAP_ROW("realloc", replace_realloc, HEAP_MALLOC, quick_realloc),
    ROW("reallocarray", replace_realloc, HEAP_MALLOC | HEAP_DATA_ARRAY),
    [MEMCHECK_FREE] = HEAP_ROW("free", replace_free, HEAP_MALLOC, quick_free),
    ROW("cfree", replace_free, HEAP_MALLOC),
    ROW("free_sized", replace_free, HEAP_MALLOC | HEAP_DATA_SIZED),
    ROW("free_aligned_sized", replace_free,
        HEAP_MALLOC | HEAP_DATA_SIZED | HEAP_DATA_ALIGNED | HEAP_DATA_ALIGN_FIRST),
    [MEMCHECK_MEMALIGN] = ROW("memalign", replace_memalign, HEAP_MEMALIGN),
    ROW("aligned_alloc", replace_aligned_alloc, HEAP_MEMALIGN),
    ROW("posix_memalign", replace_posix_memalign, HEAP_MEMALIGN),
    ROW("valloc", replace_valloc, HEAP_MEMALIGN),
    ROW("pvalloc", replace_valloc, HEAP_MEMALIGN | HEAP_DATA_WHOLE_PAGES),
    ROW("malloc_usable_size", replace_usable_size, 0),
    HEAP_ROW("_Znwm", replace_malloc, HEAP_NEW | HEAP_DATA_THROWS, quick_new),
    HEAP_ROW("_ZnwmRKSt9nothrow_t", replace_malloc, HEAP_NEW, quick_new),
    ROW("_ZnwmSt11align_val_t", replace_memalign, HEAP_NEW | NEW_ALIGNED | HEAP_DATA_THROWS),
    ROW("_ZnwmSt11align_val_tRKSt9nothrow_t", replace_memalign, HEAP_NEW | NEW_ALIGNED),
    HEAP_ROW("_Znam", replace_malloc, HEAP_NEW_ARRAY | HEAP_DATA_THROWS, quick_new_array),
    HEAP_ROW("_ZnamRKSt9nothrow_t", replace_malloc, HEAP_NEW_ARRAY, quick_new_array),
    ROW("_ZnamSt11align_val_t", replace_memalign, HEAP_NEW_ARRAY | NEW_ALIGNED | HEAP_DATA_THROWS),
    ROW("_ZnamSt11align_val_tRKSt9nothrow_t", replace_memalign, HEAP_NEW_ARRAY | NEW_ALIGNED),
    HEAP_ROW("_ZdlPv", replace_free, HEAP_NEW, quick_delete),
    HEAP_ROW("_ZdlPvm", replace_free, HEAP_NEW | HEAP_DATA_SIZED, quick_delete_sized),
    ROW("_ZdlPvRKSt9nothrow_t", replace_free, HEAP_NEW),
    ROW("_ZdlPvSt11align_val_t", replace_free, HEAP_NEW | HEAP_DATA_ALIGNED),
    ROW("_ZdlPvmSt11align_val_t", replace_free, HEAP_NEW | HEAP_DATA_SIZED | HEAP_DATA_ALIGNED),
    ROW("_ZdlPvSt11align_val_tRKSt9nothrow_t", replace_free, HEAP_NEW | HEAP_DATA_ALIGNED),
    HEAP_ROW("_ZdaPv", replace_free, HEAP_NEW_ARRAY, quick_delete_array),
    HEAP_ROW("_ZdaPvm", replace_free, HEAP_NEW_ARRAY | HEAP_DATA_SIZED, quick_delete_array_sized),
    ROW("_ZdaPvRKSt9nothrow_t", replace_free, HEAP_NEW_ARRAY),
    ROW("_ZdaPvSt11align_val_t", replace_free, HEAP_NEW_ARRAY | HEAP_DATA_ALIGNED),
    ROW("_ZdaPvmSt11align_val_t", replace_free,
        HEAP_NEW_ARRAY | HEAP_DATA_SIZED | HEAP_DATA_ALIGNED),
    ROW("_ZdaPvSt11align_val_tRKSt9nothrow_t", replace_free, HEAP_NEW_ARRAY | HEAP_DATA_ALIGNED),
    ROW("moz_arena_malloc", replace_arena_malloc, HEAP_MALLOC),
    ROW("moz_arena_calloc", replace_arena_calloc, HEAP_MALLOC),
    ROW("moz_arena_realloc", replace_arena_realloc, HEAP_MALLOC),
    ROW("moz_arena_memalign", replace_arena_memalign, HEAP_MEMALIGN),
    ROW("moz_arena_free", replace_arena_free, HEAP_MALLOC),
    [MEMCHECK_CXX_FREERES] = {.name = "_ZN9__gnu_cxx9__freeresEv", .before = do_nothing},
    [MEMCHECK_LIBC_FREERES] = {.name = "__libc_freeres", .before = do_nothing},
#define STRING(name, handler, data) ROW(name, handler, data),
#define QUICK(name, handler, data, quick) QUICK_ROW(name, handler, data, quick),
#include "tools/memcheck/strings/strings.def"
// glibc's and musl's, and their dynamic linkers' own.
#define STRING(name, handler, data) HIDDEN_ROW("libc.*", name, handler, data, NULL),
#define LEGACY(name, handler, data) HIDDEN_ROW("libc.*", name, handler, data, NULL),
#define QUICK(name, handler, data, quick) HIDDEN_ROW("libc.*", name, handler, data, quick),
#include "tools/memcheck/strings/strings.def"
#define STRING(name, handler, data) HIDDEN_ROW("ld-*", name, handler, data, NULL),
#define LEGACY(name, handler, data) HIDDEN_ROW("ld-*", name, handler, data, NULL),
#define QUICK(name, handler, data, quick) HIDDEN_ROW("ld-*", name, handler, data, quick),
#include "tools/memcheck/strings/strings.def"
};

// ----------------------------------------------------- functions of several names

static const ToolFunction of_several_names[] = {
    HEAP_ROW("new, new[]", replace_malloc, HEAP_ANY_NEW | HEAP_DATA_THROWS, quick_any_new),
    HEAP_ROW("malloc, new", replace_malloc, HEAP_ANY | HEAP_DATA_THROWS, quick_any),
    ROW("new, new[]", replace_memalign, HEAP_ANY_NEW | NEW_ALIGNED | HEAP_DATA_THROWS),
    HEAP_ROW("delete", replace_free, HEAP_NEW | HEAP_DATA_UNTOLD, quick_delete),
    HEAP_ROW("delete[]", replace_free, HEAP_NEW_ARRAY | HEAP_DATA_UNTOLD, quick_delete_array),
    HEAP_ROW("delete, delete[]", replace_free, HEAP_ANY_NEW | HEAP_DATA_UNTOLD, quick_any_delete),
    HEAP_ROW("free, delete", replace_free, HEAP_ANY | HEAP_DATA_UNTOLD, quick_any_free),
};

static const ToolFunction *find_row(ToolReplaceFn *replace, u64 data)
{
    for (const ToolFunction *row = of_several_names;
         row < of_several_names + ARRAY_LEN(of_several_names); row++) {
        if (row->replace == replace && row->data == data)
            return row;
    }
    ASSERT(!"every combination has a row");
    return NULL;
}

static u64 kind_of_both(const ToolFunction *a, const ToolFunction *b)
{
    u64 kind = a->data & 0xff, other = b->data & 0xff;
    if (kind == other)
        return kind;
    return kind == HEAP_MALLOC || other == HEAP_MALLOC || kind == HEAP_ANY || other == HEAP_ANY
               ? HEAP_ANY : HEAP_ANY_NEW;
}

static const ToolFunction *upper_row(const ToolFunction *a, const ToolFunction *b)
{
    bool is_row = b >= memcheck_functions && b < memcheck_functions + MEMCHECK_FUNCTIONS;
    bool is_upper = a >= memcheck_functions && a < memcheck_functions + MEMCHECK_FUNCTIONS && a < b;
    return is_upper || !is_row ? a : b;
}

// malloc(size), operator new(size) and operator new(size, alignment).
static bool takes_size(const ToolFunction *row)
{
    return row->replace == replace_malloc || row->data & HEAP_DATA_CXX;
}

const ToolFunction *heap_alias(const ToolFunction *known, const ToolFunction *other)
{
    u64 kind = kind_of_both(known, other);
    bool is_same_kind = (known->data & 0xff) == (other->data & 0xff);
    if (known->replace == replace_free && other->replace == replace_free) {
        if (known->data == other->data)
            return upper_row(known, other);
        return kind == HEAP_MALLOC ? &memcheck_functions[MEMCHECK_FREE]
                                   : find_row(replace_free, kind | HEAP_DATA_UNTOLD);
    }
    if (takes_size(known) && takes_size(other)) {
        bool is_plain = known->replace != other->replace;
        if (is_same_kind)
            return !is_plain ? upper_row(known, other)
                   : known->replace == replace_malloc ? known : other;
        bool is_aligned = !is_plain && known->replace == replace_memalign;
        return is_aligned ? find_row(replace_memalign, kind | NEW_ALIGNED | HEAP_DATA_THROWS)
                          : find_row(replace_malloc, kind | HEAP_DATA_THROWS);
    }
    if (known->replace == replace_aligned_alloc && other->replace == replace_memalign)
        return other;
    return upper_row(known, other);
}

const char *heap_function_name(const ToolFunction *function)
{
    switch (function->data & 0xff) {
    case HEAP_NEW:
    case HEAP_ANY_NEW: return "operator new";
    case HEAP_NEW_ARRAY: return "operator new[]";
    case HEAP_MEMALIGN: return "memalign";
    default: return "malloc";
    }
}

bool heap_store_pointer(ToolThread *thread, GuestAddr at, u64 pointer)
{
    (void)thread;
    if (!guest_write(at, &pointer, sizeof(pointer)))
        return false;
    shadow_make_defined(at, sizeof(pointer));
    return true;
}

void report_realloc_zero(ToolThread *thread, const ToolCall *call, GuestAddr old)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_REALLOC_ZERO,
        .context = tool_context(thread, call->entry),
        .part_count = describe_address(thread, old, parts),
        .parts = parts,
    });
}
