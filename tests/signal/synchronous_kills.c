// SPDX-License-Identifier: MIT
// BUILD: -O1 -fno-delete-null-pointer-checks
// RUN[blocked-segv]: blocked segv => SIGSEGV core
// RUN[ignored-segv]: ignored segv => SIGSEGV core
// RUN[blocked-ill]: blocked ill => SIGILL core
// RUN[ignored-fpe]: ignored fpe => SIGFPE core
// RUN[ignored-trap]: ignored trap => SIGTRAP core
// RUN[again-segv]: again segv => SIGSEGV core
// RUN[sent]: sent segv => exit 0
//
// A fault whose signal is blocked or ignored kills all the same, also one in the handler of the
// same fault; a SIGSEGV that is merely sent obeys the mask and the disposition.
#include "guest.h"

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    say("handler %d faults again\n", sig);
    *(volatile int *)8 = 1;
}

static void fault(const char *kind)
{
    if (kind[0] == 's')
        *(volatile int *)8 = 1;
    if (kind[0] == 'i')
        __asm__ volatile("ud2");
    if (kind[0] == 'f')
        __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" : : : "rax", "rdx", "rcx");
    if (kind[0] == 't')
        __asm__ volatile("int3");
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    static const int signals[] = {SIGSEGV, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 4; i++) {
        if (argv[1][0] == 'b')
            block_signal(SIG_BLOCK, signals[i]);
        if (argv[1][0] == 'i' || argv[1][0] == 's')
            signal(signals[i], SIG_IGN);
        if (argv[1][0] == 'a')
            on_signal(signals[i], handler, 0);
    }
    if (argv[1][0] == 's') {
        for (int i = 0; i < 4; i++)
            raise(signals[i]);
        say("survived what was sent\n");
        return 0;
    }
    say("before\n");
    fault(argv[2]);
    say("after\n");
    return 0;
}
