// SPDX-License-Identifier: MIT
//
// Client stacks that are not running. A thread that loads rsp with an address of another stack
// parks the spans of its chain here and takes up the one that holds the
// new address, or begins a new one. The table is shared by all threads, because
// goroutines and fibers are resumed wherever a thread is free.
//
// Which stack an address belongs to, in this order:
//   S1  between the current sp and the upper end of the current span: the same stack,
//       unwound. (A stack carved out of a live frame of the current one looks
//       just like that and is not told apart.)
//   S2  inside the known bounds of the current span: the same stack.
//   S3  inside what a waiting span of the chain or a parked span had in use:
//       that one is resumed.
//   S4  near the current sp, or just above the span's end: the same stack.
//   S5  with a reader of client memory: a parked span whose return addresses all
//       lie at one distance from where they were: it has been moved there.
//   S6  otherwise a new stack, whose upper end is this address.
#include "base/assert.h"
#include "base/futex_lock.h"
#include "base/pages.h"
#include "engine/callstack/callstack.h"
#include "engine/callstack/parking.h"
#include "engine/callstack/spans.h"

static CallstackPeek *peek_word; // written once, before there are threads

void callstack_set_peek(CallstackPeek *peek)
{
    peek_word = peek;
}

static bool in_use_by(GuestAddr left_sp, GuestAddr hi, GuestAddr sp)
{
    return sp >= left_sp && sp <= hi;
}

static void append_entries(CallStack *cs, const CallEntry *entries, u64 count)
{
    for (u64 i = 0; i < count; i++) {
        callstack_make_room(cs);
        cs->top[1] = entries[i];
        cs->top++;
    }
}

// The separator of the outermost span is there from the beginning.
static void begin_span(CallStack *cs, GuestAddr lo, GuestAddr hi)
{
    CallEntry separator = { .ret = SEPARATOR_RET, .sp = ~0ull };

    ASSERT(cs->chain_count < CALLSTACK_CHAIN_MAX);
    if (cs->chain_count > 0)
        append_entries(cs, &separator, 1);
    cs->chain[cs->chain_count++] = (StackSpan){ .base = cs->top, .lo = lo, .hi = hi };
}

// Takes the innermost span off the chain. An empty one is forgotten: whoever
// loads that stack again begins it anew.
static void park_innermost(CallStack *cs)
{
    StackSpan *span = current_span(cs);
    u64 count = (u64)(cs->top - span->base);

    // The thread's own stack has bounds to remember even when no call is pending on it.
    if (count > 0 || span->lo != 0)
        parking_put(span, span->base + 1, count);
    cs->top = cs->chain_count > 1 ? span->base - 1 : cs->bottom;
    if (cs->omitted > cs->top)
        cs->omitted = NULL;
    cs->chain_count--;
}

static void leave_span(CallStack *cs, GuestAddr sp)
{
    callstack_drop_dead(cs, sp);
    current_span(cs)->left_sp = sp;
}

static bool resume_waiting(CallStack *cs, GuestAddr sp)
{
    for (u32 i = cs->chain_count - 1; i-- > 0;) {
        if (!is_waiting_at(&cs->chain[i], sp))
            continue;
        while (cs->chain_count - 1 > i)
            park_innermost(cs);
        return true;
    }
    return false;
}

// Memory of a stack that ended may have become that of another; the outermost
// return address is then the first to be overwritten.
static bool is_still_there(const ParkedSpan *parked, GuestAddr sp)
{
    u64 word;

    return !peek_word || parked->count == 0 || parked->entries[0].sp < sp ||
           (peek_word(parked->entries[0].sp, &word) && word == parked->entries[0].ret);
}

static bool resume_parked(CallStack *cs, GuestAddr sp)
{
    ParkedSpan parked;

    if (!parking_take(sp, &parked))
        return false;
    if (!is_still_there(&parked, sp)) {
        parking_release(&parked);
        return false;
    }
    while (cs->chain_count > 0)
        park_innermost(cs);
    begin_span(cs, parked.lo, parked.hi);
    append_entries(cs, parked.entries, parked.count);
    parking_release(&parked);
    return true;
}

// Where the outermost frames went decides: all return addresses must be there.
static bool lies_at(const ParkedSpan *parked, u64 distance)
{
    for (u64 i = 0; i < parked->count; i++) {
        u64 word;
        if (!peek_word(parked->entries[i].sp + distance, &word) || word != parked->entries[i].ret)
            return false;
    }
    return true;
}

