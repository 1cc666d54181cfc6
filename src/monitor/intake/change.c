// SPDX-License-Identifier: MIT
//
// Options that the program, or a user, changes while the program runs. Most are looked at when they
// matter; what is more than a value is done here.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/intake/run.h"

// A file's name or, if the launcher had to read it, OPTIONS_READ, its name, a newline and its text.
static bool load_file(Run *run, const char *item, const char **ret_error)
{
    const char *end = strchr(item + 1, '\n');

    if (item[0] != OPTIONS_READ || !end)
        return suppress_load(run->suppressions, item, ret_error);
    char *name = strndup(item + 1, (size_t)(end - item - 1));
    bool ok = suppress_parse(run->suppressions, name ? name : "", end + 1, strlen(end + 1),
                             ret_error);
    free(name);
    return ok;
}

bool run_load_suppressions(Run *run, u32 first, const char **ret_error)
{
    const OptionList *files = &run->options->suppressions;
    for (u32 i = first; i < files->count; i++) {
        if (!load_file(run, files->items[i], ret_error))
            return false;
    }
    return true;
}

static void say(Run *run, const char *text)
{
    char line[1024];
    snprintf(line, sizeof(line), "Warning: %s", text);
    if (run->report)
        report_note(run->report, line);
    else
        dprintf(INTAKE_LOG, "muninn: %s\n", text);
}

// The questions of --gen-suppressions=yes are answered where the client reads; its descriptor was
// handed over at the start only if they were to be asked from then on.
static void begin_to_ask(Run *run)
{
    char path[64];
    if (run->has_input)
        return;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", run->os_pid, run->options->input_fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    run->has_input = fd >= 0 && dup3(fd, INTAKE_INPUT, O_CLOEXEC) >= 0;
    if (!run->has_input)
        say(run, "--gen-suppressions=yes: the program's input cannot be opened for the answers");
    if (fd >= 0)
        close(fd);
}

void run_change_option(Run *run, const char *word)
{
    u32 had_files = run->options->suppressions.count;
    bool is_kept = false;
    const char *error = NULL;
    // Options point into their words: the run keeps them.
    bool ok = options_change(run->options, findings_keep_text(run, word), &is_kept) == 0;
    if (!ok)
        say(run, run->options->error);
    else if (!run_load_suppressions(run, had_files, &error))
        say(run, error);
    run->asks = run->options->gen_suppressions == GEN_SUPPRESSIONS_YES;
    if (run->asks)
        begin_to_ask(run);
    if (run->options->vgdb == VGDB_NO && run->commands)
        commands_stop(run);
    else if (run->options->vgdb != VGDB_NO && !run->commands)
        commands_open(run);
}
