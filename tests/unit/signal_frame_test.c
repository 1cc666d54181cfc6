// SPDX-License-Identifier: MIT
//
// The frame on the client's stack: its layout is checked with libc's own
// ucontext_t, its content by building and taking it back, and its defences by
// frames that the kernel would refuse.
#include <sys/mman.h>
#include <ucontext.h>

#include "engine/signal/signal_internal.h"
#include "engine/thread/thread.h"
#include "engine/xstate/xstate.h"
#include "unit.h"

UNIT_NEEDS_CLIENT_SPACE

#define STACK_ADDR 0x200000000ull
#define STACK_BYTES (64 * KiB)
#define STACK_TOP (STACK_ADDR + STACK_BYTES)

static const KernelAction plain = {
    .handler = 0x400100,
    .restorer = 0x400200,
    .flags = SA_SIGINFO | KERNEL_SA_RESTORER,
};

// The calling thread as a client thread that stands somewhere in the middle of things.
static ThreadCtx *client(void)
{
    static bool ready;
    ThreadCtx *ctx = &thread_ctx;

    if (!ready) {
        signal_init();
        ready = thread_init_main(ctx);
        void *stack = mmap((void *)STACK_ADDR, STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(ready && stack == (void *)STACK_ADDR);
    }
    for (unsigned r = 0; r < GPR_COUNT; r++)
        ctx->gpr[r] = 0x1111111111111111ull * r + 7;
    ctx->gpr[RSP] = STACK_TOP - 4096;
    ctx->pc = 0x400000;
    ctx->flags = 0x202 | FLAG_DF | 1;
    ctx->signal.client_mask = 0;
    signal_reset_altstack(ctx);
    signal_forget_pending(ctx);
    xstate_reset(ctx->xsave);
    return ctx;
}

static PendingSignal a_signal(int sig)
{
    PendingSignal signal = { .trapno = 14, .err = 6, .cr2 = 0xdead000 };

    signal.info.si_signo = sig;
    signal.info.si_code = SEGV_MAPERR;
    signal.info.si_addr = (void *)0xdead000;
    signal.resume_mask = SIG_BIT(SIGUSR1);
    return signal;
}

// As the handler's `ret` to the restorer does.
static void return_from_handler(ThreadCtx *ctx)
{
    ctx->gpr[RSP] += 8;
}

TEST(libc_finds_every_register_in_the_frame)
{
    ThreadCtx *ctx = client();
    ThreadCtx before = *ctx;
    PendingSignal signal = a_signal(SIGSEGV);
    CHECK(frame_push(ctx, &plain, &signal));

    const ucontext_t *uc = (const ucontext_t *)ctx->gpr[RDX];
    const siginfo_t *info = (const siginfo_t *)ctx->gpr[RSI];
    const greg_t *g = uc->uc_mcontext.gregs;
    CHECK((u64)g[REG_RAX] == before.gpr[RAX] && (u64)g[REG_RCX] == before.gpr[RCX]);
    CHECK((u64)g[REG_RDX] == before.gpr[RDX] && (u64)g[REG_RBX] == before.gpr[RBX]);
    CHECK((u64)g[REG_RSP] == before.gpr[RSP] && (u64)g[REG_RBP] == before.gpr[RBP]);
    CHECK((u64)g[REG_RSI] == before.gpr[RSI] && (u64)g[REG_RDI] == before.gpr[RDI]);
    CHECK((u64)g[REG_R8] == before.gpr[R8] && (u64)g[REG_R15] == before.gpr[R15]);
    CHECK((u64)g[REG_RIP] == before.pc && (u64)g[REG_EFL] == before.flags);
    CHECK(g[REG_TRAPNO] == 14 && g[REG_ERR] == 6 && g[REG_CR2] == 0xdead000);
    CHECK((u64)g[REG_CSGSFS] == 0x002b000000000033ull);
    CHECK(info->si_signo == SIGSEGV && info->si_addr == (void *)0xdead000);
    CHECK(sigismember(&uc->uc_sigmask, SIGUSR1) && !sigismember(&uc->uc_sigmask, SIGUSR2));
    CHECK(*(u64 *)ctx->gpr[RSP] == plain.restorer);
}

TEST(handler_starts_as_the_abi_demands)
{
    ThreadCtx *ctx = client();
    u64 sp = ctx->gpr[RSP];
    PendingSignal signal = a_signal(SIGSEGV);
    CHECK(frame_push(ctx, &plain, &signal));

    CHECK(ctx->pc == plain.handler && ctx->gpr[RDI] == SIGSEGV && ctx->gpr[RAX] == 0);
    CHECK((ctx->gpr[RSP] + 8) % 16 == 0);
    CHECK(!(ctx->flags & FLAG_DF));
    const ucontext_t *uc = (const ucontext_t *)ctx->gpr[RDX];
    u64 fpstate = (u64)uc->uc_mcontext.fpregs;
    CHECK(fpstate % 64 == 0);
    CHECK(fpstate + xstate_frame_size() + XSTATE_MAGIC2_BYTES <= sp - 128);
}

TEST(return_restores_registers_flags_mask_and_vectors)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGSEGV);
    u64 *xmm3 = (u64 *)(ctx->xsave + 160 + 3 * 16);
    u64 *present = (u64 *)(ctx->xsave + 512);
    xmm3[0] = 0x0123456789abcdefull;
    *present |= 2;
    ThreadCtx before = *ctx;

    CHECK(frame_push(ctx, &plain, &signal));
    CHECK(!(*present & 2)); // a handler starts with the initial state
    return_from_handler(ctx);
    memset(ctx->gpr, 0xee, RSP * sizeof(u64));
    ctx->signal.client_mask = 0;
    CHECK(frame_pop(ctx));
    CHECK(memcmp(ctx->gpr, before.gpr, sizeof(before.gpr)) == 0);
    CHECK(ctx->pc == before.pc && ctx->flags == before.flags);
    CHECK(ctx->signal.client_mask == SIG_BIT(SIGUSR1));
    CHECK((*present & 2) && xmm3[0] == 0x0123456789abcdefull);
    signal_set_client_mask(ctx, 0);
}

