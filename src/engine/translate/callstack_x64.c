// SPDX-License-Identifier: MIT
//
// The code that keeps the shadow call stack (callstack/callstack.h): what calls,
// returns and loads of rsp do beside their work. None of it touches a flag.
#include "engine/callstack/callstack.h"

#include "engine/calltags/calltags.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"

#define ENTRY(field) ((i32)offsetof(CallEntry, field))
enum { ENTRY_SIZE = sizeof(CallEntry) };

// mov qword [rax + disp], imm in one store if it can be: the return reads it at once, and two
// would have to reach the cache before it could.
static void emit_store_imm64(Emitter *e, i32 disp, u64 imm)
{
    if (!fits_i32((i64)imm)) {
        x64_mov_mem_imm(e, DWORD, x64_at(RAX, disp), (i32)imm);
        x64_mov_mem_imm(e, DWORD, x64_at(RAX, disp + 4), (i32)(imm >> 32));
        return;
    }
    x64_mov_mem_imm(e, QWORD, x64_at(RAX, disp), (i32)imm);
}

// In a tool's shadow tags are found through the tool's gs.
_Static_assert(CALLTAGS_DISP == TOOL_SHADOW_DISP && CALLTAGS_DISP - 8 >= INT8_MIN,
               "one base for both, and a byte for the displacement");

// The tag of the word at [rsp + disp].
static void emit_calltag(Builder *b, i32 disp, u32 tag)
{
    x64_mov_mem_imm(&b->e, QWORD, x64_gs(x64_at(RSP, CALLTAGS_DISP + disp)), (i32)tag);
}

static u32 tag_of(GuestAddr return_address, u32 landing)
{
    return landing ? CALLTAG_LANDING + landing : calltag_hash(return_address);
}

// A shared shadow is marked before the push, as for any: `counts` unless it is no call.
void emit_callstack_before_push(Builder *b, GuestAddr return_address, u32 landing, bool counts)
{
    if (calltags_wanted && calltags_shared)
        emit_calltag(b, -8, counts ? tag_of(return_address, landing) : 0);
}

// The entry above the top gets ret, sp and context, and becomes the top. The first store meets the
// guard when the entries are full; the handler makes room, reloads rax from top and lets it run
// again.
void emit_callstack_push(Builder *b, GuestAddr return_address, u32 landing)
{
    if (calltags_wanted && !calltags_shared)
        emit_calltag(b, 0, tag_of(return_address, landing));
    if (!callstack_wanted)
        return;
    bool spilled = b->spilled >> RAX & 1;
    if (!spilled)
        builder_spill(b, RAX);
    builder_mark_nowhere(b); // the call itself is over
    x64_mov_reg_fs(&b->e, RAX, CTX(callstack.top));
    emit_store_imm64(&b->e, ENTRY_SIZE + ENTRY(ret), return_address);
    x64_mov_mem_reg(&b->e, QWORD, x64_at(RAX, ENTRY_SIZE + ENTRY(sp)), RSP);
    x64_mov_mem_imm(&b->e, DWORD, x64_at(RAX, ENTRY_SIZE + ENTRY(context)), 0);
    x64_lea_reg_mem(&b->e, QWORD, RAX, x64_at(RAX, ENTRY_SIZE));
    x64_mov_fs_reg(&b->e, CTX(callstack.top), RAX);
    if (!spilled)
        x64_mov_reg_fs(&b->e, RAX, CTX_SPILL(RAX));
}

// The return address at [rsp + disp] is popped, or has been. In a shared shadow it is marked, as
// what any pop leaves.
void emit_calltag_clear(Builder *b, i32 disp)
{
    if (calltags_wanted)
        emit_calltag(b, disp, calltags_shared ? ~0u : 0);
}

