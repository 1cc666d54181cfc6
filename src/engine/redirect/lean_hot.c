// SPDX-License-Identifier: MIT
//
// Lean functions (ToolFunction.lean_after): wrapped without a list of activations. There is one
// call at a time that counts, the outermost, and emitted code notes it in the context
// (translate/lean_x64.c); C runs once, when it has returned.
//
// What must stay true
//   L1  lean.sp is 0, or a call runs whose return site is hooked. A call that is left by a
//       load of rsp, or by a return to elsewhere, is over: redirect_lean_unwound(). Were a
//       return ever missed, the next call from above that frame would find it out.
//   L2  A return site stays hooked for good, even if its code goes, so lean.known needs
//       no invalidation.
#include "engine/redirect/redirect_internal.h"

static ToolRepeat nothing_repeats; // result 0: a call with NULL is not told
static ToolSite no_sites[TOOL_SITES];

void lean_thread_start(ThreadCtx *ctx)
{
    ctx->lean.repeat = &nothing_repeats;
    ctx->lean.sites = no_sites;
}

// The distance to the frame above the outermost call: negative within it.
static i64 above_outermost(const ThreadCtx *ctx, u64 sp)
{
    return (i64)(sp + ctx->lean.sp);
}

void lean_begin(ThreadCtx *ctx, u32 hook)
{
    static const u8 argument_register[] = {RDI, RSI, RDX, RCX};
    const ToolFunction *function = redirect_hooks[hook].function;
    ctx->lean.inner = hook;
    if (ctx->lean.sp && above_outermost(ctx, ctx->gpr[RSP]) < 0)
        return;
    for (unsigned i = 0; i < ARRAY_LEN(argument_register); i++)
        ctx->lean.args[i] = ctx->gpr[argument_register[i]];
    ctx->lean.size = function->size_arg ? ctx->lean.args[function->size_arg - 1] : ~0ull;
    if (function->factor_arg)
        ctx->lean.size *= ctx->lean.args[function->factor_arg - 1];
    ctx->lean.hook = hook;
    ctx->lean.sp = -(ctx->gpr[RSP] + 8);
}

static u32 call_after_lean(ThreadCtx *ctx, GuestAddr pc)
{
    const ToolFunction *function = redirect_hooks[ctx->lean.hook].function;
    ctx->lean.sp = 0;
    // It may have been unmapped meanwhile.
    return LIKELY(function != NULL) ? function->lean_after(ctx, function, pc) : 0;
}

const ToolFunction *tool_lean_inner(const ToolThread *thread)
{
    return redirect_hooks[thread->lean.inner].function;
}

void lean_end(ThreadCtx *ctx, GuestAddr pc)
{
    if (ctx->lean.sp && above_outermost(ctx, ctx->gpr[RSP]) == 0)
        call_after_lean(ctx, pc);
}

// Emitted code has found that the outermost call returns here.
u32 redirect_lean_return(u32 index)
{
    ThreadCtx *ctx = &thread_ctx;
    ctx->redirect.thread->step = STEP_RETURNED;
    ctx->pc = redirect_hooks[index].pc;
    return call_after_lean(ctx, ctx->pc);
}

u32 redirect_lean_context(u32 pc)
{
    ThreadCtx *ctx = &thread_ctx;
    ctx->pc = pc;
    return tool->lean_context(ctx, pc);
}

u32 lean_call_before(ThreadCtx *ctx, u32 index, GuestAddr return_address)
{
    const ToolFunction *function = redirect_hooks[index].function;
    if (!function || (ctx->lean.sp && above_outermost(ctx, ctx->gpr[RSP]) < 0))
        return 0;
    return function->lean_before(ctx, function, return_address);
}

u32 redirect_lean_before(u32 index)
{
    ThreadCtx *ctx = &thread_ctx;
    ctx->redirect.thread->step = STEP_ORIGINAL;
    ctx->pc = redirect_hooks[index].pc;
    return lean_call_before(ctx, index, 0);
}

void redirect_lean_unwound(ThreadCtx *ctx, u64 sp, GuestAddr target)
{
    if (above_outermost(ctx, sp) >= 0 && *lean_slot(ctx, target) != target)
        ctx->lean.sp = 0;
}
