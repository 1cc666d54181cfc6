// SPDX-License-Identifier: MIT
//
// What a thread carries of the shadow call stack. The invariants C1 to C6 stand in callstack.h.
#ifndef MUNINN_ENGINE_CALLSTACK_CALLSTACK_STATE_H
#define MUNINN_ENGINE_CALLSTACK_CALLSTACK_STATE_H

#include "base/types.h"

enum { CALLSTACK_CHAIN_MAX = 32 };

typedef struct CallEntry {
    GuestAddr ret;
    GuestAddr sp;
    CodePtr code;          // the emitter's
    u32 context;           // of this frame, 0 when not known (C3)
    u32 next_window;       // with context != 0: see window in callstack_hot.c
} CallEntry;

_Static_assert(sizeof(CallEntry) == 32, "two entries share a cache line, none straddles one");

typedef struct StackSpan {
    CallEntry *base;   // the separator below this span's first entry
    GuestAddr lo, hi;  // slots of this stack lie in [lo, hi]
    GuestAddr left_sp; // of the outer spans of the chain: sp when the span was left
} StackSpan;

typedef struct CallStack {
    CallEntry *top;       // the innermost entry; emitted code knows this field
    CallEntry *bottom;    // the separator of the outermost span
    u64 open_entries;     // accessible entries above bottom; a guard follows
    CallEntry *omitted;   // the entry that stands for dropped ones, or NULL
    u64 omitted_count;    // the number of dropped entries
    u32 chain_count;      // at least 1
    StackSpan chain[CALLSTACK_CHAIN_MAX]; // outermost first
} CallStack;

#endif
