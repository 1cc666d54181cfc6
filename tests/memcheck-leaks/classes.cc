// SPDX-License-Identifier: MIT
//
// Bytes of objects: each is preceded by what the report has to say of it.
#include <stdio.h>
#include <valgrind/memcheck.h>

struct Base {
    int q;
    virtual ~Base() {}
};
struct Middle : Base {
    int m[3];
};
struct Other {
    long t;
};
struct Derived : Middle, Other {
    char d[9];
    static int all;
    Other second;
};
int Derived::all;

namespace space {
Derived object;
int numbers[3];
}

static void check(const char *label, void *p)
{
    fprintf(stderr, "-- %s\n", label);
    VALGRIND_MAKE_MEM_NOACCESS(p, 1);
    VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p, 1);
    VALGRIND_MAKE_MEM_DEFINED(p, 1);
}

int main()
{
    Derived l;
    Derived many[2][2];

    check("0 bytes inside object.q,", &space::object.q);
    check("0 bytes inside object.m[2],", &space::object.m[2]);
    check("0 bytes inside object.t,", &space::object.t);
    check("0 bytes inside object.d[3],", &space::object.d[3]);
    check("0 bytes inside object.second.t,", &space::object.second.t);
    check("0 bytes inside numbers[1],", &space::numbers[1]);
    check("0 bytes inside global var \"all\"", &Derived::all);
    check("2 bytes inside l.q,", reinterpret_cast<char *>(&l.q) + 2);
    check("0 bytes inside many[1][0].m[1],", &many[1][0].m[1]);
    return 0;
}
