// SPDX-License-Identifier: MIT
//
// The query and the missed return: what runs often. Compiled with general
// registers only, calls no libc.
//
// Window: a context has at most CONTEXT_FRAMES_MAX frames. A frame at depth d
// beyond that belongs to window w >= 1, whose contexts are made of the outermost OUTER_FRAMES
// frames, the omission mark, and the frames beyond depth OUTER_FRAMES + w * WINDOW_STEP.
// Depths advance to the next window every WINDOW_STEP frames, so a step costs
// about 1000 look-ups then and none otherwise, and the same recursion
// finds the same contexts at every depth. The last entry before a step remembers in
// next_window its own context as the next window sees it.
#include "base/assert.h"
#include "engine/callstack/callstack.h"
#include "engine/callstack/context_tree.h"
#include "engine/callstack/spans.h"

#define OUTER_FRAMES 512
#define WINDOW_STEP 512

// Contexts that this thread has asked for lately: the tree itself is too large to be near.
enum { RECENT = 1024 };
static __thread struct {
    GuestAddr pc;
    u32 parent, context; // context 0: empty
} recent[RECENT];

static u32 intern(u32 parent, GuestAddr pc)
{
    u32 slot = (u32)((pc ^ (u64)parent << 7) * 0x9e3779b97f4a7c15ull >> 54) % RECENT;
    if (recent[slot].pc == pc && recent[slot].parent == parent && recent[slot].context)
        return recent[slot].context;
    u32 context = context_intern(parent, pc);
    if (context != parent) { // else the tree is full
        recent[slot].pc = pc;
        recent[slot].parent = parent;
        recent[slot].context = context;
    }
    return context;
}

// The sentinel has depth 0. The entry that stands for omitted ones has the depth
// of the outermost of them.
static u64 entry_depth(const CallStack *cs, const CallEntry *entry)
{
    u64 depth = (u64)(entry - cs->bottom);

    return cs->omitted && entry > cs->omitted ? depth + cs->omitted_count - 1 : depth;
}

static u64 window_of(u64 depth)
{
    // One less than the maximum: the query's own pc is a frame too.
    return depth < CONTEXT_FRAMES_MAX ? 0 : (depth - CONTEXT_FRAMES_MAX) / WINDOW_STEP + 1;
}

// The entry at a depth, or the nearest one above it when it was dropped.
static const CallEntry *entry_at_depth(const CallStack *cs, u64 depth)
{
    if (cs->omitted && depth > (u64)(cs->omitted - cs->bottom)) {
        u64 omitted_depth = (u64)(cs->omitted - cs->bottom);
        if (depth < omitted_depth + cs->omitted_count)
            return cs->omitted + 1;
        return cs->omitted + 1 + (depth - omitted_depth - cs->omitted_count);
    }
    return cs->bottom + depth;
}

// The context of `last` as window `window` sees it, from scratch.
static u32 context_in_window(const CallStack *cs, const CallEntry *last, u64 window)
{
    u32 context = context_intern(cs->bottom[OUTER_FRAMES].context, CONTEXT_OMITTED_PC);
    const CallEntry *entry = entry_at_depth(cs, OUTER_FRAMES + 1 + window * WINDOW_STEP);

    for (; entry <= last; entry++) {
        if (entry->ret != SEPARATOR_RET)
            context = context_intern(context, entry->ret);
    }
    return context;
}

// The context to which the frame above `entry` is attached.
static u32 parent_for_next(const CallStack *cs, CallEntry *entry)
{
    u64 depth = entry_depth(cs, entry);
    u64 window = window_of(depth + 1);

    if (window == window_of(depth))
        return entry->context;
    if (entry->next_window == 0)
        entry->next_window = context_in_window(cs, entry, window);
    return entry->next_window;
}

// Finds the contexts of all entries that have none (C3).
static void fill_contexts(CallStack *cs)
{
    CallEntry *entry = cs->top;

    while (entry > cs->bottom && entry->context == 0)
        entry--;
    for (; entry < cs->top; entry++) {
        u32 parent = parent_for_next(cs, entry);
        bool is_frame = entry[1].ret != SEPARATOR_RET;
        entry[1].context = is_frame ? intern(parent, entry[1].ret) : parent;
        entry[1].next_window = 0;
    }
}

// Removes dead entries between `kept` and top: those whose sp does not exceed that of
// every later one. What moves or follows has lost its context.
static void remove_overtaken(CallStack *cs, CallEntry *kept)
{
    CallEntry *out = kept;
    CallEntry *omitted = cs->omitted;

    for (CallEntry *entry = kept + 1; entry <= cs->top; entry++) {
        while (out > kept && out->sp <= entry->sp) {
            if (out == omitted)
                omitted = NULL;
            out--;
        }
        out++;
        if (entry == cs->omitted)
            omitted = out;
        if (out != entry)
            *out = *entry;
        out->context = 0;
    }
    cs->top = out;
    cs->omitted = omitted;
}

void callstack_drop_dead(CallStack *cs, GuestAddr sp)
{
    CallEntry *base = current_span(cs)->base;
    bool overtaken = false;

    while (cs->top > base && cs->top->sp < sp)
        cs->top--;
    if (cs->top > base) {
        CallEntry *entry = cs->top;
        GuestAddr highest = entry->sp;
        bool known = entry->context != 0; // then nothing below has changed (C3)

        while (!known && --entry > base) {
            if (entry->sp > highest) {
                highest = entry->sp;
                known = entry->context != 0;
            } else {
                overtaken = true;
            }
        }
        if (overtaken)
            remove_overtaken(cs, entry);
    }
    if (cs->omitted > cs->top)
        cs->omitted = NULL;
}

static void catch_up(CallStack *cs, GuestAddr sp)
{
    if (UNLIKELY(!runs_on_current_span(cs, sp)))
        callstack_change_span(cs, cs->top->sp, sp);
    callstack_drop_dead(cs, sp);
}

u32 callstack_context(CallStack *cs, GuestAddr pc, GuestAddr sp)
{
    catch_up(cs, sp);
    fill_contexts(cs);
    return intern(parent_for_next(cs, cs->top), pc);
}

void callstack_ret_miss(CallStack *cs, GuestAddr slot)
{
    // The slot itself is still to be popped: an entry for it is this frame's own,
    // whatever its return address has been changed to.
    catch_up(cs, slot);
    if (cs->top > current_span(cs)->base && cs->top->sp == slot)
        cs->top--;
}
