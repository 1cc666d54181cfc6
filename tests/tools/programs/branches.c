// SPDX-License-Identifier: MIT
//
// Lines that are executed and lines that are not, for coverage.
#include <stdio.h>
#include <string.h>

static int classify(int n)
{
    if (n < 0)
        return -1;
    switch (n % 4) {
    case 0:
        return 0;
    case 1:
        n += 3;
        break;
    case 3:
        n *= 2;
        break;
    default:
        n--;
    }
    return n;
}

static int never(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        if (i % 4 == 3)
            continue;
        sum += classify(i);
    }
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        sum += never(10) + classify(-1);
    printf("%d\n", sum);
    return 0;
}
