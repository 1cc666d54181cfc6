// SPDX-License-Identifier: MIT
//
// Birth, growth and death of a thread's call stack. The entries lie in a
// reservation of address space of which a prefix is open; the first push beyond it faults and
// callstack_overflow() opens more, up to CALLSTACK_ENTRIES_MAX. Then the middle of the
// stack is dropped: one entry, the omission mark, stands for it until the
// client has returned below the outermost frame it stands for.
#include "engine/callstack/callstack.h"

#include "base/assert.h"
#include "base/futex_lock.h"
#include "base/pages.h"
#include "engine/callstack/context_tree.h"
#include "engine/callstack/parking.h"
#include "engine/callstack/spans.h"

bool callstack_wanted;

#define ENTRIES_OPEN_FIRST 1024ull // 32 KiB: what a small thread costs
#define ENTRIES_KEPT_OUTER (CALLSTACK_ENTRIES_MAX / 8)
#define ENTRIES_KEPT_INNER (CALLSTACK_ENTRIES_MAX / 2)
#define RESERVED_BYTES (CALLSTACK_ENTRIES_MAX * sizeof(CallEntry) + PAGE_SIZE)

bool callstack_init(CallStack *cs, GuestAddr stack_lo, GuestAddr stack_hi)
{
    CallEntry *entries = pages_reserve(RESERVED_BYTES);

    if (!entries)
        return false;
    if (!pages_open(entries, ENTRIES_OPEN_FIRST * sizeof(CallEntry))) {
        pages_unmap(entries, RESERVED_BYTES);
        return false;
    }
    *cs = (CallStack){ .top = entries, .bottom = entries, .open_entries = ENTRIES_OPEN_FIRST };
    entries[0] = (CallEntry){ .ret = SEPARATOR_RET, .sp = ~0ull };
    cs->chain[0] = (StackSpan){ .base = entries, .lo = stack_lo, .hi = stack_hi };
    cs->chain_count = 1;
    return true;
}

void callstack_free(CallStack *cs)
{
    if (cs->bottom)
        pages_unmap(cs->bottom, RESERVED_BYTES);
    *cs = (CallStack){ 0 };
}

bool callstack_is_guard(const CallStack *cs, const void *address)
{
    const u8 *entries = (const u8 *)cs->bottom;
    const u8 *at = address;

    return at >= entries + cs->open_entries * sizeof(CallEntry) && at < entries + RESERVED_BYTES;
}

// Moves the bases that lay in or above what was dropped, so that spans keep their entries.
static void move_bases(CallStack *cs, CallEntry *mark, CallEntry *inner, u64 distance)
{
    for (u32 i = 0; i < cs->chain_count; i++) {
        CallEntry **base = &cs->chain[i].base;
        if (*base >= inner - 1)
            *base -= distance;
        else if (*base >= mark)
            *base = mark; // its remaining entries stand on the mark
    }
}

static void drop_middle(CallStack *cs)
{
    CallEntry *mark = cs->bottom + ENTRIES_KEPT_OUTER;
    CallEntry *inner = cs->top + 1 - ENTRIES_KEPT_INNER;
    u64 dropped = (u64)(inner - mark); // entries replaced by the mark

    ASSERT(inner > mark + 1);
    // A second drop swallows the first mark, which is the entry at `mark`.
    cs->omitted_count = dropped + (cs->omitted ? cs->omitted_count - 1 : 0);
    cs->omitted = mark;
    mark->ret = CONTEXT_OMITTED_PC;
    mark->context = 0;
    move_bases(cs, mark, inner, dropped - 1);
    copy_entries(mark + 1, inner, ENTRIES_KEPT_INNER);
    cs->top = mark + ENTRIES_KEPT_INNER;
    // Contexts above the mark are true, but the mark's own must be found: by C3 the search
    // stops at the first context it meets, so they go too.
    for (CallEntry *entry = mark; entry <= cs->top; entry++)
        entry->context = 0;
}

static bool open_more(CallStack *cs)
{
    u64 more = min_u64(cs->open_entries, CALLSTACK_ENTRIES_MAX - cs->open_entries);

    if (more == 0 ||
        !pages_open(cs->bottom + cs->open_entries, more * sizeof(CallEntry)))
        return false;
    cs->open_entries += more;
    return true;
}

void callstack_overflow(CallStack *cs)
{
    if (cs->top + 1 < cs->bottom + cs->open_entries || open_more(cs))
        return;
    ASSERT(cs->open_entries == CALLSTACK_ENTRIES_MAX); // otherwise the kernel refused memory
    drop_middle(cs);
}

void callstack_make_room(CallStack *cs)
{
    if (cs->top + 1 >= cs->bottom + cs->open_entries)
        callstack_overflow(cs);
}

void callstack_fork_prepare(void)
{
    lock_acquire(parking_lock());
    lock_acquire(context_tree_lock());
}

void callstack_fork_done(bool in_child)
{
    if (in_child) {
        lock_reset_after_fork(context_tree_lock());
        lock_reset_after_fork(parking_lock());
    } else {
        lock_release(context_tree_lock());
        lock_release(parking_lock());
    }
}

void callstack_validate(const CallStack *cs)
{
    ASSERT(cs->chain_count >= 1 && cs->chain_count <= CALLSTACK_CHAIN_MAX);
    ASSERT(cs->chain[0].base == cs->bottom);
    ASSERT(cs->top >= cs->bottom && cs->top < cs->bottom + cs->open_entries);
    ASSERT(!cs->omitted || (cs->omitted > cs->bottom && cs->omitted <= cs->top));
    for (u32 i = 1; i < cs->chain_count; i++)
        ASSERT(cs->chain[i].base >= cs->chain[i - 1].base && cs->chain[i].base <= cs->top);
    for (const CallEntry *entry = cs->bottom + 2; entry <= cs->top; entry++)
        ASSERT(entry->context == 0 || entry[-1].context != 0 || entry[-1].ret == SEPARATOR_RET);
    for (const CallEntry *entry = cs->bottom + 1; entry <= cs->top; entry++)
        ASSERT(entry->context == 0 || entry->ret == SEPARATOR_RET ||
               context_pc(entry->context) == entry->ret);
}
