// SPDX-License-Identifier: MIT
//
// Makes as many different findings as its argument says, for --tool=findingtest.
#include <stdlib.h>

__attribute__((noinline)) int muninn_test_finding(unsigned long kind, unsigned long v0,
                                                  unsigned long v1, unsigned long v2,
                                                  const char *text, unsigned long part)
{
    __asm__ volatile("" : : "r"(kind), "r"(v0), "r"(v1), "r"(v2), "r"(text), "r"(part));
    return -1;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long distinct = argc > 2 ? strtoul(argv[2], NULL, 10) : count;
    for (unsigned long i = 0; i < count; i++)
        muninn_test_finding(2, i % distinct, 0, 0, NULL, 0);
    return 0;
}
