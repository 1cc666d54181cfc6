// SPDX-License-Identifier: MIT
//
// Places at which returns arrive that the processor predicts. A clean block makes a call by a real
// `call`, and the code behind it is the call's landing. The client's stack holds the guest's
// return address, and several blocks may hold a copy of one call. So each landing has a number,
// which is the call's tag beside the stack (calltags/calltags.h), and the return finds its landing
// by that.
//
//   call    push return_address ; mov qword gs:[rsp + DISP], tag ; call target
//   landing reload r11 ; jmp on
//   target  lea rsp, [rsp + 8] ; ...
//   ret     r11d := number in the tag ; mov r11, [r11*8 + LANDING_TABLE]
//           cmp r11d, [rsp] ; jne other ; shr r11, 32 ; je other ; mov [rsp], r11 ; ret
//
// What must stay true (the engine lock protects what is written)
//   L1  A word of the table is 0, or holds a return address below 4 GiB in its lower half and the
//       place of its landing in the upper half. So a return may look up any number that stands
//       beside the stack.
//   L2  A number belongs to one return address for ever: frames outlive the blocks that made them.
//   L3  In the cache fs:[spill r11] always holds the client's r11: all code that changes r11 stores
//       it there (translate.c, emit_load_client() in gateway/), so that returns may destroy r11.
#ifndef MUNINN_ENGINE_LANDINGS_LANDINGS_H
#define MUNINN_ENGINE_LANDINGS_LANDINGS_H

#include "base/types.h"

#define LANDING_TABLE 0x60600000ull // by number
#define LANDING_PCS 0x60a00000ull   // the return address of each number
#define LANDINGS_END 0x60e00000ull
#define LANDINGS_MAX (1u << 19)
_Static_assert(LANDING_TABLE + LANDINGS_MAX * 8ull <= LANDING_PCS, "room for all");
_Static_assert(LANDING_PCS + LANDINGS_MAX * 8ull <= LANDINGS_END, "room for all");

// The return address of a landing; 0: the number is not in use. Takes any number below
// LANDINGS_MAX.
static inline GuestAddr landing_pc(u32 number)
{
    return ((const GuestAddr *)LANDING_PCS)[number];
}

// To be called before any block is made.
void landings_init(void);
// Returns the number of a closed landing for calls that return to pc. 0: no number is left.
u32 landing_take(GuestAddr pc);
void landing_open(u32 number, CodePtr code);
// Closes a landing whose block is retired: returns to it take the return table.
void landing_close(u32 number);
void landings_close_all(void);

// Asked by cache_validate(): NULL, and the number of open ones; or a sentence that names which of
// L1 and L2 does not hold.
bool landing_is_open(u32 number);
const char *landings_validate(u64 *ret_open);

#endif
