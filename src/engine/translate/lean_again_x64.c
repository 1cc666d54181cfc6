// SPDX-License-Identifier: MIT
//
// An allocation from the same place and stack as the pair that is held back: most of what
// lean_alloc_x64.c finds out is known then. The pair is published, and the new block begins
// a series (HEAP_PAIRS) behind it; or there is a series, which gets one block more. Registers:
// rax is the block, rcx points to what is held back (lean_repeat), rdx, rsi and rdi are at hand.
#include "engine/translate/lean_x64.h"

enum { BOTH_BYTES = HEAP_ALLOC_BYTES + HEAP_PAIRS_BYTES, CHUNK_IS_MAPPED = 2 };

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

// A function of the same allocator has returned a block that fits a series. rdx := its word.
//     mov edx, fs:[lean_inner] ; cmp [rcx + inner], edx ; jne no
//     test eax, PAGE_SIZE - 1 ; je no ; test al, 15 ; jne no
//     mov rdx, [rax - 8] ; test dl, MAPPED ; jne no ; and rdx, -8 ; mov rsi, fs:[lean_size]
//     sub rdx, rsi ; sub rdx, 8 ; cmp rdx, EXTRA_MAX ; ja no ; cmp rsi, SIZE_MAX ; ja no
//     shl esi, 5 ; or edx, esi ; mov rsi, rax ; shl rsi, 17 ; or rdx, rsi
static void emit_word(Emitter *e, Slow *no)
{
    put_bytes(e, (u8[]){0x64, 0x8b, 0x14, 0x25}, 4);
    put_u32(e, (u32)CTX(lean_inner));
    put_bytes(e, (u8[]){0x39, 0x91}, 2);
    put_u32(e, (u32)HELD(held.repeat.inner));
    unless(e, JNE, no);
    put_u8(e, 0xa9);
    put_u32(e, PAGE_SIZE - 1);
    unless(e, JE, no);
    put_bytes(e, (u8[]){0xa8, 15}, 2);
    unless(e, JNE, no);
    emit_op_base(e, 0x8b, RDX, RAX, -8);
    put_bytes(e, (u8[]){0xf6, 0xc2, CHUNK_IS_MAPPED}, 3);
    unless(e, JNE, no);
    put_bytes(e, (u8[]){0x48, 0x83, 0xe2, 0xf8}, 4);
    emit_load_fs(e, RSI, CTX(lean_size));
    put_bytes(e, (u8[]){0x48, 0x29, 0xf2, 0x48, 0x83, 0xea, 0x08}, 7);
    put_bytes(e, (u8[]){0x48, 0x83, 0xfa, HEAP_WORD_EXTRA_MAX}, 4);
    unless(e, JA, no);
    put_bytes(e, (u8[]){0x48, 0x81, 0xfe}, 3);
    put_u32(e, HEAP_WORD_SIZE_MAX);
    unless(e, JA, no);
    put_bytes(e, (u8[]){0xc1, 0xe6, HEAP_WORD_EXTRA_BITS, 0x09, 0xf2}, 5);
    put_bytes(e, (u8[]){0x48, 0x89, 0xc6, 0x48, 0xc1, 0xe6, HEAP_WORD_BITS - 4}, 7);
    put_bytes(e, (u8[]){0x48, 0x09, 0xf2}, 3);
}

