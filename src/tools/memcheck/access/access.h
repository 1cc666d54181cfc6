// SPDX-License-Identifier: MIT
//
// What blocks call: the checks of accesses that are out of the ordinary, and the steps of
// instructions that touch what is undefined.
#ifndef MUNINN_TOOLS_MEMCHECK_ACCESS_ACCESS_H
#define MUNINN_TOOLS_MEMCHECK_ACCESS_ACCESS_H

#include "tools/memcheck/access/swapped.h"
#include "tools/memcheck/memcheck.h"

// --- access_hot.c
void access_step(ToolThread *thread, u64 step, GuestAddr address);
ToolCallFn *access_move(const DefinednessMove *move); // for an AccessMove; moves_hot.c
ToolBriefFn *access_brief_move(const DefinednessMove *move); // or NULL
typedef struct AccessMove {
    DefinednessMove move;
    u32 forgotten;               // bytes of what is stored, behind it: nobody reads it any more
    const DefinednessStep *step; // the same as a step
} AccessMove;
// Several loads and their stores; copies.h. Distances count from the first of either.
enum { COPY_PIECES_MAX = 12, COPY_STRANGERS_MAX = 3, COPY_ASKED_MAX = 6 };
typedef struct CopyPiece {
    i16 from, to;
    u8 size, unused;
} CopyPiece;
typedef struct CopySide {
    i16 low, high; // of all that is accessed there
} CopySide;
typedef struct CopyStranger {
    i32 low, high; // what is accessed between the first and the last piece, at neither side
    u8 base;       // INSN_NO_REG: 0
    bool is_written;
    u8 unused[6];
} CopyStranger;
typedef struct CopyAsked {
    i32 low;
    u8 base, size; // as of a stranger
    u8 unused[2];
} CopyAsked;
typedef struct CopyRun {
    MemberSet members; // that it goes through; dead behind it
    CopySide from, to;
    i32 to_disp;       // from to_base; the address is that of the first load
    u8 to_base, count;
    bool is_apart;     // as both sides have one register
    u8 stranger_count;
    u8 asked_count;
    u8 unused[3];
    CopyAsked asked[COPY_ASKED_MAX]; // has to be defined
    CopyStranger strangers[COPY_STRANGERS_MAX];
    CopyPiece pieces[COPY_PIECES_MAX];
} CopyRun;
void access_copy(ToolThread *thread, u64 run, GuestAddr from);
ToolBriefFn *access_brief_copy(const CopyRun *run);
void access_store(ToolThread *thread, u64 size, GuestAddr address); // its shadow is not 0
void access_give_up(GuestAddr address, u64 size);
void access_load(ToolThread *thread, u64 what, GuestAddr address);  // and no V bits are kept
void access_any(ToolThread *thread, u64 what, GuestAddr address);   // of unusual size
void access_lanes(ToolThread *thread, u64 step, GuestAddr address);
void access_table(ToolThread *thread, u64 unused, GuestAddr base);
void access_string(ToolThread *thread, u64 what, GuestAddr address);
// ACCESS_WRITES, which tile, and the register that says how far apart its rows are.
void access_tile(ToolThread *thread, u64 what, GuestAddr second_row);
enum {
    ACCESS_TILE_INDEX = 15, ACCESS_TILE_STRIDE = 16, // a register; there is one
    ACCESS_TILE_SCALE_AT = 5, ACCESS_TILE_AT = 8,
};
void access_call(ToolThread *thread, u64 is_return, GuestAddr unused);
void access_forget(ToolThread *thread, u64 members, GuestAddr unused); // they are overwritten
void access_forget_copies(ToolThread *thread, u64 vectors, GuestAddr unused); // as at a call
// What a call may change is defined after it.
void set_result_defined(ToolThread *thread);
// Members that hold nothing at a call or a return, by the ABI; vectors may.
#define ACCESS_DEAD_GPRS_AT_CALL (MEMBER_GPR(RAX) | MEMBER_GPR(R10) | MEMBER_GPR(R11))
#define ACCESS_DEAD_GPRS_AT_RETURN (MEMBER_GPR(RCX) | MEMBER_GPR(RSI) | MEMBER_GPR(RDI) | \
                                    MEMBER_GPR(R8) | MEMBER_GPR(R9) | MEMBER_GPR(R10) |   \
                                    MEMBER_GPR(R11))
#define ACCESS_DEAD_AT_BOTH (MEMBER_FLAGS | 0xffull << 20 | MEMBERS_VECTOR)
#define ACCESS_DEAD_AT_CALL (ACCESS_DEAD_GPRS_AT_CALL | ACCESS_DEAD_AT_BOTH)
#define ACCESS_DEAD_AT_RETURN (ACCESS_DEAD_GPRS_AT_RETURN | ACCESS_DEAD_AT_BOTH)
void access_below(ToolThread *thread, u64 what, GuestAddr address); // as access_any()
// access_any(), access_string(): size in the low 32 bits, and these.
#define ACCESS_READS (1ull << 32)
#define ACCESS_WRITES (1ull << 33)
#define ACCESS_COMPARED (1ull << 34) // access_load(): what is loaded is (lookahead.h)

// --- state_hot.c
void access_state(ToolThread *thread, u64 step, GuestAddr address); // in a clean block
bool access_state_is_good(ToolThread *thread, const DefinednessStep *step, GuestAddr address);

#endif
