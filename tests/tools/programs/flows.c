// SPDX-License-Identifier: MIT
//
// What is read from standard input reaches a branch and a write, by registers, memory, memcpy and
// a table; or, with the argument "none", it is read and nothing else.
#include <string.h>
#include <unistd.h>

static char in[256], copy[256];
static volatile int decided;

__attribute__((noinline)) static void decide(const char *text)
{
    if (text[3] == 'x') // BRANCH
        decided = 1;
}

__attribute__((noinline)) static void overwritten(char *text)
{
    memset(text, 'y', sizeof(copy));
    if (text[3] == 'x') // CLEAN
        decided = 2;
}

int main(int argc, char **argv)
{
    static const char fixed[] = "fixed\n";
    if (read(0, in, sizeof(in)) < 0)
        return 1;
    if (argc > 1 && strcmp(argv[1], "none") == 0) {
        write(1, fixed, sizeof(fixed) - 1);
        return 0;
    }
    memcpy(copy, in, sizeof(copy));
    decide(copy);
    write(1, copy, 4);
    overwritten(copy);
    return 0;
}
