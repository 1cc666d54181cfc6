// SPDX-License-Identifier: MIT
//
// Stands in for muninn-engine: says what it was started with, as "key\0value\0"
// pairs on stdout. It parses with the engine's own parser and gives the
// environment back with the engine's own code, so both ends are under test.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/launch.h"
#include "launch/options.h"

__attribute__((format(printf, 2, 3))) static void tell(const char *key, const char *format, ...)
{
    va_list args;

    printf("%s%c", key, 0);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar(0);
}

static void tell_string(const char *key, const char *value)
{
    if (value != NULL)
        tell(key, "%s", value);
}

static void tell_options(const Options *options)
{
    tell_string("tool", options->tool);
    tell("trace_children", "%d", options->trace_children);
    tell_string("trace_children_skip", options->trace_children_skip);
    tell("log_fd", "%d", options->log_fd);
    tell_string("log_file", options->log_file);
    tell("verbosity", "%d", options->verbosity);
    tell("stats", "%d", options->stats);
    tell("trace", "%u", options->trace);
    tell("stress", "%u", options->stress);
    tell("cache_size_bytes", "%llu", (unsigned long long)options->cache_size_bytes);
    tell_string("muninn_exe", options->muninn_exe);
    tell_string("exe", options->exe);
    tell_string("script", options->script);
    tell_string("execfn", options->execfn);
    tell("skipped", "%d", options_child_is_skipped(options, options->exe));
}

static void tell_signals(void)
{
    sigset_t mask;

    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number <= 64; number++) {
        struct sigaction action;
        if (sigismember(&mask, number) == 1)
            tell("blocked", "%d", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            tell("ignored", "%d", number);
    }
}

static void tell_process(void)
{
    char directory[4096];
    struct rlimit limit;
    mode_t mask = umask(0);

    tell("pid", "%d", getpid());
    tell_string("cwd", getcwd(directory, sizeof(directory)));
    tell("umask", "%o", mask);
    getrlimit(RLIMIT_NOFILE, &limit);
    tell("nofile", "%llu", (unsigned long long)limit.rlim_cur);
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            tell("fd", "%d", fd);
}

int main(int argc, char **argv, char **envp)
{
    Options options;

    for (int i = 1; i < argc; i++)
        tell("raw", "%s", argv[i]);
    options_init(&options);
    int index = options_parse(argc, argv, &options);
    if (index < 0) {
        tell("parse_error", "%s", options.error);
        return 0;
    }
    for (int i = index; i < argc; i++)
        tell("argv", "%s", argv[i]);
    tell_options(&options);
    tell_signals();
    tell_process();
    for (char **entry = envp; *entry != NULL; entry++)
        tell("hidden", "%s", *entry);
    environment_restore(envp);
    for (char **entry = envp; *entry != NULL; entry++)
        tell("env", "%s", *entry);
    if (options.log_file != NULL) {
        char path[4096];
        int error = options_expand_path(options.log_file, getpid(), 7, path, sizeof(path));
        tell("log_path", "%s", error == 0 ? path : "?");
    }
    return 0;
}
