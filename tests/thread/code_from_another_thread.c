// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
//
// One thread writes code, another runs it after a proper hand-over: fresh pages, one page again and
// again, and through mprotect and munmap.
#include "smc.h"
#include <pthread.h>

enum { ROUNDS = 2000 };
static uint8_t *volatile code;
static int expected, wrong;
static volatile int step; // even: the writer's turn, odd: the runner's

static void *runner(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 2 * i + 1)
            sched_yield();
        __asm__ volatile("xor %%eax, %%eax; xor %%ecx, %%ecx; cpuid"
                         : : : "rax", "rbx", "rcx", "rdx", "memory"); // serialise, as a JIT must
        wrong += call_code(code) != expected;
        __atomic_store_n(&step, 2 * i + 2, __ATOMIC_RELEASE);
    }
    return arg;
}

int main(void)
{
    uint8_t *steady = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    uint8_t *fresh = NULL;
    pthread_t thread;
    pthread_create(&thread, NULL, runner, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 2 * i)
            sched_yield();
        expected = i * 13;
        if (i % 3 == 0) {
            code = steady;
            put_return(steady, expected);
        } else {
            if (fresh)
                munmap(fresh, PAGE);
            fresh = map_pages(PAGE, PROT_READ | PROT_WRITE);
            put_return(fresh, expected);
            mprotect(fresh, PAGE, PROT_READ | PROT_EXEC);
            code = fresh;
        }
        __atomic_store_n(&step, 2 * i + 1, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
    say("wrong %d\n", wrong);
    return 0;
}
