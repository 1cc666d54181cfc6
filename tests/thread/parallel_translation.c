// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-cache
// STRESS: tiny-blocks
//
// Four threads meet much new code at the same moment: hundreds of generated functions, called in
// different orders, with exceptions to the straight path (signals, faults caught) in between.
#include "smc.h"
#include <pthread.h>
#include <setjmp.h>

enum { FUNCTIONS = 800, THREADS = 4 };
static uint8_t *code;
static pthread_barrier_t barrier;
static int wrong, faults;
static __thread sigjmp_buf home;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
    siglongjmp(home, 1);
}

static void *body(void *arg)
{
    static const int strides[THREADS] = {1, 799, 3, 7};
    int stride = strides[(long)arg];
    for (volatile int round = 0; round < 3; round++) {
        pthread_barrier_wait(&barrier);
        for (volatile int i = 0; i < FUNCTIONS; i++) {
            int index = (int)((long)i * stride % FUNCTIONS);
            if (index % 100 == 99) {
                if (sigsetjmp(home, 1) == 0)
                    call_code(code + index * 64);
                continue;
            }
            if (call_code(code + index * 64) != index * 3)
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

int main(void)
{
    on_signal(SIGILL, handler, 0);
    code = map_pages(FUNCTIONS * 64, PROT_READ | PROT_WRITE);
    for (int i = 0; i < FUNCTIONS; i++) {
        uint8_t *f = code + i * 64;
        if (i % 100 == 99) {
            memcpy(f, "\x0f\x0b", 2); // ud2
            continue;
        }
        *f++ = 0xeb; // jmp over some bytes, so that there is more than one block
        *f++ = (uint8_t)(i % 32);
        put_return(f + i % 32, i * 3);
    }
    mprotect(code, FUNCTIONS * 64, PROT_READ | PROT_EXEC);
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say("wrong %d, faults %d\n", wrong, faults);
    return 0;
}
