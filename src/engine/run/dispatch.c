// SPDX-License-Identifier: MIT
//
// The loop of a client thread: find or make the block at pc, run, see why it
// came back.
#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/redirect/redirect.h"
#include "engine/request/request.h"
#include "engine/run/emulate.h"
#include "engine/run/gateway.h"
#include "engine/signal/signal.h"
#include "engine/syscall/syscall.h"
#include "engine/thread/thread.h"
#include "engine/translate/translate.h"

// Linux's TASK_SIZE_MAX.
#define CLIENT_SPACE_END 0x7ffffffff000ull

__thread ThreadCtx thread_ctx __attribute__((aligned(64)));
Lock engine_lock;
bool callstack_wanted;

// What has no address: a pc that is not canonical, an instruction too long.
static void raise_protection_fault(ThreadCtx *ctx)
{
    signal_raise_synchronous(ctx, SIGSEGV, SI_KERNEL, 0);
    if (ctx->pending.synchronous)
        ctx->pending.trapno = 13;
}

static void raise_fetch_fault(ThreadCtx *ctx, GuestAddr fault)
{
    lock_acquire(&engine_lock);
    const Mapping *mapping = aspace_find(fault);
    bool mapped = mapping != NULL;
    bool present = mapped && mapping->prot != 0;
    lock_release(&engine_lock);
    bool kernels = fault >= CLIENT_SPACE_END; // the kernel calls its own addresses present
    if (fault >> 47 && fault >> 47 != 0x1ffff) {
        branch_fault_rewind(ctx);
        raise_protection_fault(ctx);
        return;
    }
    signal_raise_synchronous(ctx, SIGSEGV, mapped ? SEGV_ACCERR : SEGV_MAPERR, fault);
    if (ctx->pending.synchronous)
        ctx->pending.err = 0x14 | (present || kernels); // user, instruction fetch, page present
}

// Where to enter the cache for ctx->pc; NULL when the pc cannot be executed,
// with the signal that says so raised. On success the thread counts as inside
// the cache (C2).
static CodePtr enter_point(ThreadCtx *ctx)
{
    FetchResult result = FETCH_OK;
    GuestAddr fault = ctx->pc;
    bool stepped = ctx->flags & FLAG_TF;
    bool returning = ctx->exit_reason == EXIT_RETURN;
    EntryKind entry = stepped                             ? ENTRY_NONE
                      : returning                         ? ENTRY_RETURN
                      : ctx->exit_reason == EXIT_INDIRECT ? ENTRY_LOOKUP
                                                          : ENTRY_NONE;
    CodePtr code = NULL;
    u32 version = run_version(ctx) | (stepped ? VERSION_STEPPED : 0);
    if (version & ~VERSION_ORIGINAL)
        entry = ENTRY_NONE; // only clean blocks are in the tables

    lock_acquire(&engine_lock);
    Block *block = cache_find(ctx->pc, version);
    if (!block)
        block = translate_block(ctx->pc, version, entry, &result, &fault);
    if (block) {
        bool publish = entry && !block_is_dirty(block);
        if (publish && !cache_publish_entry(block, returning) && translate_add_entry(block, entry))
            cache_publish_entry(block, returning);
        if (ctx->exit_reason == EXIT_LINK && !stepped)
            run_link_exit(ctx, block);
        code = block->body;
        ctx->guard_failed = 0;
        cache_enter(ctx);
    }
    lock_release(&engine_lock);

    if (result == FETCH_NO_ACCESS)
        raise_fetch_fault(ctx, fault);
    else if (result == FETCH_TOO_LONG)
        raise_protection_fault(ctx);
    else if (result == FETCH_BAD_CODE)
        signal_raise_synchronous(ctx, SIGILL, ILL_ILLOPN, fault);
    return code;
}

// A block of a page that changes too often to be guarded saw that its bytes are
// not those it was made from.
static void drop_stale_block(ThreadCtx *ctx)
{
    lock_acquire(&engine_lock);
    cache_invalidate(ctx->pc, ctx->pc + 1);
    lock_release(&engine_lock);
}

static void run_syscall(ThreadCtx *ctx)
{
    ctx->stat_syscalls++;
    ctx->gpr[RCX] = ctx->pc;
    ctx->gpr[R11] = ctx->flags;
    syscall_run(ctx);
}

// After the instruction of a client that steps itself: the trap, unless the
// instruction at `pc` raised a signal of its own or is still to be done. The trap
// of a system call comes after the instruction behind it.
static void finish_client_step(ThreadCtx *ctx, ExitReason reason, GuestAddr pc)
{
    bool over = ctx->client_step == CLIENT_STEP_DONE && reason != EXIT_SYSCALL &&
                reason != EXIT_STALE &&
                reason != EXIT_RESUME && !(reason == EXIT_EMULATE && ctx->pc == pc);
    ctx->client_step = CLIENT_STEP_NONE;
    if (over)
        signal_raise_trace(ctx);
}

void run_until_return(ThreadCtx *ctx, u64 sp)
{
    ctx->exit_reason = EXIT_RESUME;
    for (;;) {
        __atomic_store_n(&ctx->in_cache, 0, __ATOMIC_SEQ_CST);
        ctx->stop_request = 0;
        if (UNLIKELY(__atomic_load_n(&thread_stopper, __ATOMIC_ACQUIRE)))
            thread_wait_while_stopped(ctx);
        if (signal_is_deliverable(ctx)) {
            redirect_interrupted(ctx);
            ctx->guard_failed = 0;
            signal_deliver_pending(ctx);
            ctx->exit_reason = EXIT_RESUME; // pc is no longer where the exit led
        }
        if (UNLIKELY(sp && ctx->pc == RUN_NOWHERE && ctx->gpr[RSP] == sp))
            return;
        if (UNLIKELY(ctx->pc >> 63) && emulate_vsyscall(ctx)) {
            ctx->exit_reason = EXIT_RESUME;
            continue;
        }
        CodePtr code = enter_point(ctx);
        if (!code) {
            ctx->exit_reason = EXIT_RESUME;
            continue;
        }
        ctx->recent_pc[ctx->recent_next++ % ARRAY_LEN(ctx->recent_pc)] = ctx->pc;
        ctx->client_step = ctx->flags & FLAG_TF ? CLIENT_STEP_ARMED : CLIENT_STEP_NONE;
        if (UNLIKELY(stress_signals) && !ctx->client_step)
            stress_maybe_step(ctx);
        gateway.enter(code);
        if (!ctx->client_step)
            ctx->flags &= ~(u64)FLAG_TF; // ours, if the way in was cut short

        __atomic_store_n(&ctx->in_cache, 0, __ATOMIC_SEQ_CST);
        ExitReason reason = ctx->exit_reason;
        GuestAddr pc = ctx->pc;
        switch (reason) {
        case EXIT_SYSCALL: run_syscall(ctx); break;
        case EXIT_EMULATE: emulate_insn(ctx); break;
        case EXIT_REDIRECT: redirect_run(ctx); break;
        case EXIT_REQUEST: request_run(ctx); break;
        case EXIT_STALE: drop_stale_block(ctx); break;
        default: break;
        }
        if (UNLIKELY(ctx->client_step))
            finish_client_step(ctx, reason, pc);
    }
}

_Noreturn void run_thread(ThreadCtx *ctx)
{
    run_until_return(ctx, 0);
    panic_at(__FILE__, __LINE__, "a thread has run out of code");
}
