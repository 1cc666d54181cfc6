// SPDX-License-Identifier: MIT
//
// The definedness of what an instruction makes, bit by bit, from that of what it
// reads: an interpreter on V bits. Blocks in which nothing is undefined never come
// here; in the others, an instruction that touches something undefined calls
// definedness_run() before it executes.
//
// Glossary
//   V bit    1: the bit of the value is undefined
//   member   a register, the flags, or a group of registers that is tracked as one:
//            what sets are made of
//   step     an instruction taken apart when its block is translated
//   event    a place where undefinedness matters and must be reported
//
// What must stay true
//   D1  Never call a bit defined that an undefined input bit can change. (Calling one
//       undefined that none can change is allowed where the table says so.)
//   D2  thread->set has the bit of every member with a V bit of 1; it may have more.
//   D3  definedness_run() is called from the cache: general registers only, no libc.
//   D4  When it is, mask registers and the top of the x87 stack are still the client's in
//       the hardware: it reads them there.
#ifndef MUNINN_TOOLS_MEMCHECK_DEFINEDNESS_DEFINEDNESS_H
#define MUNINN_TOOLS_MEMCHECK_DEFINEDNESS_DEFINEDNESS_H

#include "base/types.h"
#include "engine/decode/decode.h"

// Members, as bits of a set.
typedef u64 MemberSet;
#define MEMBER_GPR(r) (1ull << (r))      // rax … r15, the hardware's order
#define MEMBER_FLAGS (1ull << 16)        // CF PF AF ZF SF OF DF
#define MEMBER_X87 (1ull << 17)          // the whole x87 and MMX state
#define MEMBER_MXCSR (1ull << 18)
#define MEMBER_MASK(k) (1ull << (20 + (k))) // k0 … k7
#define MEMBER_VECTOR(n) (1ull << (32 + (n))) // zmm0 … zmm31
#define MEMBERS_VECTOR (~0ull << 32)
#define MEMBERS_STATE (MEMBER_X87 | MEMBER_MXCSR | 0xffull << 20 | MEMBERS_VECTOR) // by xsave

// The V bits of a thread's registers.
typedef struct Definedness {
    MemberSet set; // D2
    u64 gpr[16];
    u64 flags;     // at the positions of eflags
    u64 mask[8];
    u64 mxcsr;
    u64 x87_environment;        // control, status and tag words: any bit
    _Alignas(64) u8 x87[8][16]; // by physical register; MMX registers are their low 8 bytes
    _Alignas(64) u8 vector[32][64];
} Definedness;

// ------------------------------------------------------------- at translation

// An instruction taken apart. Fixed size, no pointers into it.
typedef struct DefinednessStep DefinednessStep;
enum { DEFINEDNESS_STEP_BYTES = 208 };

// Fills the step. False: the instruction is not known; it is treated by the coarse rule
// (any undefined input makes all outputs undefined), with what Zydis says it reads and writes.
bool definedness_prepare(const Insn *insn, DefinednessStep *ret_step);

// Whether the sets below, and what is said of moves, would be the same with other constants.
bool definedness_is_fixed(const Insn *insn);

MemberSet definedness_reads(const DefinednessStep *step);   // values; not for addresses
MemberSet definedness_address(const DefinednessStep *step); // registers in its addresses
MemberSet definedness_writes(const DefinednessStep *step);  // wholly or partly
// Vectors whose values definedness_run() needs in DefinednessValues.
u32 definedness_needs_vectors(const DefinednessStep *step);

// Its explicit memory operand; size 0: none. Hidden ones (of push, pop, call, non-repeated
// string instructions) definedness_run() finds by itself: gpr has the addresses.
typedef struct DefinednessAccess {
    u32 size;
    bool reads, writes;
} DefinednessAccess;
DefinednessAccess definedness_access(const DefinednessStep *step);

// Memory that is touched in lanes, not as a whole (lanes_hot.c).
enum { LANES_MAX = 64 };
typedef struct LaneAccess {
    GuestAddr address;
    u8 at;   // its place in the operand
    u8 size;
} LaneAccess;
struct DefinednessValues;
bool definedness_has_lanes(const DefinednessStep *step);
bool definedness_lanes_write(const DefinednessStep *step);
// Those that will be touched; returns how many. Reads mask registers in the hardware (D4).
u32 definedness_lanes(const DefinednessStep *step, const struct DefinednessValues *values,
                      LaneAccess ret[LANES_MAX]);

