// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// tgkill and pthread_kill reach exactly their thread; kill reaches any thread that does not block
// the signal; a blocked one takes it with sigwait.
#include "guest.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { THREADS = 4, ROUNDS = 500 };
static __thread volatile int mine;
static volatile int ready, finish, misdirected, process_hits;
static pthread_t threads[THREADS];
static __thread int self_index = -1;
static int counts[THREADS];

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (sig == SIGUSR2) {
        __sync_fetch_and_add(&process_hits, 1);
        misdirected += self_index != 2;
        return;
    }
    mine++;
    if (info->si_value.sival_int != self_index && info->si_code == SI_QUEUE)
        misdirected++;
}

static void *body(void *arg)
{
    self_index = (int)(long)arg;
    block_signal(self_index == 2 ? SIG_UNBLOCK : SIG_BLOCK, SIGUSR2);
    __sync_fetch_and_add(&ready, 1);
    volatile uint64_t x = 1;
    while (mine < ROUNDS || !finish) {
        x = x * 3 + 1;
        if (self_index & 1)
            usleep(50);
    }
    counts[self_index] = mine;
    return NULL;
}

int main(void)
{
    on_signal(SIGRTMIN, handler, SA_RESTART);
    on_signal(SIGUSR2, handler, SA_RESTART);
    block_signal(SIG_BLOCK, SIGUSR2);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    while (ready < THREADS)
        usleep(100);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < THREADS; i++)
            while (pthread_sigqueue(threads[i], SIGRTMIN, (union sigval){.sival_int = i}) != 0)
                usleep(100);
    for (int i = 0; i < 20; i++) {
        int before = process_hits;
        kill(getpid(), SIGUSR2);
        while (process_hits == before)
            usleep(50);
    }
    finish = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        say("thread %d: %d\n", i, counts[i]);
    }
    say("process %d, misdirected %d\n", process_hits, misdirected);
    SHOW(syscall(SYS_tgkill, getpid(), 0x3fffffff, SIGUSR1));
    SHOW(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 99));
    SHOW(kill(getpid(), 0));
    return 0;
}
