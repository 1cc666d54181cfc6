// SPDX-License-Identifier: MIT
//
// The encodings that are more than a line; see emit.h.
#include "engine/emit/emit.h"

i32 ctx_displacement;

void emit_nops(Emitter *e, size_t count)
{
    static const u8 nops[][4] = {{0}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};
    while (count > 0) {
        size_t n = count < 3 ? count : 3;
        put_bytes(e, nops[n], n);
        count -= n;
    }
}

CodePtr emit_link_site(Emitter *e, unsigned opcode, CodePtr target)
{
    size_t opcode_len = opcode > 0xff ? 2 : 1;
    uintptr_t site_at = (uintptr_t)e->pc + opcode_len;
    if (site_at % 16 > 12)
        emit_nops(e, 16 - site_at % 16);
    if (opcode > 0xff)
        put_u8(e, (u8)(opcode >> 8));
    put_u8(e, (u8)opcode);

    CodePtr site = e->pc;
    put_u32(e, (u32)(target - (site + 4)));
    return site;
}
