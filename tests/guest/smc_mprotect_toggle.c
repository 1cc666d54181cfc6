// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// The polite JIT: RW to write, RX to run, and back, at page and half-range granularity. While the
// page is RX a store must fault with SEGV_ACCERR; while it is RW a call must.
#include "smc.h"
#include <setjmp.h>

static sigjmp_buf home;
static volatile int faults, accerr;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    faults++;
    accerr += info->si_code == SEGV_ACCERR;
    siglongjmp(home, 1);
}

int main(void)
{
    on_signal(SIGSEGV, handler, 0);
    volatile int wrong = 0;
    uint8_t *pages = map_pages(4 * PAGE, PROT_READ | PROT_WRITE);
    for (volatile int i = 0; i < 500; i++) {
        uint8_t *code = pages + i % 4 * PAGE;
        mprotect(pages, 4 * PAGE, PROT_READ | PROT_WRITE);
        put_return(code, i);
        put_return(code + 100, -i);
        mprotect(code, PAGE, PROT_READ | PROT_EXEC);
        wrong += call_code(code) != i || call_code(code + 100) != -i;
        if (sigsetjmp(home, 1) == 0) {
            *(volatile uint8_t *)code = 0x90;
            wrong++;
        }
        mprotect(code, PAGE, PROT_READ | PROT_WRITE);
        if (sigsetjmp(home, 1) == 0) {
            call_code(code);
            wrong++;
        }
    }
    say("wrong %d, faults %d, accerr %d\n", wrong, faults, accerr);
    return 0;
}
