// SPDX-License-Identifier: MIT
//
// An allocation from the same place and stack as the pair that is held back: most of what
// lean_alloc_x64.c finds out is known then. The pair is published, and the new block is held back
// behind it, by the same stores in the same order. Registers: rax is the block, rcx points
// to what is held back (lean_repeat), rdx, rsi and rdi are at hand.
#include "engine/translate/lean_x64.h"

enum { BOTH_BYTES = HEAP_ALLOC_BYTES + HEAP_RUN_BYTES, CHUNK_IS_MAPPED = 2 };

// op dword [rcx + disp], imm8, by its two bytes
static void emit_held_imm8(Emitter *e, u8 opcode, u8 modrm, i32 disp, u8 imm)
{
    put_bytes(e, (u8[]){opcode, modrm}, 2);
    put_u32(e, (u32)disp);
    put_u8(e, imm);
}

// mov edi, [rcx + disp], or the other way round
static void emit_held_edi(Emitter *e, u8 opcode, i32 disp)
{
    put_bytes(e, (u8[]){opcode, 0xb9}, 2);
    put_u32(e, (u32)disp);
}

// mov qword [rcx + state], imm
static void emit_set_state(Emitter *e, u32 state)
{
    put_bytes(e, (u8[]){0x48, 0xc7, 0x81}, 3);
    put_u32(e, (u32)HELD(held.repeat.state));
    put_u32(e, state);
}

// A pair, put by emitted code for a function of the same allocator; neither is very large. rdx :=
// the place of the block, as on the wire.
//     cmp qword [rcx + state], 2 ; jne no ; may the stamp be shared?
//     mov edx, fs:[lean_inner] ; cmp [rcx + inner], edx ; jne no
//     cmp dword fs:[lean_size + 4], 0 ; jne no ; cmp dword [rcx + size + 4], 15 ; ja no
//     test eax, PAGE_SIZE - 1 ; je no ; mov rdx, [rax - 8] ; test dl, MAPPED ; jne no
//     and rdx, -8 ; sub rdx, 8 ; sub rdx, fs:[lean_size] ; cmp rdx, EXTRA_MAX ; ja no
//     shl rdx, 47 ; or rdx, rax
static void emit_check(Emitter *e, Slow *no)
{
    put_bytes(e, (u8[]){0x48, 0x83, 0xb9}, 3);
    put_u32(e, (u32)HELD(held.repeat.state));
    put_u8(e, 2);
    unless(e, JNE, no);
    emit_may_share_stamp(e, no);
    put_bytes(e, (u8[]){0x64, 0x8b, 0x14, 0x25}, 4);
    put_u32(e, (u32)CTX(lean_inner));
    put_bytes(e, (u8[]){0x39, 0x91}, 2);
    put_u32(e, (u32)HELD(held.repeat.inner));
    unless(e, JNE, no);
    put_bytes(e, (u8[]){0x64, 0x83, 0x3c, 0x25}, 4);
    put_u32(e, (u32)CTX(lean_size) + 4);
    put_u8(e, 0);
    unless(e, JNE, no);
    emit_held_imm8(e, 0x83, 0xb9, HELD(held.repeat.size) + 4,
                   (1 << (HEAP_PAIR_SIZE_BITS - 32)) - 1);
    unless(e, JA, no);
    put_u8(e, 0xa9);
    put_u32(e, PAGE_SIZE - 1);
    unless(e, JE, no);
    emit_op_base(e, 0x8b, RDX, RAX, -8);
    put_bytes(e, (u8[]){0xf6, 0xc2, CHUNK_IS_MAPPED}, 3);
    unless(e, JNE, no);
    put_bytes(e, (u8[]){0x48, 0x83, 0xe2, 0xf8, 0x48, 0x83, 0xea, 0x08}, 8);
    emit_op_fs(e, 0x2b, RDX, CTX(lean_size));
    put_bytes(e, (u8[]){0x48, 0x81, 0xfa}, 3);
    put_u32(e, HEAP_EXTRA_MAX);
    unless(e, JA, no);
    put_bytes(e, (u8[]){0x48, 0xc1, 0xe2, HEAP_PLACE_BITS, 0x48, 0x09, 0xc2}, 7);
}

