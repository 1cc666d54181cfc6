// SPDX-License-Identifier: MIT
//
// The forms of instructions: every combination of mnemonic, encoding, operand kinds and
// sizes that Zydis knows, found by walking the opcode maps. A form can be instantiated any
// number of times with random registers, addressing modes, immediates and prefixes.
#ifndef MUNINN_TESTS_INSN_FORMS_H
#define MUNINN_TESTS_INSN_FORMS_H

#include <Zydis/Zydis.h>

#include "case.h"

#define INSN_MAX 15

typedef enum FormSpace { SPACE_LEGACY, SPACE_VEX, SPACE_EVEX, SPACE_XOP } FormSpace;

// An encoding before its operands are chosen. `reg` and `rm` are those it was found with.
typedef struct Form {
    u64 key;
    ZydisMnemonic mnemonic;
    ZydisISASet isa;
    FormSpace space;
    u8 map;
    u8 pp;     // the mandatory prefix as EVEX numbers it (0, 66, f3, f2); legacy: 4, 5 = 66 + that
    u8 w;
    u8 l;
    u8 opcode;
    u8 reg;
    u8 rm;
    u8 suffix; // what follows the operands: the opcode of 3DNow
    bool is_mem;
    bool evex_b;
    u8 evex_mask; // 0 none, 1 merging, 2 zeroing
} Form;

typedef struct Insn {
    ZydisDecodedInstruction info;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    u8 bytes[INSN_MAX + 1];
    u8 len_bytes;
} Insn;

// What a variant may choose from.
typedef struct Choice {
    u64 *rng;
    u32 gprs_free; // registers allowed as operands (a bit mask); 0: all
    u32 bases;     // registers allowed as base; 0: all
    u32 indexes;   // registers allowed as index; 0: all
    bool plain;    // memory is [base + index * s + disp], rip-relative or fs:[small]; no odd prefixes
} Choice;

// Returns all forms that the deny list allows, sorted by ISA set; the caller frees them.
Form *forms_enumerate(u32 *ret_count);

// Makes an instance of `form`. False if no valid one was found in a reasonable number of tries.
bool form_instantiate(const Form *form, const Choice *choice, Insn *ret_insn);

// Decodes `bytes`; false if they are no instruction.
bool insn_decode(const u8 *bytes, u32 len_bytes, Insn *ret_insn);

// The status and direction flags that have a defined value after the instruction.
u32 insn_defined_flags(const Insn *insn);

bool insn_is_branch(const Insn *insn);

static inline u32 rng_below(u64 *rng, u32 n)
{
    return (u32)((rng_next(rng) >> 32) * n >> 32);
}

static inline bool rng_one_in(u64 *rng, u32 n)
{
    return rng_below(rng, n) == 0;
}

#endif
