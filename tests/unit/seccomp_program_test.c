// SPDX-License-Identifier: MIT
//
// Programs of seccomp filters against the kernel: random ones must be valid here exactly when the
// kernel takes them, and say here what they say there. Each case runs in a child, for a filter
// cannot be taken back.
#include <errno.h>
#include <stddef.h>
#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/raw_syscall.h"
#include "engine/seccomp/program.h"
#include "unit.h"

static u64 random_state = 0x9e3779b97f4a7c15ull;

static u32 pick(u32 below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (u32)(random_state >> 11) % below;
}

// Mostly what seccomp knows, so that most programs get beyond the first instruction.
static const u16 likely_codes[] = {
    BPF_LD | BPF_W | BPF_ABS,     BPF_LD | BPF_IMM,            BPF_LDX | BPF_IMM,
    BPF_LD | BPF_MEM,             BPF_LDX | BPF_MEM,           BPF_ST,
    BPF_STX,                      BPF_LD | BPF_W | BPF_LEN,    BPF_LDX | BPF_W | BPF_LEN,
    BPF_MISC | BPF_TAX,           BPF_MISC | BPF_TXA,          BPF_ALU | BPF_ADD | BPF_K,
    BPF_ALU | BPF_ADD | BPF_X,    BPF_ALU | BPF_SUB | BPF_K,   BPF_ALU | BPF_SUB | BPF_X,
    BPF_ALU | BPF_MUL | BPF_K,    BPF_ALU | BPF_MUL | BPF_X,   BPF_ALU | BPF_DIV | BPF_K,
    BPF_ALU | BPF_DIV | BPF_X,    BPF_ALU | BPF_AND | BPF_K,   BPF_ALU | BPF_AND | BPF_X,
    BPF_ALU | BPF_OR | BPF_K,     BPF_ALU | BPF_OR | BPF_X,    BPF_ALU | BPF_XOR | BPF_K,
    BPF_ALU | BPF_XOR | BPF_X,    BPF_ALU | BPF_LSH | BPF_K,   BPF_ALU | BPF_LSH | BPF_X,
    BPF_ALU | BPF_RSH | BPF_K,    BPF_ALU | BPF_RSH | BPF_X,   BPF_ALU | BPF_NEG,
    BPF_JMP | BPF_JA,             BPF_JMP | BPF_JEQ | BPF_K,   BPF_JMP | BPF_JEQ | BPF_X,
    BPF_JMP | BPF_JGT | BPF_K,    BPF_JMP | BPF_JGT | BPF_X,   BPF_JMP | BPF_JGE | BPF_K,
    BPF_JMP | BPF_JGE | BPF_X,    BPF_JMP | BPF_JSET | BPF_K,  BPF_JMP | BPF_JSET | BPF_X,
};

static u32 likely_operand(u16 code)
{
    switch (pick(8)) {
    case 0: return pick(3);
    case 1: return pick(17);
    case 2: return 4 * pick(17);
    case 3: return 0x80000000u + pick(100);
    case 4: return ~0u - pick(3);
    default: return code == (BPF_LD | BPF_W | BPF_ABS) ? 4 * pick(16) : pick(16);
    }
}

static struct sock_filter random_insn(u32 left, bool may_be_odd)
{
    u16 code = likely_codes[pick(ARRAY_LEN(likely_codes))];

    if (may_be_odd && pick(60) == 0)
        code = (u16)pick(pick(2) ? 256 : 65536);
    u32 reach = left ? left : 1;
    struct sock_filter insn = { code, (u8)pick(reach), (u8)pick(reach), likely_operand(code) };
    if (code == (BPF_JMP | BPF_JA))
        insn.k = pick(reach);
    if (may_be_odd && pick(60) == 0)
        insn.jt = (u8)(reach + pick(3));
    return insn;
}

static bool install(const struct sock_filter *insns, u32 count)
{
    const struct sock_fprog program = { (u16)count, (struct sock_filter *)insns };

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return raw_syscall3(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (u64)&program) == 0;
}

// All that a child says, it says by its exit status, or by dying of a filter that it could install.
static int status_of_child(int (*body)(const struct sock_filter *, u32),
                           const struct sock_filter *insns, u32 count)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(body(insns, count));
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// ------------------------------------------------------------------- validity

