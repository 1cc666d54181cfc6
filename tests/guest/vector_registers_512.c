// SPDX-License-Identifier: MIT
// BUILD: -O1 -mavx512f -mavx512bw -mavx512vl
// CPU: avx512f avx512bw
// STRESS: tiny-blocks
// STRESS: signals
//
// All zmm registers (16 to 31 too) and mask registers keep their values across system calls, across
// first executions of new code (translation), and across asynchronous signals whose handler
// overwrites them.
#include "guest.h"
#include <sys/time.h>

static volatile sig_atomic_t hits;
static _Alignas(64) uint8_t before[32][64], after[32][64];

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    __asm__ volatile("vpternlogd $255, %%zmm0, %%zmm0, %%zmm0; vmovdqa64 %%zmm0, %%zmm7\n\t"
                     "vmovdqa64 %%zmm0, %%zmm16; vmovdqa64 %%zmm0, %%zmm31; kxnorq %%k5, %%k5, %%k5"
                     : : : "xmm0", "xmm7", "xmm16", "xmm31", "k5");
    hits++;
}

#define EACH(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) \
    X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define LOAD(n) "vmovdqa64 " #n "*64(%0), %%zmm" #n "\n\t"
#define STORE(n) "vmovdqa64 %%zmm" #n ", " #n "*64(%1)\n\t"
#define LOAD_MASKS "kmovq 5(%0), %%k1; kmovq 77(%0), %%k5; kmovq 99(%0), %%k7\n\t"
#define STORE_MASKS \
    "kmovq %%k1, masks(%%rip); kmovq %%k5, masks+8(%%rip); kmovq %%k7, masks+16(%%rip)\n\t"
#define CLOBBERS "rax", "rcx", "rdx", "r11", "memory", "cc", "k1", "k5", "k7", "xmm0", "xmm1", \
    "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
    "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", \
    "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"
#define ACROSS(code, extra) \
    __asm__ volatile(EACH(LOAD) LOAD_MASKS code EACH(STORE) STORE_MASKS \
                     : : "r"(before), "r"(after), "r"(extra) : CLOBBERS)

uint64_t masks[3];

static int differences(void)
{
    int count = 0;
    for (int i = 0; i < 32; i++)
        count += memcmp(before[i], after[i], 64) != 0;
    count += memcmp(&masks[0], before[0] + 5, 8) != 0;
    count += memcmp(&masks[1], before[0] + 77, 8) != 0;
    count += memcmp(&masks[2], before[0] + 99, 8) != 0;
    memset(after, 0, sizeof after);
    return count;
}

int main(void)
{
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 64; j++)
            before[i][j] = (uint8_t)(i * 64 + j + i / 4 + 1);
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
