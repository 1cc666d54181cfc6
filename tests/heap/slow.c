// SPDX-License-Identifier: MIT
//
// Leaks 5000 bytes every few milliseconds, until it is killed.
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept;

int main(void)
{
    for (int i = 0; i < 100000; i++) {
        kept = malloc(5000);
        usleep(5000);
    }
    return 0;
}
