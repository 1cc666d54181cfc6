// SPDX-License-Identifier: MIT
// BUILD: -O1 -frounding-math -fno-builtin -lm
// STRESS: tiny-blocks
// STRESS: signals
//
// Rounding modes and sticky flags of MXCSR and of the x87 control word survive system calls,
// signals and translation; a handler starts with the defaults and its own changes end with it; x87
// keeps 80 bits.
#include "guest.h"
#include <fenv.h>
#include <math.h>
#include <sys/time.h>

static volatile double one = 1, three = 3;
static volatile sig_atomic_t hits;
static volatile int handler_mode;

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    handler_mode = fegetround();
    fesetround(FE_UPWARD);
    volatile double x = one / three;
    (void)x;
    hits++;
}

static void show_modes(const char *when)
{
    uint32_t mxcsr;
    uint16_t control;
    __asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr), "=m"(control));
    say("%s: mxcsr %x control %x, 1/3 = %a, -1/3 = %a, long %La\n", when, mxcsr, control,
        one / three, -one / three, (long double)one / (long double)three);
}

int main(void)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    on_signal(SIGUSR1, handler, 0);
    on_signal(SIGALRM, handler, 0);
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        feclearexcept(FE_ALL_EXCEPT);
        getppid();
        show_modes("before");
        raise(SIGUSR1);
        say("in the handler: %d\n", handler_mode);
        show_modes("after");
    }
    uint32_t flush_to_zero = 0x9fc0;
    __asm__ volatile("ldmxcsr %0" : : "m"(flush_to_zero));
    volatile double tiny = 1e-308;
    volatile double denormal = tiny / 100;
    say("flushed %a\n", denormal);
    flush_to_zero = 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(flush_to_zero));
    denormal = tiny / 100;
    say("denormal %a\n", denormal);

    // Asynchronous signals must not leak their mode into a computation.
    struct itimerval interval = {{0, 500}, {0, 500}};
    fesetround(FE_DOWNWARD);
    setitimer(ITIMER_REAL, &interval, NULL);
    long double sum = 0;
    int wrong = 0;
    double expected = one / three;
    while (hits < 100) {
        for (int i = 1; i < 1000; i++)
            wrong += one / three != expected;
        sum = sum * 0.5L + 1.0L / (long double)three;
    }
    memset(&interval, 0, sizeof interval);
    setitimer(ITIMER_REAL, &interval, NULL);
    say("wrong %d, mode %d, finite %d\n", wrong, fegetround() == FE_DOWNWARD, isfinite(sum));
    return 0;
}
