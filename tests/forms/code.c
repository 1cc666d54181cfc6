// SPDX-License-Identifier: MIT
//
// See code.h. Emitters show the assembly that they emit.
#include "code.h"

#include <string.h>

bool code_has_avx512;

static void put(u8 **at, const void *bytes, size_t size)
{
    memcpy(*at, bytes, size);
    *at += size;
}

#define PUT(at, ...) put(at, (const u8[]){__VA_ARGS__}, sizeof((const u8[]){__VA_ARGS__}))

// modrm, SIB and disp32 of an absolute address
static void put_place(u8 **at, u32 reg, u64 place)
{
    u32 disp = (u32)place;
    PUT(at, (u8)(0x04 | (reg & 7) << 3), 0x25);
    put(at, &disp, 4);
}

static bool has(u64 members, u64 member)
{
    return (members & member) != 0;
}

// mov r, [place]; or the other way round
static void put_gpr(u8 **at, u32 reg, bool store, u64 place)
{
    PUT(at, (u8)(0x48 | (reg >> 3) << 2), store ? 0x89 : 0x8b);
    put_place(at, reg, place);
}

// vmovdqu64 zmm, [place], or vmovdqu ymm, [place], and the other way round
static void put_vector(u8 **at, u32 n, bool store, u64 place)
{
    u8 opcode = store ? 0x7f : 0x6f, low = n & 8 ? 0 : 0x80, high = n & 16 ? 0 : 0x10;
    if (code_has_avx512)
        PUT(at, 0x62, (u8)(low | high | 0x61), 0xfe, 0x48, opcode);
    else
        PUT(at, 0xc4, (u8)(low | 0x61), 0x7e, opcode);
    put_place(at, n, place);
}

static void put_registers(u8 **at, u64 members, bool store, u64 state)
{
    u32 vectors = code_has_avx512 ? 32 : 16;
    if (has(members, MEMBER_X87)) { // fxsave64, fxrstor64
        PUT(at, 0x48, 0x0f, 0xae);
        put_place(at, store ? 0 : 1, state + offsetof(State, fx));
    }
    for (u32 i = 0; i < vectors; i++) {
        if (has(members, MEMBER_VECTOR(i)))
            put_vector(at, i, store, state + offsetof(State, vector) + 64 * i);
    }
    for (u32 i = 0; i < 8 && code_has_avx512; i++) { // kmovq
        if (has(members, MEMBER_MASK(i))) {
            PUT(at, 0xc4, 0xe1, 0xf8, store ? 0x91 : 0x90);
            put_place(at, i, state + offsetof(State, mask) + 8 * i);
        }
    }
    for (u32 i = 0; i < 16; i++) {
        if (has(members, MEMBER_GPR(i)) && i != RSP_NUMBER && (store || i != RDI_NUMBER))
            put_gpr(at, i, store, state + offsetof(State, gpr) + 8 * i);
    }
}

// push [flags] ; popfq       or       mov eax, [half_flags] ; add al, 127 ; sahf
static void put_flags(u8 **at, u32 form)
{
    if (form & FORM_SAHF) {
        PUT(at, 0x8b);
        put_place(at, 0, STATE_IN + offsetof(State, half_flags));
        PUT(at, 0x04, 127, 0x9e);
    } else {
        PUT(at, 0xff);
        put_place(at, 6, STATE_IN + offsetof(State, flags));
        PUT(at, 0x9d);
    }
}

// jmp [place] ; place: what it jumps to. By rip it would be a tail call, where no flags are live.
static void put_split(u8 **at)
{
    enum { JMP_BYTES = 7, POINTER_BYTES = 8 };
    u64 place = (u64)(*at + JMP_BYTES), to = place + POINTER_BYTES;
    PUT(at, 0xff);
    put_place(at, 4, place);
    put(at, &to, POINTER_BYTES);
}

// The memory of the operand goes to the stack, or from there: vmovdqu ymm0, [from] ; vmovdqu [to], ymm0
static void put_stack(u8 **at, bool store)
{
    u64 state = (store ? STATE_OUT : STATE_IN) + offsetof(State, memory) + MEMORY_BEFORE;
    for (u32 i = 0; i < MEMORY_BYTES - MEMORY_BEFORE; i += 32) {
        if (!store) {
            PUT(at, 0xc5, 0xfe, 0x6f);
            put_place(at, 0, state + i);
            PUT(at, 0xc5, 0xfe, 0x7f, 0x44, 0x24, (u8)i);
        } else {
            PUT(at, 0xc5, 0xfe, 0x6f, 0x44, 0x24, (u8)i);
            PUT(at, 0xc5, 0xfe, 0x7f);
            put_place(at, 0, state + i);
        }
    }
}

// The instruction, with [rsp] instead of [rdi] if its form is that.
static void put_insn(u8 **at, const FormInsn *insn, u32 form)
{
    if (!(form & FORM_STACK)) {
        put(at, insn->bytes, insn->len);
        return;
    }
    put(at, insn->bytes, insn->modrm_at);
    PUT(at, (u8)((insn->bytes[insn->modrm_at] & 0xf8) | 4), 0x24);
    put(at, insn->bytes + insn->modrm_at + 1, (size_t)(insn->len - insn->modrm_at - 1));
}

u8 *code_make(u8 *at, const FormInsn *insn, u32 form)
{
    enum { ROOM = 1024 };
    u32 operand = STATE_IN + offsetof(State, memory) + MEMORY_BEFORE, room = ROOM;
    // push rbx ; push rbp ; push r12 ; … r15 ; mov [spare], rsp ; lea rsp, [rsp - ROOM] ; and rsp, -64
    PUT(&at, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57);
    room = 0 - room;
    put_gpr(&at, RSP_NUMBER, true, STATE_ZERO + offsetof(State, spare));
    PUT(&at, 0x48, 0x8d, 0xa4, 0x24);
    put(&at, &room, 4);
    PUT(&at, 0x48, 0x83, 0xe4, 0xc0);
    if (form & FORM_STACK)
        put_stack(&at, false);
    if (has(insn->members, MEMBER_FLAGS))
        put_flags(&at, form);
    put_registers(&at, insn->members, false, STATE_IN);
    PUT(&at, 0xbf); // mov edi, operand
    put(&at, &operand, 4);
    if (form & FORM_SPLIT_BEFORE)
        put_split(&at);
    put_insn(&at, insn, form);
    if (form & FORM_SPLIT_AFTER)
        put_split(&at);
    if (form & FORM_FLAGS_DEAD) {
        PUT(&at, 0x48, 0x85, 0xe4); // test rsp, rsp
    } else {
        PUT(&at, 0x9c, 0x8f); // pushfq ; pop [flags]
        put_place(&at, 0, STATE_OUT + offsetof(State, flags));
    }
    put_registers(&at, insn->members, true, STATE_OUT);
    if (form & FORM_STACK)
        put_stack(&at, true);
    // What the registers hold now is nobody's: cld ; test rsp, rsp ; zeros
    PUT(&at, 0xfc, 0x48, 0x85, 0xe4);
    put_registers(&at, insn->members | (form & FORM_STACK ? MEMBER_VECTOR(0) : 0) |
                           MEMBER_GPR(0), false, STATE_ZERO);
    PUT(&at, 0xc5, 0xf8, 0x77); // vzeroupper
    put_gpr(&at, RSP_NUMBER, false, STATE_ZERO + offsetof(State, spare));
    PUT(&at, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3);
    return at;
}
