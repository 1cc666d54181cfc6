// SPDX-License-Identifier: MIT
//
// The whole unit-test harness. A test is a sentence and its proof:
//
//     TEST(removed_key_is_gone) { CHECK(!map_get(&map, 1, &value)); }
//
// A failed CHECK ends its test; the other tests still run. Everything is weak, so
// test files can be built one by one or linked together.
//
// A file whose tests have client memory where the address sanitizer has its shadow (2 GiB and
// above) says UNIT_NEEDS_CLIENT_SPACE: under that sanitizer, and only there, they are skipped.
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

#define UNIT_SHARED __attribute__((weak))

UNIT_SHARED UnitTest *unit_first = NULL;
UNIT_SHARED UnitTest *unit_last = NULL;
UNIT_SHARED jmp_buf unit_end_of_test;

UNIT_SHARED void unit_register(UnitTest *test)
{
    if (unit_last)
        unit_last->next = test;
    else
        unit_first = test;
    unit_last = test;
}

UNIT_SHARED const char *unit_current = "";

__attribute__((format(printf, 3, 4))) UNIT_SHARED _Noreturn void
unit_fail(const char *file, int line, const char *format, ...)
{
    va_list arguments;

    printf("not ok - %s: %s:%d: ", unit_current, file, line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    longjmp(unit_end_of_test, 1);
}

#define TEST(sentence)                                                                             \
    static void sentence(void);                                                                    \
    static UnitTest sentence##_test = { #sentence, sentence, NULL };                               \
    __attribute__((constructor)) static void sentence##_register(void)                             \
    {                                                                                              \
        unit_register(&sentence##_test);                                                           \
    }                                                                                              \
    static void sentence(void)

#define FAIL(...)   unit_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond) ((cond) ? (void)0 : FAIL("%s", #cond))

#define CHECK_EQ(got, wanted)                                                                      \
    do {                                                                                           \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                          \
        if (got_ != wanted_)                                                                       \
            FAIL("%s is %lld, not %lld", #got, got_, wanted_);                                     \
    } while (0)

#define CHECK_STR(got, wanted)                                                                     \
    do {                                                                                           \
        const char *got_ = (got), *wanted_ = (wanted);                                             \
        if (strcmp(got_, wanted_) != 0)                                                            \
            FAIL("%s is \"%s\", not \"%s\"", #got, got_, wanted_);                                 \
    } while (0)

UNIT_SHARED int unit_passes(UnitTest *test)
{
    unit_current = test->name;
    if (setjmp(unit_end_of_test) != 0)
        return 0;
    test->run();
    printf("ok - %s\n", test->name);
    return 1;
}

#ifdef __SANITIZE_ADDRESS__
#define UNIT_HAS_SHADOW 1
#else
#define UNIT_HAS_SHADOW 0
#endif

UNIT_SHARED bool unit_needs_client_space = false;
#define UNIT_NEEDS_CLIENT_SPACE                                                                    \
    __attribute__((constructor)) static void unit_say_need(void)                                   \
    {                                                                                              \
        unit_needs_client_space = true;                                                            \
    }

// With an argument, runs only the tests whose name contains it.
UNIT_SHARED int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    bool is_taken = UNIT_HAS_SHADOW && unit_needs_client_space;

    for (UnitTest *test = unit_first; test; test = test->next) {
        if (argc > 1 && !strstr(test->name, argv[1]))
            continue;
        if (is_taken) {
            printf("skip - %s: the sanitizer has its shadow there\n", test->name);
            skipped++;
        } else if (unit_passes(test)) {
            passed++;
        } else {
            failed++;
        }
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}

#endif
