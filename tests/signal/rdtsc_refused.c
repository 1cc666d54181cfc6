// SPDX-License-Identifier: MIT
//
// PR_SET_TSC: rdtsc faults once the program has asked for it, new code still runs meanwhile, and
// all is well again when it is allowed.
#include "guest.h"

#include <setjmp.h>
#include <sys/prctl.h>
#include <x86intrin.h>

static sigjmp_buf back;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    say("signal %d code %d\n", sig, info->si_code);
    siglongjmp(back, 1);
}

static void read_tsc(const char *when)
{
    if (sigsetjmp(back, 1) == 0) {
        uint64_t first = __rdtsc();
        say("%s: read, rising %d\n", when, __rdtsc() >= first);
    } else {
        say("%s: refused\n", when);
    }
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    int mode = 0;

    sigaction(SIGSEGV, &action, NULL);
    read_tsc("before");
    SHOW(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    read_tsc("forbidden");
    SHOW(prctl(PR_GET_TSC, &mode));
    say("mode %d\n", mode);
    SHOW(prctl(PR_SET_TSC, PR_TSC_ENABLE));
    read_tsc("allowed");
    return 0;
}
