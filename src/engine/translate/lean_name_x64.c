// SPDX-License-Identifier: MIT
//
// The context of an allocation's caller that was called anew, as name_frames() of calltags/ finds
// it: up from frame to frame, by their sizes, to the first that has a context, and down again,
// each by its caller's context and its return address. What is not remembered, or no landing's,
// is left to that; frames that were named on the way down keep their names.
#include "engine/translate/lean_x64.h"

// calltags_known_frame() of a frame's return address, which is rdi:= [rsi]. rdx := the slot of
// its caller, r8 := the word of that, whose tag is a landing's.
//     mov rdi, [rsi] ; mov rdx, rdi ; shr rdx, 11 ; xor edx, edi ; and edx, SHAPES - 1
//     shl edx, 4 ; add rdx, fs:[lean_contexts] ; cmp [rdx + pc], rdi ; jne unknown
//     mov rdx, [rdx + up] ; test dl, 7 ; jne unknown ; lea rdx, [rsi + rdx + 8]
//     mov r8, gs:[rdx + DISP] ; lea ecx, [r8 - LANDING] ; cmp ecx, MAX ; jae unknown
//     mov rcx, [rcx*8 + LANDING_PCS] ; cmp rcx, [rdx] ; jne unknown
static void emit_find_above(Emitter *e, Slow *unknown)
{
    enum { SHAPES = offsetof(ContextCache, shapes) - offsetof(ContextCache, slots) };
    _Static_assert(sizeof(struct CallShape) == 1 << 4 && CALLTAGS_VARIES % 8 != 0, "");
    emit_op_base(e, 0x8b, RDI, RSI, 0);
    put_bytes(e, (u8[]){0x48, 0x89, 0xfa, 0x48, 0xc1, 0xea, 11, 0x31, 0xfa, 0x81, 0xe2}, 11);
    put_u32(e, CALLTAGS_SHAPES - 1);
    put_bytes(e, (u8[]){0xc1, 0xe2, 4}, 3);
    emit_op_fs(e, 0x03, RDX, CTX(lean_contexts));
    emit_op_base(e, 0x39, RDI, RDX, SHAPES + (i32)offsetof(struct CallShape, pc));
    unless(e, JNE, unknown);
    emit_op_base(e, 0x8b, RDX, RDX, SHAPES + (i32)offsetof(struct CallShape, up));
    put_bytes(e, (u8[]){0xf6, 0xc2, 7}, 3);
    unless(e, JNE, unknown);
    put_bytes(e, (u8[]){0x48, 0x8d, 0x54, 0x16, 8}, 5);
    emit_load_tag(e, R8, RDX);
    put_bytes(e, (u8[]){0x41, 0x8d, 0x88}, 3);
    put_u32(e, -CALLTAG_LANDING);
    put_bytes(e, (u8[]){0x81, 0xf9}, 2);
    put_u32(e, LANDINGS_MAX);
    unless(e, JAE, unknown);
    put_bytes(e, (u8[]){0x48, 0x8b, 0x0c, 0xcd}, 4);
    put_u32(e, (u32)LANDING_PCS);
    emit_op_base(e, 0x3b, RCX, RDX, 0);
    unless(e, JNE, unknown);
}

