// SPDX-License-Identifier: MIT
//
// The event of an allocation, put into the ring where it returns: as wire_heap_alloc() does it, for
// one thread, if the last stamp may be shared and the tool knows the place (ToolSite).
// Registers: rax is the block, rcx the context, rdx and rsi are at hand, rdi is the ring and r8
// the site.
#include "engine/redirect/redirect.h"
#include "engine/translate/lean_x64.h"

#define SITE(field) ((i32)(tool_site_index(pc) * sizeof(ToolSite) + offsetof(ToolSite, field)))

enum { CHUNK_IS_MAPPED = 2 };

static void put_disp_imm(Emitter *e, const u8 *bytes, size_t size, i32 disp, u32 imm)
{
    put_bytes(e, bytes, size);
    put_u32(e, (u32)disp);
    put_u32(e, imm);
}

// The functions are those of the site. Not both as one word: they were stored as two, and a load
// would wait for that to be in the cache.
//     mov edx, fs:[lean_hook] ; cmp [r8 + hook], edx ; jne slow
static void emit_check_function(Emitter *e, i32 ctx, i32 site, Slow *slow)
{
    put_bytes(e, (u8[]){0x64, 0x8b, 0x14, 0x25}, 4);
    put_u32(e, (u32)ctx);
    put_bytes(e, (u8[]){0x41, 0x39, 0x90}, 3);
    put_u32(e, (u32)site);
    unless(e, JNE, slow);
}

// rsi := the place of the caller's return address, rdx := its word of shadow
static void emit_find_slot(Emitter *e, u32 pc)
{
    emit_op_base(e, 0x8b, RSI, R8, SITE(up));
    emit_lea_sum(e, RSI, RSP, RSI);
    emit_load_tag(e, RDX, RSI);
}

// Whether edx is the tag of what is at [rsi]: calltag_fits(). Where a word is no tag, there may be
// no stack. ecx := it
//     lea ecx, [rdx - LANDING] ; cmp ecx, MAX ; jae hashed
//     mov rcx, [rcx*8 + LANDING_PCS] ; cmp rcx, [rsi] ; jne unknown ; jmp fits
//   hashed: mov ecx, edx ; and ecx, FIXED ; cmp ecx, PATTERN ; jne unknown
//     mov rcx, [rsi] ; mov rdi, rcx ; shr rdi, 29 ; xor ecx, edi ; imul ecx, ecx, 0x9e3779b1
//     and ecx, ~(FIXED | SIGNAL_BIT) ; or ecx, PATTERN ; cmp ecx, edx ; jne unknown
//   fits: mov ecx, edx
static void emit_check_tag(Emitter *e, Slow *unknown)
{
    put_bytes(e, (u8[]){0x8d, 0x8a}, 2);
    put_u32(e, -CALLTAG_LANDING);
    put_bytes(e, (u8[]){0x81, 0xf9}, 2);
    put_u32(e, LANDINGS_MAX);
    CodePtr hashed = branch(e, JAE);
    put_bytes(e, (u8[]){0x48, 0x8b, 0x0c, 0xcd}, 4);
    put_u32(e, (u32)LANDING_PCS);
    emit_op_base(e, 0x3b, RCX, RSI, 0);
    unless(e, JNE, unknown);
    CodePtr fits = branch(e, OP_JMP_REL8);
    land(e, hashed);
    put_bytes(e, (u8[]){0x89, 0xd1, 0x81, 0xe1}, 4);
    put_u32(e, CALLTAG_FIXED);
    put_bytes(e, (u8[]){0x81, 0xf9}, 2);
    put_u32(e, CALLTAG_PATTERN);
    unless(e, JNE, unknown);
    emit_op_base(e, 0x8b, RCX, RSI, 0);
    put_bytes(e, (u8[]){0x48, 0x89, 0xcf, 0x48, 0xc1, 0xef, 29, 0x31, 0xf9, 0x69, 0xc9}, 11);
    put_u32(e, 0x9e3779b1);
    put_bytes(e, (u8[]){0x81, 0xe1}, 2);
    put_u32(e, ~CALLTAG_FIXED & ~CALLTAG_SIGNAL_BIT);
    put_bytes(e, (u8[]){0x81, 0xc9}, 2);
    put_u32(e, CALLTAG_PATTERN);
    put_bytes(e, (u8[]){0x39, 0xd1}, 2);
    unless(e, JNE, unknown);
    land(e, fits);
    put_bytes(e, (u8[]){0x89, 0xd1}, 2);
}

