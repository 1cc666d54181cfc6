// SPDX-License-Identifier: MIT
//
// Massif as a tool: its hooks, and its state in each thread.
#include <string.h>

#include "tools/massif/massif.h"

#include "base/pages.h"
#include "engine/log/log.h"
#include "tools/tools.h"

#define ANNOUNCED_BYTES (CONTEXTS_MAX / 8) // a bit for every context there can be
#define CHAINS_BYTES (STACK_CHAINS * sizeof(StackChain))

const Options *massif_options;
static WireRepeat nothing; // what repeats while there is no ring

static void prepare(const Options *options)
{
    massif_options = options;
    tool_sees_all = options->time_unit == TIME_UNIT_INSTRUCTIONS;
}

static void thread_start(ToolThread *thread)
{
    MassifThread *mt = pages_map(sizeof(*mt));
    if (mt) {
        mt->announced = pages_map(ANNOUNCED_BYTES);
        mt->chains = pages_map(CHAINS_BYTES);
    }
    if (!mt || !mt->announced || !mt->chains)
        log_refuse("no memory for a thread");
    __atomic_fetch_add(&massif_threads, 1, __ATOMIC_RELAXED);
    mt->counts_instructions = massif_options->time_unit == TIME_UNIT_INSTRUCTIONS;
    mt->tells_stack = massif_options->stacks;
    mt->tells_more = mt->counts_instructions || mt->tells_stack;
    mt->stack_base = thread->gpr[RSP];
    thread->tool.slot[MASSIF_LOW_SP] = thread->tool.slot[MASSIF_LOOK_SP] = thread->gpr[RSP];
    mt->cache.fn = event_announce;
    mt->cache.arg = thread;
    thread->tool.thread = mt;
    thread->lean.sites = mt->sites;
    thread->lean.contexts = mt->cache.slots;
}

static void thread_end(ToolThread *thread)
{
    MassifThread *mt = massif_thread(thread);
    __atomic_fetch_sub(&massif_threads, 1, __ATOMIC_RELAXED);
    pages_unmap(mt->announced, ANNOUNCED_BYTES);
    pages_unmap(mt->chains, CHAINS_BYTES);
    pages_unmap(mt, sizeof(*mt));
    thread->tool.thread = NULL;
}

// The child's monitor is a new one, which knows nothing.
static void fork_child(ToolThread *thread)
{
    MassifThread *mt = massif_thread(thread);
    pages_discard(mt->announced, ANNOUNCED_BYTES);
    pages_discard(mt->chains, CHAINS_BYTES);
    memset(mt->cache.slots, 0, sizeof(mt->cache.slots));
    memset(mt->sites, 0, sizeof(mt->sites));
    thread->lean.told = 0;
    mt->ring = NULL;
    mt->deep_context = 0;
    thread->lean.repeat = &nothing;
    massif_threads = 1;
    requests_fork_child();
}

// A handler that is left by longjmp never returns, and what it interrupted stays here, until there
// is no room for another.
static void signal_begins(ToolThread *thread, int sig, GuestAddr old_sp)
{
    MassifThread *mt = massif_thread(thread);
    (void)sig;
    (void)old_sp;
    if (mt->held_count == ARRAY_LEN(mt->held))
        memmove(mt->held, mt->held + 1, --mt->held_count * sizeof(HeldCall));
    HeldCall *call = &mt->held[mt->held_count++];
    *call = (HeldCall){
        .handler_sp = thread->gpr[RSP],
        .sp = thread->lean.sp,
        .size = thread->lean.size,
        .hook = thread->lean.hook,
        .inner = thread->lean.inner,
        .told = thread->lean.told,
        .told_function = thread->lean.told_function,
        .told_sp = thread->lean.told_sp,
    };
    memcpy(call->args, thread->lean.args, sizeof(call->args));
    thread->lean.sp = thread->lean.told = 0;
}

static void signal_ends(ToolThread *thread, GuestAddr handler_sp)
{
    MassifThread *mt = massif_thread(thread);
    u32 at = mt->held_count;

    // The handler has returned, and so popped one word.
    while (at > 0 && mt->held[at - 1].handler_sp + 8 != handler_sp)
        at--;
    if (at == 0) { // it has moved its stack, or its call was given up
        thread->lean.sp = 0;
        return;
    }
    const HeldCall *call = &mt->held[at - 1];
    mt->held_count = at - 1;
    thread->lean.sp = call->sp;
    thread->lean.size = call->size;
    thread->lean.hook = call->hook;
    thread->lean.inner = call->inner;
    thread->lean.told = call->told;
    thread->lean.told_function = call->told_function;
    thread->lean.told_sp = call->told_sp;
    memcpy(thread->lean.args, call->args, sizeof(call->args));
}

const Tool tool_massif = {
    .name = "massif",
    .title = "Massif, a heap profiler",
    .summary = "Shows where the memory goes: heap, mappings and stacks, at any moment.",
    .needs = TOOL_NEEDS_FLAGS | TOOL_LOOSE_FLAGS | TOOL_NEEDS_CALLTAGS | TOOL_NEEDS_MONITOR,
    .gives = TOOL_GIVES_HEAP,
    .prepare = prepare,
    .start = maps_start,
    .functions = massif_functions,
    .lean_context = event_site_context,
    .function_count = MASSIF_FUNCTIONS,
    .allocation_count = MASSIF_FUNCTIONS,
    .block = code_block,
    .insn = code_insn,
    .thread_start = thread_start,
    .thread_end = thread_end,
    .fork_prepare = requests_fork_prepare,
    .fork_parent = requests_fork_parent,
    .fork_child = fork_child,
    .signal = signal_begins,
    .signal_return = signal_ends,
    .syscall_before = maps_before,
    .syscall_after = maps_after,
    .request = massif_request,
};
