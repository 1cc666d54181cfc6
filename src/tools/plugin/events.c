// SPDX-License-Identifier: MIT
//
// The events that a loaded tool has asked for, and the engine's hooks that bring them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/aspace/aspace.h"
#include "engine/log/log.h"
#include "engine/relay/relay.h"
#include "tools/plugin/plugin_internal.h"

typedef enum EventKind {
    EVENT_BLOCK, EVENT_THREAD_START, EVENT_THREAD_END, EVENT_FORK_CHILD, EVENT_END,
    EVENT_SYSCALL_BEFORE, EVENT_SYSCALL_AFTER, EVENT_SIGNAL, EVENT_MAP, EVENT_UNMAP, EVENT_COMMAND,
    EVENT_REQUEST, EVENT_KINDS
} EventKind;

enum { CALLBACKS_MAX = 16 };

static struct {
    PluginEvent items[CALLBACKS_MAX];
    u32 count;
} events[EVENT_KINDS];

static const PluginEvent *end_of(EventKind kind)
{
    return events[kind].items + events[kind].count;
}

static const char *const event_names[EVENT_KINDS] = {
    [EVENT_BLOCK] = "muninn_on_block",
    [EVENT_THREAD_START] = "muninn_on_thread_start",
    [EVENT_THREAD_END] = "muninn_on_thread_end",
    [EVENT_FORK_CHILD] = "muninn_on_fork_child",
    [EVENT_END] = "muninn_on_end",
    [EVENT_SYSCALL_BEFORE] = "muninn_on_syscall_before",
    [EVENT_SYSCALL_AFTER] = "muninn_on_syscall_after",
    [EVENT_SIGNAL] = "muninn_on_signal",
    [EVENT_MAP] = "muninn_on_map",
    [EVENT_UNMAP] = "muninn_on_unmap",
    [EVENT_COMMAND] = "muninn_on_command",
    [EVENT_REQUEST] = "muninn_on_request",
};

static const PluginEvent *first_of(EventKind kind)
{
    plugin_callback = event_names[kind];
    return events[kind].items;
}

// True: this was the last one.
static bool is_end_of(EventKind kind, const PluginEvent *e)
{
    if (e < end_of(kind))
        return false;
    plugin_callback = NULL;
    return true;
}

// For each callback of a kind: `e` is its PluginEvent.
#define EACH(kind, e) for (const PluginEvent *e = first_of(kind); !is_end_of(kind, e); e++)

// ------------------------------------------------------------ the engine's hooks

static ToolThread *under_lock; // the thread whose callback runs under the engine's lock

bool plugin_holds_engine_lock(void)
{
    return __atomic_load_n(&under_lock, __ATOMIC_RELAXED) == &thread_ctx;
}

static void on_block(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    plan_begin(block, insns, count);
    counters_plan_begin();
    under_lock = &thread_ctx;
    EACH(EVENT_BLOCK, e)
        e->fn.block(&plan, e->data);
    under_lock = NULL;
    counters_plan_end(&plan);
    plan.block = NULL;
}

static void on_cut(ToolBlock *block, const ToolInsn *insn)
{
    emit_cut_insertions(block);
    counters_emit_cut(block, (u32)(insn - plan.insns[0].insn));
}

static void on_thread_start(ToolThread *thread)
{
    static u32 threads;
    thread->tool.thread = calloc(1, sizeof(PluginThread));
    if (!thread->tool.thread || !counters_thread_start(thread) || !buffers_thread_start(thread))
        log_refuse("no memory for what %s keeps of a thread", plugin_description->name);
    plugin_thread(thread)->number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    gate_enter(thread);
    EACH(EVENT_THREAD_START, e)
        e->fn.thread(handle_of(thread), e->data);
    gate_leave(thread);
}

static void on_thread_end(ToolThread *thread)
{
    gate_enter(thread);
    buffers_flush(thread);
    EACH(EVENT_THREAD_END, e)
        e->fn.thread(handle_of(thread), e->data);
    gate_leave(thread);
    buffers_thread_end(thread);
    counters_thread_end(thread);
    free(thread->tool.thread);
    thread->tool.thread = NULL;
}

static void on_fork_parent(void)
{
    gate_open();
}

static void on_fork_child(ToolThread *thread)
{
    gate_open();
    plugin_thread(thread)->in_callback = 0;
    buffers_fork_child(thread);
    EACH(EVENT_FORK_CHILD, e)
        e->fn.thread(handle_of(thread), e->data);
}

// That there is one makes the engine stop the other threads before the end.
static void on_exiting(ToolThread *thread)
{
    (void)thread;
}

static void flush_thread(ToolThread *thread, void *arg)
{
    (void)arg;
    if (plugin_thread(thread))
        buffers_flush(thread);
}

static void on_finish(void)
{
    plugin_unblock_crashes();
    tool_for_each_thread(flush_thread, NULL);
    EACH(EVENT_END, e)
        e->fn.end(e->data);
}

static void on_syscall_before(ToolThread *thread, const ToolSyscall *call)
{
    MuninnSyscall told = {.number = call->nr};
    memcpy(told.args, call->args, sizeof(told.args));
    gate_enter(thread);
    EACH(EVENT_SYSCALL_BEFORE, e)
        e->fn.syscall(handle_of(thread), &told, e->data);
    gate_leave(thread);
}

