// SPDX-License-Identifier: MIT
//
// The prologue of a lean function that frees. Where there is one thread and the last stamp may be
// shared, the event is put into the ring right here, as wire_heap_free() does it: most are the end
// of the block that is held back, or find another held back or nothing. The flags are dead
// at a function's entry; all registers are kept.
#include "engine/redirect/redirect.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/lean_x64.h"
#include "wire/heap_events.h"

enum { FREE_BYTES = WIRE_STREAM_FREE * 8 };

// cmp fs:[disp], reg
static void emit_cmp_fs(Emitter *e, i32 disp, unsigned reg)
{
    emit_op_fs(e, 0x39, reg, disp);
}

// cmp dword [rcx + disp], 0
static void emit_cmp_held(Emitter *e, i32 disp)
{
    put_bytes(e, (u8[]){0x83, 0xb9}, 2);
    put_u32(e, (u32)disp);
    put_u8(e, 0);
}

// mov qword [base + disp], imm
static void emit_store_imm(Emitter *e, unsigned base, i32 disp, u32 imm)
{
    put_bytes(e, (u8[]){0x48, 0xc7, (u8)(0x80 | base)}, 3);
    put_u32(e, (u32)disp);
    put_u32(e, imm);
}

// The flags and rdx are those of its state. The event to come has a share of the stamp too:
//     jns slow ; and edx, INT32_MAX ; lea esi, [rdx + 1] ; shr esi, 1
//     cmp fs:[stamps_left], esi ; jbe slow ; sub fs:[stamps_left], esi
//     mov rsi, [ring + write] ; and esi, RING_BYTES - 1 ; lea rsi, [ring + rsi]
//     mov [rsi + data + 16], rdx ; add edx, 1 ; shr edx, 1 ; add edx, HEAD
//     mov [rsi + data + 2], dx ; shl edx, 3 ; add [ring + write], rdx
static void emit_publish_series(Emitter *e, unsigned ring, Slow *slow)
{
    unless(e, JNS, slow);
    put_bytes(e, (u8[]){0x81, 0xe2}, 2);
    put_u32(e, INT32_MAX);
    put_bytes(e, (u8[]){0x8d, 0x72, 1, 0xd1, 0xee}, 5);
    put_bytes(e, (u8[]){0x64, 0x39, 0x34, 0x25}, 4);
    put_u32(e, (u32)CTX(wire.stamps_left));
    unless(e, JBE, slow);
    put_bytes(e, (u8[]){0x64, 0x29, 0x34, 0x25}, 4);
    put_u32(e, (u32)CTX(wire.stamps_left));
    emit_op_base(e, 0x8b, RSI, ring, RING(write));
    put_bytes(e, (u8[]){0x81, 0xe6}, 2);
    put_u32(e, WIRE_RING_BYTES - 1);
    emit_lea_sum(e, RSI, ring, RSI);
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 16);
    put_bytes(e, (u8[]){0x83, 0xc2, 1, 0xd1, 0xea, 0x83, 0xc2, HEAP_PAIRS_HEAD}, 8);
    put_bytes(e, (u8[]){0x66, 0x89, 0x96}, 3);
    put_u32(e, (u32)RING(data) + 2);
    put_bytes(e, (u8[]){0xc1, 0xe2, 3}, 3);
    emit_op_base(e, 0x01, RDX, ring, RING(write));
}

