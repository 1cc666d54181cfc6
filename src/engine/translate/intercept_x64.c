// SPDX-License-Identifier: MIT
//
// The prologues of hooked blocks; see redirect/redirect.h.
//
// An intercepted function is entered, and returned from, at an ABI boundary:
// the flags are dead there. All other registers are kept, the ones that the ABI
// calls dead too, because compilers look into callees (-fipa-ra).
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/builder.h"

static const u8 caller_saved[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11, RSP};

static void emit_load_caller_saved(Builder *b)
{
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        emit_load_fs(&b->e, caller_saved[i], CTX_GPR(caller_saved[i]));
}

//     mov fs:[exit_link], hook ; mov fs:[pc], pc ; jmp leave
void emit_leave_to_c(Builder *b, u32 exit_link)
{
    emit_store_fs_imm32(&b->e, CTX(exit_link), exit_link);
    emit_store_fs_imm64(&b->e, CTX(pc), b->block->pc);
    emit_jmp(&b->e, gateway_leave(EXIT_REDIRECT));
}

static void patch_rel32(CodePtr site, CodePtr target)
{
    i32 distance = (i32)(target - (site + 4));
    memcpy(site, &distance, 4);
}

// cmp qword fs:[disp], 0
static void emit_test_fs(Emitter *e, i32 disp)
{
    put_bytes(e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
    put_u32(e, (u32)disp);
    put_u8(e, 0);
}

//     registers → ctx ; rsp := the engine's ; fn(hook)
//     test eax, eax ; jne slow
//     cmp qword fs:[pending_signal], 0 ; je go
//   slow: ctx → registers ; leave
//   go: ctx → registers
// The test for signals comes behind the call: one that arrives during the call
// is only recorded. From the first store on the code belongs to no instruction,
// so a thread caught in it is stepped on, as far as the C code, which it finishes.
void emit_fast_call(Builder *b, u32 (*fn)(u32 hook), u32 hook)
{
    Emitter *e = &b->e;
    builder_mark_nowhere(b);
    for (size_t i = 0; i < ARRAY_LEN(caller_saved); i++)
        emit_store_fs(e, CTX_GPR(caller_saved[i]), caller_saved[i]);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    emit_mov_imm(e, RDI, hook);
    emit_mov_imm(e, RAX, (u64)(uintptr_t)fn);
    put_bytes(e, (u8[]){0xff, 0xd0}, 2);       // call rax
    put_bytes(e, (u8[]){0x85, 0xc0}, 2);       // test eax, eax
    put_bytes(e, (u8[]){0x75, 0}, 2);          // jne slow
    CodePtr slow = e->pc;
    emit_test_fs(e, CTX(pending_signal)); // and stop_request
    put_bytes(e, (u8[]){0x0f, 0x84, 0, 0, 0, 0}, 6);
    CodePtr go = e->pc - 4;
    slow[-1] = (u8)(e->pc - slow);
    emit_load_caller_saved(b);
    emit_leave_to_c(b, hook | REDIRECT_BEGUN);
    patch_rel32(go, e->pc);
    emit_load_caller_saved(b);
    builder_mark(b, false); // F3: not a boundary
}

//     mov fs:[spill rcx], rcx ; mov rcx, fs:[redirect_count] ; jrcxz none
//     mov rcx, fs:[spill rcx] ; jmp call
//   none: mov rcx, fs:[spill rcx] ; jmp on
//   call: …
//   on:
// Without activations the flags stay as they are: other functions return here too.
static void intercept_return(Builder *b, u32 hook)
{
    Emitter *e = &b->e;
    builder_spill(b, RCX);
    emit_load_fs(e, RCX, CTX(redirect_count));
    put_bytes(e, (u8[]){OP_JRCXZ, 0}, 2);
    CodePtr none = e->pc;
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    put_bytes(e, (u8[]){OP_JMP_REL8, 0}, 2);
    CodePtr call = e->pc;
    none[-1] = (u8)(e->pc - none);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    put_bytes(e, (u8[]){OP_JMP_REL32, 0, 0, 0, 0}, 5);
    CodePtr on = e->pc - 4;
    call[-1] = (u8)(e->pc - call);
    b->spilled = 0;
    emit_fast_call(b, redirect_fast_return, hook);
    patch_rel32(on, e->pc);
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

// The usual case first, on the engine's stack; it keeps all registers:
//     mov fs:[spill rax], rax ; mov fs:[rsp], rsp ; mov rsp, fs:[engine_rsp]
//     (mov rax, entry ; push rax twice) ; mov rax, quick ; call rax ; mov rsp, fs:[rsp]
//     cmp rax, -1 ; je slow ; cmp qword fs:[pending_signal], 0 ; jne pending
//     return, in the state that was
//   pending: leave
//   slow: mov rax, fs:[spill rax]
static void emit_quick(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_mark_nowhere(b);
    emit_store_fs(e, CTX_SPILL(RAX), RAX);
    emit_store_fs(e, CTX_GPR(RSP), RSP);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    if (site->quick->quick_at) {
        emit_mov_imm(e, RAX, b->block->pc); // its seventh argument, and the stack stays aligned
        put_bytes(e, (u8[]){0x50, 0x50}, 2);
    }
    emit_mov_imm(e, RAX, site->quick->quick_at ? (u64)(uintptr_t)site->quick->quick_at
                                               : (u64)(uintptr_t)site->quick->quick);
    put_bytes(e, (u8[]){0xff, 0xd0}, 2); // call rax
    emit_load_fs(e, RSP, CTX_GPR(RSP));
    put_bytes(e, (u8[]){0x48, 0x83, 0xf8, 0xff}, 4);
    put_bytes(e, (u8[]){0x0f, 0x84, 0, 0, 0, 0}, 6);
    CodePtr slow = e->pc - 4;
    emit_test_fs(e, CTX(pending_signal));
    put_bytes(e, (u8[]){0x0f, 0x85, 0, 0, 0, 0}, 6);
    CodePtr pending = e->pc - 4;
    if (block_is_dirty(b->block))
        emit_return_by_state(b);
    else
        emit_return(b);
    patch_rel32(pending, e->pc);
    b->spilled = 0;
    builder_mark_nowhere(b);
    emit_leave_to_c(b, site->hook | REDIRECT_DONE);
    patch_rel32(slow, e->pc);
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
}

//     mov fs:[spill rax], rax ; mov rax, [rsp] ; mov fs:[call_address], rax
//     mov rax, fs:[spill rax] ; call
static void intercept_entry(Builder *b, const RedirectSite *site)
{
    if (can_be_quick(b, site))
        emit_quick(b, site);
    builder_spill(b, RAX);
    emit_op_base(&b->e, 0x8b, RAX, RSP, 0);
    emit_store_fs(&b->e, CTX(call_address), RAX);
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

//     mov fs:[wrapped_original], pc ; look up the wrapper
// A wrapper that is wrapped itself is entered past its own hook, by C:
//     mov fs:[wrapped_original], pc ; mov fs:[exit_link], kind ; mov fs:[redirect_armed], 1
//     mov fs:[pc], wrapper ; leave
static void go_to_wrapper(Builder *b, const RedirectSite *site)
{
    emit_store_fs_imm64(&b->e, CTX(wrapped_original), site->wraps ? b->block->pc : 0);
    if (!redirect_is_hooked(site->goes_to)) {
        emit_lookup_spills(b);
        emit_mov_imm(&b->e, RCX, site->goes_to);
        emit_lookup(b);
        return;
    }
    emit_store_fs_imm32(&b->e, CTX(exit_link), REQUEST_CALL_ORIGINAL);
    emit_store_fs_imm32(&b->e, CTX(redirect_armed), 1);
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
        emit_store_fs_imm32(&b->e, CTX(redirect_armed), 0);
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
    } else if (site.is_lean_site) {
        lean_return(b, &site);
    } else {
        intercept_return(b, site.hook);
    }
    return b->fallthrough;
}
