// SPDX-License-Identifier: MIT
//
// What the program has said of ranges of its memory: those whose errors it does not want, and
// those it has named. Few, and looked at when there is something to report.
#include "base/futex_lock.h"
#include "tools/memcheck/shadow/ranges.h"
#include "tools/memcheck/shadow/shadow.h"

enum { IGNORED_MAX = 4096 };

typedef struct Range {
    GuestAddr start, end;
    bool by_program; // else by an option
} Range;

static Lock lock; // of all that follows
static Range ignored[IGNORED_MAX];
static u32 ignored_count; // also read without the lock, to see that there is none
static NamedBlock named[NAMED_MAX];
static u32 named_count;

void ranges_fork_prepare(void)
{
    lock_acquire(&lock);
}

void ranges_fork_done(bool in_child)
{
    if (in_child)
        lock_reset_after_fork(&lock);
    else
        lock_release(&lock);
}

// Takes [start, end) out of every range; what is left of a range may be two.
static void take_out(GuestAddr start, GuestAddr end)
{
    for (u32 i = 0; i < ignored_count; i++) {
        Range *range = &ignored[i];
        if (range->end <= start || range->start >= end)
            continue;
        Range above = {end, range->end, range->by_program};
        if (range->start < start) {
            range->end = start;
            if (above.start < above.end && ignored_count < IGNORED_MAX)
                ignored[ignored_count++] = above;
        } else if (above.start < above.end) {
            *range = above;
        } else {
            *range = ignored[--ignored_count];
            i--;
        }
    }
}

bool ranges_set_ignored(GuestAddr start, u64 size, bool is_ignored, bool by_program)
{
    GuestAddr end = start + size;
    if (size == 0 || end < start)
        return false;
    lock_acquire(&lock);
    take_out(start, end);
    bool ok = !is_ignored || ignored_count < IGNORED_MAX;
    if (is_ignored && ok)
        ignored[ignored_count++] = (Range){start, end, by_program};
    lock_release(&lock);
    return ok;
}

bool ranges_next_of_program(GuestAddr at, GuestAddr *ret_start, GuestAddr *ret_end)
{
    const Range *next = NULL;
    lock_acquire(&lock);
    for (u32 i = 0; i < ignored_count; i++) {
        const Range *range = &ignored[i];
        if (range->by_program && range->start >= at && (!next || range->start < next->start))
            next = range;
    }
    if (next) {
        *ret_start = next->start;
        *ret_end = next->end;
    }
    lock_release(&lock);
    return next != NULL;
}

static u64 below_high, below_low = ~0ull;

void ranges_ignore_none_by_option(void)
{
    lock_acquire(&lock);
    for (u32 i = 0; i < ignored_count;) {
        if (ignored[i].by_program)
            i++;
        else
            ignored[i] = ignored[--ignored_count];
    }
    below_low = ~0ull;
    lock_release(&lock);
}

void ranges_ignore_below_sp(u64 high, u64 low)
{
    below_high = high;
    below_low = low;
}

bool ranges_is_ignored(ToolThread *thread, GuestAddr address)
{
    bool found = false;
    u64 below = thread->gpr[RSP] - address;
    if (below >= below_low && below <= below_high)
        return true;
    if (LIKELY(__atomic_load_n(&ignored_count, __ATOMIC_RELAXED) == 0))
        return false;
    lock_acquire(&lock);
    for (u32 i = 0; i < ignored_count && !found; i++)
        found = address >= ignored[i].start && address < ignored[i].end;
    lock_release(&lock);
    return found;
}

// ------------------------------------------------------------------ named blocks

i32 ranges_name(const NamedBlock *block)
{
    i32 slot = -1;
    lock_acquire(&lock);
    for (u32 i = 0; i < NAMED_MAX && slot < 0; i++) {
        if (!named[i].context)
            slot = (i32)i;
    }
    if (slot >= 0) {
        named[slot] = *block;
        if ((u32)slot >= named_count)
            named_count = (u32)slot + 1;
    }
    lock_release(&lock);
    return slot;
}

bool ranges_forget_name(u64 slot)
{
    lock_acquire(&lock);
    bool ok = slot < named_count && named[slot].context;
    if (ok)
        named[slot].context = 0;
    lock_release(&lock);
    return ok;
}

bool ranges_find_named(GuestAddr address, NamedBlock *ret_block)
{
    bool found = false;
    if (LIKELY(__atomic_load_n(&named_count, __ATOMIC_RELAXED) == 0))
        return false;
    lock_acquire(&lock);
    for (u32 i = 0; i < named_count && !found; i++) {
        found = named[i].context && address - named[i].start < named[i].size;
        if (found)
            *ret_block = named[i];
    }
    lock_release(&lock);
    return found;
}
