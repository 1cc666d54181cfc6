// SPDX-License-Identifier: MIT
//
// Our own handler of every signal. It asks two questions: what is the signal (a
// fault of the instruction at rip, or something sent), and where is rip (in the
// cache, in a gateway, in engine code). It never runs client code itself: it
// records the signal and sees to it that the thread soon reaches a safe point.
//
// In the cache the registers are the client's only at boundaries, so a thread
// caught elsewhere is single-stepped to the next one. That takes a few traps,
// costs nothing while there are no signals, and needs no undo information.
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include "base/assert.h"
#include "base/pages.h"
#include "base/pkru_x64.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/callstack/callstack.h"
#include "engine/gateway/gateway.h"
#include "engine/signal/signal_internal.h"
#include "engine/toolapi/toolapi.h"
#include "engine/trace/trace.h"
#include "engine/translate/translate.h"
#include "engine/xstate/xstate.h"

#define HOST_ALTSTACK_BYTES (64 * KiB)
#define PAGE_FAULT_WRITE 2   // bit of REG_ERR
#define SYS_SECCOMP_CODE 1
#define TRAP_DEBUG 1         // #DB in REG_TRAPNO
#define HWCAP2_FSGSBASE 2
#define RETRIES_OF_WRITABLE_PAGE 64

void (*signal_crash_hook)(int sig, siginfo_t *info, void *ucontext);

// The byte pattern is the one by which debuggers recognise signal frames.
__asm__(".text\n"
        ".p2align 4\n"
        ".globl host_restorer\n"
        ".hidden host_restorer\n"
        ".type host_restorer, @function\n"
        "host_restorer:\n"
        "    mov $15, %rax\n"
        "    syscall\n"
        ".size host_restorer, . - host_restorer\n");

// Where the kernel's ucontext keeps our sixteen, in the order of enum Gpr.
static const u8 greg_of[GPR_COUNT] = {
    [RAX] = REG_RAX, [RCX] = REG_RCX, [RDX] = REG_RDX, [RBX] = REG_RBX,
    [RSP] = REG_RSP, [RBP] = REG_RBP, [RSI] = REG_RSI, [RDI] = REG_RDI,
    [R8] = REG_R8,   [R9] = REG_R9,   [R10] = REG_R10, [R11] = REG_R11,
    [R12] = REG_R12, [R13] = REG_R13, [R14] = REG_R14, [R15] = REG_R15,
};

static u64 greg(const ucontext_t *uc, int reg)
{
    return (u64)uc->uc_mcontext.gregs[reg];
}

static void set_greg(ucontext_t *uc, int reg, u64 value)
{
    uc->uc_mcontext.gregs[reg] = (greg_t)value;
}

// Set again when the client faulted in code that lent gs to it.
static void set_gs_base(u64 base)
{
    if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
        __asm__ volatile("wrgsbase %0" : : "r"(base));
}

static u64 frame_mask(const ucontext_t *uc)
{
    u64 mask;

    memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
    return mask;
}

