// SPDX-License-Identifier: MIT
//
// Uses argument 1 megabytes of stack.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline, noipa)) static int use(int megabytes)
{
    char room[1 << 20];
    memset(room, megabytes, sizeof(room));
    return megabytes > 1 ? use(megabytes - 1) + room[5] : room[7];
}

int main(int argc, char **argv)
{
    int sum = use(argc > 1 ? atoi(argv[1]) : 1);
    puts(sum ? "done" : "nothing");
    return 0;
}
