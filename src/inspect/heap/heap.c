// SPDX-License-Identifier: MIT
//
// `muninn heap`: finds the command, reads its words, opens the recording, runs it.
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/heap/command.h"
#include "inspect/heap/heap.h"

static const HeapCommand commands[] = {
#define COMMAND(name, words, count, sets, help) {#name, words, count, sets, heap_##name, help},
#include "inspect/heap/commands.def"
};

int heap_error(const char *format, ...)
{
    va_list arguments;
    char *line = NULL;

    progress_end();
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) < 0)
        abort();
    va_end(arguments);
    fputs("muninn heap: ", stderr);
    plain_text(stderr, line);
    fputc('\n', stderr);
    free(line);
    return 1;
}

int heap_error_line(char *line)
{
    heap_error("%s", line ? line : "no memory");
    free(line);
    return 1;
}

static int help(FILE *out)
{
    fputs("usage: muninn heap COMMAND FILE [OPTION...]\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "  %-10s %-18s %s\n", commands[i].name, commands[i].words, commands[i].help);
    fputs("\nFILE is a recording, muninn.heap.PID, that --tool=massif has written.\n"
          "muninn heap COMMAND --help tells the options of a command.\n",
          out);
    return out == stderr;
}

static const HeapCommand *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

int heap_main(int argc, char **argv)
{
    const char *name = argc > 0 ? argv[0] : NULL;

    if (!name || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(name ? stdout : stderr);
    if (strcmp(name, "help") == 0 && argc == 1)
        return help(stdout);
    if (strcmp(name, "help") == 0)
        name = argv[1];
    const HeapCommand *command = find_command(name);
    if (!command)
        return heap_error("there is no command %s; muninn heap help lists them", name);

    Arguments arguments = {0};
    if (strcmp(argv[0], "help") == 0)
        arguments.help = true;
    else if (!arguments_parse(&arguments, command, argc - 1, argv + 1))
        return 1;
    if (arguments.help) {
        arguments_help(command, stdout);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN); // `| head` ends the output, not with a signal's status
    Question question = {.arguments = &arguments};
    if (command->sets & FOR_TWO_FILES)
        return command->run(&question);
    if (!question_open(&question, &arguments, arguments.words[0]))
        return 1;
    int status = command->run(&question);
    question_close(&question);
    return status;
}