// While a signal is pending only the synchronous ones may come (R3).
static void close_frame_mask(ucontext_t *uc)
{
    u64 mask = ~MASK_SYNCHRONOUS;

    memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

static void record(ThreadCtx *ctx, const siginfo_t *info, ucontext_t *uc, bool synchronous)
{
    PendingSignal *pending = &ctx->signal.pending;

    memcpy(&pending->info, info, sizeof(pending->info));
    pending->resume_mask =
        mask_for_host(frame_mask(uc)) | (ctx->signal.client_mask & MASK_SYNCHRONOUS);
    pending->synchronous = synchronous;
    pending->trapno = greg(uc, REG_TRAPNO);
    pending->err = greg(uc, REG_ERR);
    pending->cr2 = greg(uc, REG_CR2);
    __atomic_store_n(&ctx->gateway.pending_signal, 1, __ATOMIC_SEQ_CST);
    close_frame_mask(uc);
    if (UNLIKELY(trace_bits & TRACE_SIGNALS))
        trace_signal_arrival(ctx, info);
}

// ---------------------------------------------------------------- stepping

static bool pushes_flags(u64 host_pc)
{
    const u8 *code = (const u8 *)host_pc;

    if (*code == 0x66 || (*code & 0xf0) == 0x40)
        code++;
    return *code == 0x9c;
}

static void step(ThreadCtx *ctx, ucontext_t *uc)
{
    ctx->dispatch.stepping = 1;
    ctx->signal.step_over_pushf = pushes_flags(greg(uc, REG_RIP));
    set_greg(uc, REG_EFL, greg(uc, REG_EFL) | FLAG_TF);
}

static void stop_stepping(ThreadCtx *ctx, ucontext_t *uc)
{
    if (!ctx->dispatch.stepping)
        return;
    ctx->dispatch.stepping = 0;
    ctx->signal.step_over_pushf = 0;
    set_greg(uc, REG_EFL, greg(uc, REG_EFL) & ~(u64)FLAG_TF);
}

// The client must not see the trap flag that is ours.
static void hide_pushed_tf(ThreadCtx *ctx, const ucontext_t *uc)
{
    bool ours = ctx->signal.step_over_pushf && !ctx->dispatch.client_step;

    ctx->signal.step_over_pushf = 0;
    if (!ours)
        return;
    *(u16 *)greg(uc, REG_RSP) &= (u16)~FLAG_TF;
}

// ---------------------------------------------------------------- leaving the cache

// Flags of the client's that would disturb C code.
static void set_engine_flags(ucontext_t *uc)
{
    set_greg(uc, REG_EFL, greg(uc, REG_EFL) & ~(u64)(FLAG_TF | FLAG_DF | FLAG_AC));
}

// The client's complete state goes to ctx (R2), and the thread into the engine.
// Its C code gets default floating-point controls, whatever the client's were.
static void take_out(ThreadCtx *ctx, ucontext_t *uc, const CodePlace *place)
{
    u8 *fpregs = (u8 *)uc->uc_mcontext.fpregs;
    u64 client_tf = ctx->dispatch.stepping && ctx->dispatch.client_step ? FLAG_TF : 0;

    stop_stepping(ctx, uc);
    if (tool->left)
        tool->left(ctx, place);
    for (unsigned r = 0; r < GPR_COUNT; r++)
        ctx->gpr[r] = place->spilled >> r & 1 ? ctx->translate.spill[r] : greg(uc, greg_of[r]);
    ctx->pc = place->pc;
    ctx->flags = greg(uc, REG_EFL) | client_tf;
    set_gs_base(ctx->engine_gs);
    if (fpregs) {
        xstate_from_host_frame(ctx->xsave, fpregs);
        uc->uc_mcontext.fpregs->cwd = 0x37f;
        uc->uc_mcontext.fpregs->mxcsr = 0x1f80;
    }
    ctx->gateway.exit_reason = EXIT_RESUME;
    set_greg(uc, REG_RIP, gateway_taken_out_pc());
    set_greg(uc, REG_RSP, ctx->gateway.engine_rsp);
    set_engine_flags(uc);
}

static StringState string_state(const ucontext_t *uc)
{
    return (StringState){
        .rip = greg(uc, REG_RIP), .di = greg(uc, REG_RDI), .si = greg(uc, REG_RSI),
        .cx = greg(uc, REG_RCX), .ax = greg(uc, REG_RAX),
        .is_down = greg(uc, REG_EFL) & FLAG_DF,
    };
}

// A client that steps itself sees each round.
static bool run_string(const ThreadCtx *ctx, ucontext_t *uc)
{
    if (ctx->dispatch.client_step)
        return false;
    StringState state = string_state(uc);
    bool ended = string_rest_run(&state);
    set_greg(uc, REG_RIP, state.rip);
    set_greg(uc, REG_RDI, state.di);
    set_greg(uc, REG_RSI, state.si);
    set_greg(uc, REG_RCX, state.cx);
    return ended;
}

// Brings the thread nearer to its safe point. May be called again and again:
// once when a signal came, then after every single step.
static void advance(ThreadCtx *ctx, ucontext_t *uc)
{
    u64 rip = greg(uc, REG_RIP);
    GatewayPlace gateway = gateway_place(rip);
    CodePlace place;

    if (gateway == GATEWAY_NOT && cache_contains(rip)) {
        bool is_out = cache_place(rip, &place) && place.boundary;
        if (!is_out && run_string(ctx, uc))
            is_out = cache_place(greg(uc, REG_RIP), &place) && place.boundary;
        if (is_out)
            take_out(ctx, uc, &place);
        else
            step(ctx, uc);
        return;
    }
    if (gateway == GATEWAY_TOOL_RETURN || gateway == GATEWAY_LOOKUP) {
        step(ctx, uc);
        return;
    }
    stop_stepping(ctx, uc); // a tool call on its way out steps on by itself
    if (gateway == GATEWAY_ENTERING || gateway == GATEWAY_RESUMING) {
        set_greg(uc, REG_RIP, gateway_abort_pc(gateway));
        set_engine_flags(uc);
    } else if (gateway == GATEWAY_SYSCALL_BEFORE) {
        set_greg(uc, REG_RIP, gateway_restart_pc());
    }
}

// ---------------------------------------------------------------- signals that were sent

// The monitor has a request: the client never hears of this.
static bool is_kick(const siginfo_t *info)
{
    return info->si_signo == WIRE_KICK_SIGNAL && info->si_code == SI_QUEUE &&
           (u64)info->si_value.sival_ptr == WIRE_KICK;
}

static void on_kick(ThreadCtx *ctx, ucontext_t *uc)
{
    ctx->relay.kicked = 1;
    ctx->gateway.stop_request = 1;
    advance(ctx, uc);
}

static void on_sent(ThreadCtx *ctx, siginfo_t *info, ucontext_t *uc)
{
    int sig = info->si_signo;
    bool handed_over = info->si_code == HANDED_OVER;
    u64 mask = ctx->signal.wait_mask_armed ? ctx->signal.wait_mask : ctx->signal.client_mask;

    if (handed_over)
        info->si_code = SI_USER;
    if (sig == SIGSYS && info->si_code == SYS_SECCOMP_CODE)
        info->si_call_addr = (void *)ctx->pc;
    if (signal_is_synchronous(sig) && (ctx->gateway.pending_signal || (mask & SIG_BIT(sig)))) {
        if (handed_over)
            deferred_put_own(ctx, info);
        else
            deferred_put(ctx, info);
        if (ctx->signal.must_place || (signal_kicks && sig == WIRE_KICK_SIGNAL)) {
            ctx->relay.kicked = signal_kicks != NULL; // if it has interrupted a sleep, that goes on
            ctx->gateway.stop_request = 1;
            advance(ctx, uc);
        } else if (gateway_place(greg(uc, REG_RIP)) == GATEWAY_SYSCALL_BEFORE) {
            set_greg(uc, REG_RIP, gateway_restart_pc()); // it must lend this one as well
        }
        return;
    }
    if (ctx->gateway.pending_signal) {
        host_requeue(info); // S4
        close_frame_mask(uc);
        return;
    }
    record(ctx, info, uc, false);
    advance(ctx, uc);
}

// ---------------------------------------------------------------- faults

static _Noreturn void crash(int sig, siginfo_t *info, ucontext_t *uc)
{
    if (signal_crash_hook)
        signal_crash_hook(sig, info, uc);
    panic_at(__FILE__, __LINE__, "a fault in engine code");
}

// Two threads may store to one guarded page at once: the second finds it
// writable already and has only to try again. The limit keeps a page that is
// unwritable for reasons we do not know from looping for ever.
static bool looks_writable(ThreadCtx *ctx, GuestAddr addr)
{
    const Mapping *mapping = aspace_find(addr);

    if (!mapping || !(mapping->prot & 2 /* PROT_WRITE */))
        return false;
    if (ctx->signal.retry_addr != addr) {
        ctx->signal.retry_addr = addr;
        ctx->signal.retry_count = 0;
    }
    return ++ctx->signal.retry_count <= RETRIES_OF_WRITABLE_PAGE;
}

// A string instruction is going to store to these pages, too: a fault for each would do.
static void unguard_string(const ucontext_t *uc)
{
    StringState state = string_state(uc);
    GuestAddr start;
    u64 size;
    if (string_rest_range(&state, &start, &size))
        aspace_unguard_range(start, size);
}

// A store to a page that we guard because code was translated from it. The
// store shall complete, but nothing behind it in the same block may run: the
// block may be made from the bytes that have just changed.
//
// Whoever holds the engine lock may be waiting for this thread to leave the cache
// (C3). So it does not wait for the lock here: it leaves, and stores again.
static bool retry_store(ThreadCtx *ctx, const siginfo_t *info, ucontext_t *uc)
{
    GuestAddr addr = (GuestAddr)info->si_addr;
    CodePlace place;
    bool busy;

    if (info->si_signo != SIGSEGV || info->si_code != SEGV_ACCERR ||
        !(greg(uc, REG_ERR) & PAGE_FAULT_WRITE))
        return false;
    if (!lock_try(&engine_lock)) {
        if (!cache_place(greg(uc, REG_RIP), &place))
            return false;
        take_out(ctx, uc, &place);
        return true;
    }
    bool unguarded = aspace_unguard_code(addr, &busy);
    bool retry = unguarded || looks_writable(ctx, addr);
    if (unguarded && cache_contains(greg(uc, REG_RIP)))
        unguard_string(uc);
    lock_release(&engine_lock);
    if (unguarded)
        ctx->signal.retry_count = 0;
    if (!retry)
        return false;
    ctx->gateway.stop_request = 1;
    if (cache_contains(greg(uc, REG_RIP)) && run_string(ctx, uc))
        advance(ctx, uc);
    else
        step(ctx, uc);
    return true;
}

// Nothing was there. Perhaps a stack grows to it, or another thread has made it grow meanwhile;
// a tool's shadow of it may be missing until the instruction is tried again.
static bool retry_grown(ThreadCtx *ctx, const siginfo_t *info, ucontext_t *uc)
{
    GuestAddr addr = (GuestAddr)info->si_addr;
    CodePlace place;

    if (info->si_signo != SIGSEGV || info->si_code != SEGV_MAPERR)
        return false;
    if (!lock_try(&engine_lock)) { // as in retry_store()
        if (!cache_place(greg(uc, REG_RIP), &place))
            return false;
        take_out(ctx, uc, &place);
        return true;
    }
    bool retry = aspace_grow(addr) || looks_writable(ctx, addr);
    lock_release(&engine_lock);
    return retry;
}

static void on_client_fault(ThreadCtx *ctx, siginfo_t *info, ucontext_t *uc)
{
    u64 rip = greg(uc, REG_RIP);
    CodePlace place;
    bool is_memory = info->si_signo == SIGSEGV || info->si_signo == SIGBUS;

    if (tool->fault && is_memory) {
        u64 address = (u64)info->si_addr;
        bool is_mapped = true;
        if (tool->fault(ctx, &address, &is_mapped))
            return;
        info->si_addr = (void *)address;
        if (!is_mapped)
            info->si_code = SEGV_MAPERR;
    }
    if (retry_store(ctx, info, uc) || retry_grown(ctx, info, uc))
        return;
    if (!cache_place(rip, &place))
        crash(info->si_signo, info, uc);
    CodePtr failed = is_memory ? translate_early_guard_failed((CodePtr)rip) : NULL;
    if (failed) {
        uc->uc_mcontext.gregs[REG_RIP] = (greg_t)failed;
        return;
    }
    if ((u64)info->si_addr == rip)
        info->si_addr = (void *)place.pc;
    if (!ctx->gateway.pending_signal) {
        record(ctx, info, uc, true);
        if (ctx->signal.pending.cr2 == rip)
            ctx->signal.pending.cr2 = place.pc;
    }
    // Otherwise a signal is being stepped to its boundary, and this fault is
    // that boundary: the instruction faults again when the handler has returned.
    take_out(ctx, uc, &place);
}

// The instruction that traps is over and will not trap again: its signal goes
// before one that was sent meanwhile. False: it has faulted besides.
static bool make_way_for_fault(ThreadCtx *ctx)
{
    if (!ctx->gateway.pending_signal)
        return true;
    if (ctx->signal.pending.synchronous)
        return false;
    host_requeue(&ctx->signal.pending.info); // S4
    ctx->gateway.pending_signal = 0;
    return true;
}

void signal_raise_trace(ThreadCtx *ctx)
{
    signal_block_host();
    if (make_way_for_fault(ctx)) {
        signal_raise_synchronous(ctx, SIGTRAP, TRAP_TRACE, ctx->pc);
        ctx->signal.pending.trapno = TRAP_DEBUG;
    }
    signal_restore_host_mask(ctx);
}

// Where the client goes on if the instruction just done was a popf that cleared
// the trap flag: behind it, wherever the block goes on.
static bool place_behind_popf(const ucontext_t *uc, CodePlace *ret_place)
{
    if ((greg(uc, REG_EFL) & FLAG_TF) || !cache_place(greg(uc, REG_RIP) - 1, ret_place))
        return false;
    ret_place->pc += *(const u8 *)ret_place->pc == 0x9d ? 1 : 2;
    return true;
}

// A repeated string instruction traps after each round. Its own code need not begin at a boundary,
// if a tool's stands before it; that the pc has not moved tells a round from the way to it.
static bool place_of_round(ThreadCtx *ctx, u64 rip, CodePlace *ret_place)
{
    bool same = rip == ctx->signal.step_rip;

    ctx->signal.step_rip = rip;
    return same && cache_place(rip, ret_place) && !ret_place->spilled;
}

// A trap of a client that steps itself. It sees one per instruction of its own.
static void on_client_step(ThreadCtx *ctx, siginfo_t *info, ucontext_t *uc)
{
    u64 rip = greg(uc, REG_RIP);
    GatewayPlace gateway = gateway_place(rip);
    CodePlace place;

    if (gateway == GATEWAY_LEAVING) {
        ctx->dispatch.client_step = CLIENT_STEP_DONE;
        ctx->dispatch.stepping = 0;
        set_greg(uc, REG_EFL, greg(uc, REG_EFL) & ~(u64)FLAG_TF);
        return;
    }
    if (!cache_contains(rip))
        return; // a gateway, or a tool's function: on with TF
    if (ctx->dispatch.client_step == CLIENT_STEP_ARMED) {
        ctx->dispatch.client_step = CLIENT_STEP_RUNNING;
        ctx->signal.step_rip = 0;
        return;
    }
    if (!place_of_round(ctx, rip, &place) && !place_behind_popf(uc, &place) &&
        !(cache_place(rip, &place) && place.boundary)) {
        set_greg(uc, REG_EFL, greg(uc, REG_EFL) | FLAG_TF);
        return;
    }
    if (make_way_for_fault(ctx)) {
        info->si_addr = (void *)place.pc;
        record(ctx, info, uc, true);
    }
    take_out(ctx, uc, &place);
}

// --stress=signals: on for some steps, then out as if somebody had asked. A
// thread that leaves by itself meanwhile is let go.
static void on_stress_step(ThreadCtx *ctx, ucontext_t *uc)
{
    GatewayPlace gateway = gateway_place(greg(uc, REG_RIP));

    if (gateway == GATEWAY_LEAVING || gateway == GATEWAY_TOOL_CALL) {
        ctx->dispatch.stress_steps = 0;
        stop_stepping(ctx, uc);
    } else if (--ctx->dispatch.stress_steps) {
        step(ctx, uc);
    } else {
        ctx->gateway.stop_request = 1;
        advance(ctx, uc);
    }
}

// Whether a trap flag made this trap, ours or the client's. The kernel looks into DR6 to tell, and
// on some virtual machines that is empty now and then: what comes looks like the trap of an int1,
// which the cache never runs.
static bool is_trace_trap(const ThreadCtx *ctx, siginfo_t *info, const ucontext_t *uc)
{
    if (info->si_signo != SIGTRAP)
        return false;
    if (UNLIKELY(signal_stress) && info->si_code == TRAP_TRACE && greg(uc, REG_RIP) & 1)
        info->si_code = TRAP_BRKPT;
    if (info->si_code == TRAP_BRKPT && greg(uc, REG_TRAPNO) == TRAP_DEBUG &&
        (greg(uc, REG_EFL) & FLAG_TF || ctx->dispatch.stepping || ctx->dispatch.client_step))
        info->si_code = TRAP_TRACE;
    return info->si_code == TRAP_TRACE;
}

static void on_trace_trap(ThreadCtx *ctx, siginfo_t *info, ucontext_t *uc)
{
    hide_pushed_tf(ctx, uc);
    if (ctx->dispatch.client_step == CLIENT_STEP_ARMED ||
        ctx->dispatch.client_step == CLIENT_STEP_RUNNING) {
        on_client_step(ctx, info, uc);
        return;
    }
    if (ctx->dispatch.stress_steps) {
        on_stress_step(ctx, uc);
        return;
    }
    if (ctx->dispatch.stepping && (ctx->gateway.pending_signal || ctx->gateway.stop_request)) {
        advance(ctx, uc);
        return;
    }
    // Somebody else has answered the request.
    ctx->dispatch.stepping = 0;
    set_greg(uc, REG_EFL, greg(uc, REG_EFL) & ~(u64)FLAG_TF);
}

// The push of a call has met the end of the call stack's entries: it runs again
// on the entry that is top then.
static void grow_callstack(ThreadCtx *ctx, ucontext_t *uc)
{
    callstack_overflow(&ctx->callstack);
    set_greg(uc, REG_RAX, (u64)ctx->callstack.top);
}

// A client that had rdtsc refused (PR_SET_TSC) has taken it from the engine too: there it reads 0.
static bool skip_refused_rdtsc(const siginfo_t *info, ucontext_t *uc)
{
    const u8 *code = (const u8 *)greg(uc, REG_RIP);

    if (info->si_signo != SIGSEGV || info->si_code != SI_KERNEL || code[0] != 0x0f ||
        code[1] != 0x31)
        return false;
    set_greg(uc, REG_RAX, 0);
    set_greg(uc, REG_RDX, 0);
    set_greg(uc, REG_RIP, (u64)code + 2);
    return true;
}

// Engine code has asked for memory, or a tool for its shadow, to which a stack grows.
static bool grow_for_accessor(ThreadCtx *ctx, const siginfo_t *info)
{
    u64 address = (u64)info->si_addr;
    bool is_mapped;

    if (info->si_signo != SIGSEGV)
        return false;
    if (tool->fault && tool->fault(ctx, &address, &is_mapped))
        return true;
    if (info->si_code != SEGV_MAPERR || !lock_try(&engine_lock))
        return false;
    bool grown = aspace_grow(address);
    lock_release(&engine_lock);
    return grown;
}

static void on_accessor_fault(ThreadCtx *ctx, const siginfo_t *info, ucontext_t *uc, u64 fixup)
{
    if (!grow_for_accessor(ctx, info))
        set_greg(uc, REG_RIP, fixup);
}

static void on_fault(ThreadCtx *ctx, siginfo_t *info, ucontext_t *uc)
{
    u64 rip = greg(uc, REG_RIP);
    u64 fixup = guest_access_fixup(rip);
    GatewayPlace gateway = gateway_place(rip);

    if (fixup && (info->si_signo == SIGSEGV || info->si_signo == SIGBUS))
        on_accessor_fault(ctx, info, uc, fixup);
    else if (is_trace_trap(ctx, info, uc))
        on_trace_trap(ctx, info, uc);
    else if (gateway != GATEWAY_NOT && gateway != GATEWAY_ENTERING && gateway != GATEWAY_RESUMING)
        on_sent(ctx, info, uc); // queued by the client to itself with a fault's si_code
    else if (cache_contains(rip) && ctx->callstack.bottom &&
             callstack_is_guard(&ctx->callstack, info->si_addr))
        grow_callstack(ctx, uc);
    else if (cache_contains(rip))
        on_client_fault(ctx, info, uc);
    else if (!skip_refused_rdtsc(info, uc))
        crash(info->si_signo, info, uc);
}

// The kernel enters handlers with the alignment checks of the interrupted code.
static void stop_alignment_checks(void)
{
    u64 flags = __builtin_ia32_readeflags_u64();

    if (flags & FLAG_AC)
        __builtin_ia32_writeeflags_u64(flags & ~(u64)FLAG_AC);
}

void on_host_signal(int sig, siginfo_t *info, void *ucontext)
{
    ThreadCtx *ctx = &thread_ctx;

    stop_alignment_checks();
    pkru_open(); // sigreturn puts the client's back
    if (sig == SIGTRAP && info->si_code == KICKED) {
        ctx->gateway.stop_request = 1;
        advance(ctx, ucontext);
    } else if (UNLIKELY(is_kick(info)))
        on_kick(ctx, ucontext);
    else if (signal_is_synchronous(sig) && info->si_code > 0)
        on_fault(ctx, info, ucontext);
    else
        on_sent(ctx, info, ucontext);
}

// ---------------------------------------------------------------- set-up

void signal_init(void)
{
    xstate_init();
    actions_init();
}

void signal_adopt_process(ThreadCtx *ctx)
{
    ctx->signal.actions = &process_actions;
    signal_reset_altstack(ctx);
    signal_set_client_mask(ctx, host_get_mask());
}

static u64 host_altstack_bytes(void)
{
    return PAGE_SIZE + PAGE_UP(HOST_ALTSTACK_BYTES + xstate_size());
}

bool signal_thread_init(ThreadCtx *ctx)
{
    u64 bytes = host_altstack_bytes();
    u8 *base = pages_reserve(bytes);

    if (!base)
        return false;
    stack_t stack = { .ss_sp = base + PAGE_SIZE, .ss_size = bytes - PAGE_SIZE };
    if (!pages_open(stack.ss_sp, stack.ss_size) ||
        raw_syscall2(SYS_sigaltstack, (u64)&stack, 0) != 0) {
        pages_unmap(base, bytes);
        return false;
    }
    ctx->signal.host_altstack = base;
    return true;
}

void signal_thread_end(ThreadCtx *ctx)
{
    stack_t none = { .ss_flags = SS_DISABLE };

    if (!ctx->signal.host_altstack)
        return;
    raw_syscall2(SYS_sigaltstack, (u64)&none, 0);
    pages_unmap(ctx->signal.host_altstack, host_altstack_bytes());
    ctx->signal.host_altstack = NULL;
}