// What is held back is published: an allocation as it is, a pair when it has been made one.
//     mov rdx, [ring + state] ; cmp rdx, 1 ; jb none ; je publish ; cmp rdx, 2 ; jne series
//     cmp qword [ring + samples], 1 ; jne slow ; mov rdx, [ring + lived] ; cmp rdx, MAX ; ja slow
//     cmp dword [ring + size + 4], 15 ; ja slow ; shl rdx, 36 ; or rdx, [ring + size]
//     mov rsi, [ring + write] ; and esi, RING_BYTES - 1 ; lea rsi, [ring + rsi]
//     mov byte [rsi + data], PAIR ; mov [rsi + data + 24], rdx
//     mov rdx, [ring + stamp] ; mov [rsi + data + 8], rdx
//   publish: add qword [ring + write], 32
//   end: mov qword [ring + state], 0 ; mov qword [ring + result], 0 ; jmp none
//   series: jns slow ; publish it ; jmp end
//   none:
void lean_flush(Emitter *e, unsigned ring, Slow *slow)
{
    emit_op_base(e, 0x8b, RDX, ring, RING_STATE);
    put_bytes(e, (u8[]){0x48, 0x83, 0xfa, 1}, 4);
    CodePtr none = far_jcc(e, JB);
    CodePtr publish = far_jcc(e, JE);
    put_bytes(e, (u8[]){0x48, 0x83, 0xfa, 2}, 4);
    CodePtr series = far_jcc(e, JNE);
    put_bytes(e, (u8[]){0x48, 0x83, (u8)(0xb8 | ring)}, 3);
    put_u32(e, (u32)RING(held.samples));
    put_u8(e, 1);
    unless(e, JNE, slow);
    emit_op_base(e, 0x8b, RDX, ring, RING(held.lived));
    put_bytes(e, (u8[]){0x48, 0x81, 0xfa}, 3);
    put_u32(e, HEAP_PAIR_LIVED_MAX);
    unless(e, JA, slow);
    put_bytes(e, (u8[]){0x83, (u8)(0xb8 | ring)}, 2);
    put_u32(e, (u32)RING(held.repeat.size) + 4);
    put_u8(e, (1u << (HEAP_PAIR_SIZE_BITS - 32)) - 1);
    unless(e, JA, slow);
    put_bytes(e, (u8[]){0x48, 0xc1, 0xe2, HEAP_PAIR_SIZE_BITS}, 4);
    emit_op_base(e, 0x0b, RDX, ring, RING(held.repeat.size));
    emit_op_base(e, 0x8b, RSI, ring, RING(write));
    put_bytes(e, (u8[]){0x81, 0xe6}, 2);
    put_u32(e, WIRE_RING_BYTES - 1);
    emit_lea_sum(e, RSI, ring, RSI);
    put_bytes(e, (u8[]){0xc6, 0x86}, 2);
    put_u32(e, (u32)RING(data));
    put_u8(e, RECORD_HEAP_PAIR);
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 24);
    emit_op_base(e, 0x8b, RDX, ring, RING(held.stamp));
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 8);
    far_land(e, publish);
    put_bytes(e, (u8[]){0x48, 0x83, (u8)(0x80 | ring)}, 3);
    put_u32(e, (u32)RING(write));
    put_u8(e, HEAP_ALLOC_BYTES);
    CodePtr end = e->pc;
    emit_store_imm(e, ring, RING_STATE, 0);
    emit_store_imm(e, ring, RING(held.repeat.result), 0);
    CodePtr done = far_branch(e);
    far_land(e, series);
    emit_publish_series(e, ring, slow);
    emit_jmp(e, end);
    far_land(e, done);
    far_land(e, none);
}

