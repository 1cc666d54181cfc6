// SPDX-License-Identifier: MIT
//
// An allocator that gives one function several names, as tcmalloc and mimalloc do: what is freed by
// that function has been freed by any of them.
// BUILD -std=c++17 -fno-sized-deallocation -fno-builtin
#include "corpus.h"

#include <new>

#include "aliased.h"

template <typename T> static NOINLINE T *opaque(T *p)
{
    HIDE(p);
    return p;
}

CASE(one_function_frees_all)
{
    // NOT-VALGRIND names-of-one-function
    for (int i = 0; i < 2000; i++) {
        delete opaque(new int);
        delete[] opaque(new int[7]);
        ::operator delete(opaque(::operator new(10, std::align_val_t(64))), std::align_val_t(64));
        free(opaque(malloc(10)));
        delete opaque((int *)malloc(10));
    }
    int *p = opaque(new int);
    delete p;
    HIDE(p);
    READ4(p); // EXPECT memcheck invalid-read size=4 block=inside:0 of=4 state=freed alloc=-3 free=-2
}
