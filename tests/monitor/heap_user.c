// SPDX-License-Identifier: MIT
//
// One block that is never freed, one byte of it undefined where it counts, many system calls, and
// a line on standard output. Exits 5.
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    char *volatile block = malloc(40);
    if (block[3])
        write(1, "?", 0);
    for (int i = 0; i < 500; i++)
        (void)getppid();
    write(1, "alive\n", 6);
    block = NULL;
    return 5;
}
