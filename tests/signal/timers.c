// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// Every kind of timer reaches a compute loop that makes no system call: the counts arrive.
#include "guest.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>

static volatile int hits, value;
static volatile uint64_t sink;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    hits++;
    value = info->si_value.sival_int;
}

static void compute_until(int wanted)
{
    uint64_t x = 1;
    while (hits < wanted)
        for (int i = 0; i < 100; i++)
            x = x * 6364136223846793005ULL + 1;
    sink = x;
}

static void interval_timer(const char *name, int which, int sig)
{
    hits = 0;
    on_signal(sig, handler, 0);
    struct itimerval timer = {{0, 1000}, {0, 1000}}, old;
    setitimer(which, &timer, NULL);
    compute_until(20);
    memset(&timer, 0, sizeof timer);
    setitimer(which, &timer, &old);
    say("%s: 20 arrived, interval was %ld\n", name, (long)old.it_interval.tv_usec);
}

static void notify(union sigval v)
{
    value = v.sival_int;
    hits++;
}

static void posix_timer(const char *name, struct sigevent event, clockid_t clock)
{
    hits = 0;
    timer_t timer;
    CHECK(timer_create(clock, &event, &timer) == 0);
    struct itimerspec when = {{0, 1000000}, {0, 1000000}};
    CHECK(timer_settime(timer, 0, &when, NULL) == 0);
    compute_until(20);
    CHECK(timer_delete(timer) == 0);
    say("%s: 20 arrived, value %d\n", name, value);
}

int main(void)
{
    interval_timer("real", ITIMER_REAL, SIGALRM);
    interval_timer("virtual", ITIMER_VIRTUAL, SIGVTALRM);
    interval_timer("prof", ITIMER_PROF, SIGPROF);
    on_signal(SIGRTMIN + 2, handler, 0);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
    event.sigev_value.sival_int = 31;
    posix_timer("signal", event, CLOCK_MONOTONIC);
    event.sigev_value.sival_int = 32;
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    posix_timer("thread id", event, CLOCK_REALTIME);
    posix_timer("cpu clock", event, CLOCK_PROCESS_CPUTIME_ID);
    struct sigevent by_thread = {.sigev_notify = SIGEV_THREAD};
    by_thread.sigev_notify_function = notify;
    by_thread.sigev_value.sival_int = 33;
    posix_timer("own thread", by_thread, CLOCK_MONOTONIC);

    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec when = {{0, 1000000}, {0, 1000000}};
    timerfd_settime(fd, 0, &when, NULL);
    uint64_t total = 0, expirations;
    while (total < 20 && read(fd, &expirations, sizeof expirations) == sizeof expirations)
        total += expirations;
    say("timerfd: %d\n", total >= 20);
    alarm(100);
    say("alarm left %d\n", alarm(0) > 50);
    return 0;
}
