// SPDX-License-Identifier: MIT
// BUILD: -O2
// RUN[sigsuspend]: 0
// RUN[ppoll]: 1
// RUN[self-pipe]: 2
// RUN[longjmp]: 3
// RUN[sleep]: 4
// RUN[futex]: 5
// STRESS: tiny-blocks
//
// A signal that arrives just before a call blocks must end the call, however late the engine learns
// of it: thousands of tries, with the moment swept across the entry of the call. One lost race and
// the program hangs.
#include "guest.h"
#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/syscall.h>

static volatile sig_atomic_t hits;
static int ends[2], method, futex_word;
static sigjmp_buf home;
static timer_t timer;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    hits++;
    if (method == 2 && write(ends[1], "x", 1) != 1)
        _exit(9);
    if (method == 3)
        siglongjmp(home, 1);
    if (method == 5) {
        futex_word = 1;
        syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void fire_after(long nanoseconds)
{
    struct itimerspec when = {{0, 0}, {0, nanoseconds}};
    timer_settime(timer, 0, &when, NULL);
}

static void block(const sigset_t *none)
{
    char byte;
    switch (method) {
    case 0:
        sigsuspend(none);
        break;
    case 1:
        ppoll(NULL, 0, NULL, none);
        break;
    case 2:
        while (read(ends[0], &byte, 1) != 1)
            ;
        break;
    case 3:
        if (read(ends[0], &byte, 1) != -5)
            say("FAIL read returned\n");
        break;
    case 4:
        // Interrupted or not, it ends; a handler that ran late would miss its own turn.
        usleep(200);
        break;
    case 5:
        while (futex_word == 0)
            syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
        break;
    }
}

int main(int argc, char **argv)
{
    method = argc > 1 ? atoi(argv[1]) : 0;
    sigset_t none;
    sigemptyset(&none);
    CHECK(pipe(ends) == 0);
    on_signal(SIGALRM, handler, 0);
    if (method <= 1)
        block_signal(SIG_BLOCK, SIGALRM);
    CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
    volatile int missed = 0;
    for (volatile int i = 0; i < 4000; i++) {
        int before = hits;
        futex_word = 0;
        if (sigsetjmp(home, 1) == 0) {
            fire_after(500 + i * 17 % 20000);
            block(&none);
        }
        while (method == 4 && hits == before)
            ;
        missed += hits == before;
    }
    say("missed %d, hits %d\n", missed, hits);
    return 0;
}
