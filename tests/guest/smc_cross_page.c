// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// An instruction that straddles a page boundary is rewritten through its first page, its second
// page, and by stores that straddle the boundary themselves.
#include "smc.h"

int main(void)
{
    uint8_t *pages = map_pages(4 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    int wrong = 0;
    for (int head = 1; head < 6; head++) {
        uint8_t *code = pages + 2 * PAGE - head;
        for (int i = 0; i < 300; i++) {
            int value = (int)(i * 0x01010101U) + head;
            put_return(code, value);
            wrong += call_code(code) != value;
            code[4] ^= 0x40; // mostly the second page
            wrong += call_code(code) != (value ^ 0x40000000);
            code[1] ^= 0x04; // mostly the first page
            wrong += call_code(code) != (value ^ 0x40000004);
            uint32_t wide = 0xabcd0000 + i;
            memcpy(code + 1, &wide, 4);
            wrong += (uint32_t)call_code(code) != wide;
        }
    }
    say("wrong: %d\n", wrong);
    return 0;
}