// A pair is held back that emitted code put, and is not very large.
//     cmp qword [rcx + state], 2 ; jne no ; may the stamp be shared?
//     cmp dword [rcx + size + 4], 15 ; ja no
static void emit_check(Emitter *e, Slow *no)
{
    put_bytes(e, (u8[]){0x48, 0x83, 0xb9}, 3);
    put_u32(e, (u32)HELD(held.repeat.state));
    put_u8(e, 2);
    unless(e, JNE, no);
    emit_may_share_stamp(e, no);
    emit_held_imm8(e, 0x83, 0xb9, HELD(held.repeat.size) + 4,
                   (1 << (HEAP_PAIR_SIZE_BITS - 32)) - 1);
    unless(e, JA, no);
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

// A series behind it, in the context of the pair:
//     prefetchw [rsi + FETCH] ; prefetchw [rsi + FETCH + 64]
//     mov edi, [rcx + run] ; add edi, 1 ; mov [rcx + run], edi ; shr edi, 1 ; add edi, 1
//     movzx edi, dil ; shl edi, 8 ; or edi, PAIRS ; mov [rsi + 32], edi
//     mov edi, [rsi + 4] ; mov [rsi + 36], edi ; mov rdi, [rcx + begun] ; mov [rsi + 40], rdi
//     mov [rsi + 56], rdx ; lea rdi, [rsi + 64] ; sub rdi, rcx ; mov [rcx + next], rdi
//     mov edi, fs:[stamps_left] ; lea edi, [rdi + rdi + PAIRS] ; mov [rcx + pairs_end], edi
//     mov [rcx + result], rax ; mov qword [rcx + state], PAIRS + 1 ; add dword [rcx + run], 1
static void emit_begin_series(Emitter *e)
{
    emit_fetch_ring(e, RSI, 0);
    emit_fetch_ring(e, RSI, 64);
    emit_held_edi(e, 0x8b, HELD(held.run));
    put_bytes(e, (u8[]){0x83, 0xc7, 1}, 3);
    emit_held_edi(e, 0x89, HELD(held.run));
    put_bytes(e, (u8[]){0xd1, 0xef, 0x83, 0xc7, 1, 0x40, 0x0f, 0xb6, 0xff, 0xc1, 0xe7, 8}, 12);
    put_bytes(e, (u8[]){0x81, 0xcf}, 2);
    put_u32(e, RECORD_HEAP_PAIRS);
    put_bytes(e, (u8[]){0x89, 0x7e, 32, 0x8b, 0x7e, 4, 0x89, 0x7e, 36}, 9);
    emit_op_base(e, 0x8b, RDI, RCX, HELD(begun));
    emit_op_base(e, 0x89, RDI, RSI, 40);
    emit_op_base(e, 0x89, RDX, RSI, HEAP_ALLOC_BYTES + HEAP_PAIRS_HEAD * 8);
    emit_lea(e, RDI, RSI, HEAP_ALLOC_BYTES + HEAP_PAIRS_HEAD * 8 + 8);
    put_bytes(e, (u8[]){0x48, 0x29, 0xcf}, 3);
    emit_op_base(e, 0x89, RDI, RCX, HELD(held.next));
    put_bytes(e, (u8[]){0x64, 0x8b, 0x3c, 0x25}, 4);
    put_u32(e, (u32)CTX(wire.stamps_left));
    put_bytes(e, (u8[]){0x8d, 0xbc, 0x3f}, 3);
    put_u32(e, (u32)WIRE_PAIRS);
    emit_held_edi(e, 0x89, HELD(held.pairs_end));
    emit_op_base(e, 0x89, RAX, RCX, HELD(held.repeat.result));
    emit_set_state(e, (u32)(WIRE_PAIRS + 1));
    emit_held_imm8(e, 0x83, 0x81, HELD(held.run), 1);
}

//     mov qword fs:[lean_told], 0 ; mov qword fs:[lean_sp], 0 ; registers ; jmp on
static CodePtr emit_done(Emitter *e, const u8 *registers, unsigned count)
{
    emit_store_fs_imm64(e, CTX(lean_told), 0);
    emit_store_fs_imm64(e, CTX(lean_sp), 0);
    for (unsigned i = 0; i < count; i++)
        emit_load_fs(e, registers[i], CTX_SPILL(registers[i]));
    return far_branch(e);
}

//     check ; spill rsi, rdi ; word ; publish ; begin ; done
//   full: rsi, rdi
//   no:
CodePtr lean_alloc_again(Emitter *e)
{
    static const u8 registers[] = {RSI, RDI, RDX, RCX};
    Slow no = {0}, full = {0};
    emit_check(e, &no);
    emit_store_fs(e, CTX_SPILL(RSI), RSI);
    emit_store_fs(e, CTX_SPILL(RDI), RDI);
    emit_word(e, &full);
    emit_publish_pair(e, &full);
    emit_begin_series(e);
    CodePtr on = emit_done(e, registers, ARRAY_LEN(registers));
    land_all(e, &full);
    emit_load_fs(e, RSI, CTX_SPILL(RSI));
    emit_load_fs(e, RDI, CTX_SPILL(RDI));
    land_all(e, &no);
    return on;
}

//     cmp edx, [rcx + pairs_end] ; jae no ; test dl, 1 ; jne no ; spill rsi ; word
//     mov rsi, [rcx + next] ; mov [rcx + rsi], rdx ; prefetchw [rcx + rsi + FETCH]
//     add rsi, 8 ; mov [rcx + next], rsi
//     mov [rcx + result], rax ; add qword [rcx + state], 1 ; done
//   full: rsi
//   no:
CodePtr lean_alloc_next(Emitter *e)
{
    static const u8 registers[] = {RSI, RDX, RCX};
    Slow no = {0}, full = {0};
    put_bytes(e, (u8[]){0x3b, 0x91}, 2);
    put_u32(e, (u32)HELD(held.pairs_end));
    unless(e, JAE, &no);
    put_bytes(e, (u8[]){0xf6, 0xc2, 1}, 3);
    unless(e, JNE, &no);
    emit_store_fs(e, CTX_SPILL(RSI), RSI);
    emit_word(e, &full);
    emit_op_base(e, 0x8b, RSI, RCX, HELD(held.next));
    put_bytes(e, (u8[]){0x48, 0x89, 0x14, 0x31}, 4);
    put_bytes(e, (u8[]){0x0f, 0x0d, 0x8c, 0x31}, 4);
    put_u32(e, WIRE_FETCH_BYTES);
    put_bytes(e, (u8[]){0x48, 0x83, 0xc6, 8}, 4);
    emit_op_base(e, 0x89, RSI, RCX, HELD(held.next));
    emit_op_base(e, 0x89, RAX, RCX, HELD(held.repeat.result));
    emit_increment(e, HELD(held.repeat.state));
    CodePtr on = emit_done(e, registers, ARRAY_LEN(registers));
    land_all(e, &full);
    emit_load_fs(e, RSI, CTX_SPILL(RSI));
    land_all(e, &no);
    return on;
}
