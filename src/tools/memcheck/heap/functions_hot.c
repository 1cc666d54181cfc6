// SPDX-License-Identifier: MIT
//
// malloc and its family, and new: replaced by the shared heap. Handlers run in
// the cache and are called again outside it when the heap needs more than that.
// What frees is in release_hot.c.
#include "engine/calltags/calltags.h"
#include "engine/relay/relay.h"
#include "tools/heap/heap.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/heap/count.h"
#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"

enum { NO_MEMORY = 12, INVALID = 22, POINTER_BYTES = 8, SLOT_BYTES = 16 };

u32 heap_context_of(ToolThread *thread, const ToolCall *call)
{
    return calltags_call_context(call->entry, thread->gpr[RSP], thread->calltags.contexts);
}

// The stack that a block keeps of its allocation, or of its release; 0: none.
u32 heap_kept_context(ToolThread *thread, const ToolCall *call, bool of_free)
{
    u32 keep = memcheck_options->keep_stacktraces;
    if (keep == KEEP_STACKS_NONE || keep == (of_free ? KEEP_STACKS_ALLOC : KEEP_STACKS_FREE))
        return 0;
    return heap_context_of(thread, call);
}

// An argument that is not defined is used here.
bool heap_check_argument(ToolThread *thread, const ToolCall *call, unsigned reg)
{
    Definedness *d = definedness_of(thread);
    if (LIKELY(!(d->set & MEMBER_GPR(reg))) || !d->gpr[reg])
        return true;
    RelayPart part;
    d->gpr[reg] = 0;
    __atomic_add_fetch(&error_undefined_count, 1, __ATOMIC_RELAXED);
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_UNINIT_CONDITION,
        .context = heap_context_of(thread, call),
        .part_count = origins_part(origins_of_member(thread, reg), &part),
        .parts = &part,
    });
    return false;
}

static void check_fishy(ToolThread *thread, const ToolCall *call, u64 size, const char *function,
                        const char *argument)
{
    MemcheckThread *mt = memcheck_thread(thread);
    if (LIKELY((i64)size >= 0))
        return;
    // operator new, which runs to throw its exception, asks malloc once more.
    bool told = mt->fishy_told == size;
    mt->fishy_told = call->function->data & HEAP_DATA_THROWS ? size : 0;
    if (told)
        return;
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_FISHY_VALUE,
        .fishy_value = {.value = (i64)size, .function = function, .argument = argument},
        .context = heap_context_of(thread, call),
        .key = size,
    });
}

// An alignment must be a power of two and, if `multiple` is not 0, a multiple of that.
bool heap_is_alignment(u64 alignment, u64 multiple)
{
    return alignment && !(alignment & (alignment - 1)) && !(multiple && alignment % multiple);
}

void heap_report_alignment(ToolThread *thread, const ToolCall *call, u64 alignment, u64 multiple)
{
    relay_finding(thread, &(RelayFinding){
        .kind = KIND_BAD_ALIGN,
        .bad_alignment = {.alignment = alignment, .multiple = multiple},
        .context = heap_context_of(thread, call),
        .key = alignment,
    });
}

// 0: no memory, or call->needs_full.
static u64 allocate(ToolThread *thread, ToolCall *call, u64 size, u64 alignment, u32 kind)
{
    u32 context = heap_kept_context(thread, call, false);
    u64 start = heap_alloc(memcheck_heap(thread), size, alignment, kind, context);
    if (UNLIKELY(!start)) {
        if (thread->dispatch.in_cache) {
            call->needs_full = true;
            return 0;
        }
        start = heap_alloc_full(memcheck_heap(thread), size, alignment, kind, context);
    }
    if (UNLIKELY(heap_is_counted()) && start)
        heap_count_allocation(context, size);
    return start;
}

// Of a live block that begins there; false: there is none, or nobody counts.
bool heap_find_counted(u64 start, HeapBlock *ret_block)
{
    return UNLIKELY(heap_is_counted()) && heap_find(start, ret_block) &&
           ret_block->start == start && ret_block->state == HEAP_LIVE;
}

// Where errno is only libc knows: its own function is asked for what nobody has, of a new block.
static void fail_as_original(ToolCall *call)
{
    const u64 too_large = INT64_MAX; // and nothing fishy, if it asks malloc in turn
    const ToolFunction *function = call->function;
    if (function->replace == replace_malloc || function->replace == replace_valloc) {
        call->args[0] = too_large;
    } else {
        if (function->replace != replace_memalign)
            call->args[0] = function->replace == replace_calloc ? 1 : 0;
        call->args[1] = too_large;
        if (function->data & HEAP_DATA_ARRAY)
            call->args[2] = 1;
    }
    call->run_original = true;
}

static u64 finish_allocation(ToolThread *thread, ToolCall *call, u64 start)
{
    if (call->needs_full)
        return 0;
    set_result_defined(thread);
    if (LIKELY(start))
        return start;
    u64 kind = call->function->data & 0xff;
    if (call->function->data & HEAP_DATA_THROWS)
        call->run_original = true; // it fails as well, and throws
    else if (kind == HEAP_MALLOC || kind == HEAP_MEMALIGN)
        fail_as_original(call);
    return 0;
}

