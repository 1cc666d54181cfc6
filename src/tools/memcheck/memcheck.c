// SPDX-License-Identifier: MIT
//
// Memcheck as a tool: its hooks, and its state in each thread.
#include <sys/mman.h>
#include "tools/memcheck/memcheck.h"

#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/log/log.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/commands/commands.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/heap/heap.h"
#include "tools/memcheck/leaks/leaks.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/translate/translate.h"
#include "tools/tools.h"

enum { DIRTY_INSNS_MAX = 16 };

const Options *memcheck_options;

enum { BRIEF_PART = 20 }; // of the quarantine: the brief queue, a thread's

static u64 brief_volume(const Options *options)
{
    return options->quarantine == QUARANTINE_EXACT ? 0 : options->freelist_vol_bytes / BRIEF_PART;
}

// Memory of the heap is the client's: it is in its maps, and it may be unmapped by it.
//
// A page on either side belongs to nobody: an access that begins before the first block or
// ends behind the last one is reported, and does not fault.
static GuestAddr heap_map(u64 size, u64 alignment)
{
    u64 room = size + alignment + 2 * PAGE_SIZE;
    i64 at = sys_mmap(0, room, 3 /* PROT_READ | PROT_WRITE */, 0x22 /* MAP_PRIVATE | ANONYMOUS */,
                      (u64)-1, 0);
    if (at < 0)
        return 0;
    GuestAddr start = ((u64)at + PAGE_SIZE + alignment - 1) & ~(alignment - 1);
    GuestAddr first = start - PAGE_SIZE, end = start + size + PAGE_SIZE;
    if (first > (u64)at)
        sys_munmap((u64)at, first - (u64)at);
    if ((u64)at + room > end)
        sys_munmap(end, (u64)at + room - end);
    shadow_make_noaccess(first, PAGE_SIZE);
    shadow_make_noaccess(start + size, PAGE_SIZE);
    // Memory and shadow together miss the TLB twice as often as the program alone would.
    if (size >= 4 * MiB && size <= 64 * MiB) {
        madvise((void *)start, size, MADV_HUGEPAGE);
        madvise((void *)PAGE_UP((u64)shadow_of(start)), size, MADV_HUGEPAGE);
    }
    return start;
}

static void heap_unmap(GuestAddr start, u64 size)
{
    sys_munmap(start - PAGE_SIZE, size + 2 * PAGE_SIZE);
}

// The launcher has checked their form.
static void set_ignored(const Options *options)
{
    enum { GCC_HIGH = 1024, GCC_LOW = 1 };
    char *at = (char *)options->ignore_range_below_sp;
    if (options->workaround_gcc296_bugs)
        ranges_ignore_below_sp(GCC_HIGH, GCC_LOW);
    if (at) {
        u64 high = strtoull(at, &at, 10);
        ranges_ignore_below_sp(high, strtoull(at + 1, NULL, 10));
    }
    for (at = (char *)options->ignore_ranges; at && *at; at += *at == ',') {
        u64 start = strtoull(at, &at, 16), last = strtoull(at + 1, &at, 16);
        ranges_set_ignored(start, last - start + 1, true, false);
    }
}

// Most options are asked for anew each time they matter.
static void option_changed(const Options *options)
{
    ranges_ignore_none_by_option();
    set_ignored(options);
    heap_change_freelist(options->freelist_vol_bytes, options->freelist_big_blocks_bytes,
                         brief_volume(options));
}

// There is a monitor: at the start, or at last in a fork's child.
static void connected(void)
{
    _Static_assert(sizeof(HeapCounts) == sizeof(WireHeapCounts), "the same members");
    heap_count_in((HeapCounts *)relay_heap_counts(), WIRE_HEAP_COUNTS);
}

static void prepare(const Options *options)
{
    HeapOptions heap;
    memcheck_options = options;
    set_ignored(options);
    shadow_init();
    heap_defaults(&heap);
    heap.redzone_bytes = (u32)options->redzone_size_bytes;
    heap.freelist_volume = options->freelist_vol_bytes;
    heap.freelist_big = options->freelist_big_blocks_bytes;
    heap.brief_volume = brief_volume(options);
    heap.malloc_fill = options->malloc_fill;
    heap.free_fill = options->free_fill;
    heap.hooks = (HeapHooks){
        .map = heap_map,
        .unmap = heap_unmap,
        .park = shadow_park,
        .fresh = heap_mark_noaccess,
        .allocated = heap_mark_allocated,
        .adopted = heap_mark_adopted,
        .soon = heap_mark_soon,
        .freed = heap_mark_noaccess,
        .copy = heap_mark_copied,
    };
    if (!heap_init(&heap))
        log_refuse("no memory for the heap's tables");
    heap_alignment = (u64)options->alignment;
    if (options->xtree_memory != XTREE_MEMORY_NONE)
        heap_count_start(options->xtree_memory == XTREE_MEMORY_FULL);
    heap_quick_init();
    connected();
}

