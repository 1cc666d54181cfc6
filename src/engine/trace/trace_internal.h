// SPDX-License-Identifier: MIT
//
// Between the files of trace/.
#ifndef MUNINN_ENGINE_TRACE_TRACE_INTERNAL_H
#define MUNINN_ENGINE_TRACE_TRACE_INTERNAL_H

#include "engine/ctx/ctx.h"

// The call or return at `pc` is about to happen; every general register is in ctx.
void trace_call_event(const ThreadCtx *ctx, GuestAddr pc);

extern u64 trace_xsave_mask;

#endif
