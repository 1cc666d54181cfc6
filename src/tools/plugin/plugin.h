// SPDX-License-Identifier: MIT
//
// Tools that are loaded from a shared object: the other side of include/muninn/tool.h.
//
// To the engine all of them are one tool, whose hooks pass on what the loaded tool has asked for.
// What it wants in a block is noted in a plan first (plan.c), while it looks at the block, and
// emitted instruction by instruction when the engine lowers it (emit.c).
//
// What must stay true
//   G1  A callback that a block calls runs with `in_callback` of its thread set, and a fork waits
//       until no other thread has it set: what callbacks lock, libc's locks included, is free in
//       the child (gate_hot.c).
//   G2  The value of a counter is the sum of what was added to it directly and of what the segments
//       that have run say, less what is booked back when a thread leaves a segment in its middle
//       (counters.c).
#ifndef MUNINN_TOOLS_PLUGIN_PLUGIN_H
#define MUNINN_TOOLS_PLUGIN_PLUGIN_H

#include "engine/toolapi/toolapi.h"

// A tool that is built in and uses the same interface: its description and its muninn_tool_start().
struct MuninnTool;
const Tool *plugin_start(const struct MuninnTool *description, int (*start)(void),
                         const OptionList *given);

// Loads the tool in the file at `path` and starts it with the options that the user has given it.
// Does not return if it cannot.
const Tool *plugin_load(const char *path, const OptionList *given);

#endif
