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

typedef struct InsnShape {
    u64 key;           // the bytes that decide, zeros behind
    Insn insn;         // but for pc, bytes, target and pop_bytes
    InsnForm form;
    u8 disp_at, disp_size; // in bytes
    u8 imm_at, imm_size;   // of the last constant
    u8 value_bytes;        // displacement and constants together
    u8 target;             // ShapeTarget
    u8 access_count;
    u8 has_disp;           // bit i: the displacement is part of access i's address
    InsnAccess accesses[SHAPE_ACCESSES_MAX]; // but for address.disp
} InsnShape;

// Of a decoded instruction, all of the above. False: it is not to be remembered.
bool shape_make(const Insn *insn, InsnShape *ret_shape);

// Whether the four bytes begin the preamble of a client request, so that more than themselves
// decides what they are.
bool decode_may_be_request(const u8 *bytes);

// By Zydis.
unsigned operands_accesses(const Insn *insn, InsnAccess *ret_accesses, unsigned max);
bool operands_form(const Insn *insn, InsnForm *ret_form);

#endif
