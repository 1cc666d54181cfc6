// SPDX-License-Identifier: MIT
//
// See values.h: a dirty block has a step before each instruction that touches a member of its set.
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/swapped.h"
#include "tools/memcheck/translate/translate.h"
#include "tools/memcheck/translate/values.h"

// An instruction that is being looked at.
typedef struct Dirty {
    Plan *plan;
    PlanInsn *at;
    PlanState *state;
    DefinednessStep *step; // prepared where its registers are asked for
    bool overwrites;       // what is undefined, and reads nothing of that
    bool is_stepped;
} Dirty;

// ---------------------------------------------------------------------- forgetting

// Whether all that the instruction writes of the set is overwritten, so that no step is needed
// to find out what becomes of it.
static bool can_forget(const Dirty *d)
{
    return !(definedness_writes(d->step) & d->state->current & ~definedness_overwrites(d->step)) &&
           d->at->flags_dead;
}

static void forget(Dirty *d, PlanPlace place, MemberSet members)
{
    if (!members)
        return;
    plan_add(d->plan, d->at, place, PLAN_FORGET)->members = members;
    d->state->current &= ~members;
}

static void forget_if_overwritten(Dirty *d, PlanPlace place)
{
    if (d->overwrites)
        forget(d, place, definedness_writes(d->step) & d->state->current);
}

// At calls and returns most registers hold nothing by the ABI. What they still carry would ride
// along through all that follows: it counts as defined.
static void forget_dead(Dirty *d)
{
    bool is_call = d->at->is_call;
    MemberSet dead = d->state->current & (is_call ? ACCESS_DEAD_AT_CALL : ACCESS_DEAD_AT_RETURN);
    const MemberSet scalars = is_call ? 0xffull << 32 : MEMBER_VECTOR(0) | MEMBER_VECTOR(1);
    const MemberSet plain = 0xffff | MEMBER_FLAGS | MEMBERS_VECTOR;
    if (!dead)
        return;
    if (dead & ~plain || !d->at->flags_dead) {
        plan_add_call(d->plan, d->at, PLACE_VALUES, access_call, !is_call);
        d->state->exact = false;
        return;
    }
    if (dead & scalars) {
        plan_add(d->plan, d->at, PLACE_VALUES, PLAN_FORGET_COPIES)->members = dead & scalars;
        d->state->exact = false;
    }
    forget(d, PLACE_VALUES, dead & ~scalars);
}

// --------------------------------------------------------------------------- steps

static bool touches_current(const Dirty *d)
{
    if (!d->state->current)
        return false;
    StepGist gist = step_gist(d->at->insn);
    return (gist.reads | gist.writes) & d->state->current;
}

static void plan_step(Dirty *d)
{
    u32 bytes;
    PlanInsn *at = d->at;
    const ToolAccess *access = at->count ? &at->accesses[0] : NULL;
    MemberSet forgotten = step_forgets(at->insn, d->step, d->state->current, 0, &bytes);
    ToolStep call = step_of(at->insn, d->step, access, bytes);
    if (at->insn->lowering == LOWER_JCC)
        swapped_step(d->plan->block, at->insn, &call);
    plan_add_step(d->plan, at, PLACE_VALUES, &call, access);
    d->state->current &= ~forgotten;
}

// The step of an instruction that has to do with what is undefined. True: there is nothing else to
// be done for it.
static bool take_step(Dirty *d)
{
    PlanInsn *at = d->at;
    PlanState *state = d->state;
    definedness_prepare(at->insn, d->step);
    MemberSet reads = definedness_reads(d->step), writes = definedness_writes(d->step);
    bool uses = at->is_first || (reads | definedness_address(d->step)) & state->current;
    d->overwrites = !uses && !at->leaves && can_forget(d);
    if (uses && !at->is_first && masks_plan(d->plan, at, d->step)) {
        state->exact = false;
        return true;
    }
    if (!uses && (!(writes & state->current) || d->overwrites))
        return false;
    u64 place = 0;
    if (at->is_first && at->count &&
        step_is_possible(d->plan->block, at->insn, d->step, at->accesses, at->count))
        place = often_place(at->insn->pc);
    if (place)
        plan_add_call(d->plan, at, PLACE_VALUES, often_failed, place);
    plan_step(d);
    at->ends_facts = true;
    if (at->is_first || (reads & state->current) || at->count)
        state->current |= step_leaves(at->insn, d->step);
    state->exact = false;
    d->is_stepped = true; // a guard of what it has looked at would fail again, for ever
    return !at->leaves;
}

// A load whose guard often fails. The set of the version says what may be undefined, so that the
// block goes on in any case.
static bool load_often(Dirty *d)
{
    Plan *plan = d->plan;
    PlanInsn *at = d->at;
    if (at->count == 1 && bitfields_plan(plan, at)) {
        forget_if_overwritten(d, PLACE_FORGET);
        return true;
    }
    definedness_prepare(at->insn, d->step);
    if (!step_is_possible(plan->block, at->insn, d->step, at->accesses, at->count))
        return false;
    ToolStep call = step_of(at->insn, d->step, &at->accesses[0], 0);
    call.counts = stats_of_step(plan->block, true);
    forget_if_overwritten(d, PLACE_VALUES);
    check_below(plan, at, &at->accesses[0], PLACE_VALUES);
    PlanItem *guard = plan_add_access(plan, at, PLACE_VALUES, PLAN_STEP_IF, &at->accesses[0]);
    guard->step = call;
    // The step has done what is inserted from here on: a check of what the instruction stores would
    // make that defined again (`push [m]`).
    at->checks = CHECK_ALL;
    at->check_from = 1;
    plan_add_join(plan, at, PLACE_JOIN, guard);
    at->ends_facts_behind = true;
    d->state->current |= step_leaves(at->insn, d->step);
    d->state->exact = false;
    return true;
}

// True: there is nothing else to be done for the instruction.
static bool handle_values(Dirty *d)
{
    PlanInsn *at = d->at;
    if ((at->is_first || touches_current(d)) && take_step(d))
        return true;
    bool loads = !at->is_first && !at->leaves && at->count && at->accesses[0].reads;
    if ((d->state->current || at->is_within) && loads && plan_often(at) && load_often(d))
        return true;
    if (at->leaves)
        forget_dead(d);
    if (at->count && values_only_discards(at))
        at->count = 0;
    return false;
}

void dirty_plan(Plan *plan, PlanInsn *at)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    Dirty d = {.plan = plan, .at = at, .state = &plan->state, .step = (DefinednessStep *)room};
    if (handle_values(&d))
        return;
    if (!d.is_stepped)
        at->checks = at->is_call  ? CHECK_LOADS // what is pushed gets a tag
                     : at->leaves ? CHECK_NONE
                                  : CHECK_ALL;
    forget_if_overwritten(&d, PLACE_FORGET);
}
