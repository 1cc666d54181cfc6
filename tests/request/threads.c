// SPDX-License-Identifier: MIT
//
// Requests of several threads at a time, interrupted by signals: results are right, lines are whole,
// and silence is a thread's own. A forked child begins a line of its own.
#include <pthread.h>
#include <valgrind/valgrind.h>

#include "guest.h"

enum { THREADS = 4, ROUNDS = 300 };
static volatile int signals;

static void on_alarm(int sig)
{
    (void)sig;
    signals += RUNNING_ON_VALGRIND <= 1;
}

static long echo(long tid, long value)
{
    return tid > 0 ? value : -1;
}

static void *work(void *arg)
{
    long me = (long)arg;
    unsigned depth = RUNNING_ON_VALGRIND;
    for (long i = 0; i < ROUNDS; i++) {
        CHECK(RUNNING_ON_VALGRIND == depth);
        VALGRIND_DISABLE_ERROR_REPORTING;
        if (depth)
            CHECK((long)VALGRIND_NON_SIMD_CALL1(echo, me * 1000 + i) == me * 1000 + i);
        if (i % 10 == 0)
            VALGRIND_PRINTF("thread %ld round %ld of %d\n", me, i, ROUNDS);
        VALGRIND_ENABLE_ERROR_REPORTING;
        unsigned id = VALGRIND_STACK_REGISTER(i * 0x1000, i * 0x1000 + 0xfff);
        VALGRIND_STACK_DEREGISTER(id);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    signal(SIGALRM, on_alarm);
    ualarm(700, 700);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ualarm(0, 0);
    VALGRIND_PRINTF("parent's half, ");
    pid_t child = fork();
    if (child == 0) {
        VALGRIND_PRINTF("child's line\n");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    VALGRIND_PRINTF("and the other\n");
    say("done\n");
}
