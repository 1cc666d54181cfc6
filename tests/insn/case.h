// SPDX-License-Identifier: MIT
//
// The case file: what the generators write and the guest runs. A case is a few
// bytes of code, the state it starts from and what of its outcome counts.
//
// The state comes from `seed`, then CaseSets overwrite what matters (a base
// register that must point into an arena, a return address on the stack). Code
// is placed by the guest, so everything position dependent is a CaseFix. Both
// are relative to symbolic bases, because the same file is run with the code in
// the low 2 GiB and far above it.
//
// A case's place depends on its id alone: the outcome of a case is the same
// whether it is run with all others or by itself.
#ifndef MUNINN_TESTS_INSN_CASE_H
#define MUNINN_TESTS_INSN_CASE_H

#include "base/types.h"

#define CASE_MAGIC 0x4e4e554d45534143ull
#define CASE_NAME_MAX 64

// An arena is a run of pages: what an operand may legally touch, then what it may not.
#define ARENA_RW_BYTES (2 * PAGE_SIZE)
#define ARENA_NONE_AT (2 * PAGE_SIZE) // one PROT_NONE page
#define ARENA_RO_AT (3 * PAGE_SIZE)   // one read-only page, then nothing
#define ARENA_END (4 * PAGE_SIZE)

// The data arena is addressed through registers, fs and gs; the near arena is within
// reach of a rip-relative operand and, in the low layout, of a 32-bit address.
#define DATA_ARENA 0x10000000000ull
#define FAR_CODE 0x20000000000ull
#define FAR_NEAR_ARENA (FAR_CODE - 0x7c000000ull)
#define FS_AT 0x400ull // fs.base - DATA_ARENA
#define GS_AT 0x600ull
#define STACK_AT 0x1400ull // where rsp starts unless a case says otherwise

typedef struct CaseFile {
    u64 magic;
    u32 n_cases;
    u32 n_groups;
    u32 slot_bytes; // room for the code of one case
    u32 reserved;
    // char names[n_groups][CASE_NAME_MAX], then the cases, each 8-byte aligned
} CaseFile;

enum CaseTrait {
    CASE_LOW_ONLY = 1, // needs 32-bit addresses
    CASE_USES_NEAR = 2,
    CASE_NO_DF = 4,      // start with the direction flag clear
    CASE_MOVES_FS = 8,   // may leave another fs or gs base behind
    CASE_FP_TRAPS = 16,  // start with some floating-point exceptions unmasked
    CASE_AT_EDGE = 32,   // only `edge_bytes` of the code are on an executable page
    CASE_FP_INIT = 64,   // start with default rounding and masks
    CASE_ASTRAY = 128,   // only the signal counts, not the state in which it came
};

typedef struct Case {
    u32 size_bytes; // of the record: this header, sets, fixes, ignores, code
    u32 id;
    u64 seed;
    u32 flags_mask; // bits of rflags that count
    u16 group;
    u16 code_bytes;
    u8 traits;
    u8 n_sets;
    u8 n_fixes;
    u8 n_ignores;
    u8 edge_bytes;
    u8 pad[3];
} Case;

enum CaseBase { BASE_NONE, BASE_DATA, BASE_NEAR, BASE_CODE };

enum CaseSetKind {
    SET_GPR,       // index: hardware number
    SET_FLAGS,     // the status flags
    SET_DATA,      // 8 bytes at `index` * 8 in the data arena
    SET_NEAR,      // the same in the near arena
    SET_VEC_SMALL, // vector `index`: lanes of `lane_bytes`, each below 64, for gathers
    SET_RESUME,    // a fault at code + (value >> 16) continues at code + (value & 0xffff)
};

typedef struct CaseSet {
    u8 kind;
    u8 base;
    u16 index;
    u8 divisor; // the sum base + value is divided by this; 0 means 1
    u8 lane_bytes;
    u8 pad[2];
    i64 value;
} CaseSet;

enum CaseFixKind {
    FIX_REL32, // at `at`: base + value - (code + end)
    FIX_ABS32,
    FIX_ABS64,
    FIX_EXIT,       // EXIT_BYTES that leave the case
    FIX_EXIT_TAKEN, // the same, and remember that it was this exit
};
#define EXIT_BYTES 8

typedef struct CaseFix {
    u8 kind;
    u8 base;
    u16 at;
    u16 end;
    u16 pad;
    i64 value;
} CaseFix;

// Bytes of the data or near arena that differ legitimately (x87 instruction pointers).
typedef struct CaseIgnore {
    u16 base;
    u16 at;
    u32 len_bytes;
} CaseIgnore;

static inline CaseSet *case_sets(const Case *c)
{
    return (CaseSet *)(c + 1);
}

static inline CaseFix *case_fixes(const Case *c)
{
    return (CaseFix *)(case_sets(c) + c->n_sets);
}

static inline CaseIgnore *case_ignores(const Case *c)
{
    return (CaseIgnore *)(case_fixes(c) + c->n_fixes);
}

static inline u8 *case_code(const Case *c)
{
    return (u8 *)(case_ignores(c) + c->n_ignores);
}

static inline u64 mix64(u64 x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static inline u64 rng_next(u64 *state)
{
    *state += 0x9e3779b97f4a7c15ull;
    return mix64(*state);
}

#endif
