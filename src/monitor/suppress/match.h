// SPDX-License-Identifier: MIT
//
// One frame against one location, for the matcher and for the generator, which
// asks whether what it is about to write would match.
#ifndef MUNINN_MONITOR_SUPPRESS_MATCH_H
#define MUNINN_MONITOR_SUPPRESS_MATCH_H

#include "monitor/suppress/entry.h"
#include "monitor/suppress/names.h"

// A frame, prepared for many patterns.
typedef struct QueryFrame {
    NameForms names;
    NameForm object, object_alias; // alias of size 0: none
    NameForm file, source;         // the name, and with its directory; size 0: not known
    u32 line;
} QueryFrame;

// In the arena; NULL when there is no memory.
QueryFrame *describe_frames(const Frame *frames, size_t count, Arena *arena);

bool location_matches(const Location *location, const QueryFrame *frame);

#endif
