// SPDX-License-Identifier: MIT
//
// What becomes of the instructions that are not simply copied. One function per
// Lowering; each shows the code it emits. None changes the flags.
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"
#include "engine/landings/landings.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"

typedef void LowerFn(Builder *b, const Insn *insn);

// 90 and 0f 1f; others that Zydis calls so are none on every processor.
static bool is_nop(const Insn *insn)
{
    u8 opcode = insn->bytes[insn->modrm_at ? insn->modrm_at - 1 : insn->len - 1];
    return insn->mnemonic == ZYDIS_MNEMONIC_NOP && opcode == (insn->modrm_at ? 0x1f : 0x90);
}

static void lower_plain(Builder *b, const Insn *insn)
{
    if (UNLIKELY(insn->mnemonic == ZYDIS_MNEMONIC_STD))
        emit_store_fs_imm32(&b->e, CTX(careful), 1);
    if (is_nop(insn) && !(b->block->version & VERSION_STEPPED))
        return; // it aligns what does not come here
    lower_copy(b, insn);
}

static void lower_jcc(Builder *b, const Insn *insn)
{
    builder_exit(b, 0x0f80u | insn->condition, insn->target);
}

//     loop taken ; jmp short on
//   taken: jmp target
//   on:
// The branch has no rel32 form; its prefixes (67: ecx) stay.
static void lower_loop(Builder *b, const Insn *insn)
{
    put_bytes(&b->e, insn->bytes, insn->len - 1u);
    put_u8(&b->e, 2);
    put_u8(&b->e, OP_JMP_REL8);
    put_u8(&b->e, 0);
    CodePtr taken = b->e.pc;
    builder_exit(b, OP_JMP_REL32, insn->target);
    taken[-1] = (u8)(b->e.pc - taken);
}

static void lower_jmp(Builder *b, const Insn *insn)
{
    builder_exit(b, OP_JMP_REL32, insn->target);
    b->fallthrough = false;
}

