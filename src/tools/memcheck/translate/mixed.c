// SPDX-License-Identifier: MIT
//
// See values.h: clean blocks in which guards often fail (often.h, docs/design/mixed-blocks.md).
// Steps are taken out of line. What one may have left undefined is so only if the thread's set has
// it, and code asks.
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/translate.h"
#include "tools/memcheck/translate/values.h"

static PlanItem *add_step_if(Plan *plan, PlanInsn *at, MemberSet members, const ToolAccess *access,
                             const ToolStep *step)
{
    PlanItem *item =
        access ? plan_add_access(plan, at, PLACE_VALUES, PLAN_STEP_IF_STATE, access)
               : plan_add(plan, at, PLACE_VALUES, PLAN_STEP_IF_STATE);
    item->members = members;
    item->step = *step;
    return item;
}

static void forget_if(Plan *plan, PlanInsn *at, MemberSet members, const ToolStep *step)
{
    if (members)
        plan_add_join(plan, at, PLACE_VALUES, add_step_if(plan, at, members, NULL, step));
}

void mixed_settle(Plan *plan, PlanInsn *at, const DefinednessStep *step)
{
    PlanState *state = &plan->state;
    bool is_call = at->is_call, is_return = at->leaves && !is_call;
    MemberSet dead = is_call ? ACCESS_DEAD_AT_CALL : is_return ? ACCESS_DEAD_AT_RETURN : 0;
    MemberSet scalars = is_call ? 0xffull << 32 : MEMBER_VECTOR(0) | MEMBER_VECTOR(1);
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    if (reads & state->current)
        dead = 0;
    forget_if(plan, at, state->current & dead, &(ToolStep){.fn = access_call, .arg = is_return});
    state->current &= ~dead | scalars;
    if (state->current && !at->leaves) {
        MemberSet passed;
        dead = lookahead_dead(at->insn->pc, state->current, state->low, &passed);
        forget_if(plan, at, dead, &(ToolStep){.fn = access_forget, .arg = dead});
        forget_if(plan, at, passed, &(ToolStep){.fn = access_forget_copies, .arg = passed});
        state->current &= ~dead;
    }
    if (state->current)
        plan_add(plan, at, PLACE_VALUES, PLAN_LEAVE_IF_STATE)->members = state->current;
    state->current = state->low = 0;
}

// A branch needs the flags that are made before it: what is to be tested is tested before that.
static bool is_before_branch(const Plan *plan, const PlanInsn *at)
{
    return at + 1 < plan_end(plan) && at[1].insn->lowering == LOWER_JCC && at->flags_dead;
}

static void note_written(PlanState *state, const ToolInsn *insn, const DefinednessStep *step)
{
    DefinednessMove move;
    MemberSet writes = definedness_writes(step), wide = state->current & ~state->low;
    state->low &= ~writes;
    if (definedness_move(step, &move) && move.to_member >= 32 && move.written <= 16)
        state->low |= writes & MEMBERS_VECTOR & ~wide;
    state->current |= step_leaves(insn, step);
}

// The step is taken out of line if a member that the instruction touches is undefined, or what it
// loads is; the code goes on behind the checks of its other accesses.
static void plan_step(Plan *plan, PlanInsn *at, DefinednessStep *step, MemberSet touched,
                      bool often)
{
    const ToolAccess *access = at->count ? &at->accesses[0] : NULL;
    PlanState *state = &plan->state;
    const PlanItem *asks = NULL;
    PlanItem *loads = NULL;
    u32 bytes;
    MemberSet forgotten = step_forgets(at->insn, step, state->current, state->low, &bytes);
    ToolStep call = step_of(at->insn, step, access, bytes);
    call.counts = stats_of_step(plan->block, false);
    if (touched)
        asks = add_step_if(plan, at, touched, access, &call);
    call.counts = stats_of_step(plan->block, true);
    if (often) {
        check_below(plan, at, access, PLACE_VALUES);
        loads = plan_add_access(plan, at, PLACE_VALUES, PLAN_STEP_IF, access);
        loads->step = call;
    }
    // A step has done what is inserted from here on: a check of what the instruction stores would
    // make that defined again (`push [m]`).
    at->checks = CHECK_ALL;
    at->check_from = often;
    plan_add_join(plan, at, PLACE_JOIN, asks ? asks : loads);
    at->ends_facts_behind = at->count;
    note_written(state, at->insn, step);
    state->current &= ~forgotten;
}

// True: all is planned that there is to know of the instruction's accesses and values.
static bool handle_values(Plan *plan, PlanInsn *at)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    PlanState *state = &plan->state;
    const ToolInsn *insn = at->insn;
    bool often = at->count && at->accesses[0].reads && plan_often(at);
    if (!state->current && !often)
        return false;
    if (insn->lowering == LOWER_JMP && at + 1 < plan_end(plan))
        return true; // it is followed
    definedness_prepare(insn, step);
    if (!step_is_possible(plan->block, insn, step, at->accesses, at->count)) {
        mixed_settle(plan, at, step);
        return false;
    }
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    MemberSet touched = (reads | definedness_writes(step)) & state->current;
    if (!touched && !often) {
        if (is_before_branch(plan, at))
            mixed_settle(plan, at, step);
        return false;
    }
    if (!often && masks_plan(plan, at, step))
        return true;
    if (!(touched & ~step_overwrites(step, state->low)) &&
        (!often || (at->count == 1 && bitfields_plan(plan, at)))) {
        forget_if(plan, at, touched, &(ToolStep){.fn = access_forget, .arg = touched});
        state->current &= ~touched;
        return often;
    }
    plan_step(plan, at, step, touched, often);
    return true;
}

void mixed_plan(Plan *plan, PlanInsn *at)
{
    if (at->count && values_only_discards(at))
        at->count = 0;
    if (handle_values(plan, at))
        return;
    // Where flags are dead behind it, too, the guards of what follows need not stand here.
    at->may_ask_ahead = at->flags_dead && !at->flags_die && plan->state.current == 0 &&
                        plan->values_matter && !at->is_within;
    at->checks = at->is_call  ? CHECK_LOADS // what is pushed gets a tag
                 : at->leaves ? CHECK_NONE
                              : CHECK_ALL;
}
