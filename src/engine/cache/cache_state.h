// SPDX-License-Identifier: MIT
//
// What the code cache keeps in a thread.
#ifndef MUNINN_ENGINE_CACHE_CACHE_STATE_H
#define MUNINN_ENGINE_CACHE_CACHE_STATE_H

#include "base/types.h"

typedef struct CacheState {
    u64 safe_epoch; // cache epoch seen at the thread's last safe point (C3)
} CacheState;

#endif
