// SPDX-License-Identifier: MIT
// BUILD: -O1 -z execstack -Wno-trampolines
// STRESS: tiny-blocks
//
// Nested functions need trampolines: code written to an executable stack and called at once, at
// addresses that are used again with other contents.
#include "guest.h"

static int apply(int (*function)(int), int x)
{
    return function(x);
}

__attribute__((noinline)) static int run(int offset, int depth)
{
    int add(int x) { return x + offset * 10 + depth; }
    int (*volatile pointer)(int) = add;
    int result = apply(pointer, 1);
    if (depth > 0)
        result += run(offset + 1, depth - 1);
    return result + apply(pointer, 2);
}

static int compare_with(int *numbers, int count, int modulus)
{
    int by_rest(const void *a, const void *b)
    {
        int x = *(const int *)a % modulus, y = *(const int *)b % modulus;
        return x != y ? x - y : *(const int *)a - *(const int *)b;
    }
    qsort(numbers, count, sizeof *numbers, by_rest);
    return numbers[count / 2];
}

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 2000; i++)
        sum += run(i, i % 20);
    say("%ld\n", sum);
    int numbers[500];
    for (int modulus = 2; modulus < 40; modulus++) {
        for (int i = 0; i < 500; i++)
            numbers[i] = i * 7919 % 5000;
        say("%d ", compare_with(numbers, 500, modulus));
    }
    say("\n");
    return 0;
}
