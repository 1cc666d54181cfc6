// SPDX-License-Identifier: MIT
//
// The client's alternate signal stack, by the kernel's rules. The host's own
// sigaltstack belongs to our handlers and the client never sees it.
#include <errno.h>

#include "engine/aspace/aspace.h"
#include "engine/signal/signal_internal.h"

bool altstack_contains(const stack_t *stack, u64 sp)
{
    u64 base = (u64)stack->ss_sp;

    return sp > base && sp - base <= stack->ss_size;
}

// With SS_AUTODISARM a thread is never "on" its alternate stack: it was
// disarmed when the handler began.
u32 altstack_flags(const ThreadCtx *ctx, u64 sp)
{
    const stack_t *stack = &ctx->signal.altstack;

    if (stack->ss_size == 0)
        return SS_DISABLE;
    if ((u32)stack->ss_flags & KERNEL_SS_AUTODISARM)
        return 0;
    return altstack_contains(stack, sp) ? SS_ONSTACK : 0;
}

void signal_reset_altstack(ThreadCtx *ctx)
{
    ctx->signal.altstack = (stack_t){ .ss_flags = SS_DISABLE };
}

i64 altstack_change(ThreadCtx *ctx, const stack_t *stack, u64 sp)
{
    u32 mode = (u32)stack->ss_flags & ~KERNEL_SS_AUTODISARM;

    if (altstack_flags(ctx, sp) == SS_ONSTACK)
        return -EPERM;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
        return -EINVAL;
    if (mode != SS_DISABLE && stack->ss_size < KERNEL_MINSIGSTKSZ)
        return -ENOMEM;
    ctx->signal.altstack.ss_flags = stack->ss_flags;
    ctx->signal.altstack.ss_sp = mode == SS_DISABLE ? NULL : stack->ss_sp;
    ctx->signal.altstack.ss_size = mode == SS_DISABLE ? 0 : stack->ss_size;
    return 0;
}

i64 sys_sigaltstack(ThreadCtx *ctx, const u64 args[6])
{
    u64 sp = ctx->gpr[RSP];
    stack_t changed, old = ctx->signal.altstack;

    old.ss_flags = (int)(altstack_flags(ctx, sp) |
                         ((u32)ctx->signal.altstack.ss_flags & KERNEL_SS_AUTODISARM));
    if (args[0]) {
        if (!guest_read(args[0], &changed, sizeof(changed)))
            return -EFAULT;
        i64 r = altstack_change(ctx, &changed, sp);
        if (r < 0)
            return r;
    }
    if (args[1] && !guest_write(args[1], &old, sizeof(old)))
        return -EFAULT;
    return 0;
}
