// SPDX-License-Identifier: MIT
//
// Calls, returns and jumps to where a register or memory says. Each function shows the code it
// emits; landings/landings.h has the idea of calls and returns, docs/design/indirect-lookup.md
// that of the rest.
#include <string.h>
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"
#include "engine/gateway/gateway.h"
#include "engine/landings/landings.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"

// push return_address; the client's stack must hold the guest's address. `counts`: as a call.
void emit_push_return(Builder *b, GuestAddr return_address, u32 landing, bool counts)
{
    emit_callstack_before_push(b, return_address, landing, counts);
    if (fits_i32((i64)return_address)) {
        x64_push_imm(&b->e, (i32)return_address);
        return;
    }
    // Far code: through a register, which is spilled already for an indirect call with rax.
    bool spilled = b->spilled & 1u << RAX;
    if (!spilled)
        builder_spill(b, RAX);
    x64_mov_reg_imm(&b->e, RAX, return_address);
    x64_push_reg(&b->e, RAX);
    if (!spilled)
        builder_unspill(b, RAX);
}

// The number for a call that is one for the processor too (landings/landings.h); 0: it cannot be.
static u32 take_landing(Builder *b, GuestAddr return_address)
{
    u32 version = 0;
    bool is_clean = !block_is_dirty(b->block) && !b->changes_version;
    if (!(tool->needs & TOOL_LOOSE_FLAGS) || !calltags_wanted || callstack_wanted || !is_clean ||
        !fits_i32((i64)return_address))
        return 0;
    if (tool->exit_version && (!tool->exit_version(b, &version) || version != 0))
        return 0;
    return b->block->landing = landing_take(return_address);
}

// Whether the code at pc soon has what looks like an operand below rsp, by its bytes: SIB byte 24
// between a modrm byte that has it, with a displacement, and one that is negative; or a subtraction
// from rsp, as before a pop.
static bool seems_to_look_below(GuestAddr pc)
{
    enum { AHEAD = 40, MODRM_BITS = 0xc7, SIB_DISP8 = 0x44, SIB_DISP32 = 0x84, RSP_ONLY = 0x24,
           SUB_IMM8 = 0x83, SUB_IMM32 = 0x81, SUB_RSP = 0xec };
    u8 code[AHEAD + 5];
    if (!guest_read(pc, code, sizeof(code)))
        return true;
    for (unsigned i = 1; i < AHEAD; i++) {
        u8 modrm = code[i - 1] & MODRM_BITS;
        if (code[i] == SUB_RSP && (code[i - 1] == SUB_IMM8 || code[i - 1] == SUB_IMM32))
            return true;
        if (code[i] == RSP_ONLY && ((modrm == SIB_DISP8 && code[i + 1] & 0x80) ||
                                    (modrm == SIB_DISP32 && code[i + 4] & 0x80)))
            return true;
    }
    return false;
}

//   landing: [mov qword [rsp - 8], return_address] ; mov r11, fs:[spill r11] ; jmp return_address
// The return has put the landing's place there, which stays unless somebody is likely to look. The
// jump is left out if the block at return_address is made behind it.
static void emit_landing(Builder *b, GuestAddr return_address)
{
    Emitter *e = &b->e;
    b->landing = e->pc;
    builder_mark_nowhere(b);
    if (seems_to_look_below(return_address)) {
        x64_mov_mem_imm(e, QWORD, x64_at(RSP, -8), (i32)return_address);
    }
    x64_mov_reg_fs(e, R11, CTX_SPILL(R11));
    if (!b->block->falls)
        builder_exit(b, X64_JMP, return_address);
}

// Where r11 is stored anyway (writes_r11()), it serves in place of rax, which need not be saved.
void emit_lookup_spills(Builder *b)
{
    if (!(tool->needs & TOOL_LOOSE_FLAGS))
        builder_spill(b, RAX);
    builder_spill(b, RCX);
}

// By the low bits of the target in rcx. The table's entry checks the whole target, see
// emit_entry().
void emit_lookup(Builder *b)
{
    bool with_r11 = tool->needs & TOOL_LOOSE_FLAGS;
    b->fallthrough = false;
    if (b->block->version & VERSION_STEPPED) {
        x64_jmp_to(&b->e, gateway_lookup_miss());
        return;
    }
    if (block_is_dirty(b->block) || b->changes_version) {
        if (with_r11)
            builder_spill(b, RAX);
        x64_jmp_to(&b->e, gateway_version_indirect());
        return;
    }
    if (with_r11) {
        b->spilled |= 1u << R11;
        builder_mark(b, false);
    }
    unsigned index = with_r11 ? R11 : RAX;
    x64_movzx16_reg_reg(&b->e, DWORD, index, RCX);
    x64_jmp_mem(&b->e, x64_indexed(X64_NO_REG, index, sizeof(CodePtr), LOOKUP_TABLE));
}

