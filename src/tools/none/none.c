// SPDX-License-Identifier: MIT
//
// The tool that watches nothing: what the engine alone costs. What kills the program is told.
#include "tools/tools.h"

const Tool tool_none = {
    .name = "none",
    .title = "None, the tool that only runs the program",
    .title_as_valgrind = "Nulgrind, the minimal Valgrind tool",
    .summary = "run the program and watch nothing",
    .needs = TOOL_TELLS_DEATH,
    .gives = TOOL_GIVES_DESCRIPTORS,
};