// The block that is held back, for the first time (wire_heap_ends_held()); rcx is lean_repeat:
//     spill rdx ; cmp qword [rcx + state], 1 ; jne slow ; may the stamp be shared?
//     mov rdx, [rcx + begun] ; mov [rcx + stamp], rdx
//     sub rdx, [rcx + allocated] ; mov [rcx + lived], rdx ; mov qword [rcx + samples], 1
//     mov qword [rcx + state], 2 ; rdx, rcx ; jmp on
//   slow: rdx
// Returns the jump to `on`.
static CodePtr emit_end_held(Emitter *e)
{
    Slow slow = {0};
    emit_store_fs(e, CTX_SPILL(RDX), RDX);
    put_bytes(e, (u8[]){0x48, 0x83, 0xb9}, 3);
    put_u32(e, (u32)HELD(held.repeat.state));
    put_u8(e, 1);
    unless(e, JNE, &slow);
    emit_may_share_stamp(e, &slow);
    emit_op_base(e, 0x8b, RDX, RCX, HELD(begun));
    emit_op_base(e, 0x89, RDX, RCX, HELD(held.stamp));
    emit_op_base(e, 0x2b, RDX, RCX, HELD(held.allocated));
    emit_op_base(e, 0x89, RDX, RCX, HELD(held.lived));
    emit_store_imm(e, RCX, HELD(held.samples), 1);
    emit_store_imm(e, RCX, HELD(held.repeat.state), 2);
    emit_take_stamp(e);
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr on = far_branch(e);
    land_all(e, &slow);
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    return on;
}

// Another block: what is held back is published, and the record follows it.
//     flush ; mov rdx, [rcx + write]
//     lea rsi, [rdx + 24] ; sub rsi, fs:[read_seen] ; cmp rsi, RING_BYTES ; ja slow
//     and edx, RING_BYTES - 1 ; cmp edx, RING_BYTES - 24 ; ja slow ; lea rsi, [rcx + rdx]
//     prefetchw [rsi + data + FETCH]
//     mov qword [rsi + data], head ; mov rdx, [rcx + begun] ; mov [rsi + data + 8], rdx
//     mov [rsi + data + 16], rdi ; add qword [rcx + write], 24
static void emit_put_free(Emitter *e, Slow *slow)
{
    lean_flush(e, RCX, slow);
    emit_op_base(e, 0x8b, RDX, RCX, RING(write));
    emit_lea(e, RSI, RDX, FREE_BYTES);
    emit_op_fs(e, 0x2b, RSI, CTX(wire.read_seen));
    put_bytes(e, (u8[]){0x48, 0x81, 0xfe}, 3);
    put_u32(e, WIRE_RING_BYTES);
    unless(e, JA, slow);
    put_bytes(e, (u8[]){0x81, 0xe2}, 2);
    put_u32(e, WIRE_RING_BYTES - 1);
    put_bytes(e, (u8[]){0x81, 0xfa}, 2);
    put_u32(e, WIRE_RING_BYTES - FREE_BYTES);
    unless(e, JA, slow);
    emit_lea_sum(e, RSI, RCX, RDX);
    emit_fetch_ring(e, RSI, RING(data));
    emit_store_imm(e, RSI, RING(data), WIRE_STREAM_HEAD(RECORD_HEAP_FREE, WIRE_STREAM_FREE));
    emit_op_base(e, 0x8b, RDX, RCX, RING(begun));
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 8);
    emit_op_base(e, 0x89, RDI, RSI, RING(data) + 16);
    put_bytes(e, (u8[]){0x48, 0x83, 0x81}, 3);
    put_u32(e, (u32)RING(write));
    put_u8(e, FREE_BYTES);
}

static void emit_restore(Emitter *e)
{
    emit_load_fs(e, RSI, CTX_SPILL(RSI));
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
}

//     spill rdx, rsi ; may the stamp be shared? ; mov rcx, fs:[ring]
//     cmp [rcx + result], rdi ; je slow
//     put ; mov fs:[lean_told], rdi ; mov fs:[lean_told_sp], rsp
//     mov rdx, function ; mov fs:[lean_told_function], rdx ; rsi, rdx, rcx ; jmp on
//   slow: rsi, rdx
// Returns the jump to `on`; behind the code rcx is spilled.
static CodePtr emit_event(Emitter *e, const RedirectSite *site)
{
    Slow slow = {0};
    emit_store_fs(e, CTX_SPILL(RDX), RDX);
    emit_store_fs(e, CTX_SPILL(RSI), RSI);
    emit_may_share_stamp(e, &slow);
    emit_load_fs(e, RCX, CTX(wire.ring));
    emit_op_base(e, 0x39, RDI, RCX, RING(held.repeat.result));
    unless(e, JE, &slow);
    emit_put_free(e, &slow);
    emit_store_fs(e, CTX(lean_told), RDI);
    emit_store_fs(e, CTX(lean_told_sp), RSP);
    emit_mov_imm(e, RDX, (u64)(uintptr_t)site->lean);
    emit_store_fs(e, CTX(lean_told_function), RDX);
    emit_take_stamp(e);
    emit_restore(e);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr on = far_branch(e);
    land_all(e, &slow);
    emit_restore(e);
    return on;
}

