// SPDX-License-Identifier: MIT
//
// Calls, returns and jumps to where a register or memory says. Each function shows the code it
// emits; landings/landings.h has the idea of calls and returns, docs/design/indirect-lookup.md
// that of the rest.
#include <string.h>
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"
#include "engine/landings/landings.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"
#include "engine/translate/lean_x64.h"

// push return_address; the client's stack must hold the guest's address. `counts`: as a call.
void emit_push_return(Builder *b, GuestAddr return_address, u32 landing, bool counts)
{
    emit_callstack_before_push(b, return_address, landing, counts);
    if (fits_i32((i64)return_address)) {
        put_u8(&b->e, 0x68);
        put_u32(&b->e, (u32)return_address);
        return;
    }
    // Far code: through a register, which is spilled already for an indirect call with rax.
    bool spilled = b->spilled & 1u << RAX;
    if (!spilled)
        builder_spill(b, RAX);
    emit_mov_imm(&b->e, RAX, return_address);
    put_u8(&b->e, 0x50); // push rax
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
        put_bytes(e, (u8[]){0x48, 0xc7, 0x44, 0x24, 0xf8}, 5);
        put_u32(e, (u32)return_address);
    }
    emit_load_fs(e, R11, CTX_SPILL(R11));
    if (!b->block->falls)
        builder_exit(b, OP_JMP_REL32, return_address);
}

// Where r11 is stored anyway (writes_r11()), it serves in place of rax, which need not be saved.
void emit_lookup_spills(Builder *b)
{
    if (!(tool->needs & TOOL_LOOSE_FLAGS))
        builder_spill(b, RAX);
    builder_spill(b, RCX);
}

//     movzx eax, cx ; jmp [rax*8 + LOOKUP_TABLE]
// or the same with r11. The table's entry checks the whole target, see emit_entry().
void emit_lookup(Builder *b)
{
    bool with_r11 = tool->needs & TOOL_LOOSE_FLAGS;
    b->fallthrough = false;
    if (b->block->version & VERSION_STEPPED) {
        emit_jmp(&b->e, gateway_lookup_miss());
        return;
    }
    if (block_is_dirty(b->block) || b->changes_version) {
        if (with_r11)
            builder_spill(b, RAX);
        emit_jmp(&b->e, gateway_version_indirect());
        return;
    }
    if (with_r11) {
        b->spilled |= 1u << R11;
        builder_mark(b, false);
        put_bytes(&b->e, (u8[]){0x44, 0x0f, 0xb7, 0xd9, 0x42, 0xff, 0x24, 0xdd}, 8);
    } else {
        put_bytes(&b->e, (u8[]){0x0f, 0xb7, 0xc1, 0xff, 0x24, 0xc5}, 6);
    }
    put_u32(&b->e, (u32)LOOKUP_TABLE);
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
    emit_store_fs_imm64(&b->e, CTX(pc), pc);
    emit_jmp(&b->e, gateway_leave(reason));
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
    enum { PUSH = 0x68, PUSH_BYTES = 5 };
    u8 code[sizeof(endbr64) + PUSH_BYTES + 2];
    if (!guest_read(target, code, sizeof(code)))
        return false;
    const u8 *at = skip_endbr64(code);
    const u8 *jump = at + PUSH_BYTES;
    if (jump[0] == BND)
        jump++;
    return at[0] == PUSH && jump[0] == OP_JMP_REL32;
}

//     cmp qword [place], target
static void emit_compare_place(Builder *b, GuestAddr place, GuestAddr target)
{
    put_bytes(&b->e, (u8[]){0x48, 0x81, 0x3c, 0x25}, 4);
    put_u32(&b->e, (u32)place);
    put_u32(&b->e, (u32)target);
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
        CodePtr on = branch(&b->e, JE);
        emit_leave_at(b, insn->pc, EXIT_REMAKE);
        land(&b->e, on);
        target = insn->target;
        by_plt = false;
    }
    if (by_plt) // where it may fault the call can begin again; a push keeps its flags
        emit_compare_place(b, place, target);
    emit_push_return(b, next, landing, counts);
    if (counts)
        emit_callstack_push(b, next, landing);
    if (by_plt)
        builder_exit(b, OP_JNE_REL32, insn->target);
    builder_exit(b, landing ? OP_CALL_REL32 : OP_JMP_REL32, target);
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
        builder_exit(b, 0x0f84, target);
        if (is_unbound(target)) {
            emit_leave_at(b, insn->pc, EXIT_REMAKE);
            return;
        }
    }
    emit_lookup_spills(b);
    emit_branch_operand(b, insn);
    if (tool->needs & TOOL_NEEDS_CALLSTACK) // the tags do without
        emit_store_fs_imm64(&b->e, CTX(branch_pc), insn->pc);
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
        builder_exit(b, 0x0f84, target);
        return;
    }
    put_bytes(&b->e, (u8[]){0x75, 0}, 2);
    CodePtr other = b->e.pc;
    builder_exit(b, OP_CALL_REL32, target);
    emit_landing(b, next);
    other[-1] = (u8)(b->e.pc - other);
    builder_mark(b, false);
}