// A thread's registers are defined when it starts; its stack below rsp is not.
static void thread_start(ToolThread *thread)
{
    MemcheckThread *mt = pages_map(sizeof(*mt));
    if (!mt)
        log_refuse("no memory for a thread");
    thread->tool.thread = mt;
    mt->told_address = ~0ull;
    thread->engine_gs = SHADOW_OFFSET - TOOL_SHADOW_DISP;
    __asm__ volatile("wrgsbase %0" : : "r"(thread->engine_gs));
    mt->heap = heap_thread_start((u16)thread->relay.number);
    stacks_thread_start(thread);
}

static void thread_end(ToolThread *thread)
{
    stats_thread_ended(thread);
    stacks_thread_end(thread);
    heap_thread_end(memcheck_thread(thread)->heap);
    pages_unmap(thread->tool.thread, sizeof(MemcheckThread));
    thread->tool.thread = NULL;
}

static void validate(ToolThread *thread, bool is_alone)
{
    (void)thread;
    if (is_alone) // a thread changes its part of the heap without a lock
        heap_validate();
}

static void fork_prepare(void)
{
    heap_fork_prepare();
    ranges_fork_prepare();
    version_fork_prepare();
    shadow_fork_prepare();
}

static void fork_parent(void)
{
    shadow_fork_done(false);
    version_fork_done(false);
    ranges_fork_done(false);
    heap_fork_parent();
}

static void fork_child(ToolThread *thread)
{
    shadow_fork_done(true);
    version_fork_done(true);
    ranges_fork_done(true);
    heap_fork_child(memcheck_thread(thread)->heap);
    stats_fork_child(thread);
    stacks_fork_child(thread);
}

const Tool tool_memcheck = {
    .name = "memcheck",
    .title = "Memcheck, a memory error detector",
    .summary = "Finds uses of undefined values, invalid accesses and leaks.",
    .needs = TOOL_NEEDS_FLAGS | TOOL_LOOSE_FLAGS | TOOL_NEEDS_CALLTAGS | TOOL_NEEDS_MONITOR,
    .gives = TOOL_GIVES_ERRORS,
    .shadow_offset = SHADOW_OFFSET,
    .store_map = U_MAP_OFFSET,
    .store_slow = access_store,
    .prepare = prepare,
    .functions = memcheck_functions,
    .function_count = MEMCHECK_FUNCTIONS,
    .allocation_count = MEMCHECK_CXX_FREERES,
    .option_changed = option_changed,
    .alias = heap_alias,
    .exiting = summary_exiting,
    .finish = summary_finish,
    .stats = stats_tell,
    .thread_start = thread_start,
    .thread_end = thread_end,
    .validate = validate,
    .fork_prepare = fork_prepare,
    .fork_parent = fork_parent,
    .fork_child = fork_child,
    .connected = connected,
    .dirty_insns_max = DIRTY_INSNS_MAX,
    .block = instrument_block,
    .insn = instrument_insn,
    .version = version_of_thread,
    .version_state = version_set,
    .quick_ignores = ~(MEMBER_GPR(RAX) | MEMBER_GPR(RDI) | MEMBER_GPR(RSI) | MEMBER_GPR(RDX) |
                       MEMBER_GPR(RCX) | MEMBER_FLAGS), // the result and four arguments
    .exit_version = instrument_exit_version,
    .fault = shadow_fault,
    .stack_loaded = stacks_loaded,
    .signal = signals_delivered,
    .signal_return = signals_returned,
    .client_call = signals_client_call,
    .client_return = signals_returned,
    .client_fault = signals_fault,
    .written = signals_written,
    .answered = requests_answered,
    .syscall_before = syscalls_before,
    .syscall_after = syscalls_after,
    .syscall_answered = syscalls_answered,
    .command = commands_run,
    .command_help = commands_help,
    .request = requests_run,
    .mapped = shadow_mapped,
    .unmapped = shadow_unmapped,
    .moved = shadow_moved,
};
