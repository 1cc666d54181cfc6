// SPDX-License-Identifier: MIT
//
// Trees of costs that the tool tells, stack by stack, and that become files in callgrind's format.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/intake/run.h"

static const CallgrindEvent memory_events[] = {
    {"curB", "currently allocated Bytes"},   {"curBk", "currently allocated Blocks"},
    {"totB", "total allocated Bytes"},       {"totBk", "total allocated Blocks"},
    {"totFdB", "total Freed Bytes"},         {"totFdBk", "total Freed Blocks"},
};

static const CallgrindEvent leak_events[] = {
    {"RB", "Reachable Bytes"},
    {"PB", "Possibly lost Bytes"},
    {"IB", "Indirectly lost Bytes"},
    {"DB", "Definitely lost Bytes (direct plus indirect)"},
    {"DIB", "Definitely Indirectly lost Bytes (subset of DB)"},
    {"RBk", "reachable Blocks"},
    {"PBk", "Possibly lost Blocks"},
    {"IBk", "Indirectly lost Blocks"},
    {"DBk", "Definitely lost Blocks"},
    {"iRB", "increase Reachable Bytes"},
    {"iPB", "increase Possibly lost Bytes"},
    {"iIB", "increase Indirectly lost Bytes"},
    {"iDB", "increase Definitely lost Bytes"},
    {"iDIB", "increase Definitely Indirectly lost Bytes"},
    {"iRBk", "increase reachable Blocks"},
    {"iPBk", "increase Possibly lost Blocks"},
    {"iIBk", "increase Indirectly lost Blocks"},
    {"iDBk", "increase Definitely lost Blocks"},
    {"dRB", "decrease Reachable Bytes"},
    {"dPB", "decrease Possibly lost Bytes"},
    {"dIB", "decrease Indirectly lost Bytes"},
    {"dDB", "decrease Definitely lost Bytes"},
    {"dDIB", "decrease Definitely Indirectly lost Bytes"},
    {"dRBk", "decrease reachable Blocks"},
    {"dPBk", "decrease Possibly lost Blocks"},
    {"dIBk", "decrease Indirectly lost Blocks"},
    {"dDBk", "decrease Definitely lost Blocks"},
};
_Static_assert(ARRAY_LEN(leak_events) == TREE_VALUES_MAX, "the tool tells as many");

static const struct {
    const char *name;
    const CallgrindEvent *events;
    u32 event_count;
} kinds[TREE_COUNT] = {
    [TREE_MEMORY] = {"memory", memory_events, 2},
    [TREE_MEMORY_FULL] = {"memory", memory_events, ARRAY_LEN(memory_events)},
    [TREE_LEAKS] = {"leak", leak_events, ARRAY_LEN(leak_events)},
};

void trees_add(Run *run, const Wire_tree_node *node)
{
    if (node->tree >= TREE_COUNT || node->values.count != kinds[node->tree].event_count)
        return;
    CallTree **tree = &run->trees[node->tree];
    if (!*tree)
        *tree = calltree_new(kinds[node->tree].event_count);
    ReportStack stack = findings_stack(run, node->pcs);
    if (!*tree || !calltree_add(*tree, stack.frames, stack.count, node->values.data))
        run->trees_failed = true;
}

static char *words_of(int argc, const char *const *argv)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; out && i < argc; i++)
        fprintf(out, "%s%s", i ? " " : "", argv[i]);
    if (out)
        fclose(out);
    return text;
}

// The whole path, as the user may use it anywhere. What the client's process says of files is not
// listened to: the options name them.
static bool place_file(Run *run, u64 tree, u64 number, char *path, size_t size)
{
    const char *template = tree == TREE_LEAKS ? run->options->xtree_leak_file
                                              : run->options->xtree_memory_file;
    char name[2048], here[2048] = "", suffix[24] = "";
    if (options_expand_path(template, run->info.pid, 1, name, sizeof(name)) != 0)
        return false;
    if (name[0] != '/' && !getcwd(here, sizeof(here)))
        here[0] = '\0';
    if (number)
        snprintf(suffix, sizeof(suffix), ".%llu", (unsigned long long)number);
    return (size_t)snprintf(path, size, "%s%s%s%s", here, here[0] ? "/" : "", name, suffix) < size;
}

void trees_write(Run *run, const Wire_tree_done *done)
{
    char path[4200], line[4400];
    bool is_wanted = done->tree == TREE_LEAKS || run->options->xtree_memory != XTREE_MEMORY_NONE;
    if (done->tree >= TREE_COUNT || !run->report || !is_wanted)
        return;
    CallTree *tree = run->trees[done->tree];
    if (!tree)
        tree = calltree_new(kinds[done->tree].event_count);
    run->trees[done->tree] = NULL;
    char *command = words_of(run->info.argc, run->info.argv);
    CallgrindConfig config = {
        .creator = "muninn-" MUNINN_VERSION,
        .command = command ? command : "",
        .pid = run->info.pid,
        .events = kinds[done->tree].events,
        .event_count = kinds[done->tree].event_count,
        .compresses = run->options->xtree_compress_strings,
    };
    int error = tree && !run->trees_failed ? 0 : -ENOMEM;
    if (!place_file(run, done->tree, done->number, path, sizeof(path)))
        error = -ENAMETOOLONG;
    if (!error)
        error = calltree_write(tree, path, &config);
    if (error)
        snprintf(line, sizeof(line), "xtree %s report: %s cannot be written: %s",
                 kinds[done->tree].name, path, strerror(-error));
    else
        snprintf(line, sizeof(line), "xtree %s report: %s", kinds[done->tree].name, path);
    if (error)
        report_note(run->report, line);
    else
        report_line(run->report, line);
    run->trees_failed = false;
    calltree_free(tree);
    free(command);
}
