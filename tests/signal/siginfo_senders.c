// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// siginfo says who sent a signal and how: kill, tgkill, sigqueue, a timer, the kernel, a child.
#include "guest.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

static volatile sig_atomic_t hits;

static void handler(int sig, siginfo_t *info, void *context)
{
    bool sent = info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE;
    say("signal %d/%d code %d errno %d context %d", sig, info->si_signo, info->si_code,
        info->si_errno, context != NULL);
    if (sent)
        say(" pid %d uid %d", info->si_pid == getpid(), info->si_uid == getuid());
    if (info->si_code == SI_QUEUE)
        say(" value %d", info->si_value.sival_int);
    say("\n");
    hits++;
}

int main(void)
{
    int signals[] = {SIGUSR1, SIGUSR2, SIGRTMIN, SIGALRM, SIGPIPE, SIGVTALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        on_signal(signals[i], handler, 0);
    kill(getpid(), SIGUSR1);
    raise(SIGUSR2);
    syscall(SYS_tkill, syscall(SYS_gettid), SIGUSR1);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = -12345});
    pthread_kill(pthread_self(), SIGRTMIN);
    siginfo_t own = {.si_code = -60, .si_signo = SIGUSR1};
    SHOW(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &own));

    struct itimerval timer = {{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    while (hits < 8)
        pause();
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    while (hits < 9)
        ;
    int ends[2];
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    SHOW(write(ends[1], "x", 1));
    say("hits %d\n", hits);
    return 0;
}
