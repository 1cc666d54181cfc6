// SPDX-License-Identifier: MIT
//
// What naming the caller by call tags keeps in a thread.
#ifndef MUNINN_ENGINE_CALLTAGS_CALLTAGS_STATE_H
#define MUNINN_ENGINE_CALLTAGS_CALLTAGS_STATE_H

typedef struct CalltagsState {
    struct ContextCache *contexts; // of tool_context(), with calltags_wanted
} CalltagsState;

#endif
