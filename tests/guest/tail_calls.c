// SPDX-License-Identifier: MIT
// BUILD: -O2 -foptimize-sibling-calls
// STRESS: no-link
//
// Sibling calls: a state machine of functions that jump to one another, directly and through
// pointers, deep beyond any stack.
#include "guest.h"

typedef long State(long n, long x);
static long odd(long n, long x);

__attribute__((noinline)) static long even(long n, long x)
{
    return n == 0 ? x : odd(n - 1, x + 1);
}

__attribute__((noinline)) static long odd(long n, long x)
{
    return n == 0 ? -x : even(n - 1, x ^ n);
}

static long pick(long n, long x);
__attribute__((noinline)) static long add(long n, long x) { return pick(n - 1, x + n); }
__attribute__((noinline)) static long mix(long n, long x) { return pick(n - 1, x * 3 ^ n); }
__attribute__((noinline)) static long rot(long n, long x) { return pick(n - 1, x << 1 | (x < 0)); }
static State *const states[] = {add, mix, rot};

__attribute__((noinline)) static long pick(long n, long x)
{
    return n == 0 ? x : states[(unsigned long)x % 3](n, x);
}

int main(void)
{
    say("%ld %ld\n", even(5000000, 1), even(5000001, 1));
    say("%lx\n", pick(2000000, 12345));
    return 0;
}