// ------------------------------------------------------------------- handlers

u64 heap_alignment = 16;

u64 replace_malloc(ToolThread *thread, ToolCall *call)
{
    u64 kind = call->function->data & 0xff;
    u64 size = call->args[0];
    heap_check_argument(thread, call, RDI);
    if (UNLIKELY((i64)size < 0))
        check_fishy(thread, call, size, heap_function_name(call->function), "size");
    u64 start = (i64)size < 0 ? 0 : allocate(thread, call, size, heap_alignment, (u32)kind);
    return finish_allocation(thread, call, start);
}

u64 replace_calloc(ToolThread *thread, ToolCall *call)
{
    u64 size;
    heap_check_argument(thread, call, RDI);
    heap_check_argument(thread, call, RSI);
    if (__builtin_mul_overflow(call->args[0], call->args[1], &size) || (i64)size < 0) {
        check_fishy(thread, call, call->args[0], "calloc", "nmemb");
        check_fishy(thread, call, call->args[1], "calloc", "size");
        return finish_allocation(thread, call, 0);
    }
    u64 start = allocate(thread, call, size, heap_alignment,
                         HEAP_MALLOC | HEAP_ZEROED);
    return finish_allocation(thread, call, start);
}

static void report_size(ToolThread *thread, const ToolCall *call, u32 kind, u64 size, u64 multiple)
{
    relay_finding(thread, &(RelayFinding){
        .kind = kind,
        .bad_size = {.size = (i64)size, .alignment = multiple},
        .context = heap_context_of(thread, call),
        .key = size,
    });
}

static u64 allocate_aligned(ToolThread *thread, ToolCall *call, u64 alignment, u64 size)
{
    // As glibc: rounded up to a power of two.
    u64 power = heap_alignment > SLOT_BYTES ? heap_alignment : 1;
    while (power < alignment && power < 1ull << 40)
        power *= 2;
    u32 kind = (u32)(call->function->data & 0xff) | HEAP_ALIGNED;
    return (i64)size < 0 ? 0 : allocate(thread, call, size, power, kind);
}

// Of a function in the object that calls it, which may not use the alignment (ToolCall.is_local).
static bool is_usual_alignment(u64 alignment)
{
    enum { LARGEST = 1 << 22 };
    return heap_is_alignment(alignment, 0) && alignment <= LARGEST;
}

// memalign(alignment, size); new(size, alignment): the other way round, and it refuses alignments
// that are none, as those of C++ libraries do.
u64 replace_memalign(ToolThread *thread, ToolCall *call)
{
    u64 data = call->function->data;
    bool swapped = data & HEAP_DATA_SIZE_FIRST;
    u64 alignment = call->args[swapped ? 1 : 0], size = call->args[swapped ? 0 : 1];
    if (call->is_local && !is_usual_alignment(alignment))
        alignment = SLOT_BYTES;
    bool is_defined = heap_check_argument(thread, call, swapped ? RDI : RSI);
    if (!call->is_local)
        is_defined &= heap_check_argument(thread, call, swapped ? RSI : RDI);
    check_fishy(thread, call, size, heap_function_name(call->function), "size");
    bool is_wrong = !heap_is_alignment(alignment, 0);
    u64 start = is_wrong && data & HEAP_DATA_CXX
                    ? 0 : allocate_aligned(thread, call, alignment, size);
    if (call->needs_full)
        return 0;
    if (UNLIKELY(is_wrong) && is_defined)
        heap_report_alignment(thread, call, alignment, 0);
    if (UNLIKELY(size == 0) && is_defined && !(data & HEAP_DATA_CXX))
        report_size(thread, call, KIND_UNSAFE_ZERO_SIZE, 0, 0);
    return finish_allocation(thread, call, start);
}

// As memalign, and the size has to be a multiple of the alignment.
u64 replace_aligned_alloc(ToolThread *thread, ToolCall *call)
{
    u64 alignment = call->args[0], size = call->args[1];
    u64 start = replace_memalign(thread, call);
    if (!call->needs_full && !call->is_local && alignment && size % alignment)
        report_size(thread, call, KIND_BAD_SIZE, size, alignment);
    return start;
}

u64 replace_posix_memalign(ToolThread *thread, ToolCall *call)
{
    u64 alignment = call->args[1], size = call->args[2];
    bool is_defined = heap_check_argument(thread, call, RSI);
    is_defined &= heap_check_argument(thread, call, RDX);
    if (!heap_is_alignment(alignment, POINTER_BYTES)) {
        if (is_defined)
            heap_report_alignment(thread, call, alignment, POINTER_BYTES);
        set_result_defined(thread);
        return INVALID;
    }
    check_fishy(thread, call, size, "memalign", "size");
    u64 start = allocate_aligned(thread, call, alignment, size);
    if (call->needs_full)
        return 0;
    if (UNLIKELY(size == 0) && is_defined)
        report_size(thread, call, KIND_UNSAFE_ZERO_SIZE, 0, 0);
    set_result_defined(thread);
    if (!start)
        return NO_MEMORY;
    return heap_store_pointer(thread, call->args[0], start) ? 0 : INVALID;
}

