// SPDX-License-Identifier: MIT
//
// Far transfers, interrupts and loads of fs/gs selectors: rare in 64-bit code,
// and impossible to copy, because they would leave the cache or take the
// engine's segment bases away.
#include "engine/run/emulate.h"

#include <sys/syscall.h>

#include "engine/aspace/aspace.h"
#include "engine/decode/decode.h"
#include "engine/log/log.h"
#include "engine/signal/signal.h"

enum { USER_CS = 0x33, USER_SS = 0x2b };

enum { TRAP_BREAKPOINT = 3, TRAP_OVERFLOW = 4, TRAP_PROTECTION = 13 };

static void raise_trap(ThreadCtx *ctx, int sig, u64 trapno, u64 err)
{
    signal_raise_synchronous(ctx, sig, SI_KERNEL, 0);
    ctx->pending.trapno = trapno;
    ctx->pending.err = err;
}

static void protection_fault(ThreadCtx *ctx)
{
    raise_trap(ctx, SIGSEGV, TRAP_PROTECTION, 0);
}

// int n: the vectors 3 and 4 are open to programs, 0x80 is the 32-bit system
// call, which a 64-bit program has no use for and we do not offer.
static void emulate_int(ThreadCtx *ctx, const Insn *insn, u8 vector)
{
    if (vector == TRAP_BREAKPOINT || vector == TRAP_OVERFLOW) {
        ctx->pc += insn->len;
        raise_trap(ctx, vector == TRAP_BREAKPOINT ? SIGTRAP : SIGSEGV, vector, 0);
        return;
    }
    if (vector == 0x80)
        log_note("int 0x80 at %lx: 32-bit system calls are not offered", ctx->pc);
    raise_trap(ctx, SIGSEGV, TRAP_PROTECTION, vector * 8u + 2u);
}

// iretq: rip, cs, rflags, rsp, ss from the stack. Only the client's own
// selectors are possible in user mode without a call gate.
static void emulate_iretq(ThreadCtx *ctx)
{
    u64 frame[5];
    if (!guest_read(ctx->gpr[RSP], frame, sizeof(frame))) {
        signal_raise_synchronous(ctx, SIGSEGV, SEGV_MAPERR, ctx->gpr[RSP]);
        return;
    }
    if ((u16)frame[1] != USER_CS || (u16)frame[4] != USER_SS) {
        protection_fault(ctx);
        return;
    }
    const u64 settable = 0x244dd5; // ID, AC, NT, OF, DF, TF, SF, ZF, AF, PF, CF
    ctx->flags = (ctx->flags & ~settable) | (frame[2] & settable & ~(u64)FLAG_TF);
    ctx->pc = frame[0];
    ctx->gpr[RSP] = frame[3];
}

// retf, retfq: offset and selector, each of the operand size, then imm16 more bytes.
static void emulate_far_return(ThreadCtx *ctx, const Insn *insn, unsigned size)
{
    u64 offset = 0, selector = 0;
    if (!guest_read(ctx->gpr[RSP], &offset, size) ||
        !guest_read(ctx->gpr[RSP] + size, &selector, size)) {
        signal_raise_synchronous(ctx, SIGSEGV, SEGV_MAPERR, ctx->gpr[RSP]);
        return;
    }
    if ((u16)selector != USER_CS) {
        protection_fault(ctx);
        return;
    }
    ctx->pc = offset;
    ctx->gpr[RSP] += 2 * size + insn->pop_bytes;
}

// A null selector in fs or gs means base 0; others do not exist in a 64-bit
// process that has set no TLS descriptors.
static void emulate_load_selector(ThreadCtx *ctx, const Insn *insn,
                                  const ZydisDecodedInstruction *z)
{
    bool fs;
    u64 selector = 0;
    if (z->opcode == 0x8e && z->raw.modrm.mod == 3) {
        fs = z->raw.modrm.reg == 4;
        selector = (u16)ctx->gpr[z->raw.modrm.rm | (unsigned)z->raw.rex.B << 3];
    } else if (z->opcode == 0xa1 || z->opcode == 0xa9) {
        fs = z->opcode == 0xa1;
        if (!guest_read(ctx->gpr[RSP], &selector, 2)) {
            signal_raise_synchronous(ctx, SIGSEGV, SEGV_MAPERR, ctx->gpr[RSP]);
            return;
        }
        ctx->gpr[RSP] += 8;
    } else {
        protection_fault(ctx);
        return;
    }
    if ((u16)selector > 3) {
        protection_fault(ctx);
        return;
    }
    *(fs ? &ctx->client_fs : &ctx->client_gs) = 0;
    ctx->pc += insn->len;
}

void emulate_insn(ThreadCtx *ctx)
{
    u8 bytes[15];
    size_t got = sizeof(bytes);
    while (got && !guest_read(ctx->pc, bytes, got))
        got--;
    Insn insn;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!got || decode_insn(ctx->pc, bytes, got, &insn) != DECODE_OK || !decode_operands(&insn, &z, operands)) {
        signal_raise_synchronous(ctx, SIGILL, ILL_ILLOPN, ctx->pc);
        return;
    }
    switch (insn.mnemonic) {
    case ZYDIS_MNEMONIC_IRETQ: emulate_iretq(ctx); break;
    case ZYDIS_MNEMONIC_RET: emulate_far_return(ctx, &insn, z.operand_width / 8u); break;
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_POP: emulate_load_selector(ctx, &insn, &z); break;
    case ZYDIS_MNEMONIC_SYSENTER:
        signal_raise_synchronous(ctx, SIGILL, ILL_ILLOPN, ctx->pc);
        break;
    case ZYDIS_MNEMONIC_INT: emulate_int(ctx, &insn, (u8)z.raw.imm[0].value.u); break;
    default: protection_fault(ctx); break; // far jmp and call
    }
}

bool emulate_vsyscall(ThreadCtx *ctx)
{
    static const struct {
        GuestAddr entry;
        u64 nr;
    } calls[] = {
        {0xffffffffff600000, SYS_gettimeofday},
        {0xffffffffff600400, SYS_time},
        {0xffffffffff600800, SYS_getcpu},
    };
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        GuestAddr caller;
        if (ctx->pc != calls[i].entry || !guest_read(ctx->gpr[RSP], &caller, sizeof(caller)))
            continue;
        ctx->gpr[RAX] = (u64)gateway_syscall(calls[i].nr, ctx->gpr[RDI], ctx->gpr[RSI], 0, 0, 0, 0);
        if ((i64)ctx->gpr[RAX] == GATEWAY_RESTART)
            return true;
        ctx->gpr[RSP] += sizeof(caller);
        ctx->pc = caller;
        return true;
    }
    return false;
}
