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

// Kinds that wire/findings.def does not have, as a tool brings them that is loaded at run time. The
// first has all that a description can have, the second nothing but its name.
static const FieldDescription late_fields[] = {
    {.name = "milliseconds", .type = FIELD_AMOUNT},
    {.name = "cause", .type = FIELD_CHOICE, .words = "nobody|the disk|the network"},
    {.name = "is_repeated", .type = FIELD_FLAG},
    {.name = "function", .type = FIELD_TEXT},
};
static const FieldShape late = {"late_answer", late_fields, ARRAY_LEN(late_fields)};

static const KindDescription kinds[] = {
    {
        .id = "late-answer",
        .family = "Findingtest",
        .xml = "LateAnswer",
        .suppression = "Late{cause:Nobody|Disk|Network}",
        .level = "warning",
        .title = "An answer comes too late",
        .sentence = "{function} answers {milliseconds} ms late{is_repeated? again}: "
                    "it waited for {cause}",
        .help = "https://example.org/late-answer",
        .shape = &late,
    },
    {.id = "bare-kind"},
};

static const FieldDescription waiter_fields[] = {{.name = "thread", .type = FIELD_NUMBER}};
static const FieldShape waiter = {"waiter", waiter_fields, ARRAY_LEN(waiter_fields)};

static const PartDescription parts[] = {
    {
        .id = "waited-for",
        .sentence = "Thread #{thread} was waiting",
        .place = "waiting in thread {thread} at",
        .shape = &waiter,
    },
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
    .kinds = kinds,
    .kind_count = ARRAY_LEN(kinds),
    .parts = parts,
    .part_count = ARRAY_LEN(parts),
    .functions = functions,
    .function_count = ARRAY_LEN(functions),
};
