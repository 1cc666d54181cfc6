// SPDX-License-Identifier: MIT
//
// A program that asks for its system calls as signals (PR_SET_SYSCALL_USER_DISPATCH) either gets
// that or is told that it cannot be had; it must not die of having asked.
#include "guest.h"
#include <sys/prctl.h>
#include <sys/syscall.h>

static volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile int caught;

static void on_call(int sig)
{
    (void)sig;
    selector = SYSCALL_DISPATCH_FILTER_ALLOW;
    caught++;
}

int main(void)
{
    signal(SIGSYS, on_call);
    bool offered = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == 0;
    selector = SYSCALL_DISPATCH_FILTER_BLOCK;
    syscall(SYS_getppid);
    selector = SYSCALL_DISPATCH_FILTER_ALLOW;
    say("as promised %d\n", caught == offered);
    return 0;
}
