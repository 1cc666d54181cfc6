// SPDX-License-Identifier: MIT
//
// Interior pointers that mean the whole block: the heuristics of the leak check, each on and off.
// OPTIONS --leak-check=full --show-leak-kinds=definite,possible
// BUILD -std=c++17
#include "corpus.h"

#include <string>

static void *volatile kept;

struct Base1 { virtual ~Base1() {} u64 a = 1; };
struct Base2 { virtual ~Base2() {} u64 b = 2; };
struct Both : Base1, Base2 { u64 c = 3; };
struct Counted { u64 x; ~Counted() { corpus_sink[0] = x; } };

CASE(newarray)
{
    // OPTIONS --leak-check-heuristics=newarray
    kept = new Counted[5]();
}

CASE(newarray_off)
{
    // OPTIONS --leak-check-heuristics=none
    kept = new Counted[5](); // EXPECT memcheck leak-possible bytes=48 blocks=1
}

CASE(multiple_inheritance)
{
    // OPTIONS --leak-check-heuristics=multipleinheritance
    kept = static_cast<Base2 *>(new Both);
}

CASE(multiple_inheritance_off)
{
    // OPTIONS --leak-check-heuristics=none
    kept = static_cast<Base2 *>(new Both); // EXPECT memcheck leak-possible bytes=40 blocks=1
}

CASE(length64)
{
    // OPTIONS --leak-check-heuristics=length64
    u64 *p = (u64 *)malloc(108);
    p[0] = 100;
    kept = p + 1;
}

CASE(length64_off)
{
    // OPTIONS --leak-check-heuristics=none
    u64 *p = (u64 *)malloc(108); // EXPECT memcheck leak-possible bytes=108 blocks=1
    p[0] = 100;
    kept = p + 1;
    p = NULL;
    HIDE(p);
}

CASE(length64_with_another_length)
{
    // OPTIONS --leak-check-heuristics=length64
    u64 *p = (u64 *)malloc(108); // EXPECT memcheck leak-possible bytes=108 blocks=1
    p[0] = 99;
    kept = p + 1;
    p = NULL;
    HIDE(p);
}

// A string of the old ABI: length, capacity and reference count before the characters.
CASE(stdstring)
{
    // OPTIONS --leak-check-heuristics=stdstring
    u64 *p = (u64 *)malloc(3 * 8 + 20 + 1);
    p[0] = 10, p[1] = 20, p[2] = 0;
    kept = p + 3;
}

CASE(stdstring_off)
{
    // OPTIONS --leak-check-heuristics=none
    u64 *p = (u64 *)malloc(3 * 8 + 20 + 1); // EXPECT memcheck leak-possible bytes=45 blocks=1
    p[0] = 10, p[1] = 20, p[2] = 0;
    kept = p + 3;
    p = NULL;
    HIDE(p);
}

CASE(all_by_default)
{
    static void *volatile table[3];
    u64 *p = (u64 *)malloc(108);
    p[0] = 100;
    table[0] = p + 1;
    table[1] = new Counted[5]();
    table[2] = static_cast<Base2 *>(new Both);
}
