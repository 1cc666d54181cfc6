// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: no-link
//
// Code and data in one RWX page: writing the data must not lose the code, writing the code must be
// seen by the next call, and code may patch code on its own page.
#include "smc.h"

int main(void)
{
    uint8_t *page = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    int wrong = 0;
    put_return(page, 1);
    for (int i = 0; i < 3000; i++) {
        page[2048] = (uint8_t)i; // data beside the code
        put_return(page + 64, i);
        wrong += call_code(page) != 1;
        wrong += call_code(page + 64) != i;
        page[65] = (uint8_t)(i + 1); // one byte of the immediate
        wrong += call_code(page + 64) != ((i & ~0xff) | ((i + 1) & 0xff));
    }

    // A routine that patches its neighbour: mov dword [rip+disp], edi; ret
    uint8_t patcher[] = {0x89, 0x3d, 0, 0, 0, 0, 0xc3};
    int distance = (int)((page + 65) - (page + 1024 + 6));
    memcpy(patcher + 2, &distance, 4);
    memcpy(page + 1024, patcher, sizeof patcher);
    for (int i = 0; i < 1000; i++) {
        ((void (*)(int))(page + 1024))(i * 77);
        wrong += call_code(page + 64) != i * 77;
    }
    say("wrong: %d\n", wrong);
    return 0;
}
