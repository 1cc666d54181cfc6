// SPDX-License-Identifier: MIT
//
// Asks for the files of --xtree-memory and --xtree-leak while it runs.
#include <stdlib.h>

#include <valgrind/valgrind.h>

int main(void)
{
    char *volatile kept = malloc(10);
    VALGRIND_MONITOR_COMMAND("xtmemory");
    char *volatile other = malloc(20);
    VALGRIND_MONITOR_COMMAND("xtmemory");
    VALGRIND_MONITOR_COMMAND("leak_check xtleak");
    return kept == other;
}
