// SPDX-License-Identifier: MIT
//
// What preloaded.c is run with.
#include <valgrind/valgrind.h>

#define WRAP(soname, name, more)                                \
    int I_WRAP_SONAME_FNNAME_ZU(soname, name)(int a)            \
    {                                                           \
        OrigFn original;                                        \
        int result;                                             \
        VALGRIND_GET_ORIG_FN(original);                         \
        CALL_FN_W_W(result, original, a);                       \
        return result + (more);                                 \
    }

WRAP(NONE, own, 10)
WRAP(NONE, concurrent, 1)
WRAP(libtargetZdsoZa, target, 100)

long I_WRAP_SONAME_FNNAME_ZU(libcZdsoZa, time)(long *to)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_W(result, original, to);
    return result + 1000000 * 3600l;
}
