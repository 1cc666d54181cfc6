// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
//
// Futex operations beyond what locks use: requeue, cmp_requeue, bitsets, wake_op, PI locks,
// timeouts and errors; process-private and shared.
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

static int from, to, pi, woken, second_owner, asleep_tid[4];

static long futex(int *word, int op, int value, const void *timeout, int *word2, int value3)
{
    return syscall(SYS_futex, word, op, value, timeout, word2, value3);
}

static void *sleeper(void *arg)
{
    asleep_tid[(long)arg] = (int)syscall(SYS_gettid);
    while (futex(&from, FUTEX_WAIT, 0, NULL, NULL, 0) == -1 && errno == EINTR)
        ;
    __atomic_fetch_add(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *pi_locker(void *arg)
{
    CHECK(futex(&pi, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == 0);
    second_owner = (pi & FUTEX_TID_MASK) == syscall(SYS_gettid);
    CHECK(futex(&pi, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == 0);
    return arg;
}

int main(void)
{
    pthread_t threads[4], locker;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, sleeper, (void *)i);
    for (int i = 0; i < 4; i++) {
        while (!__atomic_load_n(&asleep_tid[i], __ATOMIC_SEQ_CST))
            usleep(100);
        wait_until_asleep(asleep_tid[i]);
    }
    SHOW(futex(&from, FUTEX_CMP_REQUEUE, 1, (void *)2, &to, 77));
    SHOW(futex(&from, FUTEX_CMP_REQUEUE, 1, (void *)2, &to, 0));
    SHOW(futex(&to, FUTEX_WAKE, 10, NULL, NULL, 0));
    int op = FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0);
    SHOW(futex(&to, FUTEX_WAKE_OP, 1, (void *)1, &from, op));
    say("word after wake_op %d\n", from);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    say("woken %d\n", woken);

    struct timespec moment = {0, 2000000};
    from = 0;
    SHOW(futex(&from, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0));
    SHOW(futex(&from, FUTEX_WAIT_PRIVATE, 1, &moment, NULL, 0));
    SHOW(futex(&from, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0));
    SHOW(futex((int *)((char *)&from + 1), FUTEX_WAIT, 0, &moment, NULL, 0));
    SHOW(futex((int *)64, FUTEX_WAIT, 0, &moment, NULL, 0));
    SHOW(futex(&from, 99, 0, NULL, NULL, 0));

    SHOW(futex(&pi, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    say("owner is main %d\n", (pi & FUTEX_TID_MASK) == getpid());
    pthread_create(&locker, NULL, pi_locker, NULL);
    usleep(5000);
    SHOW(futex(&pi, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    pthread_join(locker, NULL);
    say("second owner is the thread %d\n", second_owner);
    SHOW(futex(&pi, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
    SHOW(futex(&pi, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    return 0;
}
