// SPDX-License-Identifier: MIT
//
// The table of the functions that the test programs call.
#include "tools/findingtest/findingtest.h"

#include <stdlib.h>
#include <string.h>

#include "engine/relay/relay.h"
#include "tools/tools.h"

static const ToolFunction functions[] = {
    {.name = "muninn_test_finding", .flags = TOOL_FUNCTION_LOCAL, .replace = findingtest_make},
    {.name = "muninn_test_finding_fast",
     .flags = TOOL_FUNCTION_LOCAL | TOOL_FUNCTION_FAST,
     .replace = findingtest_make},
};

// echo TEXT; large LINES: an answer that needs many records.
static bool run_command(ToolThread *thread, char *command)
{
    if (strncmp(command, "echo ", 5) == 0) {
        relay_answer_format(thread, "%s\n", command + 5);
        return true;
    }
    if (strncmp(command, "large ", 6) != 0)
        return false;
    long lines = atol(command + 6);
    for (long i = 0; i < lines; i++)
        relay_answer_format(thread, "line %ld of an answer that is long\n", i);
    return true;
}

const Tool tool_findingtest = {
    .name = "findingtest",
    .command = run_command,
    .command_help = "  echo TEXT            says TEXT\n",
    .needs = TOOL_NEEDS_CALLSTACK | TOOL_NEEDS_MONITOR,
    .gives = TOOL_GIVES_ERRORS,
    .functions = functions,
    .function_count = ARRAY_LEN(functions),
};
