// SPDX-License-Identifier: MIT
//
// Indirect functions: the program's own and the C library's.
// BUILD: dynamic nopie now static staticpie
// DELTA: strlen calls 500 returns 500
// DELTA: memcpy calls 300 returns 300
// DELTA: selftest_counted* calls 700 returns 700
#include <string.h>

#define KEEP __attribute__((noinline, noipa))

KEEP static long implementation(long a)
{
    return a + 1;
}

static long (*resolve(void))(long)
{
    return implementation;
}

long selftest_counted_ifunc(long a) __attribute__((ifunc("resolve")));

int main(int argc, char **argv)
{
    char text[64], copy[64];
    volatile long sum = 0;
    if (argc < 2 || argv[1][0] == '0')
        return 0;
    size_t (*volatile length)(const char *) = strlen;
    memset(text, 'x', 40);
    text[40] = 0;
    for (int i = 0; i < 250; i++)
        sum += (long)(strlen(text) + length(text));
    void *(*volatile copier)(void *, const void *, size_t) = memcpy;
    for (int i = 0; i < 300; i++)
        copier(copy, text, 41);
    for (int i = 0; i < 700; i++)
        sum += selftest_counted_ifunc(i);
    return memcmp(copy, text, 41) != 0;
}
