// SPDX-License-Identifier: MIT
//
// The monitor's start. The engine executes it with the options and the command of
// the run.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launch/options.h"
#include "monitor/intake/intake.h"

static Options options;

// A file that the launcher has read is shown by its name.
static char *as_written(char *word)
{
    char *value = strchr(word, '='), *name = NULL;

    if (value && value[1] == OPTIONS_READ &&
        asprintf(&name, "%.*s%.*s", (int)(value + 1 - word), word, (int)strcspn(value + 2, "\n"),
                 value + 2) >= 0)
        return name;
    return word;
}

int main(int argc, char **argv)
{
    sigset_t none;

    // Whatever the client's parent ignored or blocked is not for us.
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGHUP, SIG_IGN);

    options_init(&options);
    int program = options_parse(argc, argv, &options);
    if (program < 0 || program >= argc || !options.exe) {
        fprintf(stderr, "muninn-monitor is started by muninn, not by hand\n");
        return 1;
    }
    // What these name is here under other numbers.
    options.log_fd = INTAKE_LOG;
    if (options.xml_fd >= 0)
        options.xml_fd = INTAKE_XML;
    // The words that the user wrote; the one before the program is "--".
    int words = 0;
    for (int i = 1; i < program - 1; i++) {
        if (!options_is_internal(argv[i]))
            argv[words++] = as_written(argv[i]);
    }
    return intake_serve(&(IntakeCommand){
        .options = &options,
        .option_count = words,
        .option_words = (const char *const *)argv,
        .argc = argc - program,
        .argv = (const char *const *)argv + program,
    });
}
