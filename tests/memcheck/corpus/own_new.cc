// SPDX-License-Identifier: MIT
//
// A program with some of the operators of C++: with somalloc=nouserintercepts they are called as
// natively, also by the C++ library, and nothing is a mismatch that natively is none.
// OPTIONS --soname-synonyms=somalloc=nouserintercepts
// BUILD -std=c++17 -fsized-deallocation -fno-builtin
#include "corpus.h"

#include <new>
#include <string>
#include <vector>

#include "own_new.h"

template <typename T> static NOINLINE T *opaque(T *p)
{
    HIDE(p);
    return p;
}

CASE(own_operators_are_called)
{
    // NOT-VALGRIND own-operators
    delete opaque(new int);
    delete[] opaque(new int[7]);
    CHECK(news == 1 && arrays == 1);
    ::operator delete(opaque(::operator new(10, std::nothrow)), std::nothrow);
    CHECK(news == 2);
    {
        std::vector<int> v(10);
        std::string s(100, 'x');
        CHECK(*opaque(&v[3]) == 0 && *opaque(&s[5]) == 'x');
    }
    CHECK(news == 4 && arrays == 1);
}

CASE(what_they_have_from_malloc_is_checked)
{
    // NOT-VALGRIND own-operators
    int *p = opaque(new int[4]);
    READ1(p + 4); // EXPECT memcheck invalid-read size=1 block=after:0 of=16 alloc=-1
    delete[] p;
}
