// SPDX-License-Identifier: MIT
//
// The harness of the unit tests. A test is a sentence:
//
//     TEST(a_full_ring_blocks_its_producer)
//     {
//         CHECK_EQ(ring_room(&ring), 0);
//     }
//
// A failed check ends its test, not the program. A file of tests is one program: include
// this header once and let unit_main() be all of main().
#ifndef MUNINN_TESTS_UNIT_H
#define MUNINN_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct UnitTest {
    const char *name;
    void (*run)(void);
    struct UnitTest *next;
} UnitTest;

static UnitTest *unit_first, **unit_last = &unit_first;
static jmp_buf unit_failed;
static char unit_why[512];

#define TEST(sentence) \
    static void sentence(void); \
    __attribute__((constructor)) static void register_##sentence(void) \
    { \
        static UnitTest test = { #sentence, sentence, NULL }; \
        *unit_last = &test; \
        unit_last = &test.next; \
    } \
    static void sentence(void)

__attribute__((format(printf, 3, 4), noreturn)) static inline void
unit_fail(const char *file, int line, const char *format, ...)
{
    const char *base = strrchr(file, '/');
    int n = snprintf(unit_why, sizeof(unit_why), "%s:%d: ", base ? base + 1 : file, line);
    va_list args;
    va_start(args, format);
    vsnprintf(unit_why + n, sizeof(unit_why) - (size_t)n, format, args);
    va_end(args);
    longjmp(unit_failed, 1);
}

#define FAIL(...) unit_fail(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition) \
    do { \
        if (!(condition)) \
            FAIL("%s", #condition); \
    } while (0)

#define CHECK_EQ(got, wanted) \
    do { \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted); \
        if (got_ != wanted_) \
            FAIL("%s is %lld, not %lld", #got, got_, wanted_); \
    } while (0)

#define CHECK_STR(got, wanted) \
    do { \
        const char *got_ = (got), *wanted_ = (wanted); \
        if (strcmp(got_, wanted_) != 0) \
            FAIL("%s is \"%s\", not \"%s\"", #got, got_, wanted_); \
    } while (0)

// Its own function: what lives in the caller survives the longjmp.
__attribute__((noinline)) static bool unit_run(const UnitTest *test)
{
    if (setjmp(unit_failed) != 0)
        return false;
    test->run();
    return true;
}

// Runs all tests, or those whose name contains argv[1].
static inline int unit_main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (UnitTest *test = unit_first; test; test = test->next) {
        if (argc > 1 && !strstr(test->name, argv[1]))
            continue;
        if (unit_run(test)) {
            printf("ok - %s\n", test->name);
            passed++;
        } else {
            printf("not ok - %s: %s\n", test->name, unit_why);
            failed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}

#endif
