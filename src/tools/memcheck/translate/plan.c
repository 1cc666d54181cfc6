// SPDX-License-Identifier: MIT
//
// See plan.h: the plan itself, its first pass and its last.
#include "tools/memcheck/translate/plan.h"

#include <string.h>

#include "base/assert.h"
#include "engine/cache/cache.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/translate.h"

// ----------------------------------------------------------------------- items

PlanItem *plan_add(Plan *plan, PlanInsn *at, PlanPlace place, PlanKind kind)
{
    ASSERT(plan->item_count < PLAN_ITEMS_MAX);
    PlanItem *item = &plan->items[plan->item_count++];
    memset(item, 0, offsetof(PlanItem, access));
    item->kind = (u8)kind;
    u16 number = (u16)plan->item_count;
    if (at->places >> place & 1)
        plan->items[at->last[place] - 1].next = number;
    else
        at->first[place] = number;
    at->last[place] = number;
    at->places |= (u8)(1u << place);
    return item;
}

PlanItem *plan_add_access(Plan *plan, PlanInsn *at, PlanPlace place, PlanKind kind,
                          const ToolAccess *access)
{
    PlanItem *item = plan_add(plan, at, place, kind);
    item->access = *access;
    item->has_access = true;
    for (unsigned i = 0; i < at->named; i++) {
        if (access == &at->accesses[i])
            item->which = (u8)i;
    }
    return item;
}

void plan_add_call(Plan *plan, PlanInsn *at, PlanPlace place, ToolCallFn *fn, u64 arg)
{
    PlanItem *item = plan_add(plan, at, place, PLAN_CALL);
    item->step = (ToolStep){.fn = fn, .arg = arg};
}

void plan_add_call_access(Plan *plan, PlanInsn *at, PlanPlace place, const ToolAccess *access,
                          ToolCallFn *fn, u64 arg)
{
    PlanItem *item = plan_add_access(plan, at, place, PLAN_CALL, access);
    item->step = (ToolStep){.fn = fn, .arg = arg};
}

void plan_add_step(Plan *plan, PlanInsn *at, PlanPlace place, const ToolStep *step,
                   const ToolAccess *access)
{
    PlanItem *item = access ? plan_add_access(plan, at, place, PLAN_STEP, access)
                            : plan_add(plan, at, place, PLAN_STEP);
    item->step = *step;
}

void plan_add_join(Plan *plan, PlanInsn *at, PlanPlace place, const PlanItem *opened)
{
    PlanItem *item = plan_add(plan, at, place, PLAN_JOIN);
    item->opened = (u16)(opened - plan->items);
}

bool plan_often(PlanInsn *at)
{
    if (at->often == OFTEN_UNASKED)
        at->often = often_fails(at->insn->pc) ? OFTEN_YES : OFTEN_NO;
    return at->often == OFTEN_YES;
}

// ----------------------------------------------------------------- the first pass

// Instructions that name memory and do not touch it.
static bool touches_nothing(const ToolInsn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB: return true;
    default: return false;
    }
}

static void read_insn(Plan *plan, PlanInsn *at, const ToolInsn *insn)
{
    InsnForm room;
    memset(at, 0, offsetof(PlanInsn, accesses));
    at->insn = insn;
    at->gprs_written = insn_form(insn, &room)->gprs_written;
    at->named = (u8)tool_accesses(insn, at->accesses, PLAN_ACCESSES_MAX);
    at->touches_nothing = touches_nothing(insn);
    at->count = at->touches_nothing ? 0 : at->named;
    at->flags_dead = tool_flags_are_dead_at(plan->block, insn);
    at->is_first = plan->version & VERSION_FIRST && tool_is_first(plan->block, insn);
    at->is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    at->leaves = at->is_call || insn->lowering == LOWER_RET;
    // A prefetch of data that waits for its V bytes would be for nothing.
    if (at->touches_nothing && at->named && insn->mnemonic != ZYDIS_MNEMONIC_LEA &&
        insn->mnemonic != ZYDIS_MNEMONIC_NOP)
        plan_add_access(plan, at, PLACE_OPEN, PLAN_PREFETCH, &at->accesses[0]);
    if (!memcheck_options->stats || !plan->version)
        return;
    plan_add(plan, at, PLACE_OPEN, PLAN_COUNT)->stat = MEMCHECK_STAT_INSNS;
    if (at->is_first)
        plan_add(plan, at, PLACE_OPEN, PLAN_COUNT)->stat = MEMCHECK_STAT_GUARDS;
}

static void plan_read(Plan *plan, ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    ASSERT(count <= PLAN_INSNS_MAX);
    plan->block = block;
    plan->version = tool_version(block);
    plan->is_clean = plan->version == 0;
    plan->values_matter = memcheck_options->undef_value_errors;
    plan->count = count;
    plan->emitted = 0;
    plan->item_count = plan->copied_count = 0;
    plan->has_copies = false;
    for (unsigned i = 0; i < count; i++) {
        read_insn(plan, &plan->insns[i], &insns[i]);
        if (i > 0)
            plan->insns[i - 1].flags_die = plan->insns[i].flags_dead;
    }
}

// ------------------------------------------------------------------ the last pass

static u32 words_of(const ToolAccess *access)
{
    return (access->size_bytes + 7) / 8;
}

// Where flags are dead each half of the state that matters is tested, otherwise both at once.
static u32 guards_of_state(const PlanInsn *at, MemberSet members)
{
    return at->flags_dead ? ((u32)members != 0) + (members >> 32 != 0) : 1;
}

static u32 guards_of(const Plan *plan, const PlanInsn *at, const PlanItem *item)
{
    u32 guards = 0;
    switch ((PlanKind)item->kind) {
    case PLAN_GUARD:
    case PLAN_GUARD_EARLY:
    case PLAN_GUARD_LOAD:
    case PLAN_GUARD_STORE:
    case PLAN_STEP_IF: return words_of(&item->access);
    case PLAN_GUARD_BITS: return 1;
    case PLAN_STEP_IF_STATE:
    case PLAN_LEAVE_IF_STATE: return guards_of_state(at, item->members);
    case PLAN_COPY:
        for (u32 i = 0; i < item->copied_count; i++)
            guards += words_of(&plan->copied[item->copied + i]);
        return guards + guards_of_state(at, item->members);
    default: return 0;
    }
}

// A copy needs room for its guards and for all that is between its instructions: who goes on in
// another block would not know of it. Where that room is not left the block ends before the copy.
static void plan_fit(Plan *plan)
{
    u32 guards = 0;
    for (u32 i = 0; i < plan->count && plan->has_copies; i++) {
        PlanInsn *at = &plan->insns[i];
        u32 before = guards;
        for (unsigned place = 0; place < PLAN_PLACES; place++) {
            for (PlanItem *item = plan_first(plan, at, place); item;
                 item = plan_next(plan, item)) {
                if (item->kind == PLAN_COPY && i > 0 &&
                    !tool_has_room(plan->block, i + item->insns, before + item->guards)) {
                    tool_end_before(plan->block, at->insn);
                    plan->count = i;
                    return;
                }
                guards += guards_of(plan, at, item);
            }
        }
    }
}

void plan_make(Plan *plan, ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    plan_read(plan, block, insns, count);
    plan_red_zones(plan);
    plan_constants(plan);
    plan_values(plan);
    plan_checks(plan);
    plan_guards(plan);
    plan_stack(plan);
    plan_fit(plan);
}
