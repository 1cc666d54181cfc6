// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread
//
// One thread maps and drops large memory, which takes the kernel its time, while another has
// system calls write into a page that it also executes: they never fail.
#include "smc.h"
#include <pthread.h>

enum { LARGE = 256 << 20, ROUNDS = 4000 };
static volatile int finish;

static void *map_and_drop(void *arg)
{
    while (!finish) {
        void *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p != MAP_FAILED)
            munmap(p, LARGE);
    }
    return arg;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, map_and_drop, NULL);
    int failures = 0;
    int64_t deadline = now_ns() + 1500 * 1000000LL;
    for (int i = 0; i < ROUNDS && now_ns() < deadline; i++) {
        // A new page each time: one that is written too often is not guarded any more.
        uint8_t *code = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        put_return(code, i);
        CHECK(call_code(code) == i);
        stack_t *old = (stack_t *)(code + 256);
        failures += sigaltstack(NULL, old) != 0;
        munmap(code, PAGE);
    }
    finish = 1;
    pthread_join(thread, NULL);
    say("failures %d\n", failures);
    return 0;
}
