// SPDX-License-Identifier: MIT
//
// The hand-written cases: what translators get wrong. They are written in assembly (traps_x64.S);
// this is the record that its macros make, one per statement that is not code.
#ifndef MUNINN_TESTS_INSN_TRAPS_H
#define MUNINN_TESTS_INSN_TRAPS_H

#define TRAP_BEGIN 0 // pointer: the name of its group
#define TRAP_CODE 1  // pointer: first byte
#define TRAP_SET 2   // a CaseSet
#define TRAP_FIX 3   // a CaseFix; `at` and `end` are pointers
#define TRAP_TRAIT 4
#define TRAP_EDGE 5 // value: bytes on the executable page; 0: one case for each possible number
#define TRAP_FLAGS 6 // value: flags that do not count
#define TRAP_IGNORE 7
#define TRAP_END 8 // pointer: after the last byte

#define TRAP_SET_GPR 0
#define TRAP_SET_FLAGS 1
#define TRAP_SET_DATA 2
#define TRAP_SET_NEAR 3
#define TRAP_FIX_REL32 0
#define TRAP_FIX_ABS64 2
#define TRAP_FIX_EXIT 3
#define TRAP_FIX_EXIT_TAKEN 4
#define TRAP_BASE_NONE 0
#define TRAP_BASE_DATA 1
#define TRAP_BASE_NEAR 2
#define TRAP_BASE_CODE 3

#ifndef __ASSEMBLER__
#include "casefile.h"

typedef struct TrapRecord {
    u32 what;
    u32 kind;
    u32 base;
    u32 index;
    i64 value;
    const u8 *pointer;
    const u8 *end;
} TrapRecord;

// Adds the cases to the file, each with several random states.
void traps_write(CaseWriter *writer, u64 *rng);
#endif

#endif
