// SPDX-License-Identifier: MIT
//
// Prints through requests what the harness then compares with printf, line by line; and what is
// hostile: it must do no harm.
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <sys/mman.h>
#include <valgrind/valgrind.h>

#include "guest.h"

// Natively both lines are equal; the harness looks for the second in the log.
#define BOTH(...) \
    do { \
        int request_length = VALGRIND_PRINTF(__VA_ARGS__); \
        printf(__VA_ARGS__); \
        int length = snprintf(NULL, 0, __VA_ARGS__); \
        CHECK(!RUNNING_ON_VALGRIND || request_length == length); \
    } while (0)

#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"

static void formats(void)
{
    BOTH("plain\n");
    BOTH("%d %i %u %x %X %o\n", -1, INT_MIN, UINT_MAX, 0xabcdef, 0xabcdef, 8);
    BOTH("%ld %lu %lx %lld %llu %llx %zu %zd %jd %td\n", LONG_MIN, ULONG_MAX, 1ul << 63, LLONG_MIN,
         ULLONG_MAX, 1ull << 40, (size_t)7, (ssize_t)-7, (intmax_t)-8, (ptrdiff_t)-9);
    BOTH("%hd %hhd %hu %hhu %hx\n", -3, -4, 70000, 300, 0x12345);
    BOTH("[%5d] [%-5d] [%05d] [%+d] [% d] [%#x] [%#o] [%.3d] [%8.3d]\n", 1, 2, 3, 4, 5, 6, 7, 8, 9);
    BOTH("[%*d] [%-*d] [%*d] [%.*d] [%.*s]\n", 6, 1, 6, 2, -6, 3, 4, 5, 2, "abcdef");
    BOTH("[%s] [%10s] [%-10s] [%.3s] [%10.3s] [%.0s] [%s]\n", "abc", "def", "ghi", "jklmno", "pqrstu",
         "vwx", "");
    BOTH("[%c] [%3c] [%-3c] [%%] [%p]\n", 'a', 'b', 'c', (void *)0x1234);
    BOTH("%f %.3f %e %g %10.2f %-10.1f| %a\n", 1.5, 2.0 / 3, 12345.678, 0.0001, 3.14159, 2.5, 1.0);
    BOTH("%f %f %f %.1f\n", INFINITY, -INFINITY, 1e15, -0.0);
    BOTH("%Lf %d %Lg %s\n", 1.25L, 5, 1e100L, "after");
    BOTH("%d %f %d %f %d %f %d %f %d %f %d %f %d %f %d %f %d %f %d %f %s\n", 1, 1.5, 2, 2.5, 3, 3.5, 4,
         4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5, 10, 10.5, "end");
}

static void pieces(void)
{
    for (int i = 0; i < 5; i++)
        VALGRIND_PRINTF("%d,", i);
    VALGRIND_PRINTF("\ntwo\nlines\n\n");
    printf("0,1,2,3,4,\ntwo\nlines\n\n");
}

typedef struct {
    unsigned gp_offset, fp_offset;
    void *overflow, *save_area;
} Raw;

static unsigned long ask(unsigned long number, const void *format, const void *list)
{
    return VALGRIND_DO_CLIENT_REQUEST_EXPR(0, number, format, list, 0, 0, 0);
}

static void hostile(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    memset(pages, 'x', 4096);
    pages[4095] = '%';
    Raw wild = {12, 16, (void *)0xdead000, (void *)0x8000000000000000};
    Raw past = {48, 176, pages + 4090, pages + 4090};
    long width[8] = {INT_MIN, INT_MAX, -1, 1000000, 0, 0, 0, 0};
    Raw widths = {48, 176, width, width};
    for (unsigned long number = 0x1401; number <= 0x1404; number++) {
        ask(number, NULL, NULL);
        ask(number, pages + 4090, &wild);
        ask(number, pages + 4096, &wild);
        ask(number, "%s %d %f %Lf %p %c\n", &wild);
        ask(number, "%s %d %f %Lf %p %c\n", &past);
        ask(number, "%s %d %f %Lf %p %c\n", NULL);
        ask(number, "%*d %*d %.*d %*d\n", &widths);
        ask(number, "%99999999999999999999d %.99999999999999999999d\n", &widths);
        ask(number, "%n %hhn %ln %y %", &wild);
        ask(number, "%.5000Lf %5000s\n", &widths);
        ask(number, "%-+ #0-+ #0-+ #0d\n", &widths);
    }
    VALGRIND_PRINTF("\n");
    // Longer than any line.
    memset(pages, 'y', 4096);
    pages[4095] = 0;
    CHECK(!RUNNING_ON_VALGRIND || VALGRIND_PRINTF("%s\n", pages) == 4096);
}

int main(int argc, char **argv)
{
    (void)argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) {
        hostile();
        printf("survived\n");
        return 0;
    }
    formats();
    pieces();
    VALGRIND_PRINTF("no newline at the end");
    printf("no newline at the end\n");
    return 0;
}
