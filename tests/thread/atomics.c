// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread -mcx16
// STRESS: tiny-blocks
//
// Two threads and millions of atomic operations of every size and kind, a spin lock, Peterson's
// algorithm (store-load ordering by mfence), and message passing (store-store, load-load).
#include "guest.h"
#include <pthread.h>

enum { ROUNDS = 300000 };
static long added;
static uint8_t byte_added;
static uint16_t word_added;
static uint32_t lock, xored;
static long under_lock, under_peterson, stale;
static volatile int interested[2], turn;
static long data[64];
static volatile long published;
static _Alignas(16) unsigned __int128 wide;

static void peterson(int me)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        interested[me] = 1;
        turn = 1 - me;
        __sync_synchronize();
        while (interested[1 - me] && turn == 1 - me)
            __builtin_ia32_pause();
        under_peterson++;
        interested[me] = 0;
    }
}

static void pass_messages(int me)
{
    for (long i = 1; i <= ROUNDS; i++) {
        if (me == 0) {
            data[i % 64] = i;
            __atomic_store_n(&published, i, __ATOMIC_RELEASE);
        } else {
            long seen = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
            stale += seen && data[seen % 64] < seen;
        }
    }
}

static void add_wide(void)
{
    unsigned __int128 old = wide, sum;
    do
        sum = old + (((unsigned __int128)1 << 64) | 1);
    while (!__sync_bool_compare_and_swap(&wide, old, sum) && (old = wide, true));
}

static void *body(void *arg)
{
    int me = (int)(long)arg;
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&added, i, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&byte_added, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(&word_added, 3, __ATOMIC_SEQ_CST);
        __atomic_xor_fetch(&xored, i * 2654435761U, __ATOMIC_SEQ_CST);
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
            __builtin_ia32_pause();
        under_lock++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
        if (i % 8 == 0)
            add_wide();
    }
    peterson(me);
    pass_messages(me);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    say("%ld %u %u %x %ld\n", added, byte_added, word_added, xored, under_lock);
    say("wide %lu %lu, peterson %ld, stale %ld\n", (unsigned long)(wide >> 64), (unsigned long)wide,
        under_peterson, stale);
    return 0;
}
