// SPDX-License-Identifier: MIT
//
// Questions about code that is not in the block being made: what a function does below its stack
// pointer, what becomes of a vector that is loaded. Asked when blocks are made, with the engine
// lock held; the answers follow the code in line and guess nothing that it does not show.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_LOOKAHEAD_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_LOOKAHEAD_H

#include "engine/decode/decode.h"
#include "tools/memcheck/definedness/definedness.h"

// What a function uses below its stack pointer, and no instruction of its own opens or leaves:
// the red zone. In bytes below the stack pointer that it begins with, from `low` up to `high`.
typedef struct RedZone {
    u32 low;  // 0: there is none
    u32 high;
} RedZone;

// That of a function, if it calls nothing. `is_framed`: it begins with `push rbp; mov rbp, rsp`,
// and may be long.
RedZone lookahead_red_zone(GuestAddr function, bool is_framed);

// lookahead_left_zone() is what the instruction at `pc` leaves below its stack pointer: a `ret`, or
// one that gives up a frame, as `add rsp, size`. Known of functions with rbp since they began, and
// of others since `pc` was seen to touch up to `bytes` below the stack pointer, or to make a
// pointer there, as far as the way out stands not far behind; that of another function leaves them
// as well. Blocks that know less are made anew.
void lookahead_note_frame(GuestAddr function);
void lookahead_note_zone(GuestAddr pc, u32 bytes);
RedZone lookahead_left_zone(GuestAddr pc);

// `insn` raises the stack pointer. Whether code that was written by hand reads what that leaves, as
// it may until the next call or return: seen within its block, which ends at `end`, and in line.
bool lookahead_is_left_read(const Insn *insn, const Insn *end);

// Whether `insn` loads a vector that is only compared, as code that looks for the end of a string
// does it: it may read on to where nothing is, as long as what it finds there decides nothing.
bool lookahead_is_compared(const Insn *insn);

// Whether what a general register holds before `pc` is read from there on, however the next
// branches go. Before the first of them a call that may take it for an argument counts, behind it
// only what is seen to read it.
bool lookahead_is_read(GuestAddr pc, unsigned gpr);

// Those of `members` that are overwritten, or hold nothing any more by the ABI, before they are
// read, wherever the code goes on from pc. `low`: see step_overwrites(). *ret_passed: vectors that
// get as far as a call or return that may want a scalar in them.
MemberSet lookahead_dead(GuestAddr pc, MemberSet members, MemberSet low, MemberSet *ret_passed);

#endif