// A switch resumes a stack after the call that left it, inside that call, or (when
// the prologue of a function asked for more stack) at the entry of the function.
// A short stack may look right by chance, so the longest counts, and of equal ones
// that which is no longer where it was.
static u64 score_as_moved(const ParkedSpan *parked, GuestAddr sp, u64 *ret_distance,
                          u64 *ret_count)
{
    ParkedSpan live = *parked;
    if (live.count < 2)
        return 0;

    GuestAddr innermost = live.entries[live.count - 1].sp;
    if (lies_at(&live, sp - (innermost + sizeof(u64)))) {
        *ret_distance = sp - (innermost + sizeof(u64));
    } else if (lies_at(&live, sp - innermost)) {
        *ret_distance = sp - innermost;
    } else {
        live.count--;
        *ret_distance = sp - live.entries[live.count - 1].sp;
        if (live.count < 2 || !lies_at(&live, *ret_distance))
            return 0;
    }
    *ret_count = live.count;
    return live.count * 2 + (lies_at(&live, 0) ? 0 : 1);
}

static bool resume_moved(CallStack *cs, GuestAddr sp)
{
    ParkedSpan parked;
    u64 distance, count;

    if (!peek_word || !parking_take_matching(score_as_moved, sp, &parked, &distance, &count))
        return false;
    begin_span(cs, 0, parked.hi + distance);
    append_entries(cs, parked.entries, count);
    for (CallEntry *entry = current_span(cs)->base + 1; entry <= cs->top; entry++)
        entry->sp += distance;
    parking_release(&parked);
    return true;
}

// Calls made on a stack that was switched to unnoticed: they stand at the end of the
// wrong span and are carried over to the right one.
enum { STRAYS_MAX = 64 };

static u64 take_strays(CallStack *cs, CallEntry *strays)
{
    StackSpan *span = current_span(cs);
    u64 count = 0;

    while (cs->top > span->base && count < STRAYS_MAX && !runs_on_current_span(cs, cs->top->sp)) {
        count++;
        strays[STRAYS_MAX - count] = *cs->top--;
        strays[STRAYS_MAX - count].context = 0;
    }
    return count;
}

static void move_to_stack_of(CallStack *cs, GuestAddr sp)
{
    if (resume_waiting(cs, sp) || resume_parked(cs, sp))
        return;
    while (cs->chain_count > 0)
        park_innermost(cs);
    if (!resume_moved(cs, sp))
        begin_span(cs, 0, sp);
}

void callstack_change_span(CallStack *cs, GuestAddr sp_before, GuestAddr sp)
{
    CallEntry strays[STRAYS_MAX];
    u64 stray_count = take_strays(cs, strays);
    GuestAddr highest = sp;

    for (u64 i = 0; i < stray_count; i++)
        highest = max_u64(highest, strays[STRAYS_MAX - 1 - i].sp);
    leave_span(cs, stray_count > 0 && cs->top > current_span(cs)->base ? cs->top->sp : sp_before);
    move_to_stack_of(cs, highest);
    append_entries(cs, strays + STRAYS_MAX - stray_count, stray_count);
}

static bool is_same_stack(CallStack *cs, GuestAddr old_sp, GuestAddr new_sp, bool *ret_surely)
{
    const StackSpan *span = current_span(cs);
    bool bounded = span->lo != 0 && new_sp >= span->lo && new_sp <= span->hi;

    *ret_surely = bounded || in_use_by(old_sp, span->hi, new_sp);
    return *ret_surely || (new_sp < old_sp && old_sp - new_sp <= SPAN_SLACK) ||
           (new_sp > span->hi && new_sp - span->hi <= SPAN_SLACK);
}

static bool is_known_elsewhere(const CallStack *cs, GuestAddr sp)
{
    return waiting_span_holds(cs, sp) || parking_knows(sp);
}

bool callstack_load_sp(CallStack *cs, GuestAddr old_sp, GuestAddr new_sp, bool continues)
{
    bool surely;

    if (!runs_on_current_span(cs, old_sp))
        callstack_change_span(cs, cs->top->sp, old_sp);
    if (is_same_stack(cs, old_sp, new_sp, &surely) && (surely || !is_known_elsewhere(cs, new_sp))) {
        callstack_drop_dead(cs, new_sp);
        return surely;
    }
    leave_span(cs, old_sp);
    if (continues && cs->chain_count < CALLSTACK_CHAIN_MAX)
        begin_span(cs, 0, new_sp);
    else
        move_to_stack_of(cs, new_sp);
    callstack_drop_dead(cs, new_sp);
    return false;
}

void callstack_enter_signal(CallStack *cs, GuestAddr pc, GuestAddr sp, GuestAddr slot,
                            GuestAddr alt_lo)
{
    CallEntry frame = { .ret = pc | CONTEXT_EXACT_PC, .sp = slot };

    if (!runs_on_current_span(cs, sp))
        callstack_change_span(cs, cs->top->sp, sp);
    callstack_drop_dead(cs, sp);
    if (alt_lo != 0 && cs->chain_count < CALLSTACK_CHAIN_MAX) {
        current_span(cs)->left_sp = sp;
        begin_span(cs, alt_lo, slot);
    }
    append_entries(cs, &frame, 1);
}
