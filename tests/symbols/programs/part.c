// SPDX-License-Identifier: MIT
//
// The C half: static functions, variables of every storage, inlined calls three deep.
#include <stdio.h>
#include <string.h>

#include "include/inlined.h"

int counted[10] = { 1, 2, 3 };
static long total_of_all;
char zeroed[100];

__attribute__((noinline)) static int static_one(int value)
{
    static int calls;
    calls++;
    return deep_two(value) + calls;
}

__attribute__((noinline)) int with_locals(int value)
{
    char buffer[32];
    int numbers[5];

    memset(buffer, value, sizeof buffer);
    for (int i = 0; i < 5; i++) {
        long inner = value * (long)i;
        numbers[i] = (int)inner + buffer[i];
        total_of_all += inner;
    }
    return numbers[value % 5] + printf("%.3s\n", buffer);
}

__attribute__((noinline)) int c_entry(int argument)
{
    counted[argument % 10]++;
    zeroed[argument % 100]++;
    return static_one(argument) + with_locals(argument) + counted[3];
}
