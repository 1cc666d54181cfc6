// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
//
// One memfd page mapped twice, writable at one address and executable at another, as hardened JITs
// do: writes never touch the executable address, yet must be seen there. The rewriting is also done
// by pwrite on the file and by a third mapping.
#include "smc.h"

int main(void)
{
    int fd = memfd_create("code", 0);
    CHECK(ftruncate(fd, 2 * PAGE) == 0);
    uint8_t *writable = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *executable = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    CHECK(writable != MAP_FAILED && executable != MAP_FAILED);
    int wrong = 0;
    for (int i = 0; i < 1000; i++) {
        put_return(writable, i);
        wrong += call_code(executable) != i;
        put_return(writable + PAGE - 3, ~i);
        wrong += call_code(executable + PAGE - 3) != ~i;
    }
    say("stores: wrong %d\n", wrong);

    wrong = 0;
    for (int i = 0; i < 200; i++) {
        uint8_t code[6];
        put_return(code, i * 3);
        CHECK(pwrite(fd, code, sizeof code, 64) == sizeof code);
        wrong += call_code(executable + 64) != i * 3;
    }
    say("pwrite: wrong %d\n", wrong);

    wrong = 0;
    for (int i = 0; i < 200; i++) {
        uint8_t *late = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        put_return(late + 128, i * 5);
        munmap(late, PAGE);
        wrong += call_code(executable + 128) != i * 5;
    }
    say("late mapping: wrong %d\n", wrong);
    return 0;
}
