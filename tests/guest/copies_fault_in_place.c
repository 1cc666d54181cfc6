// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN: --tool=memcheck -q --stress=often
// MUNINN: --tool=memcheck -q
// STDERR: any
//
// A structure is copied across the end of what is mapped, by a load or by a store, and its bytes
// are undefined: the fault comes at the very instruction, and what stands before it has been done.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../../include/muninn/client.h"

enum { PAGE = 4096, BYTES = 48 };

extern const unsigned char copy_begin[], copy_end[];
static sigjmp_buf back;
static unsigned char *pages;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    long rip = (long)uc->uc_mcontext.gregs[REG_RIP] - (long)copy_begin;
    printf("signal %d at +%ld, address %ld, code %d\n", signal, rip,
           (long)((unsigned char *)info->si_addr - pages), info->si_code);
    siglongjmp(back, 1);
}

static __attribute__((noinline)) void copy(unsigned char *to, const unsigned char *from)
{
    __asm__ volatile("copy_begin:\n"
                     "movdqu (%%rsi), %%xmm0\n movups %%xmm0, (%%rdi)\n"
                     "movdqu 16(%%rsi), %%xmm1\n mov 32(%%rsi), %%rax\n"
                     "movups %%xmm1, 16(%%rdi)\n mov %%rax, 32(%%rdi)\n"
                     "copy_end:\n"
                     "xor %%eax, %%eax\n pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1"
                     :
                     : "D"(to), "S"(from)
                     : "rax", "xmm0", "xmm1", "cc", "memory");
}

// All of it is there, and nothing behind it.
static __attribute__((noinline)) void copy_last(unsigned char *to, const unsigned char *from)
{
    __asm__ volatile("mov -4(%%rsi), %%eax\n mov %%eax, (%%rdi)\n xor %%eax, %%eax"
                     :
                     : "D"(to), "S"(from)
                     : "rax", "cc", "memory");
}

static void attempt(unsigned char *to, unsigned char *from, unsigned char *good, unsigned there)
{
    static const unsigned char undefined[BYTES] = {0, 0, 0xff, [7] = 1, [17] = 0xff, [33] = 2};
    for (unsigned i = 0; i < BYTES; i++)
        good[i] = (unsigned char)(good == to ? 0xee : i + 1);
    for (unsigned i = 0; i < there; i++)
        (good == to ? from : to)[i] = (unsigned char)(good == to ? i + 1 : 0xee);
    if (good == to)
        MUNINN_SET_VBITS(from, undefined, there);
    else
        MUNINN_SET_VBITS(from, undefined, BYTES);
    if (sigsetjmp(back, 1) == 0) {
        copy(to, from);
        printf("no fault\n");
    }
    static const unsigned char defined[BYTES];
    unsigned size = good == to ? BYTES : there, done = 0;
    MUNINN_SET_VBITS(to, defined, size);
    for (unsigned i = 0; i < size; i++)
        done += to[i] != 0xee;
    printf("%u bytes were copied\n", done);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    static unsigned char other[64];
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + PAGE, PAGE);
    sigaction(SIGSEGV, &action, NULL);
    for (int n = 0; n < 300; n++) { // often
        for (unsigned there = 0; there <= BYTES; there += 16) {
            attempt(other, pages + PAGE - there, other, there);
            attempt(pages + PAGE - there, other, other, there);
        }
        static const unsigned char undefined[4] = {0xff, 0, 1, 0xff};
        MUNINN_SET_VBITS(pages + PAGE - 4, undefined, 4);
        copy_last(other, pages + PAGE);
    }
    mprotect(pages, PAGE, PROT_READ);
    memset(other, 1, sizeof(other));
    if (sigsetjmp(back, 1) == 0)
        copy(pages, other);
    printf("%d\n", (int)(copy_end - copy_begin));
    return 0;
}
