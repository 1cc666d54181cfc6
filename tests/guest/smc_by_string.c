// SPDX-License-Identifier: MIT
// BUILD: -O2
// MUNINN: --tool=none
// MUNINN: --tool=memcheck -q --log-file=/dev/null
// STRESS: signals
//
// Repeated string instructions, of 4 MiB and in both directions, over pages with code that was
// executed: a trap for each of their rounds would take many minutes. One ends in a fault, where the
// registers tell how far it got.
#include "smc.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

enum { SIZE = 4 << 20, STEP = 10 * 4096 };
static uint8_t *code, *source;
static volatile long left, at;

static int put_and_call(int value)
{
    int sum = 0;
    for (int i = 0; i + STEP < SIZE; i += STEP) {
        put_return(code + i + 100, value + i / STEP);
        sum += call_code(code + i + 100);
    }
    return sum;
}

static void expect(const char *what, const uint8_t *expected)
{
    if (memcmp(code, expected, SIZE) != 0)
        printf("FAIL %s\n", what);
}

static void store(const char *what, uint64_t count, unsigned element, int down)
{
    uint8_t *to = down ? code + (count - 1) * element : code;
    uint64_t value = 0x9090909090909090;
    if (down)
        __asm__ volatile("std");
    switch (element) {
    case 1: __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory"); break;
    case 2: __asm__ volatile("rep stosw" : "+D"(to), "+c"(count) : "a"(value) : "memory"); break;
    case 4: __asm__ volatile("rep stosl" : "+D"(to), "+c"(count) : "a"(value) : "memory"); break;
    default: __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    }
    __asm__ volatile("cld");
    memset(source, 0x90, SIZE);
    expect(what, source);
    printf("%s: %ld %lu\n", what, (long)(to - code), (unsigned long)count);
}

static void move(const char *what, uint64_t count, int down)
{
    uint8_t *to = down ? code + count - 1 : code, *from = down ? source + count - 1 : source;
    for (int i = 0; i < SIZE; i++)
        source[i] = (uint8_t)(i * 7);
    if (down)
        __asm__ volatile("std");
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    __asm__ volatile("cld");
    expect(what, source);
    printf("%s: %ld %ld %lu\n", what, (long)(to - code), (long)(from - source),
           (unsigned long)count);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    left = r[REG_RCX];
    at = r[REG_RDI] - (long)code;
    (void)sig;
    (void)info;
    r[REG_RCX] = 0;
    r[REG_RDI] = (greg_t)code; // the next round finds nothing to do
}

static void store_until_fault(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    uint8_t *to = code;
    uint64_t count = SIZE + 100;
    sigaction(SIGSEGV, &action, NULL);
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x90) : "memory");
    printf("fault: %ld %ld\n", at, left);
}

static volatile int ticks;
static void on_tick(int sig)
{
    (void)sig;
    ticks++;
}

// Signals that arrive in the middle of long ones.
static void store_with_signals(void)
{
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &often, NULL);
    while (ticks < 20) {
        uint8_t *to = source;
        uint64_t count = SIZE;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
        if (to != source + SIZE || count != 0)
            printf("FAIL signals\n");
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("signals\n");
}

int main(void)
{
    code = map_pages(SIZE + PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    source = map_pages(SIZE, PROT_READ | PROT_WRITE);
    munmap(code + SIZE, PAGE);
    for (int round = 0; round < 2; round++) {
        printf("%d\n", put_and_call(round));
        store("stosb", SIZE, 1, 0);
        printf("%d\n", put_and_call(round));
        store("stosw down", SIZE / 2, 2, 1);
        put_and_call(round);
        store("stosl", SIZE / 4, 4, 0);
        put_and_call(round);
        store("stosq down", SIZE / 8, 8, 1);
        put_and_call(round);
        move("movsb", SIZE, 0);
        put_and_call(round);
        move("movsb down", SIZE, 1);
        printf("%d\n", put_and_call(round));
        memset(code, 0, SIZE);
        put_and_call(round);
        memcpy(code, source, SIZE);
        expect("memcpy", source);
    }
    put_and_call(5);
    store_until_fault();
    store_with_signals();
    return 0;
}
