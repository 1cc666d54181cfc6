// SPDX-License-Identifier: MIT
//
// plan_stack(): marks of the stack where it is left. plan_red_zones(): the same where a function
// uses it without opening it.
#include <string.h>

#include "engine/aspace/aspace.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/plan.h"

static void add_fill(Plan *plan, PlanInsn *at, PlanPlace place, i32 disp, u32 size)
{
    PlanItem *item = plan_add(plan, at, place, PLAN_FILL);
    item->disp = disp;
    item->size = size;
}

static const ToolInsn *end_of(const Plan *plan)
{
    return plan->insns[0].insn + plan->count;
}

// `leave`, `mov rsp, rbp`, or `lea rsp, [rbp + disp]`: what is left ends so far above rbp.
static void leave_by_rbp(Plan *plan, PlanInsn *at, i64 above)
{
    if (lookahead_is_left_read(at->insn, end_of(plan)))
        return;
    PlanItem *item = plan_add(plan, at, PLACE_LEAVE, PLAN_CALL);
    item->step = (ToolStep){.fn = stacks_leave_by_rbp, .arg = (u64)above, .gprs = 1u << RBP};
}

// What is left when rsp goes up is undefined again, so that entering a frame costs nothing
// and a dangling pointer into a dead one is noticed (docs/design/stack-marks.md). What push
// and call store is marked by them.
static void leave_stack(Plan *plan, PlanInsn *at)
{
    const ToolInsn *insn = at->insn;
    InsnForm room;
    const InsnForm *form;
    enum { INLINE_BYTES_MAX = 512 };
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE:
        leave_by_rbp(plan, at, 8);
        return;
    case ZYDIS_MNEMONIC_POP:
        if (!lookahead_is_left_read(insn, end_of(plan)))
            add_fill(plan, at, PLACE_LEAVE, 0, 8);
        return;
    case ZYDIS_MNEMONIC_RET: {
        RedZone zone = lookahead_left_zone(insn->pc); // what is popped is marked with its tag
        if (zone.low > zone.high)
            add_fill(plan, at, PLACE_LEAVE, -(i32)zone.low, zone.low - zone.high);
        return;
    }
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_MOV: break;
    default: return;
    }
    form = insn_form(insn, &room);
    if (form->dst != RSP)
        return;
    i64 amount;
    if (form->has_imm && insn->mnemonic != ZYDIS_MNEMONIC_MOV) {
        amount = insn_imm(insn);
        if (insn->mnemonic == ZYDIS_MNEMONIC_SUB)
            amount = -amount;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && form->lea_base == RSP &&
               !form->lea_indexed) {
        amount = insn_disp(insn);
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && form->src == RBP) {
        leave_by_rbp(plan, at, 0);
        return;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && form->lea_base == RBP &&
               !form->lea_indexed) {
        leave_by_rbp(plan, at, insn_disp(insn));
        return;
    } else {
        return; // a load of rsp: stack_loaded() tells
    }
    u64 size = (u64)(amount < 0 ? -amount : amount);
    if (amount < 0)
        return; // it is undefined since it was left (K3)
    if (lookahead_is_left_read(insn, end_of(plan)))
        return;
    u32 below = lookahead_left_zone(insn->pc).low; // its red zone
    if (below + size <= INLINE_BYTES_MAX && size % 8 == 0)
        add_fill(plan, at, PLACE_LEAVE, -(i32)below, below + (u32)size);
    else
        plan_add_call(plan, at, PLACE_LEAVE, stacks_leave_frame, size);
}

// A function that calls nothing may use what is below its stack pointer and never opens it: that is
// done before a direct call of it or, if it makes itself a frame, where it begins.
static void open_red_zone(Plan *plan, PlanInsn *at)
{
    const ToolInsn *insn = at->insn;
    enum { INLINE_BYTES_MAX = 256, RETURN_BYTES = 8, PUSH_RBP = 0x55 };
    static const u8 frame[] = {0x48, 0x89, 0xe5}; // mov rbp, rsp
    u8 bytes[1 + sizeof(frame)];
    bool calls = insn->lowering == LOWER_CALL;
    GuestAddr function = calls ? insn->target : insn->pc;
    if (!calls && (insn->len != 1 || insn->bytes[0] != PUSH_RBP))
        return;
    bool framed = guest_read(function, bytes, sizeof(bytes)) && bytes[0] == PUSH_RBP &&
                  memcmp(bytes + 1, frame, sizeof(frame)) == 0;
    u32 size = framed != calls ? lookahead_red_zone(function, framed).low : 0;
    if (framed && !calls)
        lookahead_note_frame(function);
    i32 from = calls ? -RETURN_BYTES : 0;
    if (size && size <= INLINE_BYTES_MAX)
        add_fill(plan, at, PLACE_OPEN, from - (i32)size, size);
    else if (size)
        plan_add_call(plan, at, PLACE_OPEN, stacks_enter_frame, (u64)(size - from) << 1);
}

void plan_red_zones(Plan *plan)
{
    for (u32 i = 0; i < plan->count && plan->values_matter; i++)
        open_red_zone(plan, &plan->insns[i]);
}

void plan_stack(Plan *plan)
{
    for (u32 i = 0; i < plan->count; i++) {
        if (plan->insns[i].gprs_written >> RSP & 1)
            leave_stack(plan, &plan->insns[i]);
    }
}
