// SPDX-License-Identifier: MIT
//
// Asks the suppressions of some files about stacks. Each argument is a file; if one is
// refused, prints `error TEXT` and exits 1. Then reads lines of fields separated by
// tabs, where an empty field is NULL:
//
//     q TOOL KIND EXTRA LEAK_KIND                  starts a question
//     f FUNCTION MANGLED OBJECT DIRECTORY FILE LINE    one frame of it
//     ?                                            asks: `yes NAME` or `no`
//     g                                            writes the generated entry, then an empty line
//     c                                            `count N`: entries there are
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/suppress/suppress.h"

#define FRAMES_MAX 512

static Frame frames[FRAMES_MAX];
static SuppressQuery query = { .frames = frames };

static const char *next_field(char **line)
{
    char *field = strsep(line, "\t");

    return field && *field ? strdup(field) : NULL;
}

static void read_frame(char *line)
{
    Frame *frame = &frames[query.count++];

    frame->function = next_field(&line);
    frame->mangled = next_field(&line);
    frame->object = next_field(&line);
    frame->directory = next_field(&line);
    frame->file = next_field(&line);
    const char *number = next_field(&line);
    frame->line = number ? (u32)atoi(number) : 0;
}

static void answer(SuppressSet *set)
{
    Suppression *found = suppress_match(set, &query);

    if (found)
        printf("yes %s\n", found->name);
    else
        printf("no\n");
}

static void obey(SuppressSet *set, char *line)
{
    char *command = strsep(&line, "\t");

    switch (command[0]) {
    case 'q':
        query.count = 0;
        query.tool = next_field(&line);
        query.kind = next_field(&line);
        query.extra = next_field(&line);
        query.leak_kind = next_field(&line);
        break;
    case 'f':
        if (query.count < FRAMES_MAX)
            read_frame(line);
        break;
    case '?':
        answer(set);
        break;
    case 'g':
        suppress_generate(&query, stdout);
        printf("\n");
        break;
    case 'c':
        printf("count %zu\n", suppress_count(set));
        break;
    }
}

int main(int argc, char **argv)
{
    SuppressSet *set = suppress_new();
    char *line = NULL;
    size_t room = 0;

    for (int i = 1; i < argc; i++) {
        const char *error = NULL;

        if (!suppress_load(set, argv[i], &error)) {
            printf("error %s\n", error);
            suppress_free(set);
            return 1;
        }
    }
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        obey(set, line);
    }
    fflush(stdout);
    _Exit(0); // the fields live to the end: no leaks to report
}
