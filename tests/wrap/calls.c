// SPDX-License-Identifier: MIT
//
// Wrappers and replacements that the program itself has: what they get, what they can call, in
// which order they come, and how a thread leaves them.
//
// STDOUT: add: 3 4 -> 7, wrapped
// STDOUT: the first wrapper: inner 42
// STDOUT: the pattern fits both: first second
// STDOUT: factorial: 720 in 6 calls
// STDOUT: even and odd: 1 in 9 calls
// STDOUT: many arguments: 78 650
// STDOUT: without arguments: 5, void
// STDOUT: replaced: 107, original 0
// STDOUT: by pointer: 7, wrapped
// STDOUT: left by longjmp: 3 times
// STDOUT: indirect: 11
// STDOUT: nobody's: 1 1 1
#include <setjmp.h>
#include <stdio.h>

#include <valgrind/valgrind.h>

#define KEEP __attribute__((noinline, noipa))

static int times;

KEEP int add(int a, int b)
{
    return a + b;
}

static const char *seen = "";
int I_WRAP_SONAME_FNNAME_ZU(NONE, add)(int a, int b)
{
    OrigFn original;
    int result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_WW(result, original, a, b);
    if (original.nraddr == (unsigned long)add)
        seen = "wrapped";
    return result;
}

// A wrapper can be wrapped by its own name, for those who call it; what comes to it is not wrapped
// again.
static char order[64];
KEEP int nested(int a)
{
    return a;
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, nested)(int a)
{
    OrigFn original;
    int result;
    VALGRIND_GET_ORIG_FN(original);
    sprintf(order + __builtin_strlen(order), "inner ");
    CALL_FN_W_W(result, original, a);
    return result;
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, _vgw00000ZU_NONE_nested)(int a)
{
    OrigFn original;
    int result;
    VALGRIND_GET_ORIG_FN(original);
    sprintf(order, "outer ");
    CALL_FN_W_W(result, original, a);
    return result;
}

// NONE is the soname of the program; underscores of a name are encoded.
KEEP const char *some_first_name(void)
{
    return "unwrapped";
}

KEEP const char *some_second_name(void)
{
    return "unwrapped";
}

const char *I_WRAP_SONAME_FNNAME_ZZ(NOZaE, someZuZaZuname)(void)
{
    OrigFn original;
    VALGRIND_GET_ORIG_FN(original);
    return original.nraddr == (unsigned long)some_first_name    ? "first"
           : original.nraddr == (unsigned long)some_second_name ? "second"
                                                                 : "neither";
}

// The original calls itself, and each of these calls is wrapped.
KEEP long factorial(long n)
{
    return n <= 1 ? 1 : n * factorial(n - 1);
}

long I_WRAP_SONAME_FNNAME_ZU(NONE, factorial)(long n)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    times++;
    CALL_FN_W_W(result, original, n);
    return result;
}

KEEP int is_odd(int n);
KEEP int is_even(int n)
{
    int result = n == 0 ? 1 : is_odd(n - 1);
    __asm__ volatile("" : "+r"(result));
    return result;
}

KEEP int is_odd(int n)
{
    int result = n == 0 ? 0 : is_even(n - 1);
    __asm__ volatile("" : "+r"(result));
    return result;
}

#define WRAP_PARITY(name)                              \
    int I_WRAP_SONAME_FNNAME_ZU(NONE, name)(int n)     \
    {                                                  \
        OrigFn original;                               \
        int result;                                    \
        VALGRIND_GET_ORIG_FN(original);                \
        times++;                                       \
        CALL_FN_W_W(result, original, n);              \
        return result;                                 \
    }
WRAP_PARITY(is_even)
WRAP_PARITY(is_odd)

KEEP long twelve(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
                 long k, long l)
{
    return a + b + c + d + e + f + g + h + i + j + k + l;
}

static long squares;
long I_WRAP_SONAME_FNNAME_ZU(NONE, twelve)(long a, long b, long c, long d, long e, long f, long g,
                                           long h, long i, long j, long k, long l)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_12W(result, original, a, b, c, d, e, f, g, h, i, j, k, l);
    squares = a * a + b * b + c * c + d * d + e * e + f * f + g * g + h * h + i * i + j * j +
              k * k + l * l;
    return result;
}

KEEP long no_arguments(void)
{
    return 4;
}

long I_WRAP_SONAME_FNNAME_ZU(NONE, no_arguments)(void)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_v(result, original);
    return result + 1;
}

static const char *void_seen = "not called";
KEEP void no_result(const char *text)
{
    void_seen = text;
}

void I_WRAP_SONAME_FNNAME_ZU(NONE, no_result)(const char *text)
{
    OrigFn original;
    (void)text;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_v_W(original, "void");
}

static unsigned long replaced_original = 1;
KEEP int replaced(int a)
{
    return a;
}

int I_REPLACE_SONAME_FNNAME_ZU(NONE, replaced)(int a)
{
    OrigFn original;
    VALGRIND_GET_ORIG_FN(original);
    replaced_original = original.nraddr;
    return a + 100;
}

static jmp_buf back;
KEEP int jumps(int a)
{
    longjmp(back, a);
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, jumps)(int a)
{
    OrigFn original;
    int result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_W(result, original, a + 1);
    return result;
}

KEEP static long indirect_one(long a)
{
    return a + 1;
}

static long (*resolve_indirect(void))(long)
{
    return indirect_one;
}

long indirect(long a) __attribute__((ifunc("resolve_indirect")));
long I_WRAP_SONAME_FNNAME_ZU(NONE, indirect)(long a)
{
    OrigFn original;
    long result;
    VALGRIND_GET_ORIG_FN(original);
    CALL_FN_W_W(result, original, a);
    return result * 10 + (original.nraddr == (unsigned long)indirect_one);
}

// Another object's, another name, and an encoding that is none.
KEEP int nobodys(void)
{
    return 1;
}

int I_WRAP_SONAME_FNNAME_ZU(libnotthereZdso, nobodys)(void)
{
    return 2;
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, nobody)(void)
{
    return 3;
}

int I_WRAP_SONAME_FNNAME_ZZ(NONE, nobodyZys)(void)
{
    return 4;
}

static int jump_three_times(void)
{
    volatile int jumped = 0;
    while (jumped < 3) {
        if (setjmp(back) == 8)
            jumped++;
        else
            jumps(7);
    }
    return jumped;
}

int main(void)
{
    int (*volatile pointer)(int, int) = add;
    int result = add(3, 4);
    printf("add: 3 4 -> %d, %s\n", result, seen);
    result = nested(42);
    printf("the first wrapper: %s%d\n", order, result);
    printf("the pattern fits both: %s %s\n", some_first_name(), some_second_name());
    long product = factorial(6);
    printf("factorial: %ld in %d calls\n", product, times);
    times = 0;
    result = is_even(8);
    printf("even and odd: %d in %d calls\n", result, times);
    product = twelve(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    printf("many arguments: %ld %ld\n", product, squares);
    no_result("original");
    printf("without arguments: %ld, %s\n", no_arguments(), void_seen);
    result = replaced(7);
    printf("replaced: %d, original %lu\n", result, replaced_original);
    seen = "unwrapped";
    result = pointer(3, 4);
    printf("by pointer: %d, %s\n", result, seen);
    printf("left by longjmp: %d times\n", jump_three_times());
    printf("indirect: %ld\n", indirect(0));
    printf("nobody's: %d %d %d\n", nobodys(), nobodys(), nobodys());
    return 0;
}
