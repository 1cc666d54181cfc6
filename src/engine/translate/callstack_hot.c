// SPDX-License-Identifier: MIT
//
// What emitted code of callstack_x64.c calls; the client's vector state is still
// in the registers.
#include "engine/translate/builder.h"

void callstack_on_return_miss(ThreadCtx *ctx, u64 pc, GuestAddr slot)
{
    ctx->branch_pc = pc;
    u64 target = *(const u64 *)slot; // just popped
    if (target >> 47 && target >> 47 != 0x1ffff)
        return; // it will be undone
    callstack_ret_miss(&ctx->callstack, slot);
}

void callstack_on_load_rsp(ThreadCtx *ctx, u64 continues, GuestAddr address)
{
    (void)address;
    bool same = callstack_load_sp(&ctx->callstack, ctx->old_sp, ctx->gpr[RSP], continues);
    if (same && tool->stack_loaded)
        tool->stack_loaded(ctx, ctx->old_sp);
}
