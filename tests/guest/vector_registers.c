// SPDX-License-Identifier: MIT
// BUILD: -O1 -mavx2
// CPU: avx2
// STRESS: tiny-blocks
// STRESS: signals
//
// All sixteen ymm registers keep their values across system calls, across first executions of new
// code (translation), and across asynchronous signals whose handler overwrites them.
#include "guest.h"
#include <sys/time.h>

static volatile sig_atomic_t hits;
static _Alignas(64) uint8_t before[16][32], after[16][32];

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0; vmovdqa %%ymm0, %%ymm7\n\t"
                     "vmovdqa %%ymm0, %%ymm8; vmovdqa %%ymm0, %%ymm15; vpxor %%xmm3, %%xmm3, %%xmm3"
                     : : : "xmm0", "xmm3", "xmm7", "xmm8", "xmm15");
    hits++;
}

#define EACH(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "vmovdqa " #n "*32(%0), %%ymm" #n "\n\t"
#define STORE(n) "vmovdqa %%ymm" #n ", " #n "*32(%1)\n\t"
#define CLOBBERS "rax", "rcx", "rdx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", \
    "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
    "xmm15"
#define ACROSS(code, extra) \
    __asm__ volatile(EACH(LOAD) code EACH(STORE) : : "r"(before), "r"(after), "r"(extra) : CLOBBERS)

static int differences(void)
{
    int count = 0;
    for (int i = 0; i < 16; i++)
        count += memcmp(before[i], after[i], 32) != 0;
    memset(after, 0, sizeof after);
    return count;
}

int main(void)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 32; j++)
            before[i][j] = (uint8_t)(i * 32 + j + 1);
    on_signal(SIGALRM, handler, 0);

    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        ACROSS("mov $39, %%eax; syscall\n\t", 0UL);
        wrong += differences();
    }
    say("system calls: wrong %d\n", wrong);
    ACROSS("lea 1f(%%rip), %%rax; jmp *%%rax; .space 300, 0xcc; 1: call 2f; jmp 3f; 2: ret; 3:\n\t",
           0UL);
    say("new code: wrong %d\n", differences());

    struct itimerval interval = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &interval, NULL);
    wrong = 0;
    while (hits < 200) {
        long turns = 20000;
        ACROSS("mov %2, %%rdx; 1: dec %%rdx; jnz 1b\n\t", turns);
        wrong += differences();
    }
    memset(&interval, 0, sizeof interval);
    setitimer(ITIMER_REAL, &interval, NULL);
    say("signals: wrong %d\n", wrong);
    return 0;
}
