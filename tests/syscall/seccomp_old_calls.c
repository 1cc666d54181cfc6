// SPDX-License-Identifier: MIT
// BUILD: -O1
//
// A sandbox that allows mprotect but kills whoever makes the younger pkey_mprotect: protections
// change, and code that is rewritten in place is noticed.
#include "smc.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static bool forbid(int nr)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(void)
{
    uint8_t *code = map_pages(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    CHECK(forbid(SYS_pkey_mprotect));
    for (int i = 1; i <= 3; i++) {
        put_return(code, i);
        say("code %d\n", call_code(code));
    }
    SHOW(mprotect(code, PAGE, PROT_READ));
    SHOW(mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
    put_return(code, 4);
    say("code %d\n", call_code(code));
    return 0;
}
