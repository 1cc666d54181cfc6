// SPDX-License-Identifier: MIT
//
// The plugin's options are --lua-chunks=N, and --lua-chunk-I=@PATH or --lua-chunk-I==CODE for
// each script.
#include "launch/script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/option_table.h"

static bool add_option(Options *options, const char *name, const char *value)
{
    OptionList *list = &options->tool_options;
    size_t size = strlen(name) + strlen(value) + 2;
    char *word = malloc(size);

    if (word == NULL)
        return option_fail(options, "out of memory");
    if (list->count == OPTIONS_LIST_MAX)
        return option_fail(options, "more than %d options for the tool", OPTIONS_LIST_MAX);
    snprintf(word, size, "%s=%s", name, value);
    list->items[list->count++] = word;
    return true;
}

static bool add_chunk(Options *options, u32 number, char kind, const char *text)
{
    char name[32];
    char *value = malloc(strlen(text) + 2);

    if (value == NULL)
        return option_fail(options, "out of memory");
    sprintf(value, "%c%s", kind, text);
    snprintf(name, sizeof(name), "--lua-chunk-%u", number);
    bool is_added = add_option(options, name, value);
    free(value);
    return is_added;
}

bool script_settle(Options *options, const char *plugin)
{
    char count[16];
    u32 number = 0;

    if (strcmp(options->tool, OPTIONS_NO_FILE) != 0) {
        char *path = realpath(options->tool, NULL);
        if (path == NULL)
            return option_fail(options, "--tool=%s: %s", options->tool, strerror(errno));
        if (!add_chunk(options, ++number, '@', path))
            return false;
    }
    for (u32 i = 0; i < options->eval.count; i++)
        if (!add_chunk(options, ++number, '=', options->eval.items[i]))
            return false;
    // What is said is what the script says, unless the user wants more.
    if (options->verbosity == 0)
        options->verbosity = -1;
    snprintf(count, sizeof(count), "%u", number);
    options->eval.count = 0;
    options->tool = plugin;
    return add_option(options, "--lua-chunks", count);
}