// mov rcx, operand of the indirect branch. The same are spilled before and after it, whatever the
// copying of the operand thinks: it may use one of them as its own scratch register.
static void emit_branch_operand(Builder *b, const Insn *insn)
{
    // ff /2 and ff /4 become 8b /rcx: the same prefixes, the same operand. A
    // 64-bit operand is implied for branches, but not for mov: REX.W.
    u8 bytes[INSN_MAX + 1];
    unsigned n = 0, modrm_at = 0;
    unsigned opcode_at = insn->modrm_at - 1u;
    u8 rex = 0x48;
    for (unsigned i = 0; i < opcode_at; i++) {
        u8 prefix = insn->bytes[i];
        if ((prefix & 0xf0) == 0x40)
            rex |= prefix & 3;
        else if (prefix == 0x64 || prefix == 0x65 || prefix == 0x67)
            bytes[n++] = prefix; // others (notrack, bnd, 66) have no meaning here
    }
    bytes[n++] = rex;
    bytes[n++] = 0x8b;
    modrm_at = n;
    bytes[n++] = (u8)((insn->bytes[insn->modrm_at] & 0xc7) | RCX << 3);
    unsigned rest = insn->len - insn->modrm_at - 1u;
    memcpy(bytes + n, insn->bytes + insn->modrm_at + 1, rest);
    n += rest;

    Insn mov = *insn;
    mov.bytes = bytes;
    mov.shape = NULL; // it has become another
    mov.len = (u8)n;
    mov.mnemonic = ZYDIS_MNEMONIC_MOV;
    mov.lowering = LOWER_COPY;
    mov.modrm_at = (u8)modrm_at;
    if (insn->disp_at)
        mov.disp_at = (u8)(insn->disp_at - insn->modrm_at + modrm_at);
    mov.pc = insn->pc + insn->len - n; // keeps a rip-relative operand where it was
    u16 spilled = b->spilled;
    lower_copy(b, &mov);
    b->spilled = spilled;
    builder_mark(b, false);
}

void emit_leave_at(Builder *b, GuestAddr pc, ExitReason reason)
{
    x64_mov_fs_imm64(&b->e, CTX(pc), pc);
    x64_jmp_to(&b->e, gateway_leave(reason));
    b->fallthrough = false;
}

// A branch to where a constant place says, as in a PLT, goes where it says now, as a rule for
// ever. True: that is known, and flags are dead.
static bool says_target(GuestAddr place, GuestAddr *ret_target)
{
    if (!(tool->needs & TOOL_LOOSE_FLAGS) || !fits_i32((i64)place) ||
        !guest_read(place, ret_target, sizeof(*ret_target)) || !fits_i32((i64)*ret_target))
        return false;
    const Mapping *mapping = aspace_find(*ret_target);
    return mapping && mapping->prot & PROT_EXEC;
}

static bool find_expected_target(const Insn *insn, GuestAddr *ret_place, GuestAddr *ret_target)
{
    *ret_place = insn->target;
    return insn->memory == MEMORY_RIP && !insn->segment && says_target(*ret_place, ret_target);
}

static const u8 endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
enum { BND = 0xf2 };

static const u8 *skip_endbr64(const u8 *code)
{
    return memcmp(code, endbr64, sizeof(endbr64)) == 0 ? code + sizeof(endbr64) : code;
}

// Whether that is what a PLT has for a function that was never called, and goes to the dynamic
// linker: [endbr64] ; push number ; [bnd] jmp
static bool is_unbound(GuestAddr target)
{
    enum { PUSH = 0x68, PUSH_BYTES = 5, JMP_REL32 = 0xe9 };
    u8 code[sizeof(endbr64) + PUSH_BYTES + 2];
    if (!guest_read(target, code, sizeof(code)))
        return false;
    const u8 *at = skip_endbr64(code);
    const u8 *jump = at + PUSH_BYTES;
    if (jump[0] == BND)
        jump++;
    return at[0] == PUSH && jump[0] == JMP_REL32;
}

static void emit_compare_place(Builder *b, GuestAddr place, GuestAddr target)
{
    x64_cmp_mem_imm(&b->e, QWORD, x64_absolute((i32)place), (i32)target);
}

