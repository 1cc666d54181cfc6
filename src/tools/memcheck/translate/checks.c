// SPDX-License-Identifier: MIT
//
// See checks.h.
#include "tools/memcheck/translate/checks.h"

#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/ahead.h"
#include "tools/memcheck/translate/constants.h"
#include "tools/memcheck/translate/copies.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/steps.h"

enum { STATE_LEGACY_BYTES = 512, RED_ZONE = 128 };

bool touches_nothing(const ToolInsn *insn)
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

// xsave and its like.
static bool check_state(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    if (access->size_bytes != 0 && access->size_bytes < STATE_LEGACY_BYTES)
        return false;
    definedness_prepare(insn, step);
    if (!definedness_is_state(step))
        return false;
    const ToolStep call = step_calling(access_state, insn, step);
    step_emit(block, &call, access);
    known_nothing();
    return true;
}

// Masked moves, gathers and scatters.
static bool check_lanes(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    if (insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
        insn->mnemonic != ZYDIS_MNEMONIC_MASKMOVDQU)
        return false;
    definedness_prepare(insn, step);
    if (!definedness_has_lanes(step))
        return false;
    const ToolStep call = step_calling(access_lanes, insn, step);
    step_emit(block, &call, access);
    known_nothing();
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

void check_pointer(const ToolInsn *insn)
{
    InsnForm room;
    if (insn->mnemonic != ZYDIS_MNEMONIC_LEA)
        return;
    const InsnForm *form = insn_form(insn, &room);
    if (form->lea_base == RSP && form->dst != RSP)
        note_zone(insn, insn_disp(insn));
}

bool check_below(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    StackOperand stack = stack_operand(access);
    bool below = stack.on_stack && !stack.indexed && stack.disp < -RED_ZONE;
    if (stack.on_stack)
        note_zone(insn, stack.disp);
    if (below)
        tool_call_access(block, access, access_below, what_is_done(access));
    return below;
}

static bool check_tile(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1:
    case ZYDIS_MNEMONIC_TILESTORED: break;
    default: return false;
    }
    if (!decode_operands(insn, &z, operands))
        return false;
    u64 what = (u64)z.raw.modrm.reg << ACCESS_TILE_AT | (access->writes ? ACCESS_WRITES : 0);
    if (access->address.index != INSN_NO_REG)
        what |= access->address.index | ACCESS_TILE_STRIDE |
                (u64)z.raw.sib.scale << ACCESS_TILE_SCALE_AT;
    tool_call_access(block, access, access_tile, what);
    known_nothing();
    return true;
}

void check_access(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    if (check_lanes(block, insn, access) || check_state(block, insn, access) ||
        check_tile(block, insn, access))
        return;
    if (insn->mnemonic == ZYDIS_MNEMONIC_XLAT) {
        tool_call_access(block, access, access_table, 0);
        return;
    }
    u64 what = what_is_done(access);
    StackOperand stack = stack_operand(access);
    bool below = check_below(block, insn, access);
    if (!tool_shadow_can_check(block, access)) {
        tool_call_access(block, access, access_any, what);
        return;
    }
    if (known_defined(insn, access) || copies_assures(insn) || reads_control_block(access) ||
        constants_has(block, insn, access))
        return;
    if (access->reads && !memcheck_options->undef_value_errors) {
        u64 compared = step_loads_to_compare(insn, access) ? ACCESS_COMPARED : 0;
        const ToolStep step = {.fn = access_load, .arg = what | compared};
        tool_guard_end(block, tool_shadow_guard_step(block, access, &step));
    } else if (access->reads) {
        ahead_guard(block, insn, access);
    } else if (!below && stack.on_stack && !stack.indexed) {
        tool_shadow_clear(block, access);
        known_add(insn, access);
    } else {
        tool_shadow_guard_store(block, access);
    }
}

void check_loads(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                 unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (accesses[i].reads)
            check_access(block, insn, &accesses[i]);
    }
}

void check_accesses(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                    unsigned count)
{
    check_loads(block, insn, accesses, count);
    for (unsigned i = 0; i < count; i++) {
        if (!accesses[i].reads)
            check_access(block, insn, &accesses[i]);
    }
}
