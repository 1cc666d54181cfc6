// SPDX-License-Identifier: MIT
//
// The prologues of lean functions and of their return sites (redirect/lean_hot.c). At a
// function's entry and return the flags are dead; all registers are kept.
#include "engine/calltags/calltags.h"
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/lean_x64.h"

enum { SITES_MASK = (LEAN_SITES - 1) << 3 };

// cmp dword [rcx + disp], imm
static void emit_cmp_imm32(Emitter *e, i32 disp, u32 imm)
{
    put_bytes(e, (u8[]){0x81, 0xb9}, 2);
    put_u32(e, (u32)disp);
    put_u32(e, imm);
}

static void emit_note_call(Emitter *e, const ToolFunction *function, u32 hook)
{
    static const u8 argument_register[] = {RDI, RSI, RDX, RCX};
    for (unsigned i = 0; i < ARRAY_LEN(argument_register) && !function->size_arg; i++)
        emit_store_fs(e, CTX(lean_args) + 8 * (i32)i, argument_register[i]);
    if (function->factor_arg) { // a product that overflows is none that is allocated
        emit_lea(e, RAX, argument_register[function->size_arg - 1], 0);
        put_bytes(e, (u8[]){0x48, 0x0f, 0xaf,
                            (u8)(0xc0 | argument_register[function->factor_arg - 1])}, 4);
        emit_store_fs(e, CTX(lean_size), RAX);
    } else if (function->size_arg)
        emit_store_fs(e, CTX(lean_size), argument_register[function->size_arg - 1]);
    else
        emit_store_fs_imm64(e, CTX(lean_size), ~0ull);
    emit_store_fs_imm32(e, CTX(lean_hook), hook);
    emit_store_fs_imm32(e, CTX(lean_inner), hook);
}

//     spill rax, rdx ; mov rax, fs:[lean_sp] ; test rax, rax ; jne nested
//     mov rax, [rsp] ; mov edx, eax ; and edx, mask ; cmp fs:[lean_known + rdx], rax ; jne slow
//     lea rax, [rsp + 8] ; neg rax ; mov fs:[lean_sp], rax ; arguments, hook
//   go: rax, rdx ; jmp on
//   nested: lea rax, [rax + rsp] ; test rax, rax ; jns slow
//     mov fs:[lean_inner], hook ; jmp go
//   slow: rax, rdx ; leave to C
//   on:
void lean_entry(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_spill(b, RAX);
    builder_spill(b, RDX);
    emit_load_fs(e, RAX, CTX(lean_sp));
    put_bytes(e, (u8[]){0x48, 0x85, 0xc0}, 3);
    CodePtr nested = far_jcc(e, JNE);
    emit_op_base(e, 0x8b, RAX, RSP, 0);
    put_bytes(e, (u8[]){0x89, 0xc2, 0x81, 0xe2}, 4);
    put_u32(e, SITES_MASK);
    put_bytes(e, (u8[]){0x64, 0x48, 0x39, 0x82}, 4);
    put_u32(e, (u32)CTX(lean_known));
    CodePtr slow = far_jcc(e, JNE);
    builder_mark_nowhere(b);
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    emit_lea(e, RAX, RSP, 8);
    put_bytes(e, (u8[]){0x48, 0xf7, 0xd8}, 3);
    emit_store_fs(e, CTX(lean_sp), RAX);
    emit_note_call(e, site->lean, site->hook);
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    CodePtr on = far_branch(e);
    far_land(e, nested);
    emit_lea_sum(e, RAX, RAX, RSP);
    put_bytes(e, (u8[]){0x48, 0x85, 0xc0}, 3);
    CodePtr stale = branch(e, JNS);
    emit_store_fs_imm32(e, CTX(lean_inner), site->hook);
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    CodePtr on_nested = far_branch(e);
    land(e, stale);
    far_land(e, slow);
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_leave_to_c(b, site->hook);
    far_land(e, on);
    far_land(e, on_nested);
    b->spilled = 0;
    builder_mark(b, false); // F3
}

