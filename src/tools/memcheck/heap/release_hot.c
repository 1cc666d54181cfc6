// SPDX-License-Identifier: MIT
//
// free and its family, and delete. Functions that are told the size or the alignment of the block
// must be told what its allocation was told; only the C++ ones without an alignment demand that
// the allocation had none, too.
#include "engine/relay/relay.h"
#include "tools/heap/heap.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/heap/count.h"
#include "tools/memcheck/heap/functions.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"

void heap_report_bad_free(ToolThread *thread, const ToolCall *call, HeapResult result,
                          GuestAddr address, const HeapBlock *block)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(thread, &(RelayFinding){
        .kind = result == HEAP_MISMATCHED ? KIND_MISMATCHED_FREE : KIND_INVALID_FREE,
        .context = heap_context_of(thread, call),
        .part_count = result == HEAP_MISMATCHED || result == HEAP_DOUBLE_FREE
                          ? describe_block(block, address, parts)
                          : describe_address(thread, address, parts),
        .parts = parts,
    });
}

HeapResult heap_release(ToolThread *thread, ToolCall *call, u64 start, HeapKind kind)
{
    HeapBlock block, counted;
    if (start == 0)
        return HEAP_OK;
    heap_fetch(start); // while the context is found
    u32 context = heap_kept_context(thread, call, true);
    bool counts = heap_find_counted(start, &counted);
    HeapResult result = heap_free(memcheck_heap(thread), start, kind, context, &block);
    if (UNLIKELY(counts) && (result == HEAP_OK || result == HEAP_MISMATCHED))
        heap_count_release(counted.alloc_context, context, counted.size_bytes);
    if (LIKELY(result == HEAP_OK))
        return result;
    if (result != HEAP_MISMATCHED)
        heap_count_refused_free();
    if (result != HEAP_MISMATCHED || memcheck_options->show_mismatched_frees)
        heap_report_bad_free(thread, call, result, start, &block);
    return result;
}

// ------------------------------------------------------- sizes and alignments

// The families of a size or an alignment that does not fit.
static const char *families_text(const ToolFunction *function)
{
    switch (function->data & 0xff) {
    case HEAP_MALLOC: return "malloc/free";
    case HEAP_NEW_ARRAY: return "new[]/delete[]";
    default: return "new/delete";
    }
}

static void report_mismatch(ToolThread *thread, const ToolCall *call, u32 kind, u64 allocated,
                            u64 freed, const HeapBlock *block)
{
    RelayPart parts[MEMCHECK_PARTS_MAX];
    relay_finding(thread, &(RelayFinding){
        .kind = kind,
        .mismatch = {
            .allocated = allocated,
            .freed = freed,
            .functions = families_text(call->function),
        },
        .context = heap_context_of(thread, call),
        .part_count = describe_block(block, block->start, parts),
        .parts = parts,
        .key = freed,
    });
}

// What a call says of the block. What is undefined or no alignment has been reported, and is not
// compared; what a function in the object of its caller is told may be anything.
typedef struct Told {
    bool has_size, has_alignment;
    u64 size, alignment; // 0: that of a function that is told none
} Told;

static bool is_told(ToolThread *thread, const ToolCall *call, unsigned argument, u64 *ret_value)
{
    *ret_value = call->args[argument];
    return heap_check_argument(thread, call, argument == 1 ? RSI : RDX);
}

static Told read_arguments(ToolThread *thread, const ToolCall *call)
{
    u64 data = call->function->data;
    Told told = {0};
    heap_check_argument(thread, call, RDI);
    if (data & HEAP_DATA_UNTOLD || call->is_local)
        return told;
    unsigned size_at = data & HEAP_DATA_ALIGN_FIRST ? 2 : 1;
    unsigned alignment_at = size_at == 2 || !(data & HEAP_DATA_SIZED) ? 1 : 2;
    if (data & HEAP_DATA_SIZED)
        told.has_size = is_told(thread, call, size_at, &told.size);
    told.has_alignment = (data & 0xff) != HEAP_MALLOC;
    if (!(data & HEAP_DATA_ALIGNED) || !is_told(thread, call, alignment_at, &told.alignment)) {
        told.has_alignment &= !(data & HEAP_DATA_ALIGNED);
        return told;
    }
    told.has_alignment = heap_is_alignment(told.alignment, 0);
    if (!told.has_alignment)
        heap_report_alignment(thread, call, told.alignment, 0);
    return told;
}

// Of a block that was freed by the right family, as it was before.
static void compare(ToolThread *thread, const ToolCall *call, const Told *told,
                    const HeapBlock *block)
{
    if (told->has_size && told->size != block->size_bytes)
        report_mismatch(thread, call, KIND_SIZE_MISMATCH, block->size_bytes, told->size, block);
    // --alignment makes all of them larger.
    bool is_more = told->alignment && heap_alignment > 16;
    u64 alignment = is_more ? max_u64(told->alignment, heap_alignment) : told->alignment;
    if (told->has_alignment && alignment != block->alignment)
        report_mismatch(thread, call, KIND_ALIGN_MISMATCH, block->alignment, told->alignment,
                        block);
}

u64 replace_free(ToolThread *thread, ToolCall *call)
{
    u64 start = call->args[0];
    HeapKind kind = (HeapKind)(call->function->data & 0xff);
    HeapBlock block;
    Told told = read_arguments(thread, call);
    bool is_known = (told.has_size || told.has_alignment) &&
                    memcheck_options->show_mismatched_frees && heap_live_at(start, &block);
    if (heap_release(thread, call, start, kind) == HEAP_OK && is_known)
        compare(thread, call, &told, &block);
    if (UNLIKELY(heap_is_unsettled()) && !thread->dispatch.in_cache)
        heap_settle();
    set_result_defined(thread);
    return 0;
}
