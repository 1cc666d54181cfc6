// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q --log-file=/dev/null
// MUNINN: --tool=memcheck -q --log-file=/dev/null --stress=signals
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=tiny-cache
//
// A call stands at the end of a page. Meanwhile the code behind it is changed, unmapped, mapped
// again, or was never there: what counts is what is there at the return. And the call itself is
// overwritten while the callee changes its return address, to ones whose lower half is 0.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static uint8_t *pages; // the call at the end of the first, a jump to callee() in the third
static void (*action)(void);
static uint32_t value;
static sigjmp_buf home;

static int goes_elsewhere;
static void *elsewhere;

static void callee(void)
{
    if (action)
        action();
    if (goes_elsewhere)
        ((void *volatile *)__builtin_frame_address(0))[1] = elsewhere;
}

static void put_code_behind(void)
{
    static const uint8_t code[] = {0xb8, 0, 0, 0, 0, 0x5b, 0xc3}; // mov eax, value ; pop rbx ; ret
    memcpy(pages + PAGE, code, sizeof(code));
    memcpy(pages + PAGE + 1, &value, sizeof(value));
}

static void change(void)
{
    value++;
    put_code_behind();
}

static void unmap(void)
{
    munmap(pages + PAGE, PAGE);
}

static void map(void)
{
    mmap(pages + PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    change();
}

static void overwrite(void)
{
    static const uint8_t zeros[64];
    memcpy(pages, zeros, sizeof(zeros)); // in the page of the call
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_addr)
        printf("signal %d at the code behind it + %ld\n", sig,
               (long)((uint8_t *)info->si_addr - (pages + PAGE)));
    else
        printf("signal %d at 0\n", sig);
    siglongjmp(home, 1);
}

int main(void)
{
    pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    uint8_t *call = pages + PAGE - 5, *jump = pages + 2 * PAGE;
    void *to = (void *)callee;
    call[-1] = 0x53; // push rbx
    call[0] = 0xe8;
    memcpy(call + 1, &(int32_t){(int32_t)(jump - (call + 5))}, 4);
    memcpy(jump, (uint8_t[]){0xff, 0x25, 0, 0, 0, 0}, 6); // jmp [rip]
    memcpy(jump + 6, &to, 8);
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &act, NULL);
    unsigned (*run)(void) = (unsigned (*)(void))(uintptr_t)(call - 1);

    put_code_behind();
    unsigned sum = 0;
    for (int i = 0; i < 500; i++) {
        action = i % 3 ? NULL : change;
        sum += run();
    }
    printf("%u, last %u\n", sum, run());
    action = unmap;
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(home, 1) == 0)
            printf("%u\n", run()); // and twice more, where nothing is from the beginning
    }
    action = map;
    printf("%u\n", run());
    action = NULL;
    printf("%u\n", run());

    uint8_t *far = mmap((void *)0x700000000, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(far, (uint8_t[]){0xb8, 7, 0, 0, 0, 0x5b, 0xc3}, 7); // mov eax, 7 ; pop rbx ; ret
    action = overwrite;
    goes_elsewhere = 1;
    elsewhere = far;
    for (int i = 0; i < 3; i++)
        printf("%u\n", run());
    elsewhere = NULL;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(home, 1) == 0)
            printf("%u\n", run());
    }
    return 0;
}
