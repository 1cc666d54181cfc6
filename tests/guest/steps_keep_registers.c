// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q --stress=often
// MUNINN: --tool=memcheck -q --stress=often,signals
//
// Undefined values are copied through rax and xmm0 while all other registers hold something: what
// carries their definedness on leaves these alone, also when signals come in between.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t signals;

static void on_alarm(int signal)
{
    char *from = malloc(32), *to = malloc(32); // a handler that copies, too
    (void)signal;
    memcpy(to, from, 24);
    free(from);
    free(to);
    signals++;
}

// Returns the sum of what is in the registers that were not asked for.
static unsigned long copy(void *to, const void *from, unsigned long seed)
{
    unsigned long sum;
    __asm__ volatile("mov %%rcx, %%rbx\n\t"
                     "lea 1(%%rbx), %%rcx\n\t"
                     "lea 2(%%rbx), %%rdx\n\t"
                     "lea 4(%%rbx), %%r8\n\t"
                     "lea 5(%%rbx), %%r9\n\t"
                     "lea 6(%%rbx), %%r10\n\t"
                     "lea 7(%%rbx), %%r11\n\t"
                     "lea 8(%%rbx), %%r12\n\t"
                     "lea 9(%%rbx), %%r13\n\t"
                     "lea 10(%%rbx), %%r14\n\t"
                     "lea 11(%%rbx), %%r15\n\t"
                     "mov (%%rsi), %%rax\n\t"
                     "mov %%rax, (%%rdi)\n\t"
                     "movdqu 8(%%rsi), %%xmm0\n\t"
                     "movups %%xmm0, 8(%%rdi)\n\t"
                     "mov 24(%%rsi), %%eax\n\t"
                     "mov %%eax, 24(%%rdi)\n\t"
                     "mov 28(%%rsi), %%al\n\t"
                     "mov %%al, 28(%%rdi)\n\t"
                     "movzwl 30(%%rsi), %%eax\n\t"
                     "mov %%ax, 30(%%rdi)\n\t"
                     "lea (%%rbx,%%rcx), %%rax\n\t"
                     "add %%rdx, %%rax\n\t"
                     "add %%r8, %%rax\n\t"
                     "add %%r9, %%rax\n\t"
                     "add %%r10, %%rax\n\t"
                     "add %%r11, %%rax\n\t"
                     "add %%r12, %%rax\n\t"
                     "add %%r13, %%rax\n\t"
                     "add %%r14, %%rax\n\t"
                     "add %%r15, %%rax"
                     : "=&a"(sum), "+c"(seed)
                     : "D"(to), "S"(from)
                     : "rbx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "xmm0", "cc", "memory");
    return sum;
}

int main(void)
{
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    unsigned char *from = malloc(32), *to = malloc(32), on_stack[32];
    unsigned wrong = 0;
    for (int i = 0; i < 32; i += 3)
        from[i] = (unsigned char)i; // with holes
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned long n = 0; n < 200000 || signals < 3; n++) {
        unsigned char *other = n & 1 ? to : on_stack;
        wrong += copy(other, from, n) != 11 * n + 63;
        wrong += copy(from, other, ~n) != 11 * ~n + 63;
        wrong += other[3] != 3 || from[30] != 30;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%u wrong\n", wrong);
    free(from);
    free(to);
    return 0;
}
