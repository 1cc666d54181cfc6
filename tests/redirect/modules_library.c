// SPDX-License-Identifier: MIT
//
// The library of modules.c.
#define KEEP __attribute__((noinline, noipa))

KEEP long selftest_counted_here(long a)
{
    return a * 2;
}

KEEP long selftest_replaced(long a, long b, long c, long d, long e, long f)
{
    (void)b, (void)c, (void)d, (void)e, (void)f;
    return a;
}

KEEP long outer(long a)
{
    return selftest_counted_here(a) + 1;
}