// The caller has been called anew, from where it was the last time; ecx is its tag.
//     cmp [r8 + sp], rsp ; jne other ; cmp [r8 + word], ecx ; jne other
//     mov rdx, [r8 + slot_above] ; mov rdx, gs:[rdx + DISP] ; cmp [r8 + word_above], rdx
//     jne other ; mov rdx, [r8 + word] ; mov gs:[rsi + DISP], rdx ; shr rdx, 32 ; jmp named
static void emit_name_again(Emitter *e, u32 pc, CodePtr named, Slow *other)
{
    emit_op_base(e, 0x39, RSP, R8, SITE(sp));
    unless(e, JNE, other);
    put_bytes(e, (u8[]){0x41, 0x39, 0x88}, 3);
    put_u32(e, (u32)SITE(word));
    unless(e, JNE, other);
    emit_op_base(e, 0x8b, RDX, R8, SITE(slot_above));
    emit_load_tag(e, RDX, RDX);
    emit_op_base(e, 0x39, RDX, R8, SITE(word_above));
    unless(e, JNE, other);
    emit_op_base(e, 0x8b, RDX, R8, SITE(word));
    put_u8(e, 0x65);
    emit_op_base(e, 0x89, RDX, RSI, CALLTAGS_DISP);
    put_bytes(e, (u8[]){0x48, 0xc1, 0xea, 32}, 4);
    emit_jmp(e, named);
}

// What calltags_context() finds if the caller's context is known and that of the call was found
// before; ecx := it. Returns the jump to emit_name_again().
//     mov r8, fs:[lean_sites] ; cmp dword [r8 + site], pc ; jne slow ; functions ; slot ; tag
//     shr rdx, 32 ; je unnamed
//   named: lea ecx, [rdx + index of pc] ; and ecx, CACHED - 1 ; shl ecx, 4
//     add rcx, fs:[lean_contexts] ; cmp qword [rcx + pc], pc ; jne unknown
//     cmp [rcx + parent], edx ; jne unknown ; mov ecx, [rcx + context]
//     test ecx, ecx ; je unknown
static CodePtr emit_find_context(Emitter *e, u32 pc, Slow *slow, Slow *unknown,
                                 CodePtr *ret_named)
{
    _Static_assert(sizeof(CachedContext) == 1 << 4, "");
    emit_load_fs(e, R8, CTX(lean_sites));
    put_disp_imm(e, (u8[]){0x41, 0x81, 0xb8}, 3, SITE(site), pc);
    unless(e, JNE, slow);
    emit_check_function(e, CTX(lean_hook), SITE(hook), slow);
    emit_check_function(e, CTX(lean_inner), SITE(inner), slow);
    emit_find_slot(e, pc);
    emit_check_tag(e, unknown);
    put_bytes(e, (u8[]){0x48, 0xc1, 0xea, 32}, 4);
    CodePtr unnamed = far_jcc(e, JE);
    *ret_named = e->pc;
    put_bytes(e, (u8[]){0x8d, 0x8a}, 2);
    put_u32(e, calltags_cache_index(pc, 0));
    put_bytes(e, (u8[]){0x81, 0xe1}, 2);
    put_u32(e, CONTEXTS_CACHED - 1);
    put_bytes(e, (u8[]){0xc1, 0xe1, 4}, 3);
    emit_op_fs(e, 0x03, RCX, CTX(lean_contexts));
    put_disp_imm(e, (u8[]){0x48, 0x81, 0xb9}, 3, offsetof(CachedContext, pc), pc);
    unless(e, JNE, unknown);
    put_bytes(e, (u8[]){0x39, 0x51, offsetof(CachedContext, parent)}, 3);
    unless(e, JNE, unknown);
    put_bytes(e, (u8[]){0x8b, 0x49, offsetof(CachedContext, context), 0x85, 0xc9}, 5);
    unless(e, JE, unknown);
    return unnamed;
}

