// SPDX-License-Identifier: MIT
//
// The frame that a handler finds on the client's stack, exactly the kernel's:
// unwinders, debuggers, JITs and garbage collectors read and edit it, and
// rt_sigreturn takes back whatever they made of it.
//
//     higher    interrupted frame, 128 bytes of red zone
//               fpstate   XSAVE image, 64-byte aligned, MAGIC2 behind it
//               siginfo
//               ucontext
//     rsp       pretcode  the return address: sa_restorer
#include <string.h>

#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/redirect/redirect.h"
#include "engine/signal/signal_internal.h"
#include "engine/toolapi/toolapi.h"
#include "engine/xstate/xstate.h"

#define RED_ZONE 128
#define USER_CS 0x33
#define USER_SS 0x2b

#define UC_FP_XSTATE 1
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4

#define FLAGS_ALWAYS 0x202ull // bit 1 and the interrupt flag
#define FLAG_RF 0x10000ull
#define FLAGS_RESTORED                                                                             \
    (FLAG_AC | 0x800ull /* OF */ | FLAG_DF | FLAG_TF | 0xd5ull /* SF ZF AF PF CF */ | FLAG_RF)

typedef struct SigContext {
    u64 r8_to_r15[8];
    u64 rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
    u64 flags;
    u16 cs, gs, fs, ss;
    u64 err, trapno;
    u64 oldmask;
    u64 cr2;
    u64 fpstate;
    // The kernel's are reserved from here on. What redirect/ knows of the moment is kept here,
    // since a handler may call wrapped functions, too:
    u64 wrapped_original; // ThreadCtx's word
    u64 original_pc;      // rip if the original of what is there goes on, else 0
    u64 reserved[6];
} SigContext;
_Static_assert(sizeof(SigContext) == 256, "the kernel's struct sigcontext");

typedef struct RtSigframe {
    u64 pretcode;
    u64 uc_flags;
    u64 uc_link;
    stack_t uc_stack;
    SigContext context;
    u64 uc_sigmask;
    siginfo_t info;
} RtSigframe;
_Static_assert(sizeof(RtSigframe) == 440, "the kernel's struct rt_sigframe");
_Static_assert(offsetof(RtSigframe, info) == 312, "siginfo behind the ucontext");

static const u8 context_order[] = { RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP };

static void save_registers(SigContext *context, const ThreadCtx *ctx)
{
    u64 *named = &context->rdi;

    memcpy(context->r8_to_r15, &ctx->gpr[R8], sizeof(context->r8_to_r15));
    for (unsigned i = 0; i < ARRAY_LEN(context_order); i++)
        named[i] = ctx->gpr[context_order[i]];
    context->rip = ctx->pc;
    context->flags = ctx->flags | FLAGS_ALWAYS;
    context->cs = USER_CS;
    context->ss = USER_SS;
}

static void restore_registers(ThreadCtx *ctx, const SigContext *context)
{
    const u64 *named = &context->rdi;

    memcpy(&ctx->gpr[R8], context->r8_to_r15, sizeof(context->r8_to_r15));
    for (unsigned i = 0; i < ARRAY_LEN(context_order); i++)
        ctx->gpr[context_order[i]] = named[i];
    ctx->pc = context->rip;
    ctx->flags = (ctx->flags & ~FLAGS_RESTORED) | (context->flags & FLAGS_RESTORED) | FLAGS_ALWAYS;
}

// Where the frame goes. False: it would overflow the alternate stack.
static bool place_frame(const ThreadCtx *ctx, const KernelAction *action, u64 fpstate_bytes,
                        GuestAddr *ret_frame, GuestAddr *ret_fpstate)
{
    u64 sp = ctx->gpr[RSP] - RED_ZONE;
    bool on_altstack = altstack_flags(ctx, ctx->gpr[RSP]) == SS_ONSTACK;

    if ((action->flags & SA_ONSTACK) && altstack_flags(ctx, sp) == 0) {
        sp = (u64)ctx->signal.altstack.ss_sp + ctx->signal.altstack.ss_size;
        on_altstack = true;
    }
    u64 fpstate = (sp - fpstate_bytes) & ~63ull;
    u64 frame = ((fpstate - sizeof(RtSigframe)) & ~15ull) - 8;
    if (on_altstack && !altstack_contains(&ctx->signal.altstack, frame))
        return false;
    *ret_frame = frame;
    *ret_fpstate = fpstate;
    return true;
}

