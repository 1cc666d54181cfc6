// SPDX-License-Identifier: MIT
//
// A tool that does not define muninn_tool_start().
#include <muninn/tool.h>

MUNINN_TOOL("no_start", "does not start")
