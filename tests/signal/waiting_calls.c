// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// sigwaitinfo, sigtimedwait and signalfd take blocked signals without running a handler;
// sigsuspend, ppoll, pselect and epoll_pwait swap the mask for their duration and run it.
#include "guest.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>

static volatile sig_atomic_t hits;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    hits++;
    say("handler %d\n", sig);
}

static void accept_synchronously(const sigset_t *set)
{
    siginfo_t info;
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 11});
    kill(getpid(), SIGUSR1);
    SHOW(sigwaitinfo(set, &info));
    SHOW(sigwaitinfo(set, &info));
    say("value %d code %d\n", info.si_value.sival_int, info.si_code);
    struct timespec moment = {0, 2000000};
    SHOW(sigtimedwait(set, &info, &moment));
    moment.tv_nsec = -1;
    SHOW(sigtimedwait(set, &info, &moment));
    int sig = 0;
    raise(SIGUSR2);
    SHOW(sigwait(set, &sig));
    say("sigwait got %d\n", sig);

    int fd = signalfd(-1, set, SFD_NONBLOCK);
    struct signalfd_siginfo record;
    SHOW(read(fd, &record, sizeof record));
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 22});
    struct pollfd ready = {fd, POLLIN, 0};
    SHOW(poll(&ready, 1, 1000));
    SHOW(read(fd, &record, sizeof record));
    say("signalfd: %u value %d mine %d\n", record.ssi_signo, record.ssi_int,
        record.ssi_pid == (uint32_t)getpid());
    close(fd);
}

int main(void)
{
    sigset_t set, none;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    accept_synchronously(&set);

    on_signal(SIGUSR1, handler, 0);
    on_signal(SIGUSR2, handler, SA_RESTART);
    raise(SIGUSR1);
    SHOW(sigsuspend(&none));
    raise(SIGUSR2);
    SHOW(sigsuspend(&none));
    struct timespec long_time = {5, 0};
    raise(SIGUSR1);
    SHOW(ppoll(NULL, 0, &long_time, &none));
    raise(SIGUSR1);
    SHOW(pselect(0, NULL, NULL, NULL, &long_time, &none));
    int epoll = epoll_create1(0);
    struct epoll_event event;
    raise(SIGUSR1);
    SHOW(epoll_pwait(epoll, &event, 1, 5000, &none));
    SHOW(ppoll(NULL, 0, &(struct timespec){0, 1000000}, &none));
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("mask back %d, handlers %d\n", sigismember(&now, SIGUSR1), hits);

    // With data ready ppoll returns it, and the signal stays pending behind the restored mask.
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    struct pollfd readable = {ends[0], POLLIN, 0};
    SHOW(ppoll(&readable, 1, &long_time, &set));
    return 0;
}
