// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// Mutexes of each kind, condition variables, barriers, read-write locks, semaphores, spin locks and
// once: each guards an invariant that fails loudly when the lock does.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>

enum { THREADS = 4, ROUNDS = 5000, SLOTS = 8 };
static pthread_mutex_t mutexes[3];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t slots, items;
static long guarded[3], pair[2], spun, once_runs, serial_threads, torn, taken_sum;
static long phase[THREADS];

static void run_once(void)
{
    once_runs++;
}

static void use_mutexes(int id)
{
    for (int i = 0; i < ROUNDS; i++) {
        int which = (id + i) % 3;
        pthread_mutex_lock(&mutexes[which]);
        if (which == 1) // recursive
            pthread_mutex_lock(&mutexes[which]);
        long before = guarded[which];
        guarded[which] = before + 1;
        if (which == 1)
            pthread_mutex_unlock(&mutexes[which]);
        pthread_mutex_unlock(&mutexes[which]);
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
    }
}

static void use_rwlock(int id)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 8 == id) {
            pthread_rwlock_wrlock(&rwlock);
            pair[0]++;
            pair[1]++;
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            if (pair[0] != pair[1])
                __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
            pthread_rwlock_unlock(&rwlock);
        }
    }
}

static void use_barrier(int id)
{
    for (int i = 0; i < 200; i++) {
        phase[id] = i;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_fetch_add(&serial_threads, 1, __ATOMIC_RELAXED);
        for (int t = 0; t < THREADS; t++)
            if (phase[t] != i)
                __atomic_fetch_add(&torn, 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&barrier);
    }
}

static void use_semaphores(int id)
{
    for (int i = 0; i < ROUNDS / 5; i++) {
        if (id & 1) {
            sem_wait(&slots);
            sem_post(&items);
        } else {
            sem_wait(&items);
            __atomic_fetch_add(&taken_sum, i, __ATOMIC_RELAXED);
            sem_post(&slots);
        }
    }
}

static void *body(void *arg)
{
    int id = (int)(long)arg;
    pthread_once(&once, run_once);
    use_mutexes(id);
    use_rwlock(id);
    use_barrier(id);
    use_semaphores(id);
    return NULL;
}

int main(void)
{
    int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (int i = 0; i < 3; i++) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, kinds[i]);
        if (i == 2)
            pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&mutexes[i], &attributes);
    }
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&slots, 0, SLOTS);
    sem_init(&items, 0, 0);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("guarded %ld, spun %ld, once %ld\n", guarded[0] + guarded[1] + guarded[2], spun, once_runs);
    say("pair %ld %ld, torn %ld, serial %ld, taken %ld\n", pair[0], pair[1], torn, serial_threads,
        taken_sum);
    pthread_mutex_lock(&mutexes[2]);
    say("errorcheck: %s\n", error_name(pthread_mutex_lock(&mutexes[2])));
    return 0;
}
