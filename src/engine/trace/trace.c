// SPDX-License-Identifier: MIT
//
// The lines of --trace; see trace.h.
#include "engine/trace/trace.h"

#include "engine/syscall/syscall.h"

#include <string.h>

#include "base/text.h"
#include "engine/aspace/aspace.h"
#include "engine/gateway/gateway.h"
#include "engine/log/log.h"
#include "engine/trace/listing.h"
#include "engine/trace/trace_internal.h"

enum { INSN_BYTES_MAX = 15, NAME_MAX = 32, RESULT_SMALL = 1 << 16, ERRNO_MAX = 4095 };

u32 trace_bits;
static bool listings;

void trace_init(u32 bits, bool verbose)
{
    trace_bits = bits;
    listings = verbose;
    trace_xsave_mask = gateway_xsave_mask();
}

// ------------------------------------------------------------------- blocks

static void put_block_line(const char *line)
{
    log_line("blocks: %s", line);
}

void trace_block(const Block *block, const Insn *insns, unsigned count)
{
    log_line("blocks: %lx: %u instructions, %u exits, code %lx-%lx", block->pc, count,
             block->exit_count, (u64)block->code, (u64)block->code + block->code_size);
    if (!listings)
        return;
    for (unsigned i = 0; i < count; i++)
        listing_guest(insns[i].pc, insns[i].bytes, insns[i].len, put_block_line);
    listing_block(block, put_block_line);
}

void trace_guest(const Insn *insn, void (*put)(const char *line))
{
    listing_guest(insn->pc, insn->bytes, insn->len, put);
}

// -------------------------------------------------------------------- calls

bool trace_wants_call(const Insn *insn)
{
    return insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT ||
           insn->lowering == LOWER_RET;
}

static bool read_word(GuestAddr at, u64 *ret_word)
{
    return guest_read(at, ret_word, sizeof(*ret_word));
}

static bool operand_address(const ThreadCtx *ctx, const Insn *insn,
                            const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op,
                            GuestAddr *ret_address)
{
    ZydisRegisterContext registers;
    memset(&registers, 0, sizeof(registers));
    for (unsigned r = 0; r < GPR_COUNT; r++) {
        registers.values[ZYDIS_REGISTER_RAX + r] = ctx->gpr[r];
        registers.values[ZYDIS_REGISTER_EAX + r] = (u32)ctx->gpr[r];
    }
    if (ZYAN_FAILED(ZydisCalcAbsoluteAddressEx(z, op, insn->pc, &registers, ret_address)))
        return false;
    if (op->mem.segment == ZYDIS_REGISTER_FS)
        *ret_address += ctx->client_fs;
    else if (op->mem.segment == ZYDIS_REGISTER_GS)
        *ret_address += ctx->client_gs;
    return true;
}

static bool indirect_target(const ThreadCtx *ctx, const Insn *insn, GuestAddr *ret_target)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    GuestAddr address;
    if (!decode_operands(insn, &z, operands))
        return false;
    if (operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        *ret_target = ctx->gpr[operands[0].reg.value - ZYDIS_REGISTER_RAX];
        return true;
    }
    return operand_address(ctx, insn, &z, &operands[0], &address) && read_word(address, ret_target);
}

static bool find_target(const ThreadCtx *ctx, const Insn *insn, GuestAddr *ret_target)
{
    switch ((Lowering)insn->lowering) {
    case LOWER_CALL: *ret_target = insn->target; return true;
    case LOWER_RET: return read_word(ctx->gpr[RSP], ret_target);
    default: return indirect_target(ctx, insn, ret_target);
    }
}

void trace_call_event(const ThreadCtx *ctx, GuestAddr pc)
{
    u8 bytes[INSN_BYTES_MAX];
    size_t got = sizeof(bytes);
    Insn insn;
    GuestAddr target;
    while (got && !guest_read(pc, bytes, got))
        got--;
    if (!got || decode_insn(pc, bytes, got, &insn) != DECODE_OK)
        return; // another thread has just taken the code away
    const char *what = insn.lowering == LOWER_RET ? "return" : "call";
    if (find_target(ctx, &insn, &target))
        log_line("calls: %d %s %lx -> %lx, sp %lx", ctx->thread.tid, what, pc, target,
                 ctx->gpr[RSP]);
    else
        log_line("calls: %d %s %lx -> (unreadable), sp %lx", ctx->thread.tid, what, pc,
                 ctx->gpr[RSP]);
}

// ------------------------------------------------------------- system calls

void trace_syscall(const ThreadCtx *ctx, u64 nr, const u64 args[6])
{
    char name[NAME_MAX];
    log_line("syscalls: %d %s(0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx)", ctx->thread.tid,
             syscall_name(nr, name, sizeof(name)), args[0], args[1], args[2], args[3],
             args[4], args[5]);
}

void trace_syscall_result(const ThreadCtx *ctx, u64 nr, i64 result)
{
    char name[NAME_MAX];
    const char *call = syscall_name(nr, name, sizeof(name));
    if (result == GATEWAY_RESTART)
        log_line("syscalls: %d %s is restarted after a signal", ctx->thread.tid, call);
    else if (result >= -ERRNO_MAX && result < RESULT_SMALL)
        log_line("syscalls: %d %s = %ld", ctx->thread.tid, call, result);
    else
        log_line("syscalls: %d %s = 0x%lx", ctx->thread.tid, call, (u64)result);
}

// ------------------------------------------------------------------ signals

static const char *signal_text(int sig, char text[NAME_MAX])
{
    const char *name = sigabbrev_np(sig);
    if (name)
        text_format(text, NAME_MAX, "SIG%s", name);
    else
        text_format(text, NAME_MAX, "signal %d", sig);
    return text;
}

void trace_signal_arrival(const ThreadCtx *ctx, const siginfo_t *info)
{
    char text[NAME_MAX];
    const char *sig = signal_text(info->si_signo, text);
    if (info->si_code > 0)
        log_line("signals: %d %s arrives, code %d, address %lx", ctx->thread.tid, sig,
                 info->si_code, (u64)info->si_addr);
    else
        log_line("signals: %d %s arrives, code %d, from process %d", ctx->thread.tid, sig,
                 info->si_code, info->si_pid);
}

void trace_signal_delivery(const ThreadCtx *ctx, int sig, GuestAddr handler)
{
    char text[NAME_MAX];
    signal_text(sig, text);
    if (handler == (GuestAddr)SIG_DFL || handler == (GuestAddr)SIG_IGN)
        log_line("signals: %d %s at pc %lx: %s", ctx->thread.tid, text, ctx->pc,
                 handler == (GuestAddr)SIG_DFL ? "default action" : "ignored");
    else
        log_line("signals: %d %s at pc %lx: handler %lx, sp %lx", ctx->thread.tid, text, ctx->pc,
                 handler, ctx->gpr[RSP]);
}

void trace_sigreturn(const ThreadCtx *ctx)
{
    log_line("signals: %d sigreturn to pc %lx, sp %lx", ctx->thread.tid, ctx->pc, ctx->gpr[RSP]);
}
