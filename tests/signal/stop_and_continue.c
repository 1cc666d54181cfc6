// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// A child stopped and continued by its parent while it computes and while it sleeps; SIGCONT's
// handler runs; a sleep goes on for its rest afterwards; wait sees each change.
#include "guest.h"

static volatile sig_atomic_t continued, finish;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    if (sig == SIGCONT)
        continued++;
    else
        finish = 1;
}

static void stop_and_show(const char *who, pid_t child, int sig)
{
    int status;
    kill(child, sig);
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    show_status(who, status);
    kill(child, SIGCONT);
    CHECK(waitpid(child, &status, WCONTINUED) == child);
    show_status(who, status);
}

int main(void)
{
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0); // an orphaned group would ignore the terminal stops
        on_signal(SIGCONT, handler, SA_RESTART);
        on_signal(SIGUSR1, handler, SA_RESTART);
        CHECK(write(ready[1], "r", 1) == 1);
        volatile uint64_t x = 1;
        while (!finish)
            x = x * 3 + 1;
        _exit(continued > 0 ? 3 : 4);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    stop_and_show("computing", child, SIGSTOP);
    sleep_ms(20);
    stop_and_show("computing", child, SIGTSTP);
    sleep_ms(20);
    stop_and_show("computing", child, SIGTTIN);
    kill(child, SIGUSR1);
    wait_and_show("computing", child);

    child = fork();
    if (child == 0) {
        struct timespec t = {2, 0};
        int64_t before = now_ns();
        int result = nanosleep(&t, NULL);
        _exit(result == 0 && now_ns() - before >= 2000000000 ? 7 : 8);
    }
    wait_until_asleep(child);
    stop_and_show("sleeping", child, SIGSTOP);
    wait_and_show("sleeping", child);

    child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(9);
    }
    int status;
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    show_status("stops itself", status);
    kill(child, SIGKILL);
    wait_and_show("killed while stopped", child);
    return 0;
}
