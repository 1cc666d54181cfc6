// SPDX-License-Identifier: MIT
// One of two libraries of the same size and layout: re-mapping one over the other must not run
// stale code.
int answer(int x)
{
    return x * 7 + 2;
}