// Whether the signal stops the original of an intercepted function before its first instruction has
// been done: the function has been called, and is not called again when the handler returns. A
// prologue faults nowhere, so that a fault is the instruction's.
static bool is_original(const ThreadCtx *ctx, const PendingSignal *signal)
{
    if (ctx->redirect.armed || !signal->synchronous)
        return ctx->redirect.armed;
    lock_acquire(&engine_lock);
    bool is_entry = redirect_is_entry(ctx->pc);
    lock_release(&engine_lock);
    return is_entry;
}

static void fill_frame(RtSigframe *frame, const ThreadCtx *ctx, const KernelAction *action,
                       const PendingSignal *signal, GuestAddr fpstate)
{
    frame->pretcode = action->restorer;
    frame->uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    frame->uc_stack = ctx->signal.altstack;
    save_registers(&frame->context, ctx);
    frame->context.err = signal->err;
    frame->context.trapno = signal->trapno;
    frame->context.cr2 = signal->cr2;
    frame->context.oldmask = signal->resume_mask;
    frame->context.fpstate = fpstate;
    frame->context.wrapped_original = ctx->redirect.wrapped_original;
    frame->context.original_pc = is_original(ctx, signal) ? ctx->pc : 0;
    frame->uc_sigmask = signal->resume_mask;
    memcpy(&frame->info, &signal->info, sizeof(frame->info));
}

// Registers of a handler: as the kernel, which also resets the vector state.
static void enter_handler(ThreadCtx *ctx, const KernelAction *action, int sig, GuestAddr frame)
{
    ctx->gpr[RDI] = (u64)sig;
    ctx->gpr[RSI] = frame + offsetof(RtSigframe, info);
    ctx->gpr[RDX] = frame + offsetof(RtSigframe, uc_flags);
    ctx->gpr[RAX] = 0;
    ctx->gpr[RSP] = frame;
    ctx->pc = action->handler;
    ctx->redirect.armed = 0; // until the handler returns
    ctx->flags &= ~(u64)(FLAG_DF | FLAG_TF | FLAG_RF);
    xstate_reset(ctx->xsave);
    xstate_put_pkru(ctx->xsave);
    if ((u32)ctx->signal.altstack.ss_flags & KERNEL_SS_AUTODISARM)
        signal_reset_altstack(ctx);
}

bool frame_push(ThreadCtx *ctx, const KernelAction *action, const PendingSignal *signal)
{
    u8 fpstate_image[XSTATE_MAX_BYTES] __attribute__((aligned(64)));
    u64 fpstate_bytes = xstate_frame_size() + XSTATE_MAGIC2_BYTES;
    GuestAddr frame_addr, fpstate_addr;
    RtSigframe frame;

    if (!(action->flags & KERNEL_SA_RESTORER))
        return false; // x86-64 has no other way back
    if (!place_frame(ctx, action, fpstate_bytes, &frame_addr, &fpstate_addr))
        return false;
    memset(&frame, 0, sizeof(frame));
    fill_frame(&frame, ctx, action, signal, fpstate_addr);
    xstate_keep_pkru(ctx->xsave);
    xstate_to_client_frame(fpstate_image, ctx->xsave);
    if (!guest_write(fpstate_addr, fpstate_image, fpstate_bytes) ||
        !guest_write(frame_addr, &frame, sizeof(frame)))
        return false;
    if (tool->written) {
        tool->written(ctx, fpstate_addr, fpstate_bytes);
        tool->written(ctx, frame_addr, sizeof(frame));
    }
    enter_handler(ctx, action, signal->info.si_signo, frame_addr);
    return true;
}

bool frame_pop(ThreadCtx *ctx)
{
    RtSigframe frame;

    if (!guest_read(ctx->gpr[RSP] - sizeof(u64), &frame, sizeof(frame)))
        return false;
    restore_registers(ctx, &frame.context);
    ctx->redirect.wrapped_original = frame.context.wrapped_original;
    ctx->redirect.armed = ctx->pc != 0 && frame.context.original_pc == ctx->pc;
    bool good = xstate_from_client_frame(ctx->xsave, frame.context.fpstate);
    xstate_put_pkru(ctx->xsave);
    // As the kernel: errors of the alternate stack are forgotten, and the mask
    // changes even when the rest of the frame is bad.
    if (good)
        altstack_change(ctx, &frame.uc_stack, ctx->gpr[RSP]);
    signal_set_client_mask(ctx, frame.uc_sigmask);
    return good;
}
