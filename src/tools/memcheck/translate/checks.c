// SPDX-License-Identifier: MIT
//
// See checks.h.
#include "tools/memcheck/translate/checks.h"

#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/steps.h"

enum { STATE_LEGACY_BYTES = 512, RED_ZONE = 128 };

// Where an operand lies by its constants alone.
typedef struct StackOperand {
    bool on_stack; // its base is rsp
    bool indexed;
    i64 disp;
} StackOperand;

static StackOperand stack_operand(const ToolAccess *access)
{
    const InsnAddress *at = &access->address;
    return (StackOperand){at->base == RSP && !at->segment && !at->is_narrow && at->is_one,
                          at->index != INSN_NO_REG, at->disp};
}

static void add_step(Plan *plan, PlanInsn *at, ToolCallFn *fn, const DefinednessStep *step,
                     const ToolAccess *access)
{
    const ToolStep call = step_calling(fn, at->insn, step);
    PlanItem *item = plan_add_access(plan, at, PLACE_CHECKS, PLAN_STEP, access);
    item->step = call;
    item->ends_facts = true;
}

// xsave and its like.
static bool check_state(Plan *plan, PlanInsn *at, const ToolAccess *access)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    if (access->size_bytes != 0 && access->size_bytes < STATE_LEGACY_BYTES)
        return false;
    definedness_prepare(at->insn, step);
    if (!definedness_is_state(step))
        return false;
    add_step(plan, at, access_state, step, access);
    return true;
}

// Masked moves, gathers and scatters.
static bool check_lanes(Plan *plan, PlanInsn *at, const ToolAccess *access)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    if (at->insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
        at->insn->mnemonic != ZYDIS_MNEMONIC_MASKMOVDQU)
        return false;
    definedness_prepare(at->insn, step);
    if (!definedness_has_lanes(step))
        return false;
    add_step(plan, at, access_lanes, step, access);
    return true;
}

// The first words of a thread's control block, by the ABI: where it is, and the canary and the key
// with which functions protect what is on their stack. The client's libraries have made them.
static bool reads_control_block(const ToolAccess *access)
{
    enum { FS = 0x64, SELF = 0x10, CANARY = 0x28, KEY = 0x30 };
    const InsnAddress *at = &access->address;
    return at->segment == FS && at->base == INSN_NO_REG && at->index == INSN_NO_REG &&
           !access->writes && access->size_bytes == 8 &&
           (at->disp == 0 || at->disp == SELF || at->disp == CANARY || at->disp == KEY);
}

static u64 what_is_done(const ToolAccess *access)
{
    return access->size_bytes | (access->reads ? ACCESS_READS : 0) |
           (access->writes ? ACCESS_WRITES : 0);
}

static void note_zone(const ToolInsn *insn, i64 disp)
{
    if (disp < 0 && disp >= -RED_ZONE)
        lookahead_note_zone(insn->pc, (u32)(-disp + 7) & ~7u);
}

// `lea`: a pointer below the stack pointer is made to write there.
static void check_pointer(const ToolInsn *insn)
{
    InsnForm room;
    if (insn->mnemonic != ZYDIS_MNEMONIC_LEA)
        return;
    const InsnForm *form = insn_form(insn, &room);
    if (form->lea_base == RSP && form->dst != RSP)
        note_zone(insn, insn_disp(insn));
}

bool check_below(Plan *plan, PlanInsn *at, const ToolAccess *access, PlanPlace place)
{
    StackOperand stack = stack_operand(access);
    bool below = stack.on_stack && !stack.indexed && stack.disp < -RED_ZONE;
    if (stack.on_stack)
        note_zone(at->insn, stack.disp);
    if (below)
        plan_add_call_access(plan, at, place, access, access_below, what_is_done(access));
    return below;
}

static bool check_tile(Plan *plan, PlanInsn *at, const ToolAccess *access)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    switch (at->insn->mnemonic) {
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1:
    case ZYDIS_MNEMONIC_TILESTORED: break;
    default: return false;
    }
    if (!decode_operands(at->insn, &z, operands))
        return false;
    u64 what = (u64)z.raw.modrm.reg << ACCESS_TILE_AT | (access->writes ? ACCESS_WRITES : 0);
    if (access->address.index != INSN_NO_REG)
        what |= access->address.index | ACCESS_TILE_STRIDE |
                (u64)z.raw.sib.scale << ACCESS_TILE_SCALE_AT;
    PlanItem *item = plan_add_access(plan, at, PLACE_CHECKS, PLAN_CALL, access);
    item->step = (ToolStep){.fn = access_tile, .arg = what};
    item->ends_facts = true;
    return true;
}

// A load or a store of which one comparison tells whether it is in order.
static void check_plain(Plan *plan, PlanInsn *at, const ToolAccess *access, bool is_below)
{
    StackOperand stack = stack_operand(access);
    if (at->is_assured || reads_control_block(access))
        return;
    if (access->reads && !plan->values_matter) {
        u64 compared = step_loads_to_compare(at->insn, access) ? ACCESS_COMPARED : 0;
        PlanItem *item = plan_add_access(plan, at, PLACE_CHECKS, PLAN_GUARD_LOAD, access);
        item->step = (ToolStep){.fn = access_load, .arg = what_is_done(access) | compared};
    } else if (access->reads) {
        plan_add_access(plan, at, PLACE_CHECKS, PLAN_GUARD, access);
    } else if (!is_below && stack.on_stack && !stack.indexed) {
        plan_add_access(plan, at, PLACE_CHECKS, PLAN_CLEAR, access);
    } else {
        plan_add_access(plan, at, PLACE_CHECKS, PLAN_GUARD_STORE, access);
    }
}

static void check_access(Plan *plan, PlanInsn *at, const ToolAccess *access)
{
    if (check_lanes(plan, at, access) || check_state(plan, at, access) ||
        check_tile(plan, at, access))
        return;
    if (at->insn->mnemonic == ZYDIS_MNEMONIC_XLAT) {
        plan_add_call_access(plan, at, PLACE_CHECKS, access, access_table, 0);
        return;
    }
    bool is_below = check_below(plan, at, access, PLACE_CHECKS);
    if (tool_shadow_can_check(plan->block, access))
        check_plain(plan, at, access, is_below);
    else
        plan_add_call_access(plan, at, PLACE_CHECKS, access, access_any, what_is_done(access));
}

// What is loaded is asked for before a store marks it: the operands of movs may overlap.
static void check_insn(Plan *plan, PlanInsn *at)
{
    for (unsigned i = at->check_from; i < at->count; i++) {
        if (at->accesses[i].reads)
            check_access(plan, at, &at->accesses[i]);
    }
    for (unsigned i = at->check_from; i < at->count && at->checks == CHECK_ALL; i++) {
        if (!at->accesses[i].reads)
            check_access(plan, at, &at->accesses[i]);
    }
}

void plan_checks(Plan *plan)
{
    for (u32 i = 0; i < plan->count; i++) {
        PlanInsn *at = &plan->insns[i];
        if (plan->values_matter && at->touches_nothing)
            check_pointer(at->insn);
        if (at->checks != CHECK_NONE)
            check_insn(plan, at);
    }
}
