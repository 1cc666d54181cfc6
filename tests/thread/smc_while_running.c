// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread
// STRESS: tiny-blocks
// STRESS: no-link
//
// A thread flips one byte of an instruction that another is executing in a loop: each call gives
// the old or the new value, never a third, and in the end the new one. Then the runner is told to
// stop by patching its loop's branch.
#include "smc.h"
#include <pthread.h>

static uint8_t *code;
static volatile int finish, odd_values, changes;

static void *runner(void *arg)
{
    int last = 1;
    while (!finish) {
        int value = call_code(code);
        odd_values += value != 1 && value != 2;
        changes += value != last;
        last = value;
    }
    return arg;
}

static void *endless(void *arg)
{
    ((void (*)(void))(code + 512))();
    return arg;
}

int main(void)
{
    code = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    put_return(code, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, runner, NULL);
    for (int i = 0; i < 3000; i++) {
        *(volatile uint8_t *)(code + 1) = (uint8_t)(1 + (i & 1));
        if (i % 50 == 0)
            usleep(100);
    }
    int before = changes;
    for (int i = 0; changes < before + 3 && i < 100000; i++) {
        *(volatile uint8_t *)(code + 1) = (uint8_t)(1 + (i & 1));
        usleep(200);
    }
    finish = 1;
    pthread_join(thread, NULL);
    say("odd values %d, changes seen %d, now %d\n", odd_values, changes > 0, call_code(code) <= 2);

    for (int i = 0; i < 20; i++) {
        memcpy(code + 512, "\xeb\xfe\xc3\xc3", 4); // jmp to itself; ret
        pthread_create(&thread, NULL, endless, NULL);
        usleep(1000);
        __atomic_store_n((uint16_t *)(code + 512), 0xc3c3, __ATOMIC_SEQ_CST);
        pthread_join(thread, NULL);
    }
    say("patched out of its loop\n");
    return 0;
}
