// SPDX-License-Identifier: MIT
// BUILD: -O2 -lutil
//
// Job control on a pseudo-terminal: ^C and ^Z typed at the master reach the foreground group only,
// a background read stops with SIGTTIN, and the shell's part sees each status.
#include "guest.h"
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

static void on_winch(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
}

// The session leader: starts jobs, moves them to the foreground and reports through `out`.
static int shell(int out)
{
    signal(SIGTTOU, SIG_IGN);
    char byte;
    int status;
    for (int i = 0; i < 2; i++) { // a foreground job that computes, then gets ^C or ^Z
        pid_t job = fork();
        if (job == 0) {
            setpgid(0, 0);
            signal(SIGTTOU, SIG_IGN);
            tcsetpgrp(0, getpid());
            signal(SIGTTOU, SIG_DFL);
            dprintf(out, "job ready\n");
            for (volatile uint64_t x = 1;; x++)
                ;
        }
        waitpid(job, &status, WUNTRACED);
        dprintf(out, "job: stopped %d by %d, signalled %d by %d\n", WIFSTOPPED(status),
                WIFSTOPPED(status) ? WSTOPSIG(status) : 0, WIFSIGNALED(status),
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        tcsetpgrp(0, getpid());
        kill(job, SIGKILL);
        waitpid(job, &status, 0);
    }
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        _exit((int)read(0, &byte, 1)); // not in the foreground: stops
    }
    waitpid(job, &status, WUNTRACED);
    dprintf(out, "background read: stopped %d by %d\n", WIFSTOPPED(status), WSTOPSIG(status));
    kill(job, SIGKILL);
    waitpid(job, &status, 0);
    return 5;
}

static void expect_line(FILE *from)
{
    char line[128];
    if (fgets(line, sizeof line, from))
        say("%s", line);
}

int main(void)
{
    int master, ends[2];
    CHECK(pipe(ends) == 0);
    on_signal(SIGWINCH, on_winch, 0);
    struct winsize size = {.ws_row = 33, .ws_col = 77};
    pid_t leader = forkpty(&master, NULL, NULL, &size);
    if (leader == 0)
        _exit(shell(ends[1]));
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    expect_line(from);
    CHECK(write(master, "\003", 1) == 1);
    expect_line(from);
    expect_line(from);
    CHECK(write(master, "\032", 1) == 1);
    expect_line(from);
    expect_line(from);
    struct winsize back;
    CHECK(ioctl(master, TIOCGWINSZ, &back) == 0);
    say("window %d %d, isatty %d\n", back.ws_row, back.ws_col, isatty(master));
    wait_and_show("leader", leader);
    return 0;
}
