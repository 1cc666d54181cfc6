// SPDX-License-Identifier: MIT
//
// Multiplies two matrices the slow way: what the pages of the example tools look at.
#include <stdio.h>

enum { N = 128 };
static double a[N][N], b[N][N], c[N][N];

static void fill(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = i + j, b[i][j] = i - j;
}

static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                c[i][j] += a[i][k] * b[k][j]; // b is walked down its columns: each step misses
}

int main(void)
{
    fill();
    multiply();
    printf("%g\n", c[N - 1][N - 1]);
    return 0;
}
