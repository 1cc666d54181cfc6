// SPDX-License-Identifier: MIT
//
// Bytes of variables: each is preceded by what the report has to say of it.
#include <stdio.h>
#include <valgrind/memcheck.h>

typedef struct Inner {
    short a;
    char b[5];
    union {
        int i;
        float f;
    } u;
    struct {
        int nameless;
        long second;
    };
    unsigned first_bits : 3, other_bits : 7;
} Inner;

struct Outer {
    Inner items[4];
    Inner *p;
    double grid[3][5];
};

struct Outer g;
static struct Outer pair[2];
int number;
static long matrix[4][6];

static void check(const char *label, void *p)
{
    fprintf(stderr, "-- %s\n", label);
    VALGRIND_MAKE_MEM_NOACCESS(p, 1);
    VALGRIND_CHECK_MEM_IS_ADDRESSABLE(p, 1);
    VALGRIND_MAKE_MEM_DEFINED(p, 1);
}

int main(void)
{
    struct Outer l;
    int i;
    char text[7];
    static int kept[3];

    check("1 byte inside global var \"number\"", (char *)&number + 1);
    check("0 bytes inside g.items[2].b[1],", &g.items[2].b[1]);
    check("1 byte inside g.items[1].u,", (char *)&g.items[1].u + 1);
    check("0 bytes inside g.items[1].nameless,", &g.items[1].nameless);
    check("3 bytes inside g.items[1].second,", (char *)&g.items[1].second + 3);
    check("7 bytes inside g.items[1],", (char *)&g.items[1] + 7); // padding
    check("32 bytes inside g.items[1],", &g.items[1].second + 1); // bits of both
    check("1 byte inside g.items[1].other_bits,", (char *)(&g.items[1].second + 1) + 1);
    check("5 bytes inside g.p,", (char *)&g.p + 5);
    check("2 bytes inside g.grid[2][3],", (char *)&g.grid[2][3] + 2);
    check("0 bytes inside pair[1].grid[1][0],", &pair[1].grid[1][0]);
    check("7 bytes inside matrix[3][5],", (char *)&matrix[3][5] + 7);
    check("0 bytes inside kept[2],", &kept[2]);
    check("0 bytes inside local var \"i\"", &i);
    check("0 bytes inside text[6],", text + 6);
    check("0 bytes inside l.items[0].a,", &l);
    check("0 bytes inside l.items[3].b[4],", &l.items[3].b[4]);
    check("4 bytes inside l.grid[2][4],", (char *)&l.grid[2][4] + 4);
    return 0;
}
