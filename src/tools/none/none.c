// SPDX-License-Identifier: MIT
//
// The tool that watches nothing: what the engine alone costs. What kills the program is told.
#include "tools/tools.h"

const Tool tool_none = {
    .name = "none",
    .summary = "run the program and watch nothing",
    .needs = TOOL_TELLS_DEATH,
};
