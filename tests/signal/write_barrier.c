// SPDX-License-Identifier: MIT
// BUILD: -O1 -mavx2
// CPU: avx2
// STRESS: tiny-blocks
// STRESS: no-link
//
// A garbage collector's barrier: pages are protected, the handler unprotects the one that faulted
// and returns, and the instruction runs again, whole: stores of every kind, strings across pages,
// pushes, atomics. Each faults once, none runs twice.
#include "guest.h"
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 16 };
static char *heap;
static volatile int faults;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    faults++;
    char *page = (char *)((uintptr_t)info->si_addr & ~(PAGE - 1UL));
    if (page < heap || page >= heap + PAGES * PAGE)
        _exit(3);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void show(const char *what)
{
    uint32_t sum = 1;
    int seen = faults;
    mprotect(heap, PAGES * PAGE, PROT_READ);
    for (int i = 0; i < PAGES * PAGE; i++)
        sum = sum * 31 + (uint8_t)heap[i];
    say("%s: faults %d sum %x\n", what, seen, sum);
    faults = 0;
    mprotect(heap, PAGES * PAGE, PROT_NONE);
}

int main(void)
{
    static char alternate[65536]; // one of the pages will be the stack
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    on_signal(SIGSEGV, handler, SA_ONSTACK);
    heap = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *p = heap;
    __asm__ volatile("addl $7, 100(%0); adcl $1, 200(%0)" : : "r"(p) : "memory", "cc");
    show("read-modify-write");
    __asm__ volatile("lock incq (%0); mov $5, %%eax; lock xaddl %%eax, 4096(%0)"
                     : : "r"(p) : "memory", "cc", "rax");
    show("atomics");
    __asm__ volatile("vpcmpeqd %%ymm1, %%ymm1, %%ymm1; vmovdqu %%ymm1, 4080(%0)"
                     : : "r"(p) : "memory", "xmm1");
    show("a vector across two pages");
    char *rdi = p + 100, *rsi = p + 8 * PAGE + 50;
    long rcx = 3 * PAGE;
    __asm__ volatile("rep movsb" : "+D"(rdi), "+S"(rsi), "+c"(rcx) : : "memory");
    say("rcx %ld rdi %ld\n", rcx, (long)(rdi - p));
    show("rep movsb");
    rdi = p + 5 * PAGE, rcx = PAGE;
    __asm__ volatile("rep stosl" : "+D"(rdi), "+c"(rcx) : "a"(0x01020304) : "memory");
    show("rep stosl");
    long popped;
    __asm__ volatile("mov %%rsp, %%rbx; lea 8192(%1), %%rsp; push $77; pushq (%%rsp)\n\t"
                     "call 1f; 1: pop %%rdx; movq $0, (%%rsp); lea 16(%%rsp), %%rsp\n\t"
                     "mov -8(%%rsp), %0; mov $0, %%edx; mov %%rdx, -24(%%rsp); mov %%rbx, %%rsp"
                     : "=r"(popped) : "r"(p) : "rbx", "rdx", "memory");
    say("popped %ld\n", popped);
    show("pushes");
    for (int i = 0; i < 20000; i++) {
        p[i % PAGES * PAGE + i % PAGE] += 1;
        if (i % 16 == 15)
            mprotect(heap, PAGES * PAGE, PROT_NONE);
    }
    show("many");
    return 0;
}
