// SPDX-License-Identifier: MIT
//
// Repeated string instructions: all their accesses at once, before the first.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/events/events.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/report/report.h"
#include "tools/memcheck/shadow/shadow.h"

typedef struct StringRun {
    u64 count;   // elements
    u64 element; // bytes
    bool down;
} StringRun;

static GuestAddr lowest(const StringRun *run, GuestAddr at)
{
    return run->down ? at - (run->count - 1) * run->element : at;
}

static void check_range(ToolThread *thread, GuestAddr start, u64 size, bool is_write, u64 element)
{
    GuestAddr bad = shadow_first_noaccess(thread, start, size);
    if (bad < start + size)
        error_access(thread, bad, element, is_write);
}

static void copy_v(ToolThread *thread, const StringRun *run, GuestAddr to, GuestAddr from)
{
    u64 size = run->count * run->element;
    if (!shadow_is_mapped(to, size) || !shadow_is_mapped(from, size))
        return;
    origins_copied(thread, to, from, size);
    if (shadow_first_undefined(from, size) == from + size) {
        shadow_clear_v(to, size);
        return;
    }
    if ((to - from) & 7)
        shadow_drop_tags(from, size); // they would be none at another place in a word
    // As the instruction itself does it, so that overlapping repeats as it would.
    u8 *d = shadow_of(to), *s = shadow_of(from);
    for (u64 i = 0; i < size; i++) {
        u64 k = run->down ? size - 1 - i : i;
        d[k] = s[k];
    }
}

// How many elements a scan or comparison looks at.
static u64 elements_seen(ToolThread *thread, const StringRun *run, bool compares, bool while_equal)
{
    u64 mask = run->element == 8 ? ~0ull : (1ull << run->element * 8) - 1;
    i64 step = run->down ? -(i64)run->element : (i64)run->element;
    GuestAddr di = thread->gpr[RDI], si = thread->gpr[RSI];
    for (u64 i = 0; i < run->count; i++, di += (u64)step, si += (u64)step) {
        u64 a = 0, b = thread->gpr[RAX] & mask;
        if (!guest_read(di, &a, run->element) || (compares && !guest_read(si, &b, run->element)))
            return i + 1;
        if ((a == (b & mask)) != while_equal)
            return i + 1;
    }
    return run->count;
}

static bool undefined_in(GuestAddr start, u64 size)
{
    return shadow_is_mapped(start, size) && shadow_first_undefined(start, size) < start + size;
}

static void set_member(Definedness *d, MemberSet member, bool undefined)
{
    d->set = undefined ? d->set | member : d->set & ~member;
}

void access_string(ToolThread *thread, u64 arg, GuestAddr unused)
{
    (void)unused;
    const DefinednessStep *step = (const DefinednessStep *)arg;
    Definedness *d = definedness_of(thread);
    DefinednessString s = definedness_string(step);
    u64 flags = *(const u64 *)(thread->gateway.engine_rsp - 8);
    syscalls_settle(thread);
    StringRun run = {
        .count = s.address32 ? (u32)thread->gpr[RCX] : thread->gpr[RCX],
        .element = s.element,
        .down = flags & FLAG_DF,
    };
    const MemberSet inputs = MEMBER_GPR(RCX) | (s.reads_si ? MEMBER_GPR(RSI) : 0) |
                             (s.uses_di ? MEMBER_GPR(RDI) : 0);
    u32 events = 0;
    if (d->set & inputs) {
        unsigned address_member = s.reads_si && d->gpr[RSI] ? RSI : RDI;
        if (d->gpr[RCX])
            events |= EVENT_CONDITION;
        if ((s.reads_si && d->gpr[RSI]) || (s.uses_di && d->gpr[RDI]))
            events |= EVENT_ADDRESS;
        d->gpr[RCX] = d->gpr[RSI] = d->gpr[RDI] = 0;
        d->set &= ~(MEMBER_GPR(RCX) | MEMBER_GPR(RSI) | MEMBER_GPR(RDI));
        MemcheckThread *mt = memcheck_thread(thread);
        mt->value_origin = origins_of_member(thread, RCX);
        mt->address_origin = origins_of_member(thread, address_member);
        if (events)
            error_undefined(thread, events);
    }
    if (run.count == 0 || run.count > 1ull << 40)
        return;
    if (s.kind == STRING_COMPARE || s.kind == STRING_SCAN)
        run.count = elements_seen(thread, &run, s.kind == STRING_COMPARE, s.while_equal);
    u64 size = run.count * run.element;
    GuestAddr from = lowest(&run, thread->gpr[RSI]), to = lowest(&run, thread->gpr[RDI]);
    if (s.reads_si)
        check_range(thread, from, size, false, run.element);
    if (s.uses_di)
        check_range(thread, to, size, s.kind == STRING_MOVE || s.kind == STRING_STORE, run.element);
    switch (s.kind) {
    case STRING_MOVE:
        copy_v(thread, &run, thread->gpr[RDI] - (run.down ? size - run.element : 0), from);
        break;
    case STRING_STORE:
        if (shadow_is_mapped(to, size)) {
            if (!d->gpr[RAX])
                shadow_clear_v(to, size);
            for (u64 i = 0; d->gpr[RAX] && i < size; i++)
                shadow_of(to)[i] = (u8)(d->gpr[RAX] >> (i % run.element) * 8);
        }
        break;
    case STRING_LOAD: {
        if (!memcheck_options->undef_value_errors)
            break;
        GuestAddr last = run.down ? from : from + size - run.element;
        u64 v = 0, mask = run.element == 8 ? ~0ull : (1ull << run.element * 8) - 1;
        if (shadow_is_mapped(last, run.element))
            shadow_read(last, run.element, (u8 *)&v);
        d->gpr[RAX] = run.element == 4 ? v : (d->gpr[RAX] & ~mask) | v;
        set_member(d, MEMBER_GPR(RAX), d->gpr[RAX] != 0);
        break;
    }
    case STRING_COMPARE:
    case STRING_SCAN: {
        bool undefined = undefined_in(to, size) ||
                         (s.kind == STRING_COMPARE ? undefined_in(from, size)
                                                   : (d->set & MEMBER_GPR(RAX)) != 0);
        if (undefined) {
            memcheck_thread(thread)->value_origin =
                undefined_in(to, size) ? origins_of_memory(thread, shadow_first_undefined(to, size))
                : s.kind == STRING_COMPARE
                    ? origins_of_memory(thread, shadow_first_undefined(from, size))
                    : origins_of_member(thread, RAX);
            error_undefined(thread, EVENT_CONDITION);
        }
        d->flags = 0;
        set_member(d, MEMBER_FLAGS, false);
        break;
    }
    default: break;
    }
}