static void on_syscall_after(ToolThread *thread, const ToolSyscall *call)
{
    MuninnSyscall told = {.number = call->nr, .result = call->result};
    memcpy(told.args, call->args, sizeof(told.args));
    gate_enter(thread);
    EACH(EVENT_SYSCALL_AFTER, e)
        e->fn.syscall(handle_of(thread), &told, e->data);
    gate_leave(thread);
}

static void on_signal(ToolThread *thread, int signal, GuestAddr old_sp)
{
    (void)old_sp;
    gate_enter(thread);
    EACH(EVENT_SIGNAL, e)
        e->fn.signal(handle_of(thread), signal, e->data);
    gate_leave(thread);
}

static void on_mapped(GuestAddr start, GuestAddr end, u32 prot)
{
    under_lock = &thread_ctx;
    EACH(EVENT_MAP, e)
        e->fn.map(start, end, (int)prot, e->data);
    under_lock = NULL;
}

static void on_unmapped(GuestAddr start, GuestAddr end)
{
    under_lock = &thread_ctx;
    EACH(EVENT_UNMAP, e)
        e->fn.unmap(start, end, e->data);
    under_lock = NULL;
}

static bool on_command(ToolThread *thread, char *command)
{
    bool is_known = false;
    gate_enter(thread);
    EACH(EVENT_COMMAND, e) {
        if (!is_known)
            is_known = e->fn.command(handle_of(thread), command, e->data);
    }
    gate_leave(thread);
    return is_known;
}

static bool on_request(ToolThread *thread, const u64 args[6], u64 *ret_result)
{
    bool is_known = false;
    gate_enter(thread);
    EACH(EVENT_REQUEST, e) {
        if (!is_known)
            is_known = e->fn.request(handle_of(thread), args, ret_result, e->data);
    }
    gate_leave(thread);
    return is_known;
}

Tool plugin_tool = {
    .needs = TOOL_NEEDS_FLAGS,
    .gives = TOOL_GIVES_DESCRIPTORS,
    .exiting = on_exiting,
    .finish = on_finish,
    .thread_start = on_thread_start,
    .thread_end = on_thread_end,
    .fork_soon = gate_close,
    .fork_parent = on_fork_parent,
    .fork_child = on_fork_child,
    .crashed = plugin_crashed,
    .alias = chain_join,
};

// -------------------------------------------------------------- asking for them

static void ask(EventKind kind, PluginEvent event, const char *function)
{
    plugin_needs_start(function);
    if (!event.fn.any)
        plugin_refuse("%s: there is no function", function);
    if (events[kind].count == CALLBACKS_MAX)
        plugin_refuse("%s: no more than %d functions", function, CALLBACKS_MAX);
    events[kind].items[events[kind].count++] = event;
}

#define ASK(kind, member) ask(kind, (PluginEvent){.fn.member = fn, .data = data}, __func__)

void muninn_on_block(MuninnBlockFn *fn, void *data)
{
    ASK(EVENT_BLOCK, block);
    plugin_tool.block = on_block;
    plugin_tool.insn = emit_insn_insertions;
    plugin_tool.insn_done = emit_done_insertions;
    plugin_tool.insertions = emit_insertions;
    plugin_tool.cut = on_cut;
    plugin_tool.left = counters_left;
    tool_sees_all = true;
}

void muninn_on_thread_start(MuninnThreadFn *fn, void *data)
{
    ASK(EVENT_THREAD_START, thread);
}

void muninn_on_thread_end(MuninnThreadFn *fn, void *data)
{
    ASK(EVENT_THREAD_END, thread);
}

void muninn_on_fork_child(MuninnThreadFn *fn, void *data)
{
    ASK(EVENT_FORK_CHILD, thread);
}

void muninn_on_end(MuninnEndFn *fn, void *data)
{
    ASK(EVENT_END, end);
}

void muninn_on_syscall_before(MuninnSyscallFn *fn, void *data)
{
    ASK(EVENT_SYSCALL_BEFORE, syscall);
    plugin_tool.syscall_before = on_syscall_before;
}

void muninn_on_syscall_after(MuninnSyscallFn *fn, void *data)
{
    ASK(EVENT_SYSCALL_AFTER, syscall);
    plugin_tool.syscall_after = on_syscall_after;
}

void muninn_on_signal(MuninnSignalFn *fn, void *data)
{
    ASK(EVENT_SIGNAL, signal);
    plugin_tool.signal = on_signal;
}

void muninn_on_map(MuninnMapFn *fn, void *data)
{
    ASK(EVENT_MAP, map);
    plugin_tool.mapped = on_mapped;
}

void muninn_on_unmap(MuninnUnmapFn *fn, void *data)
{
    ASK(EVENT_UNMAP, unmap);
    plugin_tool.unmapped = on_unmapped;
}

void muninn_on_command(MuninnCommandFn *fn, const char *help, void *data)
{
    ASK(EVENT_COMMAND, command);
    plugin_tool.command = on_command;
    plugin_tool.command_help = help;
    plugin_tool.needs |= TOOL_NEEDS_MONITOR;
}

void muninn_on_request(MuninnRequestFn *fn, void *data)
{
    ASK(EVENT_REQUEST, request);
    plugin_tool.request = on_request;
}

void muninn_need(unsigned needs)
{
    plugin_needs_start("muninn_need");
    if (needs & MUNINN_NEED_CONTEXTS)
        plugin_tool.needs |= TOOL_NEEDS_CALLSTACK;
    if (needs & MUNINN_NEED_NAMES)
        plugin_tool.needs |= TOOL_NEEDS_MONITOR;
}
