// SPDX-License-Identifier: MIT
//
// The prologues of hooked blocks; see redirect/redirect.h.
//
// An intercepted function is entered, and returned from, at an ABI boundary:
// the flags are dead there. All other registers are kept, the ones that the ABI
// calls dead too, because compilers look into callees (-fipa-ra).
#include "engine/callstack/callstack.h"
#include "engine/gateway/gateway.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"

static const u8 caller_saved[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11, RSP};

static void emit_load_caller_saved(Builder *b)
{
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        x64_mov_reg_fs(&b->e, caller_saved[i], CTX_GPR(caller_saved[i]));
}

void emit_leave_to_c(Builder *b, u32 exit_link)
{
    x64_mov_fs_imm32(&b->e, CTX(gateway.exit_link), exit_link);
    x64_mov_fs_imm64(&b->e, CTX(pc), b->block->pc);
    x64_jmp_to(&b->e, gateway_leave(EXIT_REDIRECT));
}

// Compares pending_signal and stop_request, which lie together, with 0.
static void emit_compare_requests(Emitter *e)
{
    x64_cmp_mem_imm(e, QWORD, x64_fs(CTX(gateway.pending_signal)), 0);
}

// Calls fn(hook) with the registers in ctx, on the engine's stack. Goes on if fn returns 0 and no
// request has come; leaves otherwise. The test for signals comes behind the call: one that arrives
// during the call is only recorded. From the first store on the code belongs to no instruction, so
// a thread caught in it is stepped on, as far as the C code, which it finishes.
void emit_fast_call(Builder *b, u32 (*fn)(u32 hook), u32 hook)
{
    Emitter *e = &b->e;
    builder_mark_nowhere(b);
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        x64_mov_fs_reg(e, CTX_GPR(caller_saved[i]), caller_saved[i]);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    x64_mov_reg_imm(e, RDI, hook);
    x64_mov_reg_address(e, RAX, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)fn);
    x64_call_reg(e, RAX);
    x64_test_reg_reg(e, DWORD, RAX, RAX);
    X64Jump slow = x64_jcc_short(e, X64_NE);
    emit_compare_requests(e);
    X64Jump go = x64_branch(e, X64_E);
    x64_land(e, slow);
    emit_load_caller_saved(b);
    emit_leave_to_c(b, hook | REDIRECT_BEGUN);
    x64_land(e, go);
    emit_load_caller_saved(b);
    builder_mark(b, false); // F3: not a boundary
}

// Calls C if there are activations. Without activations the flags stay as they are: other
// functions return here too.
static void intercept_return(Builder *b, u32 hook)
{
    Emitter *e = &b->e;
    builder_spill(b, RCX);
    x64_mov_reg_fs(e, RCX, CTX(redirect.count));
    X64Jump none = x64_jrcxz(e);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump call = x64_jmp_short(e);
    x64_land(e, none);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    X64Jump on = x64_branch(e, X64_JMP);
    x64_land(e, call);
    b->spilled = 0;
    emit_fast_call(b, redirect_fast_return, hook);
    x64_land(e, on);
}

// The return of a replaced function, whose result is in rax.
static void emit_replaced_return(Builder *b)
{
    bool has_versions = tool->version != NULL;
    if (callstack_wanted) {
        b->changes_version = has_versions;
        emit_callstack_return(b, 0);
    } else if (has_versions || block_is_dirty(b->block)) {
        emit_return_by_state(b);
    } else {
        emit_return(b);
    }
}

static bool can_be_quick(const Builder *b, const RedirectSite *site)
{
    const Block *block = b->block;
    return site->quick && !callstack_wanted &&
           !(block->version & (VERSION_STEPPED | VERSION_FIRST | VERSION_ORIGINAL)) &&
           !(block->state & ~tool->quick_ignores);
}