// The context of a frame whose slot is rsi; r8d is that of its caller. edx := it
//     mov rdi, [rsi] ; mov rcx, HASH ; imul rcx, rdi ; shr rcx, 40 ; add ecx, r8d
//     and ecx, CACHED - 1 ; shl ecx, 4 ; add rcx, fs:[lean_contexts]
//     cmp [rcx + pc], rdi ; jne unknown ; cmp [rcx + parent], r8d ; jne unknown
//     mov edx, [rcx + context] ; test edx, edx ; je unknown
//     mov ecx, gs:[rsi + DISP] ; mov r8, rdx ; shl r8, 32 ; or r8, rcx ; mov gs:[rsi + DISP], r8
static void emit_name_frame(Emitter *e, Slow *unknown)
{
    emit_op_base(e, 0x8b, RDI, RSI, 0);
    put_bytes(e, (u8[]){0x48, 0xb9}, 2);
    put_u32(e, (u32)CALLTAGS_CACHE_HASH);
    put_u32(e, (u32)(CALLTAGS_CACHE_HASH >> 32));
    put_bytes(e, (u8[]){0x48, 0x0f, 0xaf, 0xcf, 0x48, 0xc1, 0xe9, CALLTAGS_CACHE_SHIFT}, 8);
    put_bytes(e, (u8[]){0x44, 0x01, 0xc1, 0x81, 0xe1}, 5);
    put_u32(e, CONTEXTS_CACHED - 1);
    put_bytes(e, (u8[]){0xc1, 0xe1, 4}, 3);
    emit_op_fs(e, 0x03, RCX, CTX(lean_contexts));
    emit_op_base(e, 0x39, RDI, RCX, (i32)offsetof(CachedContext, pc));
    unless(e, JNE, unknown);
    put_bytes(e, (u8[]){0x44, 0x39, 0x41, offsetof(CachedContext, parent)}, 4);
    unless(e, JNE, unknown);
    put_bytes(e, (u8[]){0x8b, 0x51, offsetof(CachedContext, context), 0x85, 0xd2}, 5);
    unless(e, JE, unknown);
    put_bytes(e, (u8[]){0x65, 0x8b, 0x8e}, 3);
    put_u32(e, (u32)CALLTAGS_DISP);
    put_bytes(e, (u8[]){0x49, 0x89, 0xd0, 0x49, 0xc1, 0xe0, 32, 0x49, 0x09, 0xc8, 0x65}, 11);
    emit_op_base(e, 0x89, R8, RSI, CALLTAGS_DISP);
}

//     spill r9 ; xor r9d, r9d
//   up: mov fs:[r9*8 + slots], rsi ; find above ; mov rsi, rdx ; shr r8, 32 ; jne down
//     add r9d, 1 ; cmp r9d, SLOTS ; jae lost ; jmp up
//   down: mov rsi, fs:[r9*8 + slots] ; name ; mov r8d, edx ; sub r9d, 1 ; jns down
//     r9 ; mov r8, fs:[lean_sites] ; jmp named
//   lost: r9
void lean_name_caller(Emitter *e, CodePtr named)
{
    Slow lost = {0};
    emit_store_fs(e, CTX_SPILL(R9), R9);
    put_bytes(e, (u8[]){0x45, 0x31, 0xc9}, 3);
    CodePtr up = e->pc;
    put_bytes(e, (u8[]){0x64, 0x4a, 0x89, 0x34, 0xcd}, 5);
    put_u32(e, (u32)CTX(lean_slots));
    emit_find_above(e, &lost);
    put_bytes(e, (u8[]){0x48, 0x89, 0xd6, 0x49, 0xc1, 0xe8, 32}, 7);
    CodePtr known = branch(e, JNE);
    put_bytes(e, (u8[]){0x41, 0x83, 0xc1, 1, 0x41, 0x83, 0xf9, LEAN_SLOTS}, 8);
    unless(e, JAE, &lost);
    emit_jmp(e, up);
    land(e, known);
    CodePtr down = e->pc;
    put_bytes(e, (u8[]){0x64, 0x4a, 0x8b, 0x34, 0xcd}, 5);
    put_u32(e, (u32)CTX(lean_slots));
    emit_name_frame(e, &lost);
    put_bytes(e, (u8[]){0x41, 0x89, 0xd0, 0x41, 0x83, 0xe9, 1}, 7);
    far_link(far_jcc(e, JNS), down);
    emit_load_fs(e, R9, CTX_SPILL(R9));
    emit_load_fs(e, R8, CTX(lean_sites));
    emit_jmp(e, named);
    land_all(e, &lost);
    emit_load_fs(e, R9, CTX_SPILL(R9));
}