//     spill rdx ; mov rcx, fs:[lean_repeat] ; cmp dword [rcx + site], pc ; jne call
//     cmp [rcx + sp], rsp ; jne call
//     mov rdx, [rcx + slot] ; mov rdx, gs:[rdx + DISP] ; cmp [rcx + tag], rdx ; jne call
//     mov rdx, [rcx + state] ; test rdx, rdx ; js next
//     cmp [rcx + result], rax ; jne again
//     mov rdx, fs:[lean_size] ; cmp [rcx + size], rdx ; jne again
//     test byte [rcx + state], 1 ; jne call ; test byte [rcx + state], TOLD ; je call
//     add qword [rcx + state], 1 ; mov qword fs:[lean_told], 0 ; mov qword fs:[lean_sp], 0
//     rdx, rcx ; jmp on
//   next: one more of the series, or jmp call
//   again: another block
//   call:
static void emit_repeat(Builder *b, u32 pc, CodePtr ret_on[3])
{
    Emitter *e = &b->e;
    Slow call = {0};
    emit_store_fs(e, CTX_SPILL(RDX), RDX);
    emit_load_fs(e, RCX, CTX(lean_repeat));
    emit_cmp_imm32(e, REPEAT(site), pc);
    unless(e, JNE, &call);
    emit_op_base(e, 0x39, RSP, RCX, REPEAT(sp));
    unless(e, JNE, &call);
    emit_op_base(e, 0x8b, RDX, RCX, REPEAT(slot));
    put_u8(e, 0x65);
    emit_op_base(e, 0x8b, RDX, RDX, CALLTAGS_DISP);
    emit_op_base(e, 0x39, RDX, RCX, REPEAT(tag));
    unless(e, JNE, &call);
    emit_op_base(e, 0x8b, RDX, RCX, REPEAT(state));
    put_bytes(e, (u8[]){0x48, 0x85, 0xd2}, 3);
    CodePtr next = far_jcc(e, JS);
    emit_op_base(e, 0x39, RAX, RCX, REPEAT(result));
    CodePtr other_block = branch(e, JNE);
    emit_load_fs(e, RDX, CTX(lean_size));
    emit_op_base(e, 0x39, RDX, RCX, REPEAT(size));
    CodePtr other_size = branch(e, JNE);
    emit_test_byte(e, REPEAT(state), 1);
    unless(e, JNE, &call);
    emit_test_byte(e, REPEAT(state), TOOL_REPEAT_TOLD);
    unless(e, JE, &call);
    emit_increment(e, REPEAT(state));
    emit_store_fs_imm64(e, CTX(lean_told), 0);
    emit_store_fs_imm64(e, CTX(lean_sp), 0);
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    ret_on[0] = far_branch(e);
    land(e, other_block);
    land(e, other_size);
    ret_on[1] = lean_alloc_again(e);
    CodePtr not_again = far_branch(e);
    far_land(e, next);
    ret_on[2] = lean_alloc_next(e);
    far_land(e, not_again);
    land_all(e, &call);
}

//     spill rcx ; mov rcx, fs:[lean_sp] ; lea rcx, [rcx + rsp] ; jrcxz mine
//     mov rcx, fs:[redirect_count] ; jrcxz none ; rcx ; call redirect_fast_return ; jmp on
//   none: rcx ; jmp on
//   mine: repeat, or put the event, or rcx ; call redirect_lean_return
//   on:
// Where nothing returns that is intercepted the flags stay as they are.
void lean_return(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_spill(b, RCX);
    emit_load_fs(e, RCX, CTX(lean_sp));
    emit_lea_sum(e, RCX, RCX, RSP);
    CodePtr mine = branch(e, OP_JRCXZ);
    emit_load_fs(e, RCX, CTX(redirect_count));
    CodePtr none = branch(e, OP_JRCXZ);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr other = far_branch(e);
    land(e, none);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr on_none = far_branch(e);
    land(e, mine);
    builder_mark_nowhere(b);
    bool may_repeat = calltags_wanted && b->block->pc <= INT32_MAX;
    CodePtr on_repeat[3], on_event = NULL;
    if (may_repeat) {
        emit_repeat(b, (u32)b->block->pc, on_repeat);
        on_event = lean_alloc_event(e, (u32)b->block->pc);
    }
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    b->spilled = 0;
    emit_fast_call(b, redirect_lean_return, site->hook);
    CodePtr on_call = far_branch(e);
    far_land(e, other);
    emit_fast_call(b, redirect_fast_return, site->hook);
    far_land(e, on_none);
    if (may_repeat) {
        far_land(e, on_repeat[0]);
        far_land(e, on_repeat[1]);
        far_land(e, on_repeat[2]);
        far_land(e, on_event);
    }
    far_land(e, on_call);
    builder_mark(b, false);
}
