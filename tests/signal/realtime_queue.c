// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: signals
//
// Real-time signals queue, with their values, in the order of sending, the lowest number first;
// ordinary ones merge. Also when they are sent by another process while handlers run.
#include "guest.h"

static int order[4096], order_count;
static volatile int last_value[3], out_of_order, total;

static void collect(int sig, siginfo_t *info, void *context)
{
    (void)context;
    order[order_count++ % 4096] = (sig == SIGUSR1 ? 0 : sig) * 1000 + info->si_value.sival_int;
}

static void check_order(int sig, siginfo_t *info, void *context)
{
    (void)context;
    int lane = sig - SIGRTMIN;
    out_of_order += info->si_value.sival_int != last_value[lane] + 1;
    last_value[lane] = info->si_value.sival_int;
    total++;
}

int main(void)
{
    sigset_t all, none;
    sigemptyset(&none);
    sigfillset(&all);
    int signals[] = {SIGRTMIN + 5, SIGRTMIN + 1, SIGUSR1, SIGRTMIN + 3};
    struct sigaction action = {.sa_sigaction = collect, .sa_flags = SA_SIGINFO, .sa_mask = all};
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &action, NULL);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 4; i++)
            sigqueue(getpid(), signals[i], (union sigval){.sival_int = round});
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < order_count; i++)
        say("%d ", order[i]);
    say("\n");

    action.sa_sigaction = check_order;
    for (int i = 0; i < 3; i++)
        sigaction(SIGRTMIN + i, &action, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int i = 1; i <= 3000; i++)
            for (int lane = 0; lane < 3; lane++)
                while (sigqueue(parent, SIGRTMIN + lane, (union sigval){.sival_int = i}) != 0)
                    usleep(100);
        _exit(0);
    }
    volatile uint64_t x = 1;
    while (total < 9000)
        x = x * 5 + 1;
    wait_and_show("sender", child);
    say("received %d, out of order %d\n", total, out_of_order);
    return 0;
}
