// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// prlimit, getrusage, times, uname, sysinfo, personality, credentials and capabilities: the values
// of the process, changes that stick, and refusals.
#include "guest.h"
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/utsname.h>

int main(void)
{
    static const int kinds[] = {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_NOFILE,
                                RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rlimit limit, changed;
        CHECK(getrlimit(kinds[i], &limit) == 0);
        say("limit %d: %lx %lx\n", kinds[i], (unsigned long)limit.rlim_cur,
            (unsigned long)limit.rlim_max);
        changed = limit;
        if (kinds[i] != RLIMIT_AS && kinds[i] != RLIMIT_DATA && kinds[i] != RLIMIT_CPU)
            changed.rlim_cur = limit.rlim_max == RLIM_INFINITY ? 1 << 26 : limit.rlim_max;
        struct rlimit old;
        CHECK(prlimit(0, kinds[i], &changed, &old) == 0 && old.rlim_cur == limit.rlim_cur);
        CHECK(prlimit(getpid(), kinds[i], NULL, &old) == 0 && old.rlim_cur == changed.rlim_cur);
    }
    struct rlimit wrong = {10, 5};
    SHOW(setrlimit(RLIMIT_CORE, &wrong));
    SHOW(prlimit(0, 99, NULL, &wrong));

    struct utsname name;
    CHECK(uname(&name) == 0);
    say("%s %s\n", name.sysname, name.machine);
    SHOW(personality(0xffffffff));
    SHOW(personality(ADDR_NO_RANDOMIZE));
    SHOW(personality(0xffffffff));
    struct rusage usage;
    struct tms tms;
    SHOW(getrusage(RUSAGE_SELF, &usage));
    say("used some memory %d\n", usage.ru_maxrss > 100);
    CHECK(times(&tms) != -1);
    say("ids %d %d %d\n", getuid() == geteuid(), getgid() == getegid(), getppid() > 0);
    SHOW(getpgrp() > 0 && getsid(0) > 0);
    SHOW(syscall(SYS_getgroups, -1, NULL));
    SHOW(prctl(PR_GET_DUMPABLE));
    SHOW(prctl(PR_SET_DUMPABLE, 0));
    SHOW(prctl(PR_GET_DUMPABLE));
    SHOW(prctl(PR_SET_DUMPABLE, 1));
    SHOW(prctl(PR_GET_PDEATHSIG, &name));
    SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    SHOW(prctl(PR_GET_TIMERSLACK));
    SHOW(prctl(PR_GET_SECCOMP));
    SHOW(syscall(SYS_membarrier, 0, 0, 0) > 0);
    SHOW(syscall(SYS_membarrier, 16, 0, 0)); // REGISTER_PRIVATE_EXPEDITED
    SHOW(syscall(SYS_membarrier, 8, 0, 0));  // PRIVATE_EXPEDITED
    unsigned cpu = 0, node = 0;
    SHOW(syscall(SYS_getcpu, &cpu, &node, NULL));
    SHOW(sched_yield());
    SHOW(syscall(SYS_getrandom, &name, 64, 0));
    return 0;
}
