// SPDX-License-Identifier: MIT
//
// What Zydis said of instructions, remembered; private to decode/.
//
// An instruction is decided by its prefixes, opcode, modrm and SIB byte: its *shape*. Behind
// them come displacement and constants, which only have values. Large programs use some ten
// thousand shapes in millions of instructions.
#ifndef MUNINN_ENGINE_DECODE_SHAPE_H
#define MUNINN_ENGINE_DECODE_SHAPE_H

#include "engine/decode/decode.h"

#define SHAPE_ACCESSES_MAX 2

// What `target` of an Insn is made from.
typedef enum ShapeTarget {
    TARGET_NONE,
    TARGET_BRANCH, // imm, from the end of the instruction
    TARGET_RIP,    // disp, from there
    TARGET_RIP_NARROW,
} ShapeTarget;

// The part of an Insn that a shape decides, from `mnemonic` on; pop_bytes is void.
#define INSN_TRAITS_BYTES (sizeof(Insn) - offsetof(Insn, mnemonic))

// Blocks are made one by one while the client runs, with cold caches: what decoding needs is in one
// line, what only tools ask for in the next.
typedef struct InsnShape {
    _Alignas(64) u64 key;  // the bytes that decide, zeros behind
    const ZydisAccessedFlags *flags;
    u8 traits[INSN_TRAITS_BYTES];
    u8 len;
    u8 disp_at, disp_size; // in bytes
    u8 imm_at, imm_size;   // of the last constant
    u8 value_bytes;        // displacement and constants together
    u8 target;             // ShapeTarget
    bool pops;             // ret imm16
    InsnForm form;
    u8 access_count;
    u8 has_disp;           // bit i: the displacement is part of access i's address
    _Alignas(64) InsnAccess accesses[SHAPE_ACCESSES_MAX]; // but for address.disp
} InsnShape;
_Static_assert(sizeof(InsnShape) == 128, "two cache lines");

// Of a decoded instruction, all of the above. False: it is not to be remembered.
bool shape_make(const Insn *insn, InsnShape *ret_shape);

// Whether the four bytes begin the preamble of a client request, so that more than themselves
// decides what they are.
bool decode_may_be_request(const u8 *bytes);

// `pop [rsp + disp]` adds to rsp before it computes the address that it stores to: the displacement
// from what rsp is before the instruction is larger by so many bytes.
static inline i64 insn_popped_bytes(ZydisMnemonic mnemonic, const InsnAccess *access)
{
    enum { RSP_NUMBER = 4 };
    bool counts_from_behind = mnemonic == ZYDIS_MNEMONIC_POP && !access->address.is_hidden &&
                              access->address.base == RSP_NUMBER;
    return counts_from_behind ? access->size_bytes : 0;
}

// By Zydis.
unsigned operands_accesses(const Insn *insn, InsnAccess *ret_accesses, unsigned max);
void operands_form(const Insn *insn, InsnForm *ret_form);

#endif
