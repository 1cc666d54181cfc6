// SPDX-License-Identifier: MIT
//
// Branches to addresses that are not canonical. Hardware refuses the branch: rip
// stays at it, nothing is pushed or popped. Here the branch is over when the
// dispatcher sees its target, so it is undone.
//
// Tools that keep the call stack have its pc in ctx->translate.branch_pc: stored before each
// look-up, and by the slow path of returns. Without them that store would cost up to
// 3 % (lua5.4 of bench/run), so only a call is found, by the return address it has
// pushed, and a plain return gives back what it has popped; pc stays the target.
#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/calltags/calltags.h"
#include "engine/emit/emit.h"
#include "engine/run/emulate.h"

// Undoes the branch at `pc` if that is what led to ctx->pc.
static bool undo(ThreadCtx *ctx, GuestAddr pc, u64 sp_before, unsigned lowering)
{
    u64 sp_behind = ctx->gpr[RSP], target;
    Insn insn;
    ctx->gpr[RSP] = sp_before;
    if (emulate_branch_operand(ctx, pc, &insn, &target) && insn.lowering == lowering &&
        target == ctx->pc &&
        (lowering != LOWER_RET || sp_before + 8 + insn.pop_bytes == sp_behind)) {
        ctx->pc = pc;
        return true;
    }
    ctx->gpr[RSP] = sp_behind;
    return false;
}

static bool undo_return(ThreadCtx *ctx, GuestAddr pc)
{
    u64 unused;
    Insn insn;
    return emulate_branch_operand(ctx, pc, &insn, &unused) && insn.lowering == LOWER_RET &&
           undo(ctx, pc, ctx->gpr[RSP] - 8 - insn.pop_bytes, LOWER_RET);
}

// The longest instruction that fits: a shorter one may be the end of it.
static GuestAddr find_call(ThreadCtx *ctx, u64 sp)
{
    GuestAddr behind;
    if (!guest_read(sp, &behind, sizeof(behind)))
        return 0;
    for (GuestAddr pc = behind - INSN_MAX; pc < behind; pc++) {
        u64 target;
        Insn insn;
        ctx->gpr[RSP] = sp + 8;
        bool is_branch = emulate_branch_operand(ctx, pc, &insn, &target);
        ctx->gpr[RSP] = sp;
        if (is_branch && insn.lowering == LOWER_CALL_INDIRECT && pc + insn.len == behind &&
            target == ctx->pc)
            return pc;
    }
    return 0;
}

static bool undo_call(ThreadCtx *ctx)
{
    u64 sp = ctx->gpr[RSP];
    GuestAddr pc = find_call(ctx, sp);
    if (!pc || !undo(ctx, pc, sp + 8, LOWER_CALL_INDIRECT))
        return false;
    if (ctx->callstack.bottom)
        callstack_load_sp(&ctx->callstack, sp, sp + 8, false);
    if (calltags_wanted)
        calltags_clear(sp);
    return true;
}

void branch_fault_rewind(ThreadCtx *ctx)
{
    if (ctx->gateway.exit_reason != EXIT_INDIRECT && ctx->gateway.exit_reason != EXIT_RETURN &&
        ctx->gateway.exit_reason != EXIT_VERSIONED)
        return;
    GuestAddr pc = ctx->translate.branch_pc;
    if (pc && (undo_return(ctx, pc) || undo(ctx, pc, ctx->gpr[RSP], LOWER_JMP_INDIRECT)))
        return;
    if (ctx->gateway.exit_reason == EXIT_RETURN)
        ctx->gpr[RSP] -= 8;
    else
        undo_call(ctx);
}
