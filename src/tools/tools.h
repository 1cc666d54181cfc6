// SPDX-License-Identifier: MIT
//
// The tools that are built in.
#ifndef MUNINN_TOOLS_TOOLS_H
#define MUNINN_TOOLS_TOOLS_H

#include "engine/toolapi/toolapi.h"

extern const Tool tool_none;
extern const Tool tool_selftest;
extern const Tool tool_stacktest;
extern const Tool tool_tagtest;
extern const Tool tool_eventtest;
extern const Tool tool_findingtest;
extern const Tool tool_memcheck;
extern const Tool tool_massif;

#endif
