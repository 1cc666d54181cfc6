// SPDX-License-Identifier: MIT
//
// Private to this folder: how a thread moves between client stacks, and the
// small pieces that queries and switches share.
#ifndef MUNINN_ENGINE_CALLSTACK_SPANS_H
#define MUNINN_ENGINE_CALLSTACK_SPANS_H

#include "engine/callstack/callstack.h"

// Code at the very end of a stack touches a few words above the first sp we saw there
// (makecontext's trampoline), and switch code saves registers below it.
#define SPAN_SLACK 256

// The return address of no call: stands below the first entry of every span, so that a
// ret on one stack never pops an entry of another. It is no frame.
#define SEPARATOR_RET (~0ull)

static inline StackSpan *current_span(CallStack *cs)
{
    return &cs->chain[cs->chain_count - 1];
}

// Written so that neither end wraps around.
static inline bool span_holds(const StackSpan *span, GuestAddr sp)
{
    return sp >= span->lo && (sp <= span->hi || sp - span->hi <= SPAN_SLACK);
}

// A waiting span keeps its bounds, or where they are not known what it has in use,
// wherever the current one may reach.
static inline bool is_waiting_at(const StackSpan *span, GuestAddr sp)
{
    return sp >= (span->lo != 0 ? span->lo : span->left_sp) && sp <= span->hi;
}

static inline bool waiting_span_holds(const CallStack *cs, GuestAddr sp)
{
    for (u32 i = 0; i + 1 < cs->chain_count; i++) {
        if (is_waiting_at(&cs->chain[i], sp))
            return true;
    }
    return false;
}

// True when `sp` can lie on the stack of the current span. Bounds that are known decide.
static inline bool runs_on_current_span(const CallStack *cs, GuestAddr sp)
{
    const StackSpan *span = &cs->chain[cs->chain_count - 1];

    return span_holds(span, sp) && (span->lo != 0 || !waiting_span_holds(cs, sp));
}

// Drops the dead entries of the current span (C2).
void callstack_drop_dead(CallStack *cs, GuestAddr sp);

// The client runs at `sp`, which the current span does not hold: finds or makes the one
// that does. `sp_before` is the last sp known on the current span.
void callstack_change_span(CallStack *cs, GuestAddr sp_before, GuestAddr sp);

// Makes room for one more entry above top.
void callstack_make_room(CallStack *cs);

// Copies entries upwards in memory order; the ranges may overlap if `to` is below `from`.
static inline void copy_entries(CallEntry *to, const CallEntry *from, u64 count)
{
    u64 words = count * (sizeof(CallEntry) / sizeof(u64));

    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

#endif
