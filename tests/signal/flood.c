// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// The parent bombards a child with twenty thousand signals of several kinds while it computes and
// moves data through a pipe: no real-time signal is lost, no byte is wrong.
#include "guest.h"

enum { REALTIME = 10000 };
static volatile sig_atomic_t realtime, ordinary;
static volatile long value_sum;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (sig >= SIGRTMIN) {
        realtime++;
        value_sum += info->si_value.sival_int;
    } else {
        ordinary++;
    }
}

static int child_body(int ready)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    int signals[] = {SIGRTMIN, SIGRTMIN + 1, SIGUSR1, SIGUSR2, SIGALRM, SIGHUP, SIGURG};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    if (write(ready, "r", 1) != 1)
        return 1;
    int ends[2];
    if (pipe(ends) != 0)
        return 2;
    long wrong = 0;
    uint64_t x = 1, y = 1;
    while (realtime < REALTIME) {
        uint64_t back = 0;
        for (int i = 0; i < 200; i++)
            x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        wrong += write(ends[1], &x, 8) != 8 || read(ends[0], &back, 8) != 8 || back != x;
        y ^= x;
    }
    say("real-time %d sum %ld, ordinary some %d, wrong %ld\n", realtime, value_sum, ordinary > 0,
        wrong);
    return 0;
}

int main(void)
{
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(child_body(ready[1]));
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    static const int plain[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGHUP, SIGURG};
    for (int i = 0; i < REALTIME; i++) {
        union sigval value = {.sival_int = i};
        while (sigqueue(child, SIGRTMIN + (i & 1), value) != 0)
            usleep(50);
        kill(child, plain[i % 5]);
    }
    wait_and_show("child", child);
    return 0;
}