// Else Tool.lean_context() is asked; the registers that it may change and nobody has spilled are.
//     spill rax, r9, r10, r11 ; mov fs:[rsp], rsp ; mov rsp, fs:[engine_rsp] ; mov edi, pc
//     mov rax, redirect_lean_context ; call rax ; mov rsp, fs:[rsp] ; mov ecx, eax
//     registers ; mov r8, fs:[lean_sites] ; test ecx, ecx ; je slow
//     cmp qword fs:[pending_signal], 0 ; jne slow
static void emit_ask_context(Emitter *e, u32 pc, Slow *slow)
{
    static const u8 registers[] = {RAX, R9, R10, R11};
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        emit_store_fs(e, CTX_SPILL(registers[i]), registers[i]);
    emit_store_fs(e, CTX_GPR(RSP), RSP);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    emit_mov_imm(e, RDI, pc);
    emit_mov_imm(e, RAX, (u64)(uintptr_t)redirect_lean_context);
    put_bytes(e, (u8[]){0xff, 0xd0}, 2);
    emit_load_fs(e, RSP, CTX_GPR(RSP));
    put_bytes(e, (u8[]){0x89, 0xc1}, 2);
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        emit_load_fs(e, registers[i], CTX_SPILL(registers[i]));
    emit_load_fs(e, R8, CTX(lean_sites));
    put_bytes(e, (u8[]){0x85, 0xc9}, 2);
    unless(e, JE, slow);
    put_bytes(e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
    put_u32(e, (u32)CTX(pending_signal));
    put_u8(e, 0);
    unless(e, JNE, slow);
}

// How much more than was asked for is usable, as glibc has it in front of the block:
//     mov rdx, [rax - 8] ; and rdx, -8 ; sub rdx, 8 ; sub rdx, fs:[lean_size]
static void emit_extra(Emitter *e)
{
    emit_op_base(e, 0x8b, RDX, RAX, -8);
    put_bytes(e, (u8[]){0x48, 0x83, 0xe2, 0xf8, 0x48, 0x83, 0xea, 0x08}, 8);
    emit_op_fs(e, 0x2b, RDX, CTX(lean_size));
}

//     test rax, rax ; je slow ; test eax, PAGE_SIZE - 1 ; je slow
//     test byte [rax - 8], MAPPED ; jne slow ; extra ; cmp rdx, EXTRA_MAX ; ja slow
static void emit_check_block(Emitter *e, Slow *slow)
{
    put_bytes(e, (u8[]){0xa9}, 1);
    put_u32(e, PAGE_SIZE - 1);
    unless(e, JE, slow); // a page, which may be no block of glibc's; or NULL
    put_bytes(e, (u8[]){0xf6, 0x40, 0xf8, CHUNK_IS_MAPPED}, 4);
    unless(e, JNE, slow);
    emit_extra(e);
    put_bytes(e, (u8[]){0x48, 0x81, 0xfa}, 3);
    put_u32(e, HEAP_EXTRA_MAX);
    unless(e, JA, slow);
}

//     mov rsi, [rdi + write] ; lea rdx, [rsi + RUN] ; sub rdx, fs:[read_seen]
//     cmp rdx, RING_BYTES ; ja slow ; and esi, RING_BYTES - 1 ; cmp esi, RING_BYTES - RUN ; ja slow
//     lea rsi, [rdi + rsi]
static void emit_find_room(Emitter *e, Slow *slow)
{
    emit_op_base(e, 0x8b, RSI, RDI, RING(write));
    emit_lea(e, RDX, RSI, HEAP_RUN_BYTES);
    emit_op_fs(e, 0x2b, RDX, CTX(wire.read_seen));
    put_bytes(e, (u8[]){0x48, 0x81, 0xfa}, 3);
    put_u32(e, WIRE_RING_BYTES);
    unless(e, JA, slow);
    put_bytes(e, (u8[]){0x81, 0xe6}, 2);
    put_u32(e, WIRE_RING_BYTES - 1);
    put_bytes(e, (u8[]){0x81, 0xfe}, 2);
    put_u32(e, WIRE_RING_BYTES - HEAP_RUN_BYTES);
    unless(e, JA, slow);
    emit_lea_sum(e, RSI, RDI, RSI);
}

// wire_heap_hold():
//     prefetchw [rsi + FETCH]
//     mov edx, [rdi + run] ; add edx, 1 ; mov [rdi + run], edx ; shr edx, 1 ; add edx, 1
//     movzx edx, dl ; shl edx, 8 ; or edx, head ; shl rcx, 32 ; or rdx, rcx ; mov [rsi], rdx
//     mov rdx, [rdi + begun] ; mov [rsi + 8], rdx ; mov [rdi + allocated], rdx
//     extra ; shl rdx, 47 ; or rdx, rax ; mov [rsi + 16], rdx
//     mov rdx, fs:[lean_size] ; mov [rsi + 24], rdx ; mov [rdi + size], rdx
static void emit_record(Emitter *e)
{
    emit_fetch_ring(e, RSI, RING(data));
    put_bytes(e, (u8[]){0x8b, 0x97}, 2);
    put_u32(e, (u32)RING(held.run));
    put_bytes(e, (u8[]){0x83, 0xc2, 1, 0x89, 0x97}, 5);
    put_u32(e, (u32)RING(held.run));
    put_bytes(e, (u8[]){0xd1, 0xea, 0x83, 0xc2, 1, 0x0f, 0xb6, 0xd2, 0xc1, 0xe2, 8}, 11);
    put_bytes(e, (u8[]){0x81, 0xca}, 2);
    put_u32(e, WIRE_STREAM_HEAD(RECORD_HEAP_ALLOC, WIRE_STREAM_ALLOC));
    put_bytes(e, (u8[]){0x48, 0xc1, 0xe1, 32, 0x48, 0x09, 0xca}, 7);
    emit_op_base(e, 0x89, RDX, RSI, RING(data));
    emit_op_base(e, 0x8b, RDX, RDI, RING(begun));
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 8);
    emit_op_base(e, 0x89, RDX, RDI, RING(held.allocated));
    emit_extra(e);
    put_bytes(e, (u8[]){0x48, 0xc1, 0xe2, HEAP_PLACE_BITS, 0x48, 0x09, 0xc2}, 7);
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 16);
    emit_load_fs(e, RDX, CTX(lean_size));
    emit_op_base(e, 0x89, RDX, RSI, RING(data) + 24);
    emit_op_base(e, 0x89, RDX, RDI, RING(held.repeat.size));
}

