// SPDX-License-Identifier: MIT
// BUILD[static]: -O2 -static
// BUILD[dynamic-pie]: -O2 -fPIE -pie
// BUILD[non-pie]: -O2 -fno-pie -no-pie
// BUILD[static-pie]: -O2 -static-pie -fPIE
// BUILD[debug]: -O0 -fno-omit-frame-pointer
// BUILD[now]: -O2 -Wl,-z,now -Wl,-z,relro
// BUILD[lazy]: -O2 -Wl,-z,lazy
// RUN: one "two words" three
// STRESS: tiny-blocks
// STRESS: no-link
// STRESS: entries
// STRESS: tiny-cache
//
// The same ordinary program in every shape the linker can give it: arguments, environment, stdio,
// qsort through a function pointer, floating point, constructors, atexit order and a status.
#include "guest.h"
#include <ctype.h>
#include <math.h>

__attribute__((constructor)) static void before_main(void)
{
    say("constructor\n");
}

__attribute__((destructor)) static void after_main(void)
{
    say("destructor\n");
}

static void at_exit_first(void)
{
    say("atexit 1\n");
}

static void at_exit_second(void)
{
    say("atexit 2\n");
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        say("argv[%d] = %s\n", i, argv[i]);
    say("argv[argc] %s, LC_ALL=%s\n", argv[argc] ? "set" : "null", getenv("LC_ALL"));
    atexit(at_exit_first);
    atexit(at_exit_second);

    int numbers[1000];
    uint32_t seed = 1;
    for (int i = 0; i < 1000; i++)
        numbers[i] = (seed = seed * 1103515245 + 12345) >> 8 & 0xffff;
    qsort(numbers, 1000, sizeof *numbers, by_value);
    printf("%d %d %d\n", numbers[0], numbers[500], numbers[999]);

    double sum = 0;
    for (int i = 1; i < 2000; i++)
        sum += 1.0 / i * (i % 2 ? 1 : -1);
    printf("%.17g %a %Lg\n", sum, sum, (long double)sum * 3);

    char *text = strdup("The Quick Brown Fox");
    for (char *p = text; *p; p++)
        *p = toupper((unsigned char)*p);
    fprintf(stderr, "%s %zu\n", text, strlen(text));
    free(text);
    return 0;
}
