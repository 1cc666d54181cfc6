// SPDX-License-Identifier: MIT
//
// Private to this folder: how a thread moves between client stacks, and the
// small pieces that queries and switches share.
#ifndef MUNINN_ENGINE_CALLSTACK_SPANS_H
#define MUNINN_ENGINE_CALLSTACK_SPANS_H

#include "engine/callstack/callstack.h"

// Code at the very end of a stack touches a few words above the first sp that the engine has seen
// there (makecontext's trampoline), and code that switches stacks saves registers below it.
#define SPAN_SLACK 256

// A return address that no call has. An entry with it stands below the first entry of every
// span, so that a ret on one stack never pops an entry of another. It is no frame.
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

// Whether `sp` lies on a waiting span: inside its bounds or, if they are not known, inside the part
// that it has in use.
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

// Whether `sp` can lie on the stack of the current span. If the span's bounds are known, they
// decide.
static inline bool runs_on_current_span(const CallStack *cs, GuestAddr sp)
{
    const StackSpan *span = &cs->chain[cs->chain_count - 1];

    return span_holds(span, sp) && (span->lo != 0 || !waiting_span_holds(cs, sp));
}

// Drops the dead entries of the current span (C2).
void callstack_drop_dead(CallStack *cs, GuestAddr sp);

// To be called when the client runs at an `sp` that the current span does not hold: finds or makes
// the span that holds it. `sp_before` is the last sp known on the current span.
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
