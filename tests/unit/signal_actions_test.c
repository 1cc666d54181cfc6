// SPDX-License-Identifier: MIT
//
// The client's actions and masks and their mirror on the host, and delivery at
// safe points with real signals of this process.
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/raw_syscall.h"
#include "engine/signal/signal_internal.h"
#include "engine/thread/thread.h"
#include "unit.h"

UNIT_NEEDS_CLIENT_SPACE

#define STACK_ADDR 0x200000000ull
#define STACK_BYTES (64 * KiB)
#define HANDLER 0x400100ull

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
    signal_forget_pending(ctx);
    signal_set_client_mask(ctx, 0);
    ctx->gpr[RSP] = STACK_ADDR + STACK_BYTES - 256;
    ctx->pc = 0x400000;
    ctx->flags = 0x202;
    return ctx;
}

static void set_handler(ThreadCtx *ctx, int sig, u64 handler, u64 flags, u64 mask)
{
    KernelAction old, action = {
        .handler = handler,
        .flags = flags | KERNEL_SA_RESTORER,
        .restorer = 0x400200,
        .mask = mask,
    };
    CHECK(actions_change(ctx->signal.actions, sig, &action, &old) == 0);
}

static void send(int sig)
{
    raw_syscall3(SYS_tgkill, (u64)getpid(), (u64)raw_syscall0(SYS_gettid), (u64)sig);
}

TEST(host_mirrors_what_the_kernel_decides_by)
{
    KernelAction client_action = {
        .handler = HANDLER,
        .flags = SA_RESTART | SA_NODEFER | SA_ONSTACK,
    };
    KernelAction host = action_for_host(SIGUSR1, &client_action);
    CHECK(host.handler == (u64)on_host_signal);
    CHECK((host.flags & SA_RESTART) && !(host.flags & SA_NODEFER));
    CHECK((host.flags & SA_ONSTACK) && host.mask == MASK_ALL);

    client_action.handler = HANDLER_IGN;
    CHECK(action_for_host(SIGUSR1, &client_action).handler == HANDLER_IGN);
    CHECK(action_for_host(SIGSEGV, &client_action).handler == (u64)on_host_signal);
}

TEST(kill_and_stop_cannot_be_handled_or_blocked)
{
    ThreadCtx *ctx = client();
    KernelAction old, action = { .handler = HANDLER };
    CHECK(actions_change(ctx->signal.actions, SIGKILL, &action, &old) == -EINVAL);
    CHECK(actions_change(ctx->signal.actions, SIGSTOP, NULL, &old) == 0);
    CHECK(actions_change(ctx->signal.actions, 0, NULL, &old) == -EINVAL);
    CHECK(actions_change(ctx->signal.actions, 65, NULL, &old) == -EINVAL);
    signal_set_client_mask(ctx, MASK_ALL);
    CHECK(ctx->signal.client_mask == ~MASK_UNBLOCKABLE);
    CHECK(host_get_mask() == (~MASK_UNBLOCKABLE & ~MASK_SYNCHRONOUS));
    signal_set_client_mask(ctx, 0);
}

TEST(unknown_flags_are_cleared)
{
    ThreadCtx *ctx = client();
    KernelAction old;
    set_handler(ctx, SIGUSR2, HANDLER, SA_SIGINFO | 0x400, 0);
    CHECK(actions_change(ctx->signal.actions, SIGUSR2, NULL, &old) == 0);
    CHECK((old.flags & SA_SIGINFO) && !(old.flags & 0x400));
    set_handler(ctx, SIGUSR2, HANDLER_DFL, 0, 0);
}

TEST(sent_signal_waits_for_the_safe_point_and_blocks_the_others)
{
    ThreadCtx *ctx = client();
    set_handler(ctx, SIGUSR1, HANDLER, SA_SIGINFO, SIG_BIT(SIGUSR2));
    send(SIGUSR1);
    CHECK(ctx->gateway.pending_signal && ctx->pc == 0x400000);
    CHECK((host_get_mask() | MASK_UNBLOCKABLE) == ~MASK_SYNCHRONOUS);

    signal_deliver_pending(ctx);
    CHECK(!ctx->gateway.pending_signal && ctx->pc == HANDLER && ctx->gpr[RDI] == SIGUSR1);
    CHECK(ctx->signal.client_mask == (SIG_BIT(SIGUSR1) | SIG_BIT(SIGUSR2)));
    CHECK(host_get_mask() == ctx->signal.client_mask);

    ctx->gpr[RSP] += 8;
    const u64 none[6] = { 0 };
    sys_rt_sigreturn(ctx, none);
    CHECK(ctx->pc == 0x400000 && ctx->signal.client_mask == 0 && host_get_mask() == 0);
    set_handler(ctx, SIGUSR1, HANDLER_DFL, 0, 0);
}