// push return_address; the client's stack must hold the guest's address. `counts`: as a call.
static void emit_push_return(Builder *b, GuestAddr return_address, u32 landing, bool counts)
{
    emit_callstack_before_push(b, return_address, landing, counts);
    if (fits_i32((i64)return_address)) {
        put_u8(&b->e, 0x68);
        put_u32(&b->e, (u32)return_address);
        return;
    }
    // Far code: through a register. For an indirect call rax is spilled already.
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
// between a modrm byte that has it, with a displacement, and one that is negative.
static bool seems_to_look_below(GuestAddr pc)
{
    enum { AHEAD = 40, MODRM_BITS = 0xc7, SIB_DISP8 = 0x44, SIB_DISP32 = 0x84, RSP_ONLY = 0x24 };
    u8 code[AHEAD + 5];
    if (!guest_read(pc, code, sizeof(code)))
        return true;
    for (unsigned i = 1; i < AHEAD; i++) {
        u8 modrm = code[i - 1] & MODRM_BITS;
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

static void lower_call(Builder *b, const Insn *insn)
{
    GuestAddr next = insn->pc + insn->len;
    bool counts = insn->target != next; // not `call next; pop`
    u32 landing = counts ? take_landing(b, next) : 0;
    emit_push_return(b, next, landing, counts);
    if (counts)
        emit_callstack_push(b, next, landing);
    builder_exit(b, landing ? OP_CALL_REL32 : OP_JMP_REL32, insn->target);
    if (landing) {
        // Blocks that nobody comes to would cost more than the jump: the call is sure to be made.
        b->block->falls = b->may_fall && b->block->exit_count == 1 && !cache_find(next, 0);
        emit_landing(b, next);
    }
    b->fallthrough = false;
}

//     movzx eax, cx ; jmp [rax*8 + LOOKUP_TABLE]
// The table's entry checks the whole target, see emit_entry().
void emit_lookup(Builder *b)
{
    b->fallthrough = false;
    if (b->block->version & VERSION_STEPPED) {
        emit_jmp(&b->e, gateway_lookup_miss());
        return;
    }
    if (block_is_dirty(b->block) || b->changes_version) {
        emit_jmp(&b->e, gateway_version_indirect());
        return;
    }
    put_bytes(&b->e, (u8[]){0x0f, 0xb7, 0xc1}, 3);
    put_bytes(&b->e, (u8[]){0xff, 0x24, 0xc5}, 3);
    put_u32(&b->e, (u32)LOOKUP_TABLE);
}

// mov rcx, operand of the indirect branch. rax and rcx are spilled before and after it, whatever
// the copying of the operand thinks: it may use one of them as its own scratch register.
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
    lower_copy(b, &mov);
    b->spilled = 1u << RAX | 1u << RCX;
    builder_mark(b, false);
}

static void leave_at(Builder *b, GuestAddr pc, ExitReason reason)
{
    emit_store_fs_imm64(&b->e, CTX(pc), pc);
    emit_jmp(&b->e, gateway_leave(reason));
    b->fallthrough = false;
}

// A branch to where a constant place says, as in a PLT, goes where it says now, as a rule for
// ever. True: that is known, and flags are dead.
static bool find_expected_target(const Insn *insn, GuestAddr *ret_place, GuestAddr *ret_target)
{
    if (!(tool->needs & TOOL_LOOSE_FLAGS) || insn->memory != MEMORY_RIP || insn->segment)
        return false;
    *ret_place = insn->target;
    if (!fits_i32((i64)*ret_place) || !guest_read(*ret_place, ret_target, sizeof(*ret_target)) ||
        !fits_i32((i64)*ret_target))
        return false;
    const Mapping *mapping = aspace_find(*ret_target);
    return mapping && mapping->prot & PROT_EXEC;
}

// Whether that is what a PLT has for a function that was never called, and goes to the dynamic
// linker: [endbr64] ; push number ; [bnd] jmp
static bool is_unbound(GuestAddr target)
{
    static const u8 endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    enum { PUSH = 0x68, PUSH_BYTES = 5, BND = 0xf2 };
    u8 code[sizeof(endbr64) + PUSH_BYTES + 2];
    if (!guest_read(target, code, sizeof(code)))
        return false;
    const u8 *at = code;
    if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
        at += sizeof(endbr64);
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

//     [cmp qword [place], target ; je target]
//     mov fs:[spill rax], rax ; mov fs:[spill rcx], rcx ; mov rcx, operand
//     [mov fs:[branch_pc], pc] ; lookup
// The first line spares two registers that would be saved and loaded again, which is what much of
// a branch through a PLT takes. One that leads to the dynamic linker yet will lead elsewhere from
// the second time on, and the block is made anew then:
//     cmp qword [place], target ; je target ; mov fs:[pc], pc ; leave
static void lower_jmp_indirect(Builder *b, const Insn *insn)
{
    GuestAddr place, target;
    if (find_expected_target(insn, &place, &target)) {
        emit_compare_place(b, place, target);
        builder_exit(b, 0x0f84, target);
        if (is_unbound(target)) {
            leave_at(b, insn->pc, EXIT_REMAKE);
            return;
        }
    }
    builder_spill(b, RAX);
    builder_spill(b, RCX);
    emit_branch_operand(b, insn);
    if (tool->needs & TOOL_NEEDS_CALLSTACK) // the tags do without
        emit_store_fs_imm64(&b->e, CTX(branch_pc), insn->pc);
    emit_lookup(b);
}

// A call through a constant place, which is pushed already:
//     cmp qword [place], target ; je target
// or, if it has a landing,
//     cmp qword [place], target ; jne other ; call target
//   landing: ...
//   other:
static void emit_expected_call(Builder *b, GuestAddr place, GuestAddr target, GuestAddr next)
{
    emit_compare_place(b, place, target);
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
static void lower_call_indirect(Builder *b, const Insn *insn)
{
    GuestAddr place, target, next = insn->pc + insn->len;
    bool is_expected = find_expected_target(insn, &place, &target);
    u32 landing = take_landing(b, next);
    if (is_expected) {
        emit_push_return(b, next, landing, true);
        emit_callstack_push(b, next, landing);
        emit_expected_call(b, place, target, next);
    }
    builder_spill(b, RAX);
    builder_spill(b, RCX);
    emit_branch_operand(b, insn);
    if (!is_expected) {
        emit_push_return(b, next, landing, true);
        emit_callstack_push(b, next, landing);
        if (landing)
            emit_call_lookup(b, next);
    }
    emit_lookup(b);
}

//     pop r11 ; and r11d, bits of the index ; mov r11d, [r11 + RETURN_TABLE] ; jmp r11
// The entry of the return table finds the whole target at [rsp - 8].
static void emit_return_by_table(Builder *b)
{
    enum { INDEX_BITS = (LOOKUP_ENTRIES - 1) << RETURN_SHIFT };
    _Static_assert(sizeof(CodeRef) == 1 << RETURN_SHIFT, "what is left of a pc is a place in it");
    put_bytes(&b->e, (u8[]){0x41, 0x5b}, 2); // pop r11
    emit_calltag_clear(b, -8);
    put_bytes(&b->e, (u8[]){0x41, 0x81, 0xe3}, 3);
    put_u32(&b->e, INDEX_BITS);
    put_bytes(&b->e, (u8[]){0x45, 0x8b, 0x9b}, 3);
    put_u32(&b->e, (u32)RETURN_TABLE);
    put_bytes(&b->e, (u8[]){0x41, 0xff, 0xe3}, 3);
}

// To the landing that the call has, or else by the table; r11 is stored already:
//     r11d := number of the landing ; mov r11, [r11*8 + LANDING_TABLE] ; cmp r11d, [rsp] ; jne other
//     shr r11, 32 ; je other ; mov [rsp], r11 ; ret
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

// A return of a clean block, with nothing to drop and the flags dead, if they are loose, with r11;
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
        emit_return_by_table(b);
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
    builder_spill(b, RAX);
    builder_spill(b, RCX);
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

static void lower_ret(Builder *b, const Insn *insn)
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

static void lower_syscall(Builder *b, const Insn *insn)
{
    leave_at(b, insn->pc + insn->len, EXIT_SYSCALL);
}

static void lower_emulate(Builder *b, const Insn *insn)
{
    leave_at(b, insn->pc, EXIT_EMULATE);
}

//     mov dword fs:[exit_link], kind ; leave
// or, for a call that no interception sees:
//     push return_address ; mov fs:[pc], rax ; mov dword fs:[redirect_armed], 1 ; leave
static void lower_request(Builder *b, const Insn *insn)
{
    emit_store_fs_imm32(&b->e, CTX(exit_link), insn->request);
    if (insn->request != REQUEST_CALL_ORIGINAL) {
        leave_at(b, insn->pc, EXIT_REQUEST);
        return;
    }
    emit_push_return(b, insn->pc + insn->len, 0, true);
    emit_callstack_push(b, insn->pc + insn->len, 0);
    emit_store_fs(&b->e, CTX(pc), RAX);
    emit_store_fs_imm32(&b->e, CTX(redirect_armed), 1);
    emit_jmp(&b->e, gateway_leave(EXIT_REQUEST));
    b->fallthrough = false;
}

//     test [rsp], TF | DF | AC ; jz plain ; leave
//   plain: popf
// The flags are about to be overwritten; the test is as wide as the access, so
// that it faults where popf would.
static void lower_popf(Builder *b, const Insn *insn)
{
    bool narrow = insn->mnemonic == ZYDIS_MNEMONIC_POPF;
    put_u8(&b->e, narrow ? 0x66 : 0x48);
    put_bytes(&b->e, (u8[]){0xf7, 0x04, 0x24}, 3);
    put_bytes(&b->e, &(u32){FLAG_TF | FLAG_DF | FLAG_AC}, narrow ? 2 : 4);
    put_bytes(&b->e, (u8[]){0x74, 0}, 2);
    CodePtr plain = b->e.pc;
    leave_at(b, insn->pc, EXIT_EMULATE);
    plain[-1] = (u8)(b->e.pc - plain);
    b->fallthrough = true;
    put_bytes(&b->e, insn->bytes, insn->len);
}

// rdfsbase r: mov r, fs:[client_fs], 32 or 64 bits wide
// wrfsbase r: wrgsbase r ; mov fs:[client_fs], r, and gs put back: hardware
// checks that the base is canonical
static void lower_base(Builder *b, const Insn *insn)
{
    bool fs = insn->mnemonic == ZYDIS_MNEMONIC_RDFSBASE ||
              insn->mnemonic == ZYDIS_MNEMONIC_WRFSBASE;
    bool read = insn->lowering == LOWER_READ_BASE;
    u8 rex = 0;
    for (unsigned i = 0; i + 1 < insn->modrm_at; i++) {
        if ((insn->bytes[i] & 0xf0) == 0x40)
            rex = insn->bytes[i];
    }
    unsigned reg = (insn->bytes[insn->modrm_at] & 7u) | (rex & 1u) << 3;
    i32 slot = fs ? CTX(client_fs) : CTX(client_gs);
    bool wide = rex & 8;
    bool check = !read && wide;
    if (!read && !wide)
        emit_store_fs_imm32(&b->e, slot + 4, 0);
    if (check)
        put_bytes(&b->e, (u8[]){0xf3, rex & 0x49, 0x0f, 0xae, (u8)(0xd8 | (reg & 7))}, 5);
    put_u8(&b->e, 0x64);
    put_u8(&b->e, (u8)((wide ? 0x48 : 0x40) | (reg >> 3) << 2));
    put_u8(&b->e, read ? 0x8b : 0x89);
    put_u8(&b->e, (u8)(0x04 | (reg & 7) << 3));
    put_u8(&b->e, 0x25);
    put_u32(&b->e, (u32)slot);
    if (check)
        emit_set_gs(b, CTX(engine_gs));
}

// A transaction that aborts at once, without a reason: mov eax, 0 ; jmp fallback
static void lower_xbegin(Builder *b, const Insn *insn)
{
    emit_mov_imm(&b->e, RAX, 0);
    builder_exit(b, OP_JMP_REL32, insn->target);
    b->fallthrough = false;
}

static LowerFn *const lowerings[LOWER_COUNT] = {
    [LOWER_COPY] = lower_plain,
    [LOWER_JCC] = lower_jcc,
    [LOWER_LOOP] = lower_loop,
    [LOWER_JMP] = lower_jmp,
    [LOWER_CALL] = lower_call,
    [LOWER_JMP_INDIRECT] = lower_jmp_indirect,
    [LOWER_CALL_INDIRECT] = lower_call_indirect,
    [LOWER_RET] = lower_ret,
    [LOWER_SYSCALL] = lower_syscall,
    [LOWER_READ_BASE] = lower_base,
    [LOWER_WRITE_BASE] = lower_base,
    [LOWER_XBEGIN] = lower_xbegin,
    [LOWER_POPF] = lower_popf,
    [LOWER_REQUEST] = lower_request,
    [LOWER_EMULATE] = lower_emulate,
};

void lower_insn(Builder *b)
{
    lowerings[b->insn->lowering](b, b->insn);
}
