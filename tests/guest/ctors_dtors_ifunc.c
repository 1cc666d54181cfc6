// SPDX-License-Identifier: MIT
// BUILD[dynamic]: -O2
// BUILD[static]: -O2 -static
// BUILD[nonpie]: -O2 -no-pie -fno-pie
//
// Constructor and destructor priorities run in order, and an IFUNC picks its implementation once.
#include "guest.h"

__attribute__((constructor(101))) static void first(void) { say("ctor 101\n"); }
__attribute__((constructor(102))) static void second(void) { say("ctor 102\n"); }
__attribute__((constructor)) static void third(int argc) { say("ctor argc %d\n", argc); }
__attribute__((destructor(101))) static void last(void) { say("dtor 101\n"); }
__attribute__((destructor(102))) static void before_last(void) { say("dtor 102\n"); }

static int resolutions;

static int plain(int x)
{
    return x * 3 + 1;
}

static int (*resolve_step(void))(int)
{
    resolutions++;
    return plain;
}

int step(int x) __attribute__((ifunc("resolve_step")));

int main(void)
{
    int (*volatile pointer)(int) = step;
    say("%d %d\n", step(4), pointer(5));
    say("resolved: %s\n", resolutions >= 1 ? "yes" : "no");
    int sum = 0;
    for (int i = 0; i < 100000; i++)
        sum = step(sum) & 0xffff;
    say("%d\n", sum);
    return 0;
}
