// SPDX-License-Identifier: MIT
//
// definedness_run(): addresses first, then the rule, then the set (D2).
#include "tools/memcheck/definedness/step.h"

typedef void Family(Running *r);

static Family *const family_of[RULE_COUNT] = {
#define RULE_KIND(rule, family, precision, values, blind) [RULE_##rule] = family_##family,
#include "tools/memcheck/definedness/rules.def"
#undef RULE_KIND
};

DefinednessAccess definedness_access(const DefinednessStep *step)
{
    return (DefinednessAccess){step->memory_size, step->memory_reads, step->memory_writes};
}

bool definedness_is_compared(const DefinednessStep *step)
{
    return step->compared;
}

DefinednessString definedness_string(const DefinednessStep *step)
{
    return (DefinednessString){
        .kind = step->string,
        .element = step->element,
        .reads_si = step->string_flags & STRING_READS_SI,
        .uses_di = step->string_flags & STRING_USES_DI,
        .while_equal = step->string_flags & STRING_WHILE_EQUAL,
        .address32 = step->string_flags & STRING_ADDRESS32,
    };
}

static unsigned string_accesses(const DefinednessStep *step, const u64 *gpr, HiddenAccess *ret)
{
    u64 width = step->string_flags & STRING_ADDRESS32 ? 0xffffffffull : ~0ull;
    bool writes = step->string == STRING_MOVE || step->string == STRING_STORE;
    unsigned n = 0;
    if (step->string_flags & STRING_READS_SI)
        ret[n++] = (HiddenAccess){gpr[6] & width, step->element, true, false};
    if (step->string_flags & STRING_USES_DI)
        ret[n++] = (HiddenAccess){gpr[7] & width, step->element, !writes, writes};
    return n;
}

unsigned definedness_hidden(const DefinednessStep *step, const u64 *gpr, HiddenAccess ret[2])
{
    enum { AX = 0, BX = 3, SP = 4, BP = 5 };
    switch (step->rule) {
    case RULE_STRING: return string_accesses(step, gpr, ret);
    case RULE_XLAT:
        ret[0] = (HiddenAccess){gpr[BX] + (u8)gpr[AX], 1, true, false};
        return 1;
    case RULE_PUSH:
    case RULE_PUSHF:
        ret[0] = (HiddenAccess){gpr[SP] - step->size, step->size, false, true};
        return 1;
    case RULE_POP:
    case RULE_POPF:
        ret[0] = (HiddenAccess){gpr[SP], step->size, true, false};
        return 1;
    case RULE_LEAVE:
        ret[0] = (HiddenAccess){gpr[BP], 8, true, false};
        return 1;
    default: return 0;
    }
}

static bool any_in(const void *at, u32 bytes)
{
    const Any64 *words = at;
    u64 v = 0;
    for (u32 i = 0; i < bytes / 8; i++)
        v |= words[i];
    return v != 0;
}

static bool member_is_undefined(const Definedness *d, u32 member)
{
    if (member < 16)
        return d->gpr[member] != 0;
    if (member >= 32)
        return any_in(d->vector[member - 32], sizeof(d->vector[0]));
    if (member >= 20)
        return member < 28 && d->mask[member - 20] != 0;
    switch (member) {
    case 16: return d->flags != 0;
    case 17: return d->x87_environment != 0 || any_in(d->x87, sizeof(d->x87));
    case 18: return d->mxcsr != 0;
    default: return false;
    }
}

static void clear_member(Definedness *d, u32 member)
{
    if (member < 16) {
        d->gpr[member] = 0;
    } else if (member >= 32) {
        Any64 *words = (Any64 *)d->vector[member - 32];
        for (u32 i = 0; i < sizeof(d->vector[0]) / 8; i++)
            words[i] = 0;
    } else if (member >= 20 && member < 28) {
        d->mask[member - 20] = 0;
    }
    d->set &= ~(1ull << member);
}

// Of general registers. What was reported counts as defined.
static u32 check_addresses(const DefinednessStep *step, Definedness *d)
{
    u32 events = 0;
    for (MemberSet set = step->address & d->set & ~MEMBERS_VECTOR; set; set &= set - 1) {
        u32 member = (u32)__builtin_ctzll(set);
        if (member_is_undefined(d, member))
            events = EVENT_ADDRESS;
        clear_member(d, member);
    }
    return events;
}

// Of a gather's or scatter's index the lanes count that are on: nobody asks what others are.
static u32 check_indices(const DefinednessStep *step, Definedness *d,
                         const DefinednessValues *values)
{
    LaneAccess lanes[LANES_MAX];
    u32 number = step->source[2].number, n = step->lane_to, events = 0;
    u32 count = definedness_lanes(step, values, lanes);
    for (u32 i = 0; i < count; i++) {
        u8 *at = d->vector[number] + lanes[i].at / step->lane * n;
        for (u32 k = 0; k < n; k += 4) {
            events |= *(Any32 *)(at + k) ? EVENT_ADDRESS : 0;
            *(Any32 *)(at + k) = 0;
        }
    }
    if (!member_is_undefined(d, 32 + number))
        d->set &= ~MEMBER_VECTOR(number);
    return events;
}

// A store in lanes that depends on what is undefined is a conditional one. What was reported
// counts as defined.
static u32 check_lanes(const DefinednessStep *step, Definedness *d)
{
    MemberSet mask;
    if (!definedness_lanes_write(step) || !definedness_lanes_undefined(step, d, &mask))
        return 0;
    clear_member(d, (u32)__builtin_ctzll(mask));
    return EVENT_CONDITION;
}

static void update_set(const DefinednessStep *step, Definedness *d)
{
    for (MemberSet set = step->writes; set; set &= set - 1) {
        u32 member = (u32)__builtin_ctzll(set);
        u64 bit = 1ull << member;
        d->set = member_is_undefined(d, member) ? d->set | bit : d->set & ~bit;
    }
}

u32 definedness_run(const DefinednessStep *step, Definedness *d, const DefinednessValues *values)
{
    Running r = {.step = step, .d = d, .values = values};
    bool by_index = step->lanes == LANES_GATHER || step->lanes == LANES_SCATTER;
    if (step->address & d->set)
        r.events = check_addresses(step, d);
    if (by_index && step->address & d->set)
        r.events |= check_indices(step, d, values);
    if (step->lanes != LANES_NONE)
        r.events |= check_lanes(step, d);
    family_of[step->rule](&r);
    if (UNLIKELY(r.unreadable))
        rule_coarse(&r);
    update_set(step, d);
    return r.events;
}
