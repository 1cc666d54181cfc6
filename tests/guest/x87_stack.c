// SPDX-License-Identifier: MIT
// BUILD: -O1
// STRESS: tiny-blocks
//
// The x87 stack keeps its contents across system calls, calls and indirect jumps; fnstenv gives the
// true instruction pointer's opcode class, fxsave and fnsave images agree with what was loaded.
#include "guest.h"

int main(void)
{
    long double results[8];
    uint16_t status;
    __asm__ volatile("fninit; fld1; fldpi; fldl2e; fldl2t; fldlg2; fldln2; fldz; fld1\n\t"
                     "mov $39, %%eax; syscall\n\t"
                     "lea 1f(%%rip), %%rax; jmp *%%rax; ud2\n\t"
                     "1: fnstsw %1\n\t"
                     "fstpt (%0); fstpt 16(%0); fstpt 32(%0); fstpt 48(%0)\n\t"
                     "fstpt 64(%0); fstpt 80(%0); fstpt 96(%0); fstpt 112(%0)"
                     : : "r"(results), "m"(status) : "rax", "rcx", "r11", "memory");
    for (int i = 0; i < 8; i++)
        say("%.20Lg ", results[i]);
    say("\n");

    static _Alignas(64) uint8_t image[512];
    static uint8_t environment[28], saved[108];
    __asm__ volatile("fninit; fldpi; fld1; fadd %%st(1), %%st; fxsave %0; fnstenv %1; fnsave %2"
                     : "=m"(image), "=m"(environment), "=m"(saved));
    uint16_t control, state;
    memcpy(&control, image, 2);
    memcpy(&state, image + 2, 2);
    say("fxsave control %x status %x tag %x\n", control, state, image[4]);
    say("fnstenv control %x%02x tag %x%02x\n", environment[1], environment[0], environment[9],
        environment[8]);
    say("st0 ");
    for (int i = 0; i < 10; i++)
        say("%02x", saved[28 + i]);
    say(" same as fxsave %d\n", memcmp(saved + 28, image + 32, 10) == 0);

    // A deep mix of x87 and integer work, as long double code has.
    long double x = 0.5L;
    for (int i = 1; i < 20000; i++)
        x = 3.9L * x * (1.0L - x) + (i % 7 == 0 ? 1e-18L : 0);
    say("%.20Lg\n", x);
    double truncated;
    __asm__ volatile("fldpi; fld %%st; fmulp; fstpl %0" : "=m"(truncated));
    say("%a\n", truncated);
    return 0;
}
