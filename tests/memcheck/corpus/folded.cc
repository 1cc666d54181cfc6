// SPDX-License-Identifier: MIT
//
// A linker that folds identical code (--icf=all) leaves one address with several names: nobody can
// tell which of them was called, so none of them is a mismatch. What does not fit any of them is.
// At -O0 the compiler's frames keep some of the functions apart.
// BUILD -std=c++17 -fsized-deallocation -fno-builtin -ffunction-sections -fuse-ld=lld -Wl,--icf=all
// ONLY gcc-O2 clang-O2
#include "corpus.h"

#include <new>

#include "folded.h"

template <typename T> static NOINLINE T *opaque(T *p)
{
    HIDE(p);
    return p;
}

CASE(is_folded)
{
    void *(*one)(size_t) = operator new, *(*other)(size_t) = operator new[];
    void (*end)(void *) = operator delete, (*ends)(void *) = operator delete[];
    HIDE(one);
    HIDE(other);
    HIDE(end);
    HIDE(ends);
    CHECK(one == other && end == ends);
}

CASE(pairs_of_folded_functions)
{
    for (int i = 0; i < 2000; i++) {
        delete opaque(new int);
        delete[] opaque(new int[7]);
        ::operator delete(opaque(::operator new(10)), (size_t)10);
        ::operator delete[](opaque(::operator new[](10)));
        ::operator delete(opaque(::operator new(10, std::align_val_t(64))), std::align_val_t(64));
        free(opaque(malloc(10)));
    }
}

CASE(folded_new_is_no_malloc)
{
    int *p = opaque(new int);
    free(p); // EXPECT memcheck mismatched-free of=4 alloc=-1
}

CASE(folded_delete_is_no_free)
{
    int *p = opaque((int *)malloc(8));
    delete p; // EXPECT memcheck mismatched-free of=8 alloc=-1
}

CASE(behind_a_block_of_folded_new)
{
    int *p = opaque(new int[4]);
    READ1(p + 4); // EXPECT memcheck invalid-read size=1 block=after:0 of=16 alloc=-1
    delete[] p;
    HIDE(p);
    delete[] p; // EXPECT memcheck invalid-free of=16 state=freed free=-2
}