//     call lookup
//   landing: ...
//   lookup: lea rsp, [rsp + 8]
static void emit_call_lookup(Builder *b, GuestAddr next)
{
    put_bytes(&b->e, (u8[]){OP_CALL_REL32, 0, 0, 0, 0}, 5);
    CodePtr from = b->e.pc;
    emit_landing(b, next);
    i32 distance = (i32)(b->e.pc - from);
    memcpy(from - 4, &distance, 4);
    emit_lea(&b->e, RSP, RSP, 8);
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
//     r11d := number of the landing ; mov r11, [r11*8 + LANDING_TABLE]
//     cmp r11d, [rsp] ; jne other ; shr r11, 32 ; je other ; mov [rsp], r11 ; ret
//   other: by the table
// A landing that is closed looks like that of a return address whose lower half is 0, but is
// nowhere.
static void emit_return_to_landing(Builder *b)
{
    Emitter *e = &b->e;
    emit_load_landing(b);
    put_bytes(e, (u8[]){0x4e, 0x8b, 0x1c, 0xdd}, 4);
    put_u32(e, (u32)LANDING_TABLE);
    put_bytes(e, (u8[]){0x44, 0x3b, 0x1c, 0x24, 0x75, 0}, 6);
    CodePtr other = e->pc;
    put_bytes(e, (u8[]){0x49, 0xc1, 0xeb, 32, 0x74, 0}, 6);
    CodePtr closed = e->pc;
    emit_calltag_clear(b, 0);
    put_bytes(e, (u8[]){0x4c, 0x89, 0x1c, 0x24, 0xc3}, 5);
    other[-1] = (u8)(e->pc - other);
    closed[-1] = (u8)(e->pc - closed);
}

// A return of a clean block, with nothing to drop and the flags dead. If they are loose, with r11:
//     [to the landing] ; pop r11 ; jmp return_by_table
// otherwise with rcx:
//     movzx ecx, cx ; mov ecx, [rcx*4 + RETURN_TABLE] ; jmp rcx
void emit_return(Builder *b)
{
    b->fallthrough = false;
    if (tool->needs & TOOL_LOOSE_FLAGS) {
        b->spilled |= 1u << R11; // writes_r11()
        builder_mark(b, false);
        if (calltags_wanted)
            emit_return_to_landing(b);
        put_bytes(&b->e, (u8[]){0x41, 0x5b}, 2); // pop r11
        emit_jmp(&b->e, gateway_return_by_table());
    } else {
        builder_spill(b, RCX);
        put_u8(&b->e, 0x59); // pop rcx
        emit_calltag_clear(b, -8);
        put_bytes(&b->e, (u8[]){0x0f, 0xb7, 0xc9, 0x8b, 0x0c, 0x8d}, 6);
        put_u32(&b->e, (u32)RETURN_TABLE);
        put_bytes(&b->e, (u8[]){0xff, 0xe1}, 2);
    }
}

// A return the general way; `pop_bytes` are dropped:
//     spills ; pop rcx ; [lea rsp, [rsp + n]] ; lookup
static void emit_return_lookup(Builder *b, u16 pop_bytes)
{
    emit_lookup_spills(b);
    put_u8(&b->e, 0x59);
    emit_calltag_clear(b, -8);
    if (pop_bytes)
        emit_lea(&b->e, RSP, RSP, pop_bytes);
    emit_lookup(b);
}

// A return in a state that is known only then; the flags are dead. Mostly it is clean, and its
// table is quicker than that of versions:
//     cmp qword fs:[tool_state], 0 ; jne versioned ; return
//   versioned: lookup
void emit_return_by_state(Builder *b)
{
    if (b->block->version & VERSION_STEPPED) {
        emit_return_lookup(b, 0);
        return;
    }
    put_bytes(&b->e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
    put_u32(&b->e, (u32)CTX(tool_state));
    put_u8(&b->e, 0);
    put_bytes(&b->e, (u8[]){0x75, 0}, 2);
    CodePtr versioned = b->e.pc;
    emit_return(b);
    versioned[-1] = (u8)(b->e.pc - versioned);
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
