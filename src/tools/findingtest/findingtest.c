// SPDX-License-Identifier: MIT
//
// The table of the functions that the test programs call.
#include "tools/findingtest/findingtest.h"

#include "tools/tools.h"

static const ToolFunction functions[] = {
    {.name = "muninn_test_finding", .flags = TOOL_FUNCTION_LOCAL, .replace = findingtest_make},
    {.name = "muninn_test_finding_fast",
     .flags = TOOL_FUNCTION_LOCAL | TOOL_FUNCTION_FAST,
     .replace = findingtest_make},
};

const Tool tool_findingtest = {
    .name = "findingtest",
    .needs = TOOL_NEEDS_CALLSTACK | TOOL_NEEDS_MONITOR,
    .functions = functions,
    .function_count = ARRAY_LEN(functions),
};
