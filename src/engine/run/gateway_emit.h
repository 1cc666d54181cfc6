// SPDX-License-Identifier: MIT
//
// What gateways are made of, for the files that emit them.
#ifndef MUNINN_ENGINE_RUN_GATEWAY_EMIT_H
#define MUNINN_ENGINE_RUN_GATEWAY_EMIT_H

#include <string.h>

#include "engine/emit/emit.h"
#include "engine/run/gateway.h"

#define FLAGS_BOTH_REQUESTS CTX(pending_signal)
_Static_assert(offsetof(ThreadCtx, stop_request) == offsetof(ThreadCtx, pending_signal) + 4,
              "the gateways test both words with one compare");

static inline void emit_push(Emitter *e, unsigned reg)
{
    if (reg >= 8)
        put_u8(e, 0x41);
    put_u8(e, (u8)(0x50 | (reg & 7)));
}

static inline void emit_pop(Emitter *e, unsigned reg)
{
    if (reg >= 8)
        put_u8(e, 0x41);
    put_u8(e, (u8)(0x58 | (reg & 7)));
}

// A forward jcc/jmp rel32 to a label that is not placed yet.
static inline CodePtr emit_forward(Emitter *e, unsigned opcode)
{
    return emit_link_site(e, opcode, e->pc);
}

static inline void place_label(Emitter *e, CodePtr site)
{
    i32 distance = (i32)(e->pc - (site + 4));
    memcpy(site, &distance, 4);
}

// cmp qword fs:[pending_signal], 0 ; jne …
static inline CodePtr emit_if_requested(Emitter *e)
{
    put_bytes(e, (u8[]){0x64, 0x48, 0x83, 0x3c, 0x25}, 5);
    put_u32(e, (u32)FLAGS_BOTH_REQUESTS);
    put_u8(e, 0);
    return emit_forward(e, 0x0f85);
}

// After a test of AC: jz +3 ; push 2 ; popfq. C is full of misaligned accesses,
// and popf is too slow to be done always.
static inline void emit_stop_alignment_checks(Emitter *e)
{
    put_bytes(e, (u8[]){0x74, 3, 0x6a, 2, 0x9d}, 5);
}

// gateway_tools_x64.c
void gateway_emit_tools(Emitter *e);

#endif
