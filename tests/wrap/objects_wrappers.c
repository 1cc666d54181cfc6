// SPDX-License-Identifier: MIT
//
// Wrappers for functions of other objects.
#include <valgrind/valgrind.h>

#define WRAP(macro, soname, name)                      \
    int macro(soname, name)(int a)                     \
    {                                                  \
        OrigFn original;                               \
        int result;                                    \
        VALGRIND_GET_ORIG_FN(original);                \
        CALL_FN_W_W(result, original, a);              \
        return result + 100;                           \
    }

WRAP(I_WRAP_SONAME_FNNAME_ZU, libtargetZdsoZa, target)

// Only the version that old programs are linked with.
const char *I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZa, realpathZAGLIBCZu2Zd2Zd5)(const char *name,
                                                                      char *to)
{
    OrigFn original;
    const char *result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_WW(result, original, name, to);
    return result ? "wrapped" : "failed";
}