TEST(reset_hand_resets_table_and_host)
{
    ThreadCtx *ctx = client();
    KernelAction host;
    set_handler(ctx, SIGUSR1, HANDLER, (u64)SA_RESETHAND | SA_NODEFER, 0);
    send(SIGUSR1);
    signal_deliver_pending(ctx);
    CHECK(ctx->pc == HANDLER && ctx->signal.client_mask == 0);
    CHECK(ctx->signal.actions->action[SIGUSR1].handler == HANDLER_DFL);
    host_get_action(SIGUSR1, &host);
    CHECK(host.handler == HANDLER_DFL);
}

TEST(sent_fault_signal_is_deferred_while_blocked)
{
    ThreadCtx *ctx = client();
    siginfo_t info;
    set_handler(ctx, SIGSEGV, HANDLER, SA_SIGINFO, 0);
    signal_set_client_mask(ctx, SIG_BIT(SIGSEGV));
    send(SIGSEGV);
    send(SIGSEGV);
    CHECK(!ctx->gateway.pending_signal && ctx->signal.deferred == SIG_BIT(SIGSEGV));
    CHECK(!signal_is_deliverable(ctx));
    CHECK(!deferred_take(ctx, SIG_BIT(SIGBUS), &info));

    signal_set_client_mask(ctx, 0);
    CHECK(signal_is_deliverable(ctx));
    signal_deliver_pending(ctx);
    CHECK(ctx->pc == HANDLER && ctx->gpr[RDI] == SIGSEGV && ctx->signal.deferred == 0);
    set_handler(ctx, SIGSEGV, HANDLER_DFL, 0, 0);
}

TEST(pending_signal_that_became_blocked_goes_back_to_the_kernel)
{
    ThreadCtx *ctx = client();
    u64 queued = 0;
    set_handler(ctx, SIGUSR1, HANDLER, SA_SIGINFO, 0);
    send(SIGUSR1);
    CHECK(ctx->gateway.pending_signal);
    ctx->signal.client_mask = SIG_BIT(SIGUSR1);
    signal_deliver_pending(ctx);
    CHECK(!ctx->gateway.pending_signal && ctx->pc == 0x400000);
    raw_syscall2(SYS_rt_sigpending, (u64)&queued, SIGSET_BYTES);
    CHECK(queued == SIG_BIT(SIGUSR1));
    signal_set_client_mask(ctx, 0);
    CHECK(ctx->gateway.pending_signal);
    signal_deliver_pending(ctx);
    CHECK(ctx->pc == HANDLER);
    set_handler(ctx, SIGUSR1, HANDLER_DFL, 0, 0);
}

static int status_of_child(void (*child)(ThreadCtx *ctx))
{
    int status = 0;
    ThreadCtx *ctx = client();
    pid_t pid = fork();

    if (pid == 0) {
        child(ctx);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void fault_while_blocked(ThreadCtx *ctx)
{
    set_handler(ctx, SIGSEGV, HANDLER, SA_SIGINFO, 0);
    signal_set_client_mask(ctx, SIG_BIT(SIGSEGV));
    signal_raise_synchronous(ctx, SIGSEGV, SEGV_MAPERR, 0x10);
    signal_deliver_pending(ctx);
}

static void frame_of_segv_fails(ThreadCtx *ctx)
{
    set_handler(ctx, SIGUSR1, HANDLER, SA_SIGINFO, 0);
    set_handler(ctx, SIGSEGV, HANDLER, SA_SIGINFO, 0);
    ctx->gpr[RSP] = 8;
    send(SIGUSR1);
    signal_deliver_pending(ctx);
}

static void uncaught_ill(ThreadCtx *ctx)
{
    signal_raise_synchronous(ctx, SIGILL, ILL_ILLOPN, ctx->pc);
    signal_deliver_pending(ctx);
}

TEST(faults_that_nobody_can_handle_kill_by_their_own_signal)
{
    CHECK(WTERMSIG(status_of_child(fault_while_blocked)) == SIGSEGV);
    CHECK(WTERMSIG(status_of_child(frame_of_segv_fails)) == SIGSEGV);
    CHECK(WTERMSIG(status_of_child(uncaught_ill)) == SIGILL);
}
