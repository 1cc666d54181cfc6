// SPDX-License-Identifier: MIT
//
// Direct calls, function pointers, recursion, replacement, changed arguments.
// BUILD: dynamic nopie now static staticpie musl muslstatic
// STDOUT: replaced 27 declined 5 answered 0 changed -108
// STDOUT: fast 33 sum 60 static 8 fact 120
// LOG: selftest_replaced calls 2 returns 0
// LOG: selftest_replaced_fast calls 3 returns 0
// LOG: selftest_replaced_some calls 2 returns 0
// LOG: selftest_changed calls 1 returns 1
// LOG: selftest_counted* calls 15 returns 15
// LOG: selftest_static calls 1 returns 1
// ORDER: selftest_logged enter 5
// ORDER: selftest_logged enter 4
// ORDER: selftest_logged enter 3
// ORDER: selftest_logged enter 2
// ORDER: selftest_logged enter 1
// ORDER: selftest_logged 1 returns 1
// ORDER: selftest_logged 2 returns 2
// ORDER: selftest_logged 3 returns 6
// ORDER: selftest_logged 4 returns 24
// ORDER: selftest_logged 5 returns 120
#include <stdio.h>

#define KEEP __attribute__((noinline, noipa))

// Replaced: twice the first argument plus the sixth.
KEEP long selftest_replaced(long a, long b, long c, long d, long e, long f)
{
    return a + b + c + d + e + f;
}

KEEP long selftest_replaced_fast(long a, long b, long c, long d, long e, long f)
{
    return a + b + c + d + e + f;
}

KEEP long selftest_replaced_some(long a)
{
    return a + 1;
}

KEEP long selftest_changed(long a, long b) // b + 100, and the complement of the result
{
    return a + b;
}

KEEP long selftest_counted_one(long a)
{
    return a * 2;
}

KEEP double selftest_counted_double(double a, float b)
{
    return a * b;
}

KEEP static long selftest_static(long a)
{
    return a + 7;
}

KEEP long selftest_logged(long n)
{
    long (*volatile self)(long) = selftest_logged; // or gcc makes a loop of it
    return n <= 1 ? 1 : n * self(n - 1);
}

int main(void)
{
    long (*volatile pointer)(long) = selftest_counted_one;
    long sum = 0;
    for (int i = 0; i < 5; i++)
        sum += pointer(i) + selftest_counted_one(i);
    for (int i = 0; i < 5; i++)
        sum += (long)selftest_counted_double(i, 2.0f);
    long replaced = selftest_replaced(1, 2, 3, 4, 5, 6) + selftest_replaced(6, 0, 0, 0, 0, 7);
    long fast = 0;
    for (int i = 0; i < 3; i++)
        fast += selftest_replaced_fast(i, 9, 9, 9, 9, 9);
    printf("replaced %ld declined %ld answered %ld changed %ld\n", replaced,
           selftest_replaced_some(4), selftest_replaced_some(-4), selftest_changed(3, 4));
    printf("fast %ld sum %ld static %ld fact %ld\n", fast, sum, selftest_static(1),
           selftest_logged(5));
    return 0;
}
