// SPDX-License-Identifier: MIT
// BUILD: dynamic
// OUTPUT
//
// Pointers to nowhere end in the signal that they are, at the address that they are; code that
// is copied into place runs.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static char *volatile where;
static char *base;
volatile size_t sink;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    where = info->si_addr;
    siglongjmp(back, 1);
}

static void *hide(void *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

static void tell(const char *what, int faulted)
{
    // By comparisons only: what a signal frame holds is not this test's matter.
    printf("%s: %s\n", what, faulted ? "fault" : "no fault");
}

#define TRY(what, expression) \
    do { \
        if (!sigsetjmp(back, 1)) { expression; tell(what, 0); } else { tell(what, 1); } \
    } while (0)

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    TRY("strlen NULL", sink = strlen(hide(0)));                     // EXPECT InvalidRead strlen
    TRY("memcpy NULL", memcpy(hide(0), "abcdefgh", 5));             // EXPECT InvalidWrite memcpy
    TRY("memset wild", memset(hide((void *)0x3333333333333333), 1, 5)); // EXPECT InvalidWrite memset
    TRY("memset far", memset(hide((void *)0x355555555555), 1, 5));  // EXPECT InvalidWrite memset

    base = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(base, 'a', 3 * 4096);
    mprotect(base + 4096, 4096, PROT_READ);
    TRY("memset read-only", memset(base + 4000, 'b', 200));
    memset(base, 'a', 4096);
    TRY("memmove read-only", memmove(base + 4090, base + 4085, 10));
    printf("%.6s\n", base + 4090);
    munmap(base + 8192, 4096);
    TRY("memcmp", sink = memcmp(base + 8190, base + 8190, 5));      // EXPECT InvalidRead memcmp
    TRY("memchr", sink = (size_t)memchr(base + 8180, 'z', 50));     // EXPECT InvalidRead memchr

    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*function)(void) = (int (*)(void))code;
    for (int i = 0; i < 5; i++) {
        unsigned char bytes[] = {0xb8, (unsigned char)i, 0, 0, 0, 0xc3}; // mov eax, i; ret
        memcpy(code, bytes, sizeof(bytes));
        printf("%d ", function());
        memmove(code + 1, code, sizeof(bytes));
        memmove(code, code + 1, sizeof(bytes));
        printf("%d\n", function());
    }
    return 0;
}
