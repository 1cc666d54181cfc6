// SPDX-License-Identifier: MIT
//
// The loop of a client thread: find or make the block at pc, run, see why it
// came back.
#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/gateway/gateway.h"
#include "engine/redirect/redirect.h"
#include "engine/relay/relay.h"
#include "engine/request/request.h"
#include "engine/run/emulate.h"
#include "engine/run/last_call.h"
#include "engine/run/light.h"
#include "engine/signal/signal.h"
#include "engine/perform/perform.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/translate.h"

// Linux's TASK_SIZE_MAX.
#define CLIENT_SPACE_END 0x7ffffffff000ull

// What has no address: a pc that is not canonical, an instruction too long.
static void raise_protection_fault(ThreadCtx *ctx)
{
    signal_raise_synchronous(ctx, SIGSEGV, SI_KERNEL, 0);
    if (ctx->signal.pending.synchronous)
        ctx->signal.pending.trapno = 13;
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
    if (ctx->signal.pending.synchronous)
        ctx->signal.pending.err =
            0x14 | (present || kernels); // user, instruction fetch, page present
}

// Where to enter the cache for ctx->pc; NULL when the pc cannot be executed,
// with the signal that says so raised. On success the thread counts as inside
// the cache (C2).
static CodePtr enter_point(ThreadCtx *ctx)
{
    FetchResult result = FETCH_OK;
    GuestAddr fault = ctx->pc;
    bool stepped = ctx->flags & FLAG_TF;
    CodePtr code = NULL;
    u32 version = run_version(ctx) | (stepped ? VERSION_STEPPED : 0);
    EntryKind entry = stepped || version & VERSION_ORIGINAL ? ENTRY_NONE : run_entry_kind(ctx);

    lock_acquire(&engine_lock);
    Block *block = cache_find(ctx->pc, version);
    if (!block)
        block = translate_block(ctx->pc, version, entry, &result, &fault);
    if (block) {
        if (entry && !cache_publish_entry(block, entry) && translate_add_entry(block, entry))
            cache_publish_entry(block, entry);
        if ((ctx->gateway.exit_reason == EXIT_LINK || ctx->gateway.exit_reason == EXIT_CALL) &&
            !stepped)
            run_link_exit(ctx, block);
        code = code_at(block->body);
        ctx->gateway.guard_failed = 0;
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

static void drop_blocks(const ThreadCtx *ctx)
{
    lock_acquire(&engine_lock);
    cache_invalidate_insn(ctx->pc);
    lock_release(&engine_lock);
}

static void run_syscall(ThreadCtx *ctx)
{
    ctx->stats.syscalls++;
    ctx->gpr[RCX] = ctx->pc;
    ctx->gpr[R11] = ctx->flags;
    syscall_run(ctx);
}

// After the instruction of a client that steps itself: the trap, unless the
// instruction at `pc` raised a signal of its own or is still to be done. The trap
// of a system call comes after the instruction behind it.
static void finish_client_step(ThreadCtx *ctx, ExitReason reason, GuestAddr pc)
{
    bool over = ctx->dispatch.client_step == CLIENT_STEP_DONE && reason != EXIT_SYSCALL &&
                reason != EXIT_STALE && reason != EXIT_REMAKE &&
                reason != EXIT_RESUME && !(reason == EXIT_EMULATE && ctx->pc == pc);
    ctx->dispatch.client_step = CLIENT_STEP_NONE;
    if (over)
        signal_raise_trace(ctx);
}

// One loop of a thread; a tool's handler that calls the client starts another on top of it.
typedef struct RunLoop {
    void *go_on[5]; // __builtin_setjmp buffer: where a loop above this one jumps that is over
    struct RunLoop *outer;
    GuestAddr slot; // of the return address GATEWAY_NOWHERE; 0 for the outermost
    u64 old_sp;
} RunLoop;

// Whether the client has left the call that this loop was for. The memory from the slot up to
// old_sp belongs to one stack: a pointer in there is that of somebody above the call. One
// elsewhere may be of another stack, while the call waits; but a call whose return address is
// overwritten waits no longer.
static bool is_left(const ThreadCtx *ctx, const RunLoop *loop)
{
    u64 sp = ctx->gpr[RSP], word;
    if (sp > loop->slot && sp <= loop->old_sp)
        return true;
    return sp > loop->old_sp && guest_read(loop->slot, &word, sizeof(word)) &&
           word != GATEWAY_NOWHERE;
}

static bool has_returned(const ThreadCtx *ctx, const RunLoop *loop)
{
    return loop->slot && ctx->pc == GATEWAY_NOWHERE && ctx->gpr[RSP] == loop->slot + 8;
}

void (*run_validate_hook)(ThreadCtx *ctx);

// The pause grows with each walk, so that a long run has no more than some hundreds of them.
static void validate_now_and_then(ThreadCtx *ctx)
{
    enum { PAUSE_AT_START = 32, PAUSE_GROWTH = 4 };
    if (ctx->dispatch.validate_wait-- > 0)
        return;
    ctx->dispatch.validate_wait = PAUSE_AT_START + PAUSE_GROWTH * ctx->dispatch.validate_count++;
    run_validate_hook(ctx);
}

// Runs the client until it leaves the cache. False: it could not enter, or the call of this
// loop has returned, or is given up (*ret_returned).
static bool run_once(ThreadCtx *ctx, const RunLoop *loop, bool *ret_returned)
{
    __atomic_store_n(&ctx->dispatch.in_cache, 0, __ATOMIC_SEQ_CST);
    ctx->gateway.stop_request = 0;
    if (UNLIKELY(ctx->relay.kicked)) {
        ctx->relay.kicked = 0;
        relay_poll(ctx);
    }
    if (UNLIKELY(__atomic_load_n(&thread_stopper, __ATOMIC_ACQUIRE)))
        thread_wait_while_stopped(ctx);
    if (UNLIKELY(run_validate_hook))
        validate_now_and_then(ctx);
    if (UNLIKELY(ctx->dispatch.makes_last_call) && last_call_is_over(ctx)) {
        *ret_returned = true;
        return false;
    }
    if (signal_is_deliverable(ctx)) {
        redirect_note_interrupted(ctx);
        ctx->gateway.guard_failed = 0;
        if (tool->client_fault && ctx->gateway.pending_signal && ctx->signal.pending.synchronous)
            tool->client_fault(ctx, &ctx->signal.pending.info);
        signal_deliver_pending(ctx);
        ctx->gateway.exit_reason = EXIT_RESUME; // pc is no longer where the exit led
    }
    if (UNLIKELY(has_returned(ctx, loop))) {
        *ret_returned = true;
        return false;
    }
    CodePtr code = NULL;
    if (LIKELY(!(ctx->pc >> 63)) || !emulate_vsyscall(ctx))
        code = enter_point(ctx);
    if (!code) {
        ctx->gateway.exit_reason = EXIT_RESUME;
        return false;
    }
    ctx->dispatch.recent_pc[ctx->dispatch.recent_next++ % ARRAY_LEN(ctx->dispatch.recent_pc)] =
        ctx->pc;
    if (UNLIKELY(ctx->flags & (FLAG_DF | FLAG_AC)))
        ctx->gateway.careful = 1;
    ctx->dispatch.client_step = ctx->flags & FLAG_TF ? CLIENT_STEP_ARMED : CLIENT_STEP_NONE;
    if (UNLIKELY(signal_stress) && !ctx->dispatch.client_step)
        stress_maybe_step(ctx);
    gateway_enter(code);
    if (!ctx->dispatch.client_step)
        ctx->flags &= ~(u64)FLAG_TF; // ours, if the way in was cut short
    __atomic_store_n(&ctx->dispatch.in_cache, 0, __ATOMIC_SEQ_CST);
    return true;
}

static void finish_exit(ThreadCtx *ctx)
{
    ExitReason reason = ctx->gateway.exit_reason;
    GuestAddr pc = ctx->pc;
    switch (reason) {
    case EXIT_SYSCALL: run_syscall(ctx); break;
    case EXIT_EMULATE: emulate_insn(ctx); break;
    case EXIT_REDIRECT:
        if (!redirect_run(ctx))
            signal_raise_synchronous(ctx, SIGSEGV, SEGV_MAPERR, ctx->gpr[RSP]);
        break;
    case EXIT_REQUEST: request_run(ctx); break;
    case EXIT_STALE: drop_stale_block(ctx); break;
    case EXIT_REMAKE: drop_blocks(ctx); break;
    default: break;
    }
    if (UNLIKELY(ctx->dispatch.client_step))
        finish_client_step(ctx, reason, pc);
}

// The compiler wants the jump and its target in different functions.
static _Noreturn __attribute__((noinline)) void go_on_with(RunLoop *loop)
{
    __builtin_longjmp(loop->go_on, 1);
}

void run_until_return(ThreadCtx *ctx, GuestAddr slot, u64 old_sp)
{
    RunLoop loop = {.outer = ctx->dispatch.loop, .slot = slot, .old_sp = old_sp};
    bool returned = false;
    ctx->gateway.exit_reason = EXIT_RESUME;
    bool again = __builtin_setjmp(loop.go_on) != 0;
    ctx->dispatch.loop = &loop;
    if (again)
        finish_exit(ctx); // of the loop that is over
    while (!returned) {
        if (!run_once(ctx, &loop, &returned))
            continue;
        if (UNLIKELY(slot) && !has_returned(ctx, &loop) && is_left(ctx, &loop))
            go_on_with(loop.outer);
        finish_exit(ctx);
    }
    ctx->dispatch.loop = loop.outer;
}

void run_thread(ThreadCtx *ctx)
{
    ctx->dispatch.loop = NULL;
    run_until_return(ctx, 0, 0);
    panic_at(__FILE__, __LINE__, "a thread has run out of code");
}
