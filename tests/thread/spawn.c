// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// MUNINN:
// MUNINN: --trace-children=yes
//
// posix_spawn with file actions and attributes: redirections, closed descriptors, a mask, default
// signals, a process group; errors come back as a result; system() and popen() work.
#include "guest.h"
#include <fcntl.h>
#include <spawn.h>

extern char **environ;

static void run(const char *what, posix_spawn_file_actions_t *actions,
                posix_spawnattr_t *attributes, char **argv)
{
    pid_t child;
    int result = posix_spawnp(&child, argv[0], actions, attributes, argv, environ);
    if (result == 0)
        wait_and_show(what, child);
    else
        say("%s: %s\n", what, error_name(result));
}

// The spawned program: what it was born with.
static int report(void)
{
    sigset_t mask;
    struct sigaction old;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int sig = 1; sig < 65; sig++) {
        if (sigismember(&mask, sig) == 1)
            say("%d blocked\n", sig);
        if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_DFL)
            say("%d %s\n", sig, old.sa_handler == SIG_IGN ? "ignored" : "handled");
    }
    say("leads a group %d\n", getpgrp() == getpid());
    return 6;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return report();
    int ends[2];
    char buffer[256];
    CHECK(pipe(ends) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    run("redirected", &actions, NULL, (char *[]){"echo", "into", "the pipe", NULL});
    close(ends[1]);
    ssize_t got = read(ends[0], buffer, sizeof buffer - 1);
    say("read %zd: %.*s", got, (int)got, buffer);

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigaddset(&set, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &set);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    run("attributes", NULL, &attributes, (char *[]){argv[0], "report", NULL});
    run("missing", NULL, NULL, (char *[]){"no-such-program-anywhere", NULL});
    posix_spawn_file_actions_addclose(&actions, 12345);
    posix_spawn_file_actions_addopen(&actions, 0, "/no/such/file", O_RDONLY, 0);
    run("bad action", &actions, NULL, (char *[]){"true", NULL});

    for (int i = 0; i < 20; i++) {
        pid_t child;
        CHECK(posix_spawnp(&child, "true", NULL, NULL, (char *[]){"true", NULL}, environ) == 0);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    say("system: %d\n", system("exit 3") >> 8);
    FILE *pipe_from = popen("printf 'from popen'", "r");
    CHECK(fgets(buffer, sizeof buffer, pipe_from) != NULL);
    say("%s, %d\n", buffer, pclose(pipe_from));
    return 0;
}
