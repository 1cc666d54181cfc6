// SPDX-License-Identifier: MIT
//
// What a thread carries for the tool.
#ifndef MUNINN_ENGINE_TOOLAPI_TOOLAPI_STATE_H
#define MUNINN_ENGINE_TOOLAPI_TOOLAPI_STATE_H

#include "base/types.h"

typedef struct ToolState {
    u64 slot[32];    // words for the tool's inline counters
    u64 store_below; // of Tool.store_map
    void *thread;    // the tool's own per-thread state
    // What of it blocks use. The first word is the state that versions are made for, 0: clean.
    _Alignas(64) u8 state[2560];
    _Alignas(64) u8 vectors[32][64]; // values of vector registers, where blocks store them
} ToolState;

#endif