// r11d := the number that the tag of what is at [rsp] has, or one below LANDINGS_MAX
void emit_load_landing(Builder *b)
{
    _Static_assert(CALLTAG_LANDING % LANDINGS_MAX == 0 && !(LANDINGS_MAX & (LANDINGS_MAX - 1)),
                   "its low bits are the number");
    x64_mov_reg_mem(&b->e, DWORD, R11, x64_gs(x64_at(RSP, CALLTAGS_DISP)));
    x64_and_reg_imm(&b->e, DWORD, R11, LANDINGS_MAX - 1);
}

// Leaves rax = the top entry's place; the jump that is returned is taken unless the entry is this
// call's. `loop` jumps unless rcx is 1: here it is the difference of the two return addresses,
// plus 1. What goes on takes no branch: they are what large programs run out of (translate.c).
static X64Jump emit_compare_top(Builder *b)
{
    Emitter *e = &b->e;
    x64_mov_reg_fs(e, RAX, CTX(callstack.top));
    x64_mov_reg_mem(e, QWORD, RAX, x64_at(RAX, ENTRY(ret)));
    x64_not_reg(e, QWORD, RAX);
    x64_lea_reg_mem(e, QWORD, RCX, x64_indexed(RAX, RCX, 1, 2));
    X64Jump miss = x64_loop(e);
    x64_mov_reg_fs(e, RAX, CTX(callstack.top));
    return miss;
}

//     pop rcx ; compare with the top, or miss ; drop the top
//   on: look up what was popped
//   miss: call callstack_on_return_miss ; on
void emit_callstack_return(Builder *b, u16 pop_bytes)
{
    Emitter *e = &b->e;
    i32 slot = -8 - (i32)pop_bytes;
    builder_spill(b, RAX);
    builder_spill(b, RCX);
    x64_pop_reg(e, RCX);
    emit_calltag_clear(b, -8);
    builder_mark_nowhere(b);
    if (pop_bytes)
        x64_lea_reg_mem(e, QWORD, RSP, x64_at(RSP, pop_bytes));
    X64Jump miss = emit_compare_top(b);
    x64_lea_reg_mem(e, QWORD, RAX, x64_at(RAX, -ENTRY_SIZE));
    x64_mov_fs_reg(e, CTX(callstack.top), RAX);
    CodePtr on = e->pc;
    x64_mov_reg_mem(e, QWORD, RCX, x64_at(RSP, slot));
    emit_lookup(b);
    x64_land(e, miss);
    x64_lea_reg_mem(e, QWORD, RCX, x64_at(RSP, slot));
    x64_mov_fs_reg(e, CTX(gateway.call_address), RCX);
    emit_tool_call(b, callstack_on_return_miss, b->insn->pc);
    x64_jmp_to(e, on);
}

// --------------------------------------------------------------- loads of rsp

// The register or memory base that an instruction moves to its first operand.
static unsigned source_of(const Insn *insn, const InsnForm *form)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_LEA ? form->lea_base : form->src;
}

// The registers that hold rsp, or what was computed from it by a sum or rounded, before `until`.
static u16 derived_from_rsp(const Builder *b, const Insn *until)
{
    u16 derived = 1u << RSP;
    for (const Insn *insn = b->insns; insn < until; insn++) {
        InsnForm room;
        const InsnForm *form = insn_form(insn, &room);
        switch (insn->mnemonic) {
        case ZYDIS_MNEMONIC_MOV: case ZYDIS_MNEMONIC_LEA: {
            unsigned source = source_of(insn, form);
            bool copies = source != INSN_NO_REG && derived >> source & 1;
            derived &= (u16)~form->gprs_written;
            if (copies && form->dst != INSN_NO_REG)
                derived |= (u16)(1u << form->dst);
            break;
        }
        case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB: case ZYDIS_MNEMONIC_AND: break;
        default: derived &= (u16)~form->gprs_written;
        }
        derived |= 1u << RSP;
    }
    return derived;
}

