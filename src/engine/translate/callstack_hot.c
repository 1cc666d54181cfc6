// SPDX-License-Identifier: MIT
//
// What emitted code of callstack_x64.c calls; the client's vector state is still
// in the registers.
#include "engine/calltags/calltags.h"
#include "engine/redirect/redirect.h"
#include "engine/translate/builder.h"

void callstack_on_return_miss(ThreadCtx *ctx, u64 pc, GuestAddr slot)
{
    ctx->translate.branch_pc = pc;
    u64 target = *(const u64 *)slot; // just popped
    if (target >> 47 && target >> 47 != 0x1ffff)
        return; // it will be undone
    if (UNLIKELY(ctx->lean.sp != 0))
        redirect_lean_unwound(ctx, slot + 8, target);
    callstack_ret_miss(&ctx->callstack, slot);
}

// What moves rsp up by more, or down, may be a change of stacks.
enum { IN_FRAME_MAX = PAGE_SIZE, FRAME_MAX = 8 << 20 };

// An unwinder that does not return pops the address it jumps to.
void callstack_on_load_rsp(ThreadCtx *ctx, u64 how, GuestAddr address)
{
    (void)address;
    if (how & LOAD_RSP_IN_FRAME) {
        i64 up = (i64)(ctx->gpr[RSP] - ctx->translate.old_sp);
        bool same = (up <= IN_FRAME_MAX && up >= -FRAME_MAX) ||
                    calltags_load_sp(ctx->translate.old_sp, ctx->gpr[RSP], false);
        tool->stack_loaded(ctx, ctx->translate.old_sp, same);
        return;
    }
    if (UNLIKELY(ctx->lean.sp != 0))
        redirect_lean_unwound(ctx, ctx->gpr[RSP] + (how & LOAD_RSP_RETURNS ? 0 : 8), ~0ull);
    bool returns = how & (LOAD_RSP_RETURNS | LOAD_RSP_POPS);
    bool same = calltags_wanted && calltags_load_sp(ctx->translate.old_sp, ctx->gpr[RSP], returns);
    if (callstack_wanted)
        same = callstack_load_sp(&ctx->callstack, ctx->translate.old_sp, ctx->gpr[RSP],
                                 how & LOAD_RSP_CALLS);
    if (tool->stack_loaded)
        tool->stack_loaded(ctx, ctx->translate.old_sp, same);
}
