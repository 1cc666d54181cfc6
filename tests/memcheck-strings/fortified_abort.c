// SPDX-License-Identifier: MIT
// BUILD: fortified
// OUTPUT
//
// A fortified copy into too small a room ends the program as it does without a tool.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char room[8];

int main(int argc, char **argv)
{
    volatile size_t size = 9;
    puts("before");
    fflush(stdout);
    memcpy(room, "0123456789", size);
    puts("after");
    return 0;
}
