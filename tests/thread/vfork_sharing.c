// SPDX-License-Identifier: MIT
// BUILD: -O1
// MUNINN:
// MUNINN: --trace-children=yes
// STRESS: tiny-blocks
//
// A vfork child borrows the parent's memory: what it writes stays, the parent waits for its exec or
// exit, and its stack frame survives. The same by clone(VM|VFORK).
#include "guest.h"
#include <sched.h>
#include <sys/syscall.h>

static volatile int shared;
static volatile int order;

static int clone_body(void *arg)
{
    *(volatile int *)arg += 5;
    order = 1;
    return 33;
}

int main(void)
{
    for (volatile int i = 0; i < 100; i++) {
        pid_t child = vfork();
        if (child == 0) {
            shared += 1;
            _exit(shared & 0x3f);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WEXITSTATUS(status) == (shared & 0x3f));
    }
    say("shared %d\n", shared);

    volatile int local = 10;
    pid_t child = vfork();
    if (child == 0) {
        local = 20;
        execl("/bin/echo", "echo", "from exec after vfork", (char *)NULL);
        _exit(127);
    }
    wait_and_show("exec", child);
    say("local %d\n", local);

    child = vfork();
    if (child == 0) {
        execl("/does/not/exist", "nothing", (char *)NULL);
        local = errno;
        _exit(9);
    }
    wait_and_show("failed exec", child);
    say("error seen by the parent %s\n", error_name(local));

    static char stack[65536];
    order = 0;
    child = clone(clone_body, stack + sizeof stack - 64, CLONE_VM | CLONE_VFORK | SIGCHLD,
                  (void *)&local);
    say("clone: local %d, ran first %d\n", local, order);
    wait_and_show("clone", child);
    return 0;
}
