// SPDX-License-Identifier: MIT
// BUILD: dynamic static musl
// OPTIONS: --stress=signals --run-libc-freeres=no
// OUTPUT
//
// A timer's handler interrupts string functions, and calls some itself: each is done once, and
// returns what it should.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { TICKS = 300, SIZES = 80 };

static volatile sig_atomic_t ticks;
static char theirs[SIZES];

static void on_tick(int sig)
{
    char copy[SIZES];
    memcpy(copy, theirs, sizeof(copy));
    if (strlen(copy) != SIZES - 1 || memcmp(copy, theirs, sizeof(copy)) != 0)
        abort();
    ticks += sig == SIGALRM;
}

static void require(int condition, const char *what)
{
    if (condition)
        return;
    printf("%s\n", what);
    exit(1);
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 300}, {0, 300}};
    char a[2 * SIZES], b[2 * SIZES];
    memset(theirs, 't', SIZES - 1);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (unsigned n = 1; ticks < TICKS; n = n % (SIZES - 1) + 1) {
        require(memset(a, 'a', n) == a, "memset");
        a[n] = '\0';
        require(mempcpy(b, a, n + 1) == b + n + 1, "mempcpy");
        require(strlen(b) == n, "strlen");
        require(strcmp(a, b) == 0 && memcmp(a, b, n + 1) == 0, "the same");
        a[0] = 'b'; // what is done twice moves it twice
        require(memmove(a + 1, a, n) == a + 1 && a[1] == 'b' && (n == 1 || a[2] == 'a'), "memmove");
        require(memcpy(b, a + 1, n) == b && strchr(b, 'b') == b, "memcpy");
        require(memchr(b, 'b', n) == b && strncmp(a, b, 1) == 0, "memchr");
    }
    puts("done");
    return 0;
}