TEST(privileged_flags_cannot_be_set_by_a_frame)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    CHECK(frame_push(ctx, &plain, &signal));
    ((ucontext_t *)ctx->gpr[RDX])->uc_mcontext.gregs[REG_EFL] = -1;
    return_from_handler(ctx);
    CHECK(frame_pop(ctx));
    CHECK(!(ctx->flags & (3u << 12)) && !(ctx->flags & (1u << 14)) && !(ctx->flags >> 20));
    signal_set_client_mask(ctx, 0);
}

// Corrupts one word of the XSAVE image and says whether the frame was taken back.
static bool pop_with(size_t offset, u64 word)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    CHECK(frame_push(ctx, &plain, &signal));
    ucontext_t *uc = (ucontext_t *)ctx->gpr[RDX];
    memcpy((u8 *)uc->uc_mcontext.fpregs + offset, &word, sizeof(word));
    return_from_handler(ctx);
    bool popped = frame_pop(ctx);
    signal_set_client_mask(ctx, 0);
    return popped;
}

TEST(vector_images_that_would_fault_are_refused)
{
    CHECK(!pop_with(512, 1ull << 62)); // a component that does not exist
    CHECK(!pop_with(520, 1ull << 63)); // compacted
    CHECK(!pop_with(560, 1));          // reserved part of the header
    CHECK(!pop_with(24, ~0ull));       // MXCSR with reserved bits
    CHECK(pop_with(512, 3));
    CHECK(pop_with(464, 0)); // no magic: only the FXSAVE part counts
}

TEST(null_fpstate_means_initial_state)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    CHECK(frame_push(ctx, &plain, &signal));
    ((ucontext_t *)ctx->gpr[RDX])->uc_mcontext.fpregs = NULL;
    return_from_handler(ctx);
    ctx->xsave[24] = 0;
    CHECK(frame_pop(ctx));
    CHECK(*(u32 *)(ctx->xsave + 24) == 0x1f80);
    signal_set_client_mask(ctx, 0);
}

TEST(frame_on_unwritable_stack_changes_nothing)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    ctx->gpr[RSP] = STACK_ADDR + 64;
    ThreadCtx before = *ctx;
    CHECK(!frame_push(ctx, &plain, &signal));
    CHECK(memcmp(ctx->gpr, before.gpr, sizeof(before.gpr)) == 0 && ctx->pc == before.pc);
}

TEST(handler_without_restorer_is_refused)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    KernelAction action = plain;
    action.flags = 0;
    CHECK(!frame_push(ctx, &action, &signal));
}

static KernelAction on_stack(void)
{
    KernelAction action = plain;
    action.flags |= SA_ONSTACK;
    return action;
}

TEST(alternate_stack_is_entered_once)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    KernelAction action = on_stack();
    stack_t alt = { .ss_sp = (void *)STACK_ADDR, .ss_size = 32 * KiB };
    CHECK(altstack_change(ctx, &alt, ctx->gpr[RSP]) == 0);

    CHECK(frame_push(ctx, &action, &signal));
    u64 first = ctx->gpr[RSP];
    CHECK(first < STACK_ADDR + 32 * KiB && first > STACK_ADDR + 16 * KiB);
    CHECK(altstack_change(ctx, &alt, first) < 0); // EPERM: we are on it
    CHECK(frame_push(ctx, &action, &signal));
    CHECK(ctx->gpr[RSP] < first);
}

TEST(alternate_stack_too_small_for_the_frame_is_refused)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    KernelAction action = on_stack();
    stack_t alt = { .ss_sp = (void *)(STACK_ADDR + 16 * KiB), .ss_size = 2048 };
    CHECK(altstack_change(ctx, &alt, ctx->gpr[RSP]) == 0);
    if (xstate_frame_size() > 2048)
        CHECK(!frame_push(ctx, &action, &signal));
}

TEST(autodisarm_disarms_and_return_arms_again)
{
    ThreadCtx *ctx = client();
    PendingSignal signal = a_signal(SIGUSR2);
    KernelAction action = on_stack();
    stack_t alt = { .ss_sp = (void *)STACK_ADDR, .ss_size = 32 * KiB,
                    .ss_flags = (int)KERNEL_SS_AUTODISARM };
    CHECK(altstack_change(ctx, &alt, ctx->gpr[RSP]) == 0);
    CHECK(frame_push(ctx, &action, &signal));
    CHECK(ctx->signal.altstack.ss_size == 0);
    return_from_handler(ctx);
    CHECK(frame_pop(ctx));
    CHECK(ctx->signal.altstack.ss_sp == alt.ss_sp && ctx->signal.altstack.ss_size == alt.ss_size);
    signal_set_client_mask(ctx, 0);
}
