// SPDX-License-Identifier: MIT
// A tiny library for LD_PRELOAD: it replaces rand() in whoever loads it.
int rand(void)
{
    return 4;
}