// The fast form first, on the engine's stack; it keeps all registers and answers -1 if it has
// done nothing: then the code goes on behind. Otherwise the function has been done, and returns,
// unless a request has come meanwhile: then the code leaves.
static void emit_quick(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_mark_nowhere(b);
    x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    x64_mov_fs_reg(e, CTX_GPR(RSP), RSP);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    if (site->quick->quick_at) {
        x64_mov_reg_imm(e, RAX, b->block->pc); // its seventh argument, and the stack stays aligned
        x64_push_reg(e, RAX);
        x64_push_reg(e, RAX);
    }
    x64_mov_reg_address(e, RAX, EMIT_ENGINE_ADDRESS,
                        site->quick->quick_at ? (u64)(uintptr_t)site->quick->quick_at
                                              : (u64)(uintptr_t)site->quick->quick);
    x64_call_reg(e, RAX);
    x64_mov_reg_fs(e, RSP, CTX_GPR(RSP));
    x64_cmp_reg_imm(e, QWORD, RAX, -1);
    X64Jump slow = x64_branch(e, X64_E);
    emit_compare_requests(e);
    X64Jump pending = x64_branch(e, X64_NE);
    if (block_is_dirty(b->block))
        emit_return_by_state(b);
    else
        emit_return(b);
    x64_land(e, pending);
    b->spilled = 0;
    builder_mark_nowhere(b);
    emit_leave_to_c(b, site->hook | REDIRECT_DONE);
    x64_land(e, slow);
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
}

static void intercept_entry(Builder *b, const RedirectSite *site)
{
    if (can_be_quick(b, site))
        emit_quick(b, site);
    builder_spill(b, RAX);
    x64_mov_reg_mem(&b->e, QWORD, RAX, x64_at(RSP, 0));
    x64_mov_fs_reg(&b->e, CTX(gateway.call_address), RAX);
    builder_unspill(b, RAX);
    emit_fast_call(b, redirect_fast_entry, site->hook);
    if (site->replaces)
        emit_replaced_return(b);
}

// Signals reach an endless loop of one instruction at no other place.
static bool jumps_to_itself(const Builder *b)
{
    const Insn *first = &b->insns[0];
    return (first->lowering == LOWER_JMP || first->lowering == LOWER_JCC) &&
           first->target == first->pc;
}

// The wrapper is looked up as the target of an indirect jump. A wrapper that is wrapped itself is
// entered past its own hook, by C.
static void go_to_wrapper(Builder *b, const RedirectSite *site)
{
    x64_mov_fs_imm64(&b->e, CTX(redirect.wrapped_original), site->wraps ? b->block->pc : 0);
    if (!redirect_is_hooked(site->goes_to)) {
        emit_lookup_spills(b);
        x64_mov_reg_imm(&b->e, RCX, site->goes_to);
        emit_lookup(b);
        return;
    }
    x64_mov_fs_imm32(&b->e, CTX(gateway.exit_link), REQUEST_CALL_ORIGINAL);
    x64_mov_fs_imm32(&b->e, CTX(redirect.armed), 1);
    emit_leave_at(b, site->goes_to, EXIT_REQUEST);
}

// A prologue was passed. A thread is not taken out before the first instruction, or it would pass
// the prologue again.
static void begin_original(Builder *b)
{
    if (!jumps_to_itself(b))
        builder_mark(b, false); // F3
}

bool intercept(Builder *b)
{
    RedirectSite site;
    if (b->block->version & VERSION_FIRST && redirect_is_entry(b->block->pc)) {
        begin_original(b); // its first instruction was reached already
        return true;
    }
    if (b->block->version & VERSION_ORIGINAL) {
        begin_original(b);
        x64_mov_fs_imm32(&b->e, CTX(redirect.armed), 0);
        return true;
    }
    if (!redirect_find(b->block->pc, &site))
        return true;
    if (site.goes_to) {
        go_to_wrapper(b, &site);
    } else if (site.entry && (site.returns || !site.fast)) {
        emit_leave_to_c(b, site.hook);
        b->fallthrough = false;
    } else if (site.lean) {
        if (site.lean->lean_after)
            lean_entry(b, &site);
        else
            lean_before(b, &site);
    } else if (site.entry) {
        intercept_entry(b, &site);
    } else if (site.slow_return) {
        emit_leave_to_c(b, site.hook);
        b->fallthrough = false;
    } else if (site.is_lean_site) {
        lean_return(b, &site);
    } else {
        intercept_return(b, site.hook);
    }
    return b->fallthrough;
}