//     cmp qword fs:[lean_sp], 0 ; jne call
//     spill rcx ; mov rcx, fs:[lean_repeat] ; cmp [rcx + result], rdi ; jne other
//     test byte [rcx + state], 1 ; je done            (delete, and then the free in it)
//     cmp dword [rcx + state + 4], 0 ; jl series
//     test byte [rcx + state], TOLD ; je told ; add qword [rcx + state], 1
//   done: rcx ; jmp on
//   series: cmp dword [rcx + pairs_end], 0 ; je other ; add qword [rcx + state], 1 ; jmp done
//   told: it ends, and jmp on, or
//   other: cmp fs:[lean_told], rdi ; jne event
//     mov rcx, function ; cmp fs:[lean_told_function], rcx ; je event
//     cmp fs:[lean_told_sp], rsp ; jae done
//   event: test rdi, rdi ; je done ; put it, or
//   call: rcx ; redirect_lean_before
//   on:
void lean_before(Builder *b, const RedirectSite *site)
{
    Emitter *e = &b->e;
    builder_spill(b, RCX);
    builder_mark_nowhere(b);
    put_bytes(e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
    put_u32(e, (u32)CTX(lean_sp));
    put_u8(e, 0);
    CodePtr within = far_jcc(e, JNE);
    emit_load_fs(e, RCX, CTX(lean_repeat));
    emit_op_base(e, 0x39, RDI, RCX, REPEAT(result));
    CodePtr other = far_jcc(e, JNE);
    emit_test_byte(e, REPEAT(state), 1);
    CodePtr done = branch(e, JE);
    emit_cmp_held(e, REPEAT(state) + 4);
    CodePtr series = branch(e, JL);
    emit_test_byte(e, REPEAT(state), TOOL_REPEAT_TOLD);
    CodePtr told = branch(e, JE);
    emit_increment(e, REPEAT(state));
    land(e, done);
    CodePtr back = e->pc;
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr on = far_branch(e);
    land(e, series);
    emit_cmp_held(e, HELD(held.pairs_end));
    CodePtr paused = far_jcc(e, JE);
    emit_increment(e, REPEAT(state));
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr on_series = far_branch(e);
    land(e, told);
    CodePtr on_end = emit_end_held(e);
    far_land(e, paused);
    far_land(e, other);
    emit_cmp_fs(e, CTX(lean_told), RDI);
    CodePtr first = branch(e, JNE);
    emit_mov_imm(e, RCX, (u64)(uintptr_t)site->lean);
    emit_cmp_fs(e, CTX(lean_told_function), RCX);
    CodePtr same = branch(e, JE);
    emit_cmp_fs(e, CTX(lean_told_sp), RSP);
    far_link(far_jcc(e, JAE), back);
    land(e, first);
    land(e, same);
    put_bytes(e, (u8[]){0x48, 0x85, 0xff}, 3);
    far_link(far_jcc(e, JE), back);
    CodePtr on_event = emit_event(e, site);
    far_land(e, within);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    b->spilled = 0;
    emit_fast_call(b, redirect_lean_before, site->hook);
    far_land(e, on);
    far_land(e, on_series);
    far_land(e, on_end);
    far_land(e, on_event);
    builder_mark(b, false); // F3
}
