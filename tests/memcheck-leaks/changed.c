// SPDX-License-Identifier: MIT
//
// A program that asks for more of the search for leaks than the user did, and for less of what is
// mismatched. What cannot be changed, and what is no option, is passed over.
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

__attribute__((noinline)) static void lose(void)
{
    static void *volatile held;
    char *volatile block = malloc(10);
    block = NULL;
    held = malloc(20);
    free(malloc(30));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        VALGRIND_CLO_CHANGE(argv[i]);
    lose();
    return 0;
}
