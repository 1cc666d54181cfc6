// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// Under a steady rain of signals: mutexes never fail, semaphores report EINTR and nothing else,
// condition waits keep their promise, and no hand-over is lost.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>

enum { ROUNDS = 3000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t to_other, to_main;
static volatile long turn, shared;
static volatile sig_atomic_t hits;
static long odd_errors;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    hits++;
}

static void take(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        if (errno != EINTR)
            odd_errors++;
}

static void *other(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        take(&to_other);
        shared++;
        sem_post(&to_main);
        pthread_mutex_lock(&mutex);
        while (turn != 1)
            pthread_cond_wait(&condition, &mutex);
        turn = 0;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

int main(void)
{
    on_signal(SIGALRM, handler, 0);
    sem_init(&to_other, 0, 0);
    sem_init(&to_main, 0, 0);
    struct itimerval timer = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &timer, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        sem_post(&to_other);
        take(&to_main);
        pthread_mutex_lock(&mutex);
        turn = 1;
        pthread_cond_signal(&condition);
        while (turn != 0)
            pthread_cond_wait(&condition, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    pthread_join(thread, NULL);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    say("shared %ld, odd errors %ld, signals %d\n", shared, odd_errors, hits > 0);
    return 0;
}