// The V bytes of lanes of a load whose mask bits are undefined become 0xff.
void definedness_lanes_unsure(const DefinednessStep *step, const Definedness *d, u8 ret_v[64]);

// xsave, fxsave, xrstor and fxrstor: parts of memory that the instruction touches, `at` bytes from
// its operand. What it finds there tells which.
enum { STATE_SPANS_MAX = 16 };
typedef struct StateSpan {
    u32 at, size;
} StateSpan;
bool definedness_is_state(const DefinednessStep *step);
bool definedness_state_saves(const DefinednessStep *step);
u32 definedness_state_spans(const DefinednessStep *step, const u64 *gpr, GuestAddr address,
                            StateSpan ret[STATE_SPANS_MAX]);

// The hidden ones, at most two; returns how many. gpr: before the instruction.
typedef struct HiddenAccess {
    GuestAddr address;
    u32 size;
    bool reads, writes;
} HiddenAccess;
unsigned definedness_hidden(const DefinednessStep *step, const u64 *gpr, HiddenAccess ret[2]);

// Kept for the tool: what the step loads is only compared (lookahead.h).
void definedness_set_compared(DefinednessStep *step);
bool definedness_is_compared(const DefinednessStep *step);

// An instruction that does nothing but move a value, from and to a register or memory.
#define MOVE_MEMORY 0xffff
typedef struct DefinednessMove {
    MemberSet address;       // registers in its address
    u16 from, to;            // offsets in Definedness, or MOVE_MEMORY
    u8 from_member, to_member;
    u8 size;                 // bytes moved: a power of two, at most 32
    u8 written;              // of the register, with the zeros that follow what was moved
    u8 whole;                // of the register
} DefinednessMove;
bool definedness_move(const DefinednessStep *step, DefinednessMove *ret_move);
// xor r, r and its like, as if a constant were moved to r: nothing is read.
bool definedness_is_constant(const DefinednessStep *step, DefinednessMove *ret_move);

// `and` or `or` of a general register, all of which it writes, and a constant: which of the
// register's V bits are kept.
bool definedness_masks(const DefinednessStep *step, unsigned *ret_gpr, u64 *ret_kept);

// Members that it overwrites wholly, whatever they were: general registers and flags only.
MemberSet definedness_overwrites(const DefinednessStep *step);

// What a string instruction is, for access_string().
typedef enum StringKind {
    STRING_NONE, STRING_MOVE, STRING_STORE, STRING_LOAD, STRING_COMPARE, STRING_SCAN
} StringKind;
typedef struct DefinednessString {
    StringKind kind;
    u32 element;      // bytes
    bool reads_si, uses_di;
    bool while_equal; // repe, not repne
    bool address32;
} DefinednessString;
DefinednessString definedness_string(const DefinednessStep *step);

// ------------------------------------------------------------------- at run time

typedef enum DefinednessEvent {
    EVENT_CONDITION = 1, // a conditional jump depends on undefined flags or rcx; a store, on a mask
    EVENT_ADDRESS = 2,   // an address is undefined
    EVENT_TARGET = 4,    // the target of an indirect jump is undefined
} DefinednessEvent;

// What the instruction is going to see.
typedef struct DefinednessValues {
    const u64 *gpr;                // before it
    u64 eflags;
    const u8 (*vector)[64];        // by register number; those asked for are filled
    GuestAddr address;             // of its memory operand, segment base included
    const u8 *memory;              // the bytes there, or NULL; through guest_read() only
    u8 *memory_v;                  // their V bits: read, and written if it stores
} DefinednessValues;

// Computes and stores the V bits of all outputs; memory_v is written where the instruction
// stores. Returns the events (DefinednessEvent bits); what was reported counts as
// defined afterwards.
u32 definedness_run(const DefinednessStep *step, Definedness *d, const DefinednessValues *values);

// Whether a condition, by its number in the opcode, holds with these flags.
bool definedness_holds(u64 flags, u32 condition);
// A conditional jump whose undefined flags decide nothing: they count as defined.
void definedness_forget_condition(const DefinednessStep *step, Definedness *d);

#endif
