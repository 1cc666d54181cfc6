// SPDX-License-Identifier: MIT
//
// Seccomp filters for guest programs: a list of calls and what happens to them, and what happens
// to all others.
#pragma once

#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define FILTER_CALLS_MAX 60

// Builds a program: `action` for the calls of the list (it ends with -1), `other` for all others.
__attribute__((unused)) static struct sock_fprog filter_program(const int *calls, uint32_t action,
                                                                uint32_t other)
{
    static struct sock_filter insns[FILTER_CALLS_MAX + 3];
    unsigned short count = 0, n = 0;

    while (calls[n] != -1)
        n++;
    insns[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                  offsetof(struct seccomp_data, nr));
    for (unsigned short i = 0; i < n; i++)
        insns[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
                                                      n - i, 0);
    insns[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
    insns[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    return (struct sock_fprog){count, insns};
}

#define CALLS(...) ((const int[]){__VA_ARGS__, -1})

// Returns what seccomp(2) does.
__attribute__((unused)) static long filter_install(const int *calls, uint32_t action,
                                                   uint32_t other, unsigned flags)
{
    struct sock_fprog program = filter_program(calls, action, other);

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

__attribute__((unused)) static void no_new_privileges(void)
{
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}
