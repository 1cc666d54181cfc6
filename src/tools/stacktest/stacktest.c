// SPDX-License-Identifier: MIT
//
// A tool for the tests of the call stack, shown in no help: the client calls
// `stacktest_check(frames, count)` with the return addresses that its own
// unwinder found, from the caller of the calling function on, and gets 1 when
// the context tree says the same. `stacktest_depth()` answers how many frames. The tool
// tagtest does it with the stacks of calltags/, and holds what these remember of calls to it.
#include "tools/tools.h"

#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/calltags/calltags.h"

enum { FRAMES_MAX = 4096 };

static u64 checks, wrong;

static void log_difference(const GuestAddr *frames, size_t count, const u64 *expected, u64 n)
{
    for (size_t i = 0; i < max_u64(count, n + 2) && i < 24; i++)
        tool_log("stacktest: frame %lu: context %lx, client %lx", (unsigned long)i,
                 i < count ? (unsigned long)frames[i] : 0ul,
                 i >= 2 && i - 2 < n ? (unsigned long)expected[i - 2] : 0ul);
}

// A frame that a signal interrupted follows that of the handler directly; the
// client's unwinder has the kernel's trampoline between them.
static bool agree(const GuestAddr *frames, size_t count, const u64 *expected, u64 n)
{
    u64 k = 0;
    for (size_t i = 0; i < count; i++, k++) {
        if (frames[i] & CONTEXT_EXACT_PC)
            k++;
        if (k >= n || (frames[i] & ~CONTEXT_EXACT_PC) != expected[k])
            return false;
    }
    return k == n;
}

// Asked three ways: first of what is remembered of earlier calls.
static u32 context_of(ToolThread *thread, GuestAddr entry)
{
    u64 sp = thread->gpr[RSP];
    if (!thread->calltags.contexts)
        return tool_context(thread, entry);
    u32 again = calltags_call_again(thread->calltags.contexts, entry, sp);
    u32 of_call = calltags_call_context(entry, sp, thread->calltags.contexts);
    u32 now = calltags_call_again(thread->calltags.contexts, entry, sp);
    u32 context = tool_context(thread, entry);
    if (of_call == context && (!again || again == context) && (!now || now == context))
        return context;
    tool_log("stacktest: context %u is remembered as %u, %u and %u", context, again, of_call, now);
    return 0;
}

// Frame 0 is stacktest_check itself, frame 1 its return address.
static u64 check(ToolThread *thread, ToolCall *call)
{
    static __thread GuestAddr frames[FRAMES_MAX];
    static __thread u64 expected[FRAMES_MAX];
    u64 n = min_u64(call->args[1], FRAMES_MAX - 2);
    if (!guest_read(call->args[0], expected, n * sizeof(u64)))
        return 0;
    size_t count = tool_context_frames(context_of(thread, call->entry), frames, FRAMES_MAX);
    bool same = count >= 2 && agree(frames + 2, count - 2, expected, n);
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (!same && __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 4)
        log_difference(frames, count, expected, n);
    return same;
}

static u64 depth(ToolThread *thread, ToolCall *call)
{
    return tool_context_frames(tool_context(thread, call->entry), NULL, 0);
}

static const ToolFunction functions[] = {
    {.name = "stacktest_check", .replace = check},
    {.name = "stacktest_depth", .replace = depth},
};

static void finish(void)
{
    tool_log("stacktest: %lu checks, %lu wrong, %u contexts", checks, wrong, context_count());
}

const Tool tool_stacktest = {
    .name = "stacktest",
    .summary = "compare the call stack with the client's own unwinder",
    .needs = TOOL_NEEDS_CALLSTACK,
    .gives = TOOL_GIVES_DESCRIPTORS,
    .finish = finish,
    .functions = functions,
    .function_count = ARRAY_LEN(functions),
};

const Tool tool_tagtest = {
    .name = "tagtest",
    .summary = "the same for the tags of calls",
    .needs = TOOL_NEEDS_CALLTAGS,
    .gives = TOOL_GIVES_DESCRIPTORS,
    .finish = finish,
    .functions = functions,
    .function_count = ARRAY_LEN(functions),
};
