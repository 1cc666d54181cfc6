// SPDX-License-Identifier: MIT
//
// Sizes and alignments that new, delete, memalign and their families are told: those that disagree
// with each other, that are none, and that are undefined.
// BUILD -std=c++17 -fsized-deallocation -fno-builtin -Wno-deprecated-declarations
#include "corpus.h"

#include <malloc.h>
#include <new>

using Align = std::align_val_t;

template <typename T> static NOINLINE T *opaque(T *p)
{
    HIDE(p);
    return p;
}

static NOINLINE size_t number(size_t n)
{
    HIDE(n);
    return n;
}

CASE(sized_delete_of_another_size)
{
    void *p = opaque(::operator new(10)), *q = opaque(::operator new[](20));
    ::operator delete(p, number(11));
    // EXPECT-MUNINN memcheck size-mismatch fn=new/delete told=11 block=inside:0 of=10 alloc=-1 why=sizes-of-delete
    ::operator delete[](q, number(19));
    // EXPECT-MUNINN memcheck size-mismatch fn=new[]/delete[] told=19 of=20 alloc=-3 why=sizes-of-delete
}

CASE(deleted_as_another_class)
{
    struct Base { int a; };
    struct Derived : Base { int b[7]; };
    Base *p = opaque((Base *)new Derived);
    delete p;
    // EXPECT-MUNINN memcheck size-mismatch told=4 of=32 alloc=-1 state=live why=sizes-of-delete
}

// Some 3,000 times: the frees of a busy place take another way.
CASE(sized_delete_in_a_loop)
{
    for (int i = 0; i < 3000; i++) {
        void *p = opaque(::operator new(10));
        ::operator delete(p, number(10 + (i == 2999)));
        // EXPECT-MUNINN memcheck size-mismatch told=11 of=10 why=sizes-of-delete
    }
}

CASE(delete_of_another_alignment)
{
    void *p = opaque(::operator new(10, Align(64))), *q = opaque(::operator new(10));
    ::operator delete(p, Align(number(32)));
    // EXPECT-MUNINN memcheck alignment-mismatch had=64 told=32 of=10 alloc=-1 why=sizes-of-delete
    ::operator delete(q, Align(number(64)));
    // EXPECT-MUNINN memcheck alignment-mismatch had=default-aligned told=64 alloc=-3 why=sizes-of-delete
    p = opaque(::operator new[](10, Align(number(1 << 16))));
    ::operator delete[](p);
    // EXPECT-MUNINN memcheck alignment-mismatch fn=new[]/delete[] had=65536 told=default-aligned why=sizes-of-delete
    p = opaque(::operator new(2000000, Align(number(32))));
    ::operator delete(p);
    // EXPECT-MUNINN memcheck alignment-mismatch had=32 told=default-aligned of=2000000 why=sizes-of-delete
}

CASE(delete_of_another_size_and_alignment)
{
    void *p = opaque(::operator new(10, Align(64)));
    ::operator delete(p, number(12), Align(128));
    // EXPECT-MUNINN memcheck size-mismatch told=12 of=10 why=sizes-of-delete
    // EXPECT-MUNINN memcheck alignment-mismatch had=64 told=128 why=sizes-of-delete
}

CASE(delete_of_no_alignment)
{
    void *p = opaque(::operator new(10, Align(64)));
    ::operator delete(p, Align(number(63)));
    // EXPECT-MUNINN memcheck bad-alignment alignment=63 why=alignments
    p = opaque(::operator new[](10, Align(64)));
    ::operator delete[](p, number(10), Align(number(0)));
    // EXPECT-MUNINN memcheck bad-alignment alignment=0 why=alignments
}

CASE(wrong_family_and_wrong_size)
{
    void *p = opaque(malloc(10));
    ::operator delete(p, number(11)); // EXPECT memcheck mismatched-free of=10 alloc=-1
}

CASE(mismatches_not_wanted)
{
    // OPTIONS --show-mismatched-frees=no
    ::operator delete(opaque(::operator new(10)), number(11));
    ::operator delete(opaque(::operator new(10, Align(64))));
}

CASE(sizes_that_are_undefined)
{
    size_t *u = opaque((size_t *)malloc(sizeof *u));
    void *p = opaque(::operator new(10)), *q = opaque(::operator new[](10, Align(64)));
    ::operator delete(p, *u);
    // EXPECT-MUNINN memcheck uninit-branch origin=heap:-2 why=sizes-of-delete
    ::operator delete[](q, number(10), Align(*u));
    // EXPECT-MUNINN memcheck uninit-branch origin=heap:-4 why=sizes-of-delete
    *u &= 64;
    p = ::operator new(10, Align(*u | 64), std::nothrow);
    ::operator delete(opaque(p), Align(64), std::nothrow);
    free(u);
}

CASE(alignments_that_are_undefined)
{
    size_t *u = opaque((size_t *)malloc(sizeof *u));
    *u = (*u & 32) + 32; // 32 or 64
    void *p = opaque(::operator new(10, Align(*u)));
    // EXPECT memcheck uninit-branch origin=heap:-2
    CHECK((uintptr_t)opaque(p) % 32 == 0);
    free(u);
}

CASE(new_of_no_alignment)
{
    // NOT-VALGRIND alignments
    void *p = ::operator new(10, Align(number(0)), std::nothrow);
    // EXPECT memcheck bad-alignment alignment=0
    CHECK(!opaque(p));
    p = ::operator new[](10, Align(number(48)), std::nothrow);
    // EXPECT memcheck bad-alignment alignment=48
    CHECK(!opaque(p));
}

CASE(new_of_no_alignment_throws)
{
    // NOT-VALGRIND bad-alloc
    int thrown = 0;
    try {
        opaque(::operator new(10, Align(number(0))));
        // EXPECT memcheck bad-alignment alignment=0
    } catch (const std::bad_alloc &) {
        thrown++;
    }
    CHECK(thrown == 1);
}

CASE(aligned_blocks_of_no_bytes)
{
    void *p[4] = {
        memalign(64, number(0)),
        // EXPECT-MUNINN memcheck zero-size top=memalign why=zero-sizes
        aligned_alloc(64, number(0)),
        // EXPECT-MUNINN memcheck zero-size why=zero-sizes
        malloc(number(0)),
        ::operator new(number(0)),
    };
    ::operator delete(opaque(p[3]));
    CHECK(posix_memalign(&p[3], 64, number(0)) == 0);
    // EXPECT-MUNINN memcheck zero-size top=posix_memalign why=zero-sizes
    for (int i = 0; i < 4; i++)
        free(opaque(p[i]));
}

CASE(all_that_fits)
{
    for (size_t align = 8; align <= 1 << 20; align *= 4) {
        for (size_t size = 0; size < 3000000; size = size * 30 + 1) {
            Align a = Align(number(align));
            ::operator delete(opaque(::operator new(size, a)), a);
            ::operator delete(opaque(::operator new(size, a)), number(size), a);
            ::operator delete(opaque(::operator new(size, a, std::nothrow)), a, std::nothrow);
            ::operator delete[](opaque(::operator new[](size, a)), a);
            ::operator delete[](opaque(::operator new[](size, a)), number(size), a);
            ::operator delete(opaque(::operator new(size)), number(size));
            ::operator delete[](opaque(::operator new[](size)), number(size));
            free(opaque(memalign(align, size + 1)));
        }
    }
}
