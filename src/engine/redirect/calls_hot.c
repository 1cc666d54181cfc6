// SPDX-License-Identifier: MIT
//
// The part of an interception that runs while the thread is inside the cache:
// hot handlers and the list of activations. Takes no lock and calls no libc;
// whatever it does not know is left to redirect.c.
#include "engine/cache/cache.h"
#include "engine/redirect/redirect_internal.h"

u32 redirect_version(const ThreadCtx *ctx)
{
    return ctx->redirect.armed ? VERSION_ORIGINAL : 0;
}

static const u8 argument_register[6] = {RDI, RSI, RDX, RCX, R8, R9};

void call_begin(ThreadCtx *ctx, ToolCall *call, const Hook *hook, GuestAddr return_address)
{
    call->function = hook->function;
    call->entry = hook->pc;
    call->named_at = hook->named_at;
    call->return_address = return_address;
    call->is_local = return_address >= hook->code_start && return_address < hook->code_end;
    for (unsigned i = 0; i < 6; i++)
        call->args[i] = ctx->gpr[argument_register[i]];
    call->result = 0;
    call->state = 0;
    call->run_original = false;
    call->needs_full = false;
}

void activation_push(ThreadCtx *ctx, u32 index, GuestAddr return_address)
{
    const Hook *hook = &redirect_hooks[index];
    Activation *a = &ctx->redirect.thread->activations[ctx->redirect.count];
    a->sp = ctx->gpr[RSP];
    a->hook = index;
    call_begin(ctx, &a->call, hook, return_address);
    ctx->redirect.count++;
}

void call_set_args(ThreadCtx *ctx, const ToolCall *call)
{
    for (unsigned i = 0; i < 6; i++)
        ctx->gpr[argument_register[i]] = call->args[i];
}

void call_before(ThreadCtx *ctx, ToolCall *call)
{
    if (!call->function->before)
        return;
    call->function->before(ctx, call);
    call_set_args(ctx, call);
}

void call_after(ThreadCtx *ctx, ToolCall *call)
{
    if (!call->function->after)
        return;
    call->result = ctx->gpr[RAX];
    call->function->after(ctx, call);
    ctx->gpr[RAX] = call->result;
}

// Whether the list is in order for one more: activations of the same stack lie
// above this one, or it is a tail call of the topmost.
static bool fits_on_top(const ThreadCtx *ctx, u32 index, GuestAddr return_address)
{
    if (ctx->redirect.count == 0)
        return true;
    const Activation *top = &ctx->redirect.thread->activations[ctx->redirect.count - 1];
    u64 sp = ctx->gpr[RSP];
    return top->sp > sp || (top->sp == sp && top->call.return_address == return_address &&
                            top->hook != index);
}

u32 redirect_fast_entry(u32 index)
{
    ThreadCtx *ctx = &thread_ctx;
    RedirectThread *t = ctx->redirect.thread;
    const Hook *hook = &redirect_hooks[index];
    const ToolFunction *function = hook->function;
    GuestAddr return_address = ctx->gateway.call_address;

    t->step = STEP_NONE;
    ctx->pc = hook->pc;
    if (!function)
        return 1; // unmapped meanwhile
    if (function->replace) {
        call_begin(ctx, &t->call, hook, return_address);
        u64 result = function->replace(ctx, &t->call);
        if (t->call.needs_full)
            return 1;
        t->step = t->call.run_original ? STEP_ORIGINAL : STEP_REPLACED;
        if (t->call.run_original) {
            call_set_args(ctx, &t->call);
            return 1;
        }
        ctx->gpr[RAX] = result;
        return 0;
    }
    if (!is_known_site(t, return_address) || ctx->redirect.count == t->capacity ||
        !fits_on_top(ctx, index, return_address))
        return 1;
    activation_push(ctx, index, return_address);
    call_before(ctx, &t->activations[ctx->redirect.count - 1].call);
    t->step = STEP_WRAPPED;
    return 0;
}

static bool ends_here(const Activation *a, u64 sp, GuestAddr pc)
{
    return a->sp + 8 == sp && a->call.return_address == pc;
}

static bool any_ends_here(const ThreadCtx *ctx, u64 sp, GuestAddr pc)
{
    for (u64 i = ctx->redirect.count; i-- > 0;) {
        if (ends_here(&ctx->redirect.thread->activations[i], sp, pc))
            return true;
    }
    return false;
}

u32 redirect_fast_return(u32 index)
{
    ThreadCtx *ctx = &thread_ctx;
    RedirectThread *t = ctx->redirect.thread;
    GuestAddr pc = redirect_hooks[index].pc;
    u64 sp = ctx->gpr[RSP];

    t->step = STEP_NONE;
    ctx->pc = pc;
    while (ctx->redirect.count) {
        Activation *top = &t->activations[ctx->redirect.count - 1];
        if (!ends_here(top, sp, pc))
            break;
        if (redirect_hooks[top->hook].resolver || !(top->call.function->flags & TOOL_FUNCTION_FAST))
            return 1;
        ctx->redirect.count--;
        call_after(ctx, &top->call);
    }
    if (any_ends_here(ctx, sp, pc))
        return 1;
    t->step = STEP_RETURNED;
    return 0;
}
