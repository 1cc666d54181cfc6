// SPDX-License-Identifier: MIT
//
// The monitor's start. The engine executes it with the options and the command of
// the run; `muninn ps` and its like do with --subcommand first.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launch/options.h"
#include "monitor/intake/intake.h"

static Options options;

// Takes out what the launcher and the engine say to each other. Returns how many are left.
static int keep_users_options(char **words, int count)
{
    static const char *const internal[] = {
        "--muninn-exe=", "--exe=", "--script=", "--execfn=", "--seccomp-fd=",
    };
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool ours = false;
        for (size_t j = 0; j < ARRAY_LEN(internal); j++)
            ours |= strncmp(words[i], internal[j], strlen(internal[j])) == 0;
        if (strncmp(words[i], "--verbosity=", 12) == 0)
            words[i] = words[i][12] == '-' ? (char *)"-q" : (char *)"-v";
        if (!ours)
            words[kept++] = words[i];
    }
    return kept;
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
    int option_count = keep_users_options(argv + 1, program - 2);
    return intake_serve(&options, option_count, argv + 1, argc - program, argv + program);
}
