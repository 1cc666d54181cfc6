// SPDX-License-Identifier: MIT
//
// Mangled names (operator new[] calls operator new), and exceptions thrown out of
// wrapped functions.
// BUILD: cxx
// STDOUT: caught 50 deep 7
// DELTA: _Znwm calls 110 returns 110
// DELTA: _Znam calls 10 returns 10
// DELTA: selftest_counted* calls 108 returns 50
#include <cstdio>
#include <cstdlib>

#define KEEP __attribute__((noinline, noipa))

extern "C" KEEP long selftest_counted_throws(long n)
{
    if (n & 1)
        throw n;
    return n;
}

extern "C" KEEP long selftest_counted_deep(long n)
{
    if (n == 0)
        throw 7l;
    long (*volatile self)(long) = selftest_counted_deep; // or gcc makes a loop of it
    return self(n - 1) + 1;
}

int main(int argc, char **argv)
{
    int caught = 0;
    long deep = 0;
    bool work = argc > 1 && argv[1][0] == '1';
    for (long i = 0; i < (work ? 100 : 0); i++) {
        try {
            selftest_counted_throws(i);
        } catch (long) {
            caught++;
        }
    }
    try {
        if (work)
            selftest_counted_deep(7);
    } catch (long n) {
        deep = n;
    }
    for (int i = 0; i < (work ? 100 : 0); i++) {
        int *volatile p = new int(i);
        delete p;
    }
    for (int i = 0; i < (work ? 10 : 0); i++) {
        int *volatile p = new int[100];
        delete[] p;
    }
    std::printf("caught %d deep %ld\n", caught, deep);
    return 0;
}
