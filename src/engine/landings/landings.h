// SPDX-License-Identifier: MIT
//
// Where returns arrive that the processor predicts. A call of a clean block is one for the
// processor too, and the code behind it is its landing. The client's stack holds the guest's
// address, so the return has to learn from elsewhere behind which of all copies of that call it
// belongs: each has a number, which is its tag beside the stack (calltags/calltags.h).
//
//   call    push return_address ; mov qword gs:[rsp + DISP], tag ; call target
//   landing reload r11 ; jmp on
//   target  lea rsp, [rsp + 8] ; ...
//   ret     r11d := number in the tag ; mov r11, [r11*8 + LANDING_TABLE]
//           cmp r11d, [rsp] ; jne other ; shr r11, 32 ; je other ; mov [rsp], r11 ; ret
//
// What must stay true (the engine lock protects what is written)
//   L1  A word of the table is 0, or a return address below 4 GiB and above that the place of
//       code that is its landing. So a return may look for whatever number stands beside the
//       stack.
//   L2  A number belongs to one return address for ever: frames outlive the blocks that made them.
//   L3  In the cache the client's r11 is in fs:[spill r11] as well: whatever changes it stores it
//       there (translate.c, emit_load_client() in run/), so that returns may destroy it.
#ifndef MUNINN_ENGINE_LANDINGS_LANDINGS_H
#define MUNINN_ENGINE_LANDINGS_LANDINGS_H

#include "base/types.h"

#define LANDING_TABLE 0x60600000ull // by number
#define LANDING_PCS 0x60a00000ull   // and where each returns to
#define LANDINGS_END 0x60e00000ull
#define LANDINGS_MAX (1u << 19)
_Static_assert(LANDING_TABLE + LANDINGS_MAX * 8ull <= LANDING_PCS, "room for all");
_Static_assert(LANDING_PCS + LANDINGS_MAX * 8ull <= LANDINGS_END, "room for all");

// Any number below LANDINGS_MAX may be asked for.
static inline GuestAddr landing_pc(u32 number)
{
    return ((const GuestAddr *)LANDING_PCS)[number];
}

// Before any block is made.
void landings_init(void);
// One that returns to pc, and is closed. 0: there are none left.
u32 landing_take(GuestAddr pc);
void landing_open(u32 number, CodePtr code);
// Its block is no more: who returns there is looked for elsewhere.
void landing_close(u32 number);
void landings_close_all(void);

// Asked by cache_validate(): NULL, and the number of open ones; or a sentence that names which of
// L1 and L2 does not hold.
bool landing_is_open(u32 number);
const char *landings_validate(u64 *ret_open);

#endif
