// SPDX-License-Identifier: MIT
//
// Runs a program by single steps and prints how often each address was executed: "0xADDRESS COUNT".
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 1 << 16 };
static struct {
    uint64_t pc, count;
} slots[SLOTS];

static void count(uint64_t pc)
{
    size_t at = pc * 0x9e3779b97f4a7c15ull >> 48;
    while (slots[at].count && slots[at].pc != pc)
        at = (at + 1) % SLOTS;
    slots[at].pc = pc;
    slots[at].count++;
}

int main(int argc, char **argv)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(argv[argc > 1 ? 1 : 0], argv + 1);
        _exit(127);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        struct user_regs_struct regs;
        ptrace(PTRACE_GETREGS, child, 0, &regs);
        count(regs.rip);
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (slots[i].count)
            printf("0x%" PRIx64 " %" PRIu64 "\n", slots[i].pc, slots[i].count);
    }
    return WIFEXITED(status) ? 0 : 1;
}