// mov, lea, xchg, pop or cmov to rsp of what is no frame of this function.
static bool loads_rsp(const Builder *b, const Insn *insn)
{
    InsnForm room;
    const InsnForm *form = insn_form(insn, &room);
    if (!form->writes_rsp || insn->lowering != LOWER_COPY)
        return false;
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB: case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_INC: case ZYDIS_MNEMONIC_DEC: return false;
    default: break;
    }
    if (insn->mnemonic != ZYDIS_MNEMONIC_MOV && insn->mnemonic != ZYDIS_MNEMONIC_LEA)
        return true;
    unsigned source = source_of(insn, form);
    return source != RSP && source != RBP &&
           (source == INSN_NO_REG || !(derived_from_rsp(b, insn) >> source & 1));
}

// Goes within this frame by what is known only then. Constants and rbp the tool sees for itself.
static bool moves_by_register(const Insn *insn)
{
    InsnForm room;
    const InsnForm *form = insn_form(insn, &room);
    if (!form->writes_rsp || insn->lowering != LOWER_COPY)
        return false;
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB: return !form->has_imm;
    case ZYDIS_MNEMONIC_MOV: return form->src != RBP;
    case ZYDIS_MNEMONIC_LEA:
        return form->lea_indexed || (form->lea_base != RSP && form->lea_base != RBP);
    default: return false;
    }
}

// Takes stack by a number that is known only then, or rounds: frames of this function may differ.
static bool is_elastic(const Insn *insn)
{
    InsnForm room;
    bool rounds = insn->mnemonic == ZYDIS_MNEMONIC_AND && insn_form(insn, &room)->writes_rsp;
    return rounds || moves_by_register(insn);
}

// What is hardly ever needed of a function may be elsewhere, and looks like another one.
static bool leaves_elastic(const Insn *insn)
{
    return insn->lowering == LOWER_JCC && calltags_is_elastic(insn->pc);
}

void callstack_note_frame(const Builder *b)
{
    if (!calltags_wanted)
        return;
    if (is_elastic(b->insn))
        calltags_note_elastic(b->insn->pc);
    else if (leaves_elastic(b->insn))
        calltags_note_elastic(b->insn->target);
}

bool callstack_watches(const Builder *b)
{
    return (callstack_wanted || calltags_wanted) &&
           (loads_rsp(b, b->insn) || (tool->stack_loaded && moves_by_register(b->insn)));
}

void emit_callstack_before_load(Builder *b)
{
    x64_mov_fs_reg(&b->e, CTX(translate.old_sp), RSP);
}

// Code that runs a function on another stack calls it in the same block.
static bool goes_on_to_a_call(const Builder *b)
{
    for (const Insn *insn = b->insn + 1; insn < b->insns + b->insn_count; insn++) {
        if (insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT)
            return true;
        if (loads_rsp(b, insn))
            return false;
    }
    return false;
}

// An epilogue, perhaps: the unwinder's last steps too, where it does not jump.
static bool returns_next(const Builder *b)
{
    const Insn *next = b->insn + 1;
    return next < b->insns + b->insn_count && next->lowering == LOWER_RET;
}

// GCC's unwinder pops the address that it jumps to, LLVM's a register before it returns.
static bool pops_and_returns(const Builder *b)
{
    const Insn *next = b->insn + 1;
    return next + 1 < b->insns + b->insn_count && next->mnemonic == ZYDIS_MNEMONIC_POP &&
           (next[1].lowering == LOWER_RET || next[1].lowering == LOWER_JMP_INDIRECT);
}

void emit_callstack_after_load(Builder *b)
{
    builder_mark_nowhere(b);
    u64 how = (goes_on_to_a_call(b) ? LOAD_RSP_CALLS : 0) |
              (returns_next(b) ? LOAD_RSP_RETURNS : 0) |
              (pops_and_returns(b) ? LOAD_RSP_POPS : 0) |
              (loads_rsp(b, b->insn) ? 0 : LOAD_RSP_IN_FRAME);
    emit_tool_call(b, callstack_on_load_rsp, how);
}
