// SPDX-License-Identifier: MIT
// BUILD: -O2
// MUNINN: --tool=none
// MUNINN: --tool=memcheck -q --log-file=/dev/null
// STRESS: signals
//
// As smc_by_string, with prefixes: for addresses of 32 bits, and segments that begin at 0. The upper
// halves of the registers are what the processor makes of them.
#include "smc.h"

#include <sys/mman.h>

enum { SIZE = 2 << 20, STEP = 10 * 4096 };
static uint8_t *code, *source;

static int put_and_call(int value)
{
    int sum = 0;
    for (int i = 0; i + STEP < SIZE; i += STEP) {
        put_return(code + i + 100, value + i / STEP);
        sum += call_code(code + i + 100);
    }
    return sum;
}

#define UPPER 0x500000000ull
#define TRY(name, instruction, start, source_start, times, upper, down, expected) \
    do { \
        uint64_t to = (uint64_t)(start) | (upper), from = (uint64_t)(source_start) | (upper); \
        uint64_t count = (times) | (upper); \
        printf("%d ", put_and_call(3)); \
        __asm__ volatile(down instruction "\n\tcld" : "+D"(to), "+S"(from), "+c"(count) \
                         : "a"(0x9090909090909090) : "memory"); \
        if (memcmp(code, expected, SIZE) != 0) \
            printf("FAIL %s\n", name); \
        printf("%s: %ld %ld %ld\n", name, (long)(to - (uint64_t)code), \
               (long)(from - (uint64_t)source), (long)count); \
    } while (0)

static void *map_low(int prot)
{
    return mmap(NULL, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}

int main(void)
{
    code = map_low(PROT_READ | PROT_WRITE | PROT_EXEC);
    source = map_low(PROT_READ | PROT_WRITE);
    uint8_t *nops = malloc(SIZE);
    memset(nops, 0x90, SIZE);
    for (int i = 0; i < SIZE; i++)
        source[i] = (uint8_t)(i * 7);
    for (int round = 0; round < 2; round++) {
        TRY("stosb", "addr32 rep stosb", code, source, SIZE, 0, "", nops);
        TRY("movsb", "addr32 rep movsb", code, source, SIZE, 0, "", source);
        TRY("stosq", "addr32 rep stosq", code, source, SIZE / 8, UPPER, "", nops);
        TRY("movsw", "addr32 rep movsw", code, source, SIZE / 2, UPPER, "", source);
        TRY("stosl down", "addr32 rep stosl", code + SIZE - 4, source, SIZE / 4, UPPER, "std\n\t",
            nops);
        TRY("movsb down", "addr32 rep movsb", code + SIZE - 1, source + SIZE - 1, SIZE, 0,
            "std\n\t", source);
        TRY("ds", ".byte 0x3e, 0xf3, 0xaa", code, source, SIZE, 0, "", nops);
        TRY("cs", ".byte 0xf3, 0x2e, 0xa4", code, source, SIZE, 0, "", source);
    }
    return 0;
}
