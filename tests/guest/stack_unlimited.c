// SPDX-License-Identifier: MIT
// BUILD: -O1 -fno-optimize-sibling-calls
// LIMIT: stack=unlimited
//
// Without a limit the stack grows to gigabytes, of which this program touches little.
#include "guest.h"

enum { FRAME = 4 << 20 };

__attribute__((noinline)) static int descend(int depth)
{
    volatile char frame[FRAME];
    frame[FRAME - 1] = 1;
    return depth == 0 ? 0 : descend(depth - 1) + frame[FRAME - 1];
}

int main(void)
{
    say("depth %d\n", descend(800)); // 3.2 GB
    return 0;
}