// What follows the jump is never reached, so that any program can be tried without being run.
static int kernel_takes_it(const struct sock_filter *insns, u32 count)
{
    struct sock_filter whole[64] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffff, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    memcpy(whole + 3, insns, count * sizeof(insns[0]));
    return install(whole, count + 3);
}

TEST(validity_is_the_kernels)
{
    u32 accepted = 0;

    for (int i = 0; i < 3000; i++) {
        struct sock_filter insns[32];
        u32 count = 1 + pick(12);
        for (u32 k = 0; k < count; k++)
            insns[k] = random_insn(count - k - 1, true);
        if (pick(10))
            insns[count - 1] = (struct sock_filter)BPF_STMT(BPF_RET | (pick(2) ? BPF_K : BPF_A), 0);
        bool ours = program_is_valid(insns, count);
        int theirs = status_of_child(kernel_takes_it, insns, count);
        if (ours != theirs)
            unit_fail(__FILE__, __LINE__, "program %d of %u instructions: here %d, kernel %d", i,
                      count, ours, theirs);
        accepted += ours;
    }
    CHECK(accepted > 300 && accepted < 2900);
}

TEST(no_program_is_too_short_or_too_long)
{
    static struct sock_filter insns[PROGRAM_MAX + 1];

    for (u32 i = 0; i <= PROGRAM_MAX; i++)
        insns[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    CHECK(!program_is_valid(insns, 0));
    CHECK(program_is_valid(insns, PROGRAM_MAX));
    CHECK(!program_is_valid(insns, PROGRAM_MAX + 1));
}

// --------------------------------------------------------------------- results

// Writes a program that judges getpgid(2) by random computation and ends in an error number.
static u32 random_computation(struct sock_filter *insns)
{
    u32 count = 3, body = 1 + pick(20);

    insns[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    insns[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 1, 0);
    insns[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (u32 word = 0; word < 16; word++)
        insns[count++] = (struct sock_filter)BPF_STMT(BPF_ST, word);
    for (u32 k = 0; k < body; k++) {
        do
            insns[count] = random_insn(body - k, false);
        while ((insns[count].code == (BPF_LD | BPF_W | BPF_ABS) && insns[count].k / 8 == 1) ||
               insns[count].code == (BPF_ALU | BPF_DIV | BPF_X)); // by zero it kills
        count++;
    }
    insns[count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x3ff);
    insns[count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO);
    insns[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
    return count;
}

static int results_agree(const struct sock_filter *insns, u32 count)
{
    static const u64 values[] = { 0, 1, 7, 0x1234567890abcdef, ~0ull, 0x80000000, 0xffffffff00000001 };

    if (!install(insns, count))
        return 2;
    for (u32 i = 0; i < ARRAY_LEN(values); i++) {
        struct seccomp_data data = { .nr = SYS_getpgid, .arch = AUDIT_ARCH_X86_64 };
        for (u32 k = 0; k < 6; k++)
            data.args[k] = values[(i + 2 * k) % ARRAY_LEN(values)];
        i64 theirs = raw_syscall6(SYS_getpgid, data.args[0], data.args[1], data.args[2],
                                  data.args[3], data.args[4], data.args[5]);
        if (theirs != -(i64)(program_run(insns, &data) & SECCOMP_RET_DATA))
            return 1;
    }
    return 0;
}

TEST(results_are_the_kernels)
{
    u32 done = 0;

    while (done < 1500) {
        struct sock_filter insns[64];
        u32 count = random_computation(insns);
        if (!program_is_valid(insns, count))
            continue;
        int status = status_of_child(results_agree, insns, count);
        if (status != 0)
            unit_fail(__FILE__, __LINE__, "program %u of %u instructions: %d", done, count, status);
        done++;
    }
}

TEST(division_by_zero_ends_the_program)
{
    const struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_IMM, 7),
        BPF_STMT(BPF_LDX | BPF_IMM, 0),
        BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct seccomp_data data = { 0 };

    CHECK(program_is_valid(insns, 4));
    CHECK(program_run(insns, &data) == SECCOMP_RET_KILL_THREAD);
}