// What is called is a PLT's entry, which goes where a place says:
//     [endbr64] ; [bnd] jmp [place]
// The block depends on it.
static bool find_plt_target(Builder *b, GuestAddr entry, GuestAddr *ret_place,
                            GuestAddr *ret_target)
{
    enum { JMP_BYTES = 6 };
    static const u8 jmp[] = {0xff, 0x25};
    u8 code[sizeof(endbr64) + 1 + JMP_BYTES];
    i32 distance;
    if (tool_sees_all || !guest_read(entry, code, sizeof(code)))
        return false;
    const u8 *at = skip_endbr64(code);
    if (*at == BND)
        at++;
    if (memcmp(at, jmp, sizeof(jmp)) != 0)
        return false;
    memcpy(&distance, at + sizeof(jmp), sizeof(distance));
    GuestAddr end = entry + (u64)(at - code) + JMP_BYTES, executable = 0;
    *ret_place = end + (u64)(i64)distance;
    if (!aspace_executable(entry, &executable) || end > executable || aspace_code_is_busy(entry) ||
        aspace_code_is_busy(end - 1) || redirect_is_hooked(entry) ||
        !says_target(*ret_place, ret_target))
        return false;
    cache_note_source(b->block, entry, end);
    aspace_guard_code(entry, end);
    return true;
}

// The call that a PLT's entry makes another: to where it leads, as long as that stays so.
//     cmp qword [place], target ; push return_address ; jne entry ; call target
// One that leads to the dynamic linker yet is made anew when it has been bound:
//     cmp qword [place], target ; je on ; mov fs:[pc], pc ; leave
//   on: [call of entry]
void lower_call(Builder *b, const Insn *insn)
{
    GuestAddr next = insn->pc + insn->len, place, target = insn->target;
    bool counts = target != next; // not `call next; pop`
    bool is_sure = b->block->exit_count == 0;
    u32 landing = counts ? take_landing(b, next) : 0;
    bool by_plt = landing && find_plt_target(b, insn->target, &place, &target);
    if (by_plt && is_unbound(target)) {
        emit_compare_place(b, place, target);
        X64Jump on = x64_jcc_short(&b->e, X64_E);
        emit_leave_at(b, insn->pc, EXIT_REMAKE);
        x64_land(&b->e, on);
        target = insn->target;
        by_plt = false;
    }
    if (by_plt) // where it may fault the call can begin again; a push keeps its flags
        emit_compare_place(b, place, target);
    emit_push_return(b, next, landing, counts);
    if (counts)
        emit_callstack_push(b, next, landing);
    if (by_plt)
        builder_exit(b, X64_NE, insn->target);
    builder_exit(b, landing ? X64_CALL : X64_JMP, target);
    if (landing) {
        // Blocks that nobody comes to would cost more than the jump: the call is sure to be made.
        b->block->falls = b->may_fall && is_sure && !cache_find(next, 0);
        emit_landing(b, next);
    }
    b->fallthrough = false;
}

//     [cmp qword [place], target ; je target]
//     spill rcx, and rax unless r11 serves for it ; mov rcx, operand
//     [mov fs:[branch_pc], pc] ; lookup
// The first line spares registers that would be saved and loaded again, which is what much of
// a branch through a PLT takes. One that leads to the dynamic linker yet will lead elsewhere from
// the second time on, and the block is made anew then:
//     cmp qword [place], target ; je target ; mov fs:[pc], pc ; leave
void lower_jmp_indirect(Builder *b, const Insn *insn)
{
    GuestAddr place, target;
    if (find_expected_target(insn, &place, &target)) {
        emit_compare_place(b, place, target);
        builder_exit(b, X64_E, target);
        if (is_unbound(target)) {
            emit_leave_at(b, insn->pc, EXIT_REMAKE);
            return;
        }
    }
    emit_lookup_spills(b);
    emit_branch_operand(b, insn);
    if (tool->needs & TOOL_NEEDS_CALLSTACK) // the tags do without
        x64_mov_fs_imm64(&b->e, CTX(translate.branch_pc), insn->pc);
    emit_lookup(b);
}

// A call through a constant place, which is compared and pushed already:
//     je target
// or, if it has a landing,
//     jne other ; call target
//   landing: ...
//   other:
static void emit_expected_call(Builder *b, GuestAddr target, GuestAddr next)
{
    if (!b->block->landing) {
        builder_exit(b, X64_E, target);
        return;
    }
    X64Jump other = x64_jcc_short(&b->e, X64_NE);
    builder_exit(b, X64_CALL, target);
    emit_landing(b, next);
    x64_land(&b->e, other);
    builder_mark(b, false);
}

//     call lookup
//   landing: ...
//   lookup: lea rsp, [rsp + 8]
static void emit_call_lookup(Builder *b, GuestAddr next)
{
    X64Jump call = x64_branch(&b->e, X64_CALL);
    emit_landing(b, next);
    x64_land(&b->e, call);
    x64_lea_reg_mem(&b->e, QWORD, RSP, x64_at(RSP, 8));
    builder_mark(b, false);
}

