// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: signals
//
// A leaf function keeps its locals in the 128 bytes below rsp; signals and whatever the engine does
// between two instructions must leave them alone.
#include "guest.h"
#include <sys/time.h>

static volatile sig_atomic_t hits;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    volatile char frame[2000];
    memset((char *)frame, 0xee, sizeof frame);
    hits++;
}

long leaf(long seed, long rounds);
__asm__(".text\nleaf:\n"
        "    xor %eax, %eax\n"
        "1:  mov %rdi, -8(%rsp)\n"
        "    mov %rdi, -64(%rsp)\n"
        "    mov %rdi, -128(%rsp)\n"
        "    lea 2f(%rip), %rdx\n"
        "    jmp *%rdx\n"
        "    ud2\n"
        "2:  cmp %rdi, -8(%rsp)\n"
        "    jne 3f\n"
        "    cmp %rdi, -64(%rsp)\n"
        "    jne 3f\n"
        "    cmp %rdi, -128(%rsp)\n"
        "    jne 3f\n"
        "    lea 7(%rdi,%rdi,2), %rdi\n"
        "    dec %rsi\n"
        "    jnz 1b\n"
        "    ret\n"
        "3:  inc %rax\n"
        "    dec %rsi\n"
        "    jnz 1b\n"
        "    ret\n");

int main(void)
{
    on_signal(SIGALRM, handler, 0);
    struct itimerval timer = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &timer, NULL);
    long damaged = 0;
    while (hits < 300)
        damaged += leaf(hits, 10000);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    say("damaged %ld\n", damaged);
    return 0;
}
