// SPDX-License-Identifier: MIT
//
// What resource limits keep in a thread: those of a child of vfork that has set one.
#ifndef MUNINN_ENGINE_LIMITS_LIMITS_STATE_H
#define MUNINN_ENGINE_LIMITS_LIMITS_STATE_H

#include "base/types.h"

// The client's view of a resource limit that the engine keeps for it.
typedef struct Limit {
    u64 soft, hard;
} Limit;
enum LimitKind { LIMIT_AS, LIMIT_DATA, LIMIT_KINDS };

typedef struct LimitsState {
    Limit own[LIMIT_KINDS]; // if has_own
    u32 has_own;
} LimitsState;

#endif