// As above, with push return_address before the lookup (and after the operand,
// which may be relative to rsp).
void lower_call_indirect(Builder *b, const Insn *insn)
{
    GuestAddr place, target, next = insn->pc + insn->len;
    bool is_expected = find_expected_target(insn, &place, &target);
    u32 landing = take_landing(b, next);
    if (is_expected) {
        emit_compare_place(b, place, target); // see lower_call()
        emit_push_return(b, next, landing, true);
        emit_callstack_push(b, next, landing);
        emit_expected_call(b, target, next);
    }
    emit_lookup_spills(b);
    emit_branch_operand(b, insn);
    if (!is_expected) {
        emit_push_return(b, next, landing, true);
        emit_callstack_push(b, next, landing);
        if (landing)
            emit_call_lookup(b, next);
    }
    emit_lookup(b);
}

// To the landing that the call has, or else by the table; r11 is stored already:
//   other: by the table
// A landing that is closed looks like that of a return address whose lower half is 0, but is
// nowhere.
static void emit_return_to_landing(Builder *b)
{
    Emitter *e = &b->e;
    emit_load_landing(b);
    x64_mov_reg_mem(e, QWORD, R11, x64_indexed(X64_NO_REG, R11, sizeof(u64), LANDING_TABLE));
    x64_cmp_reg_mem(e, DWORD, R11, x64_at(RSP, 0));
    X64Jump other = x64_jcc_short(e, X64_NE);
    x64_shr_reg_imm(e, QWORD, R11, 32);
    X64Jump closed = x64_jcc_short(e, X64_E);
    emit_calltag_clear(b, 0);
    x64_mov_mem_reg(e, QWORD, x64_at(RSP, 0), R11);
    x64_ret(e);
    x64_land(e, other);
    x64_land(e, closed);
}

// A return of a clean block, with nothing to drop and the flags dead. If they are loose r11 holds
// the target, and otherwise rcx.
void emit_return(Builder *b)
{
    b->fallthrough = false;
    if (tool->needs & TOOL_LOOSE_FLAGS) {
        b->spilled |= 1u << R11; // writes_r11()
        builder_mark(b, false);
        if (calltags_wanted)
            emit_return_to_landing(b);
        x64_pop_reg(&b->e, R11);
        x64_jmp_to(&b->e, gateway_return_by_table());
    } else {
        builder_spill(b, RCX);
        x64_pop_reg(&b->e, RCX);
        emit_calltag_clear(b, -8);
        x64_movzx16_reg_reg(&b->e, DWORD, RCX, RCX);
        x64_mov_reg_mem(&b->e, DWORD, RCX,
                        x64_indexed(X64_NO_REG, RCX, sizeof(CodeRef), RETURN_TABLE));
        x64_jmp_reg(&b->e, RCX);
    }
}

// A return the general way; `pop_bytes` are dropped:
//     spills ; pop rcx ; [lea rsp, [rsp + n]] ; lookup
static void emit_return_lookup(Builder *b, u16 pop_bytes)
{
    emit_lookup_spills(b);
    x64_pop_reg(&b->e, RCX);
    emit_calltag_clear(b, -8);
    if (pop_bytes)
        x64_lea_reg_mem(&b->e, QWORD, RSP, x64_at(RSP, pop_bytes));
    emit_lookup(b);
}

// A return in a state that is known only then; the flags are dead. Mostly it is clean, and its
// table is quicker than that of versions.
void emit_return_by_state(Builder *b)
{
    if (b->block->version & VERSION_STEPPED) {
        emit_return_lookup(b, 0);
        return;
    }
    x64_cmp_mem_imm(&b->e, QWORD, x64_fs(CTX(tool.state)), 0);
    X64Jump versioned = x64_jcc_short(&b->e, X64_NE);
    emit_return(b);
    x64_land(&b->e, versioned);
    b->spilled = 0;
    builder_mark(b, false);
    b->changes_version = true;
    emit_return_lookup(b, 0);
}

void lower_ret(Builder *b, const Insn *insn)
{
    if (callstack_wanted) {
        emit_callstack_return(b, insn->pop_bytes);
        return;
    }
    bool loose = tool->needs & TOOL_LOOSE_FLAGS, live = loose && b->flags_live[insn - b->insns];
    u32 version = 0;
    bool is_known = !block_is_dirty(b->block) && !b->changes_version;
    if (tool->exit_version && !(b->block->version & VERSION_STEPPED))
        is_known = tool->exit_version(b, &version);
    if (insn->pop_bytes || live || (is_known && version != 0) || (!is_known && !loose))
        emit_return_lookup(b, insn->pop_bytes);
    else if (is_known)
        emit_return(b);
    else
        emit_return_by_state(b);
}
