// SPDX-License-Identifier: MIT
//
// What gateways are made of, for the files that emit them.
#ifndef MUNINN_ENGINE_GATEWAY_GATEWAY_EMIT_H
#define MUNINN_ENGINE_GATEWAY_GATEWAY_EMIT_H

#include <string.h>

#include "engine/emit/emit.h"
#include "engine/gateway/gateway_internal.h"

_Static_assert(offsetof(ThreadCtx, gateway.stop_request) ==
                   offsetof(ThreadCtx, gateway.pending_signal) + 4,
               "the gateways test both words with one compare");

// cmp qword fs:[pending_signal], 0 ; jne …
static inline X64Jump emit_if_requested(Emitter *e)
{
    x64_cmp_mem_imm(e, QWORD, x64_fs(CTX(gateway.pending_signal)), 0); // and stop_request
    return x64_branch(e, X64_NE);
}

// Aligns data that emitted code loads: the client may set AC, and then a load must be aligned.
static inline void emit_align_word(Emitter *e)
{
    while ((uintptr_t)e->pc % sizeof(u64))
        x64_int3(e);
}

// To be emitted behind a test of AC: clears AC if it is set, since C is full of misaligned
// accesses. The test is there because popf is too slow to be executed always.
static inline void emit_stop_alignment_checks(Emitter *e)
{
    enum { NO_FLAGS = 2 }; // bit 1 is always set
    X64Jump aligned = x64_jcc_short(e, X64_E);
    x64_push_imm(e, NO_FLAGS);
    x64_popfq(e);
    x64_land(e, aligned);
}

// tools_x64.c
void gateway_emit_tools(Emitter *e);

#endif
