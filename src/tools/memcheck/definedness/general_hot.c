// SPDX-License-Identifier: MIT
//
// Rules for anything (coarse), for flags as conditions and for transfers of control.
#include "tools/memcheck/definedness/step.h"

enum { RCX_NUMBER = 1, RSP_NUMBER = 4, R11_NUMBER = 11, RAX_NUMBER = 0 };

// ---------------------------------------------------------------------- coarse

static bool members_any(const Definedness *d, MemberSet set)
{
    return (d->set & set) != 0;
}

static bool sources_any(Running *r)
{
    const DefinednessStep *step = r->step;
    if (step->flags_tested & r->d->flags)
        return true;
    if (step->mask_mode != MASK_NONE && r->d->mask[step->mask])
        return true;
    if (step->source_count == SOURCES_MAX && members_any(r->d, step->reads))
        return true;
    for (u32 i = 0; i < step->source_count; i++) {
        if (place_any(r, &step->source[i]))
            return true;
    }
    return false;
}

// Which x87 register a number means may change in the instruction: all of them, or none.
static void fill_x87(Running *r, bool undefined)
{
    if (!undefined)
        return;
    for (u32 i = 0; i < 8; i++) {
        for (u32 k = 0; k < 10; k++)
            r->d->x87[i][k] = 0xff;
    }
}

static void fill_written(Running *r, const Place *place, bool undefined)
{
    if (place->kind == PLACE_X87)
        fill_x87(r, undefined);
    else if (undefined || r->step->mask_mode != MASK_MERGE)
        place_fill(r, place, undefined);
}

static void write_all(Running *r, bool undefined)
{
    const DefinednessStep *step = r->step;
    fill_written(r, &step->destination, undefined);
    for (u32 i = 0; i < step->place_count; i++)
        fill_written(r, &step->other[i], undefined);
    if (step->flags_written) {
        r->d->flags &= ~(u64)step->flags_written;
        if (undefined)
            r->d->flags |= step->flags_written & ~step->flags_cleared;
    }
}

void rule_coarse(Running *r)
{
    write_all(r, sources_any(r));
}

// ------------------------------------------------------------------ conditions

static bool is_one(const Running *r, u32 flag)
{
    return (r->values->eflags & ~r->d->flags & flag) != 0;
}

bool rule_condition(Running *r, u32 condition)
{
    u64 v = r->d->flags;
    switch (condition >> 1) {
    case 0: return v & OF;
    case 1: return v & CF;
    case 2: return v & ZF;
    case 3: return (v & (CF | ZF)) && !is_one(r, CF) && !is_one(r, ZF);
    case 4: return v & SF;
    case 5: return v & PF;
    case 6: return v & (SF | OF);
    default: break;
    }
    bool less = !(v & (SF | OF)) && (r->values->eflags >> 7 & 1) != (r->values->eflags >> 11 & 1);
    return (v & (ZF | SF | OF)) && !is_one(r, ZF) && !less;
}

bool definedness_holds(u64 flags, u32 condition)
{
    bool truth;
    bool less = (flags >> 7 & 1) != (flags >> 11 & 1);
    switch (condition >> 1) {
    case 0: truth = flags & OF; break;
    case 1: truth = flags & CF; break;
    case 2: truth = flags & ZF; break;
    case 3: truth = flags & (CF | ZF); break;
    case 4: truth = flags & SF; break;
    case 5: truth = flags & PF; break;
    case 6: truth = less; break;
    default: truth = less || flags & ZF; break;
    }
    return truth != (condition & 1);
}

static void conditional_jump(Running *r)
{
    if (!rule_condition(r, r->step->lane))
        return;
    r->events |= EVENT_CONDITION;
    r->d->flags &= ~(u64)r->step->flags_tested;
}

// Where the condition is undefined, a bit is if the two choices differ in it.
static void conditional_move(Running *r)
{
    const DefinednessStep *step = r->step;
    const Place *from = &step->source[step->source_count - 1], *to = &step->destination;
    if (!rule_condition(r, step->lane)) {
        bool moves = definedness_holds(r->values->eflags, step->lane);
        place_set_v(r, to, place_v(r, moves ? from : to));
        return;
    }
    Known a = place_known(r, from), b = place_known(r, to);
    place_set_v(r, to, a.v | b.v | (a.value ^ b.value));
}

static void jump_cx(Running *r, bool loops)
{
    u64 *cx = &r->d->gpr[RCX_NUMBER];
    u64 used = *cx & mask_of(r->step->size);
    if (loops && r->step->flags_tested & r->d->flags) {
        r->events |= EVENT_CONDITION;
        r->d->flags &= ~(u64)r->step->flags_tested;
    }
    if (used) {
        r->events |= EVENT_CONDITION;
        *cx = 0;
    }
    r->d->set = *cx ? r->d->set : r->d->set & ~MEMBER_GPR(RCX_NUMBER);
}

// ----------------------------------------------------------------------- jumps

static void jump(Running *r)
{
    const Place *target = &r->step->source[0];
    if ((target->kind != PLACE_GPR && target->kind != PLACE_MEMORY) || !place_any(r, target))
        return;
    r->events |= EVENT_TARGET;
    if (target->kind == PLACE_GPR) {
        r->d->gpr[target->number] = 0;
        r->d->set &= ~MEMBER_GPR(target->number);
    }
}

static void leave_by_return(Running *r)
{
    GuestAddr sp = r->values->gpr[RSP_NUMBER];
    if (place_hidden_v(sp, 8))
        r->events |= EVENT_TARGET;
}

static void update_flags_member(Running *r)
{
    r->d->set = r->d->flags ? r->d->set | MEMBER_FLAGS : r->d->set & ~MEMBER_FLAGS;
}

void definedness_forget_condition(const DefinednessStep *step, Definedness *d)
{
    Running r = {.step = step, .d = d};
    d->flags &= ~(u64)step->flags_tested;
    update_flags_member(&r);
}

void family_general(Running *r)
{
    const DefinednessStep *step = r->step;
    Definedness *d = r->d;
    const u64 low_flags = CF | PF | AF | ZF | SF;
    switch (step->rule) {
    case RULE_DEFINED: write_all(r, false); break;
    case RULE_NOTHING: break;
    case RULE_JCC: conditional_jump(r); update_flags_member(r); break;
    case RULE_JUMP_CX: jump_cx(r, false); break;
    case RULE_LOOP: jump_cx(r, true); update_flags_member(r); break;
    case RULE_CALL:
        jump(r);
        place_set_hidden_v(r->values->gpr[RSP_NUMBER] - 8, 8, 0);
        break;
    case RULE_JUMP: jump(r); break;
    case RULE_RET: leave_by_return(r); break;
    case RULE_SETCC: place_set_v(r, &step->destination, rule_condition(r, step->lane)); break;
    case RULE_CMOVCC: conditional_move(r); break;
    case RULE_FLAG_SET: d->flags &= ~(u64)step->flags_written; break;
    case RULE_CMC: break; // CF stays as undefined as it was
    case RULE_LAHF: d->gpr[RAX_NUMBER] = (d->gpr[RAX_NUMBER] & ~0xff00ull) |
                                         (d->flags & low_flags) << 8; break;
    case RULE_SAHF: d->flags = (d->flags & ~low_flags) |
                               (d->gpr[RAX_NUMBER] >> 8 & low_flags); break;
    case RULE_SYSCALL: d->gpr[RCX_NUMBER] = d->gpr[R11_NUMBER] = 0; break;
    default: rule_coarse(r); break;
    }
}