// Both records fit behind each other. rsi := where the first stands; it becomes a pair.
//     mov rsi, [rcx + write] ; lea rdi, [rsi + BOTH] ; sub rdi, fs:[read_seen]
//     cmp rdi, RING_BYTES ; ja no ; and esi, RING_BYTES - 1 ; cmp esi, RING_BYTES - BOTH ; ja no
//     mov rdi, [rcx + lived] ; cmp rdi, MAX ; ja no ; lea rsi, [rcx + rsi + data]
//     shl rdi, 36 ; or rdi, [rcx + size] ; mov byte [rsi], PAIR ; mov [rsi + 24], rdi
//     mov rdi, [rcx + stamp] ; mov [rsi + 8], rdi
//     add qword [rcx + write], 32 ; mov qword [rcx + state], 0
static void emit_publish_pair(Emitter *e, Slow *no)
{
    emit_op_base(e, 0x8b, RSI, RCX, HELD(write));
    emit_lea(e, RDI, RSI, BOTH_BYTES);
    emit_op_fs(e, 0x2b, RDI, CTX(wire.read_seen));
    put_bytes(e, (u8[]){0x48, 0x81, 0xff}, 3);
    put_u32(e, WIRE_RING_BYTES);
    unless(e, JA, no);
    put_bytes(e, (u8[]){0x81, 0xe6}, 2);
    put_u32(e, WIRE_RING_BYTES - 1);
    put_bytes(e, (u8[]){0x81, 0xfe}, 2);
    put_u32(e, WIRE_RING_BYTES - BOTH_BYTES);
    unless(e, JA, no);
    emit_op_base(e, 0x8b, RDI, RCX, HELD(held.lived));
    put_bytes(e, (u8[]){0x48, 0x81, 0xff}, 3);
    put_u32(e, HEAP_PAIR_LIVED_MAX);
    unless(e, JA, no);
    put_bytes(e, (u8[]){0x48, 0x8d, 0xb4, 0x31}, 4);
    put_u32(e, (u32)HELD(data));
    put_bytes(e, (u8[]){0x48, 0xc1, 0xe7, HEAP_PAIR_SIZE_BITS}, 4);
    emit_op_base(e, 0x0b, RDI, RCX, HELD(held.repeat.size));
    put_bytes(e, (u8[]){0xc6, 0x06, RECORD_HEAP_PAIR}, 3);
    emit_op_base(e, 0x89, RDI, RSI, 24);
    emit_op_base(e, 0x8b, RDI, RCX, HELD(held.stamp));
    emit_op_base(e, 0x89, RDI, RSI, 8);
    put_bytes(e, (u8[]){0x48, 0x83, 0x81}, 3);
    put_u32(e, (u32)HELD(write));
    put_u8(e, HEAP_ALLOC_BYTES);
    emit_set_state(e, 0);
}

// wire_heap_hold(), in the context of the pair:
//     mov edi, [rcx + run] ; add edi, 1 ; mov [rcx + run], edi ; shr edi, 1 ; add edi, 1
//     movzx edi, dil ; shl edi, 8 ; or edi, head ; mov [rsi + 32], edi
//     mov edi, [rsi + 4] ; mov [rsi + 36], edi
//     mov rdi, [rcx + begun] ; mov [rsi + 40], rdi ; mov [rcx + allocated], rdi
//     mov [rsi + 48], rdx ; mov rdx, fs:[lean_size] ; mov [rsi + 56], rdx ; mov [rcx + size], rdx
//     mov [rcx + result], rax ; mov [rcx + address], rax
//     mov qword [rcx + state], 1 ; add dword [rcx + run], 1
static void emit_hold(Emitter *e)
{
    emit_held_edi(e, 0x8b, HELD(held.run));
    put_bytes(e, (u8[]){0x83, 0xc7, 1}, 3);
    emit_held_edi(e, 0x89, HELD(held.run));
    put_bytes(e, (u8[]){0xd1, 0xef, 0x83, 0xc7, 1, 0x40, 0x0f, 0xb6, 0xff, 0xc1, 0xe7, 8}, 12);
    put_bytes(e, (u8[]){0x81, 0xcf}, 2);
    put_u32(e, WIRE_STREAM_HEAD(RECORD_HEAP_ALLOC, WIRE_STREAM_ALLOC));
    put_bytes(e, (u8[]){0x89, 0x7e, 32, 0x8b, 0x7e, 4, 0x89, 0x7e, 36}, 9);
    emit_op_base(e, 0x8b, RDI, RCX, HELD(begun));
    emit_op_base(e, 0x89, RDI, RSI, 40);
    emit_op_base(e, 0x89, RDI, RCX, HELD(held.allocated));
    emit_op_base(e, 0x89, RDX, RSI, 48);
    emit_load_fs(e, RDX, CTX(lean_size));
    emit_op_base(e, 0x89, RDX, RSI, 56);
    emit_op_base(e, 0x89, RDX, RCX, HELD(held.repeat.size));
    emit_op_base(e, 0x89, RAX, RCX, HELD(held.repeat.result));
    emit_op_base(e, 0x89, RAX, RCX, HELD(held.address));
    emit_set_state(e, 1);
    emit_held_imm8(e, 0x83, 0x81, HELD(held.run), 1);
}

//     check ; spill rsi, rdi ; publish ; hold ; mov qword fs:[lean_told], 0
//     mov qword fs:[lean_sp], 0 ; registers ; jmp on
//   full: rsi, rdi
//   no:
CodePtr lean_alloc_again(Emitter *e)
{
    Slow no = {0}, full = {0};
    emit_check(e, &no);
    emit_store_fs(e, CTX_SPILL(RSI), RSI);
    emit_store_fs(e, CTX_SPILL(RDI), RDI);
    emit_publish_pair(e, &full);
    emit_hold(e);
    emit_take_stamp(e);
    emit_store_fs_imm64(e, CTX(lean_told), 0);
    emit_store_fs_imm64(e, CTX(lean_sp), 0);
    static const u8 registers[] = {RSI, RDI, RDX, RCX};
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        emit_load_fs(e, registers[i], CTX_SPILL(registers[i]));
    CodePtr on = far_branch(e);
    land_all(e, &full);
    emit_load_fs(e, RSI, CTX_SPILL(RSI));
    emit_load_fs(e, RDI, CTX_SPILL(RDI));
    land_all(e, &no);
    return on;
}
