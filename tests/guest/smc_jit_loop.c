// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// A JIT that rewrites one function ten thousand times, and one that fills a megabyte with
// thousands of small functions calling one another, then frees it and starts again.
#include "smc.h"

static int rewrite_often(void)
{
    uint8_t *page = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    int wrong = 0;
    for (int i = 0; i < 10000; i++) {
        put_return(page, i * 31);
        wrong += call_code(page) != i * 31;
    }
    return wrong;
}

// Each function calls the one before it and adds one: call rel32; inc eax; ret.
static int chain_of_functions(int count)
{
    size_t size = ((size_t)count * 16 + PAGE) & ~(PAGE - 1UL);
    uint8_t *code = map_pages(size, PROT_READ | PROT_WRITE);
    put_return(code, 1000);
    for (int i = 1; i < count; i++) {
        uint8_t *f = code + i * 16;
        int distance = -16 - 5;
        f[0] = 0xe8;
        memcpy(f + 1, &distance, 4);
        memcpy(f + 5, (uint8_t[]){0xff, 0xc0, 0xc3}, 3);
    }
    mprotect(code, size, PROT_READ | PROT_EXEC);
    int result = call_code(code + (count - 1) * 16);
    munmap(code, size);
    return result;
}

int main(void)
{
    say("rewritten: wrong %d\n", rewrite_often());
    for (int i = 1; i <= 20; i++)
        say("chain %d\n", chain_of_functions(i * 500));
    return 0;
}
