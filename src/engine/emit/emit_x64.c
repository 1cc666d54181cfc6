// SPDX-License-Identifier: MIT
//
// The encodings that are more than a line; see emit.h.
#include "engine/emit/emit.h"

i32 ctx_displacement;

// What is missing to the next line are prefixes that mean nothing: a nop would be one instruction
// more, and part a compare from the branch that the processor joins with it.
CodePtr emit_link_site(Emitter *e, unsigned opcode, CodePtr target)
{
    enum { CS = 0x2e };
    size_t opcode_len = opcode > 0xff ? 2 : 1;
    uintptr_t site_at = (uintptr_t)e->pc + opcode_len;
    for (; site_at % 16 > 12; site_at++)
        put_u8(e, CS);
    if (opcode > 0xff)
        put_u8(e, (u8)(opcode >> 8));
    put_u8(e, (u8)opcode);

    CodePtr site = e->pc;
    put_u32(e, (u32)(target - (site + 4)));
    return site;
}
