// SPDX-License-Identifier: MIT
//
// What becomes of the instructions that are not simply copied. One function per
// Lowering; each shows the code it emits. None changes the flags.
#include "engine/gateway/gateway.h"
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
        x64_mov_fs_imm32(&b->e, CTX(gateway.careful), 1);
    if (is_nop(insn) && !(b->block->version & VERSION_STEPPED))
        return; // it aligns what does not come here
    lower_copy(b, insn);
}

static void lower_jcc(Builder *b, const Insn *insn)
{
    builder_exit(b, (X64Branch)insn->condition, insn->target);
}

//     loop taken ; jmp short on
//   taken: jmp target
//   on:
// The branch has no rel32 form; its prefixes (67: ecx) stay.
static void lower_loop(Builder *b, const Insn *insn)
{
    emit_bytes(&b->e, insn->bytes, insn->len); // its last byte is the displacement
    X64Jump loop = {.end = b->e.pc, .is_short = true};
    X64Jump on = x64_jmp_short(&b->e);
    x64_land(&b->e, loop);
    builder_exit(b, X64_JMP, insn->target);
    x64_land(&b->e, on);
}

static void lower_jmp(Builder *b, const Insn *insn)
{
    builder_exit(b, X64_JMP, insn->target);
    b->fallthrough = false;
}

static void lower_syscall(Builder *b, const Insn *insn)
{
    emit_leave_at(b, insn->pc + insn->len, EXIT_SYSCALL);
}

static void lower_emulate(Builder *b, const Insn *insn)
{
    emit_leave_at(b, insn->pc, EXIT_EMULATE);
}

//     mov dword fs:[exit_link], kind ; leave
// or, for a call that no interception sees:
//     push return_address ; mov fs:[pc], rax ; mov dword fs:[redirect.armed], 1 ; leave
static void lower_request(Builder *b, const Insn *insn)
{
    x64_mov_fs_imm32(&b->e, CTX(gateway.exit_link), insn->request);
    if (insn->request != REQUEST_CALL_ORIGINAL) {
        emit_leave_at(b, insn->pc, EXIT_REQUEST);
        return;
    }
    emit_push_return(b, insn->pc + insn->len, 0, true);
    emit_callstack_push(b, insn->pc + insn->len, 0);
    x64_mov_fs_reg(&b->e, CTX(pc), RAX);
    x64_mov_fs_imm32(&b->e, CTX(redirect.armed), 1);
    x64_jmp_to(&b->e, gateway_leave(EXIT_REQUEST));
    b->fallthrough = false;
}

//     test [rsp], TF | DF | AC ; jz plain ; leave
//   plain: popf
// The flags are about to be overwritten; the test is as wide as the access, so
// that it faults where popf would.
static void lower_popf(Builder *b, const Insn *insn)
{
    bool narrow = insn->mnemonic == ZYDIS_MNEMONIC_POPF;
    x64_test_mem_imm(&b->e, narrow ? WORD : QWORD, x64_at(RSP, 0), FLAG_TF | FLAG_DF | FLAG_AC);
    X64Jump plain = x64_jcc_short(&b->e, X64_E);
    emit_leave_at(b, insn->pc, EXIT_EMULATE);
    x64_land(&b->e, plain);
    b->fallthrough = true;
    emit_bytes(&b->e, insn->bytes, insn->len);
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
        x64_mov_fs_imm32(&b->e, slot + 4, 0);
    if (check)
        x64_wrgsbase_reg(&b->e, QWORD, reg);
    if (read)
        x64_mov_reg_mem(&b->e, wide ? QWORD : DWORD, reg, x64_fs(slot));
    else
        x64_mov_mem_reg(&b->e, wide ? QWORD : DWORD, x64_fs(slot), reg);
    if (check)
        emit_set_gs(b, CTX(engine_gs));
}

// A transaction that aborts at once, without a reason: mov eax, 0 ; jmp fallback
static void lower_xbegin(Builder *b, const Insn *insn)
{
    x64_mov_reg_imm(&b->e, RAX, 0);
    builder_exit(b, X64_JMP, insn->target);
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
