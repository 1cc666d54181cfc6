// SPDX-License-Identifier: MIT
//
// In a stack a wrapper has the name of what it wraps, and suppressions see it so.
// STDERR: at .*: work \(names\.c:\d+\)
// STDERR: by .*: work \(names\.c:\d+\)
// STDERR: by .*: main \(names\.c:\d+\)
#include <valgrind/valgrind.h>

#define KEEP __attribute__((noinline, noipa))

KEEP int work(int *p)
{
    return p[1];
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, work)(int *p)
{
    OrigFn original;
    int result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_W(result, original, p);
    return result;
}

#include <stdlib.h>
int main(void)
{
    int *p = malloc(4);
    return work(p) == 1234567;
}