u64 replace_valloc(ToolThread *thread, ToolCall *call)
{
    u64 size = call->args[0];
    heap_check_argument(thread, call, RDI);
    check_fishy(thread, call, size, "memalign", "size");
    if (call->function->data & HEAP_DATA_WHOLE_PAGES)
        size = PAGE_UP(size ? size : 1);
    u64 start = (i64)size < 0 ? 0 : allocate(thread, call, size, PAGE_SIZE, HEAP_MEMALIGN);
    return finish_allocation(thread, call, start);
}

static HeapResult resize(ToolThread *thread, const ToolCall *call, u64 old, u64 size, bool full,
                         u64 *ret_start)
{
    HeapBlock counted;
    u32 context = heap_kept_context(thread, call, false);
    bool counts = heap_find_counted(old, &counted);
    HeapResult result = heap_realloc(memcheck_heap(thread), old, size, context, full, ret_start);
    if (UNLIKELY(counts) && (result == HEAP_OK || result == HEAP_MISMATCHED) && *ret_start) {
        heap_count_release(counted.alloc_context, context, counted.size_bytes);
        heap_count_allocation(context, size);
    }
    return result;
}

// The fast path. Every other case is left to the full way, which begins anew.
static u64 realloc_quickly(ToolThread *thread, ToolCall *call, u64 old, u64 size)
{
    enum { LARGE = 1 << 20 };
    u64 start = 0;
    HeapBlock block;
    if (old == 0 && (i64)size >= 0) // as some programs allocate everything
        return finish_allocation(thread, call,
                                 allocate(thread, call, size, heap_alignment, HEAP_MALLOC));
    call->needs_full = true;
    if (old == 0 || size == 0 || size >= LARGE)
        return 0;
    HeapResult result = resize(thread, call, old, size, false, &start);
    if (result != HEAP_OK && result != HEAP_MISMATCHED)
        return 0;
    call->needs_full = false;
    if (UNLIKELY(result == HEAP_MISMATCHED)) {
        heap_find(old, &block);
        heap_report_bad_free(thread, call, result, old, &block);
    }
    return finish_allocation(thread, call, start);
}

// realloc(NULL, size) is told as a call of malloc, which is what suppressions expect.
static u64 allocate_as_malloc(ToolThread *thread, const ToolCall *call, u64 size)
{
    MemcheckThread *mt = memcheck_thread(thread);
    ToolCall as_malloc = *call;
    if (!mt->malloc_entry)
        mt->malloc_entry = tool_function_address(&memcheck_functions[MEMCHECK_MALLOC]);
    if (mt->malloc_entry)
        as_malloc.entry = mt->malloc_entry;
    check_fishy(thread, &as_malloc, size, "malloc", "size");
    return (i64)size < 0 ? 0
                         : allocate(thread, &as_malloc, size, heap_alignment, HEAP_MALLOC);
}

u64 replace_realloc(ToolThread *thread, ToolCall *call)
{
    u64 old = call->args[0], size = call->args[1], start = 0;
    if (call->function->data & HEAP_DATA_ARRAY &&
        __builtin_mul_overflow(call->args[1], call->args[2], &size))
        size = INT64_MAX; // nobody has as much, and nothing in it is negative
    heap_check_argument(thread, call, RDI);
    heap_check_argument(thread, call, RSI);
    if (call->function->data & HEAP_DATA_ARRAY)
        heap_check_argument(thread, call, RDX);
    if (thread->dispatch.in_cache)
        return realloc_quickly(thread, call, old, size);
    if (old == 0)
        return finish_allocation(thread, call, allocate_as_malloc(thread, call, size));
    if (size == 0) {
        if (memcheck_options->show_realloc_size_zero)
            report_realloc_zero(thread, call, old);
        if (memcheck_options->realloc_zero_bytes_frees) {
            heap_release(thread, call, old, HEAP_MALLOC);
            set_result_defined(thread);
            return 0;
        }
    }
    check_fishy(thread, call, size, "realloc", "size");
    if ((i64)size < 0)
        return finish_allocation(thread, call, 0);
    HeapBlock block;
    HeapResult result = resize(thread, call, old, size, true, &start);
    if (result == HEAP_NOT_A_BLOCK || result == HEAP_DOUBLE_FREE || result == HEAP_MISMATCHED) {
        heap_find(old, &block);
        heap_report_bad_free(thread, call, result, old, &block);
        if (result != HEAP_MISMATCHED)
            heap_count_refused_realloc(size);
    }
    return finish_allocation(thread, call, start);
}

u64 replace_usable_size(ToolThread *thread, ToolCall *call)
{
    u64 size = 0;
    heap_check_argument(thread, call, RDI);
    if (call->args[0])
        heap_usable_size(call->args[0], &size);
    set_result_defined(thread);
    return size;
}