//     mov [rdi + result], rax ; mov [rdi + address], rax ; mov dword [rdi + site], pc
//     mov edx, fs:[lean_inner] ; mov [rdi + inner], edx
//     mov [rdi + sp], rsp ; slot, tag ; mov qword [rdi + state], 1 ; add dword [rdi + run], 1
static void emit_hold(Emitter *e, u32 pc)
{
    emit_op_base(e, 0x89, RAX, RDI, RING(held.repeat.result));
    emit_op_base(e, 0x89, RAX, RDI, RING(held.address));
    put_disp_imm(e, (u8[]){0xc7, 0x87}, 2, RING(held.repeat.site), pc);
    put_bytes(e, (u8[]){0x64, 0x8b, 0x14, 0x25}, 4);
    put_u32(e, (u32)CTX(lean_inner));
    put_bytes(e, (u8[]){0x89, 0x97}, 2);
    put_u32(e, (u32)RING(held.repeat.inner));
    emit_op_base(e, 0x89, RSP, RDI, RING(held.repeat.sp));
    emit_find_slot(e, pc);
    emit_op_base(e, 0x89, RSI, RDI, RING(held.repeat.slot));
    emit_op_base(e, 0x89, RDX, RDI, RING(held.repeat.tag));
    put_disp_imm(e, (u8[]){0x48, 0xc7, 0x87}, 3, RING_STATE, 1);
    put_bytes(e, (u8[]){0x83, 0x87}, 2);
    put_u32(e, (u32)RING(held.run));
    put_u8(e, 1);
}

static void emit_restore(Emitter *e)
{
    static const u8 registers[] = {RSI, RDI, R8, RDX};
    for (unsigned i = 0; i < ARRAY_LEN(registers); i++)
        emit_load_fs(e, registers[i], CTX_SPILL(registers[i]));
}

//     spill rsi, rdi, r8 ; the stamp, the block, the context
//   known: mov rdi, fs:[ring]
//     flush ; room ; record ; hold ; mov qword fs:[lean_told], 0 ; mov qword fs:[lean_sp], 0
//     registers ; jmp on
//   unnamed: that of the last time
//   other: name the caller (lean_name_x64.c)
//   unknown: ask ; jmp known
//   slow: registers but rcx
CodePtr lean_alloc_event(Emitter *e, u32 pc)
{
    Slow slow = {0}, other = {0}, unknown = {0};
    emit_store_fs(e, CTX_SPILL(RSI), RSI);
    emit_store_fs(e, CTX_SPILL(RDI), RDI);
    emit_store_fs(e, CTX_SPILL(R8), R8);
    emit_may_share_stamp(e, &slow);
    emit_check_block(e, &slow);
    CodePtr named, unnamed = emit_find_context(e, pc, &slow, &unknown, &named);
    CodePtr known = e->pc;
    emit_load_fs(e, RDI, CTX(wire.ring));
    lean_flush(e, RDI, &slow);
    emit_find_room(e, &slow);
    emit_record(e);
    emit_hold(e, pc);
    emit_take_stamp(e);
    emit_store_fs_imm64(e, CTX(lean_told), 0);
    emit_store_fs_imm64(e, CTX(lean_sp), 0);
    emit_restore(e);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    CodePtr on = far_branch(e);
    far_land(e, unnamed);
    emit_name_again(e, pc, named, &other);
    land_all(e, &other);
    lean_name_caller(e, named);
    land_all(e, &unknown);
    emit_ask_context(e, pc, &slow);
    emit_jmp(e, known);
    land_all(e, &slow);
    emit_restore(e);
    return on;
}
