// SPDX-License-Identifier: MIT
//
// Prints by request, compiled with the header that programs have.
#include <valgrind/valgrind.h>

__attribute__((noinline, noclone)) static void inner(int number)
{
    VALGRIND_PRINTF_BACKTRACE("number %d of %s\n", number, "two");
}

int main(void)
{
    VALGRIND_PRINTF("plain\n");
    VALGRIND_PRINTF("100%% plain\n");
    inner(1);
    VALGRIND_PRINTF("two\nlines\n");
    VALGRIND_PRINTF("no end of line");
    inner(2);
    return 0;
}
