// SPDX-License-Identifier: MIT
// BUILD: -O1 -static -no-pie -fno-pie
// STRESS: tiny-blocks
// MUNINN: --tool=none
// MUNINN: --tool=count
// STDERR: any
//
// A program that steps itself with the trap flag, by popf and by sigreturn, gets one trap per
// instruction, where the hardware gives one. Small sequences are shown instruction by instruction;
// of some thousand instructions of libc, the number and a digest.
#include "guest.h"
#include <sys/syscall.h>
#include <ucontext.h>

#define TF 0x100

static struct {
    uint64_t rip, flags;
} steps[65536];
static volatile unsigned count;
static volatile bool by_sigreturn;

static void on_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (by_sigreturn) {
        by_sigreturn = false;
        gregs[REG_EFL] |= TF;
        return;
    }
    if (count < sizeof steps / sizeof *steps) {
        steps[count].rip = gregs[REG_RIP];
        steps[count].flags = gregs[REG_EFL];
        count++;
    }
    if (info->si_code != TRAP_TRACE || (uint64_t)info->si_addr != (uint64_t)gregs[REG_RIP])
        say("FAIL odd trap: code %d, address %+ld\n", info->si_code,
            (long)info->si_addr - (long)gregs[REG_RIP]);
}

#define ON "pushf; orl $0x100, (%rsp); popf\n"
#define OFF "pushf; andl $~0x100, (%rsp); popf\n"

#define SEQUENCES(X) \
    X(plain, "nop; mov $1, %eax; inc %eax") \
    X(jumps, "jmp 1f; 2: jmp 3f; 1: jmp 2b; 3: nop; jmp 4f; 4: jmp 5f; nop; 5: nop") \
    X(conditions, "xor %eax, %eax; jz 1f; nop; 1: jnz 1b; nop; inc %eax; jz 1b; nop") \
    X(loops, "mov $3, %ecx; 1: nop; loop 1b; jrcxz 2f; nop; 2: nop") \
    X(calls, "call 1f; nop; jmp 2f; 1: nop; ret; 2: lea 1b(%rip), %rax; call *%rax; nop") \
    X(indirect, "lea 1f(%rip), %rax; jmp *%rax; nop; 1: push $2f; ret; nop; 2: nop") \
    X(drops, "lea 1f(%rip), %rax; push $0; push $0; push %rax; ret $16; 1: nop") \
    X(strings, "lea -64(%rsp), %rdi; mov $5, %ecx; mov $7, %eax; rep stosb; nop; " \
               "lea -64(%rsp), %rsi; lea -32(%rsp), %rdi; mov $3, %ecx; rep movsb; nop; " \
               "mov $0, %ecx; rep stosb; nop; lea -64(%rsp), %rdi; mov $9, %ecx; repe scasb; nop") \
    X(flags, "pushf; pop %rax; pushf; popf; stc; pushfw; popfw; nop") \
    X(stack_segment, "mov %ss, %eax; mov %eax, %ss; nop; nop; push $0x2b; .byte 0x8e, 0x14, 0x24; " \
                     "pop %rax; nop") \
    X(syscalls, "mov $39, %eax; syscall; nop; mov $39, %eax; syscall; mov $102, %eax; syscall; nop") \
    X(odd, "cpuid; nop; rdtsc; xgetbv_: mov $0, %ecx; xgetbv; pause; mfence; nop") \
    X(segments, "mov %fs:0, %rax; mov %fs:16, %rcx; rdfsbase %rax; nop") \
    X(relative, "lea steps(%rip), %rax; mov steps(%rip), %rcx; cmpq $0, steps(%rip); nop") \
    X(far_return, "push $0x33; push $1f; lretq; nop; 1: nop") \
    X(interrupt_return, "mov %rsp, %rax; push $0x2b; push %rax; pushf; push $0x33; push $1f; " \
                        "iretq; nop; 1: nop") \
    X(vectors, "vpxor %xmm0, %xmm0, %xmm0; vmovdqu %xmm0, -64(%rsp); vzeroupper; fld1; fstp %st; nop")

#define EMIT(name, code) \
    void step_##name(void); \
    __asm__(".text\nstep_" #name ":\n    push %rbx; push %rbp\n" ON code "\n" OFF \
            "    pop %rbp; pop %rbx; ret\n");
SEQUENCES(EMIT)

static const struct {
    const char *name;
    void (*run)(void);
} sequences[] = {
#define ROW(name, code) {#name, step_##name},
    SEQUENCES(ROW)
};

static void show_sequences(void)
{
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        count = 0;
        sequences[i].run();
        say("%s:", sequences[i].name);
        for (unsigned k = 0; k < count; k++)
            say(" %lu%s", steps[k].rip - (uint64_t)sequences[i].run,
                steps[k].flags & TF ? "" : "-");
        say("\n");
    }
}

static void show_digest(const char *what)
{
    uint64_t digest = 14695981039346656037u;
    for (unsigned k = 0; k < count; k++)
        digest = (digest ^ steps[k].rip) * 1099511628211u;
    say("%s: %u steps, %016lx\n", what, count, digest);
    count = 0;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void set_trap_flag(void)
{
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushf; orl $0x100, (%%rsp); popf; "
                     "lea 128(%%rsp), %%rsp" : : : "memory", "cc");
}

static void clear_trap_flag(void)
{
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushf; andl $~0x100, (%%rsp); popf; "
                     "lea 128(%%rsp), %%rsp" : : : "memory", "cc");
}

static void step_libc(void)
{
    char text[128];
    int numbers[8];
    for (int i = 0; i < 8; i++)
        numbers[i] = i * 7919 % 101;
    count = 0;
    set_trap_flag();
    qsort(numbers, 8, sizeof *numbers, compare);
    clear_trap_flag();
    show_digest("qsort");
    set_trap_flag();
    snprintf(text, sizeof text, "%d %s %08lx", 42, "text", 0xabcul);
    clear_trap_flag();
    show_digest("snprintf");
    say("%s\n", text);
    set_trap_flag();
    double value = strtod("3.25e2", NULL);
    clear_trap_flag();
    show_digest("strtod");
    say("%g\n", value);
    set_trap_flag();
    long pid = syscall(SYS_getpid);
    size_t length = strlen(text) + (memchr(text, 't', 20) != NULL);
    clear_trap_flag();
    show_digest("syscall and strings");
    say("%d %zu\n", pid == getpid(), length);
}

int main(void)
{
    on_signal(SIGTRAP, on_trap, 0);
    show_sequences();
    step_libc();
    by_sigreturn = true;
    count = 0;
    __asm__ volatile("int3; nop; jmp 1f; 1: nop; call 2f; jmp 3f; 2: ret; 3: nop" : : : "memory");
    clear_trap_flag();
    show_digest("by sigreturn");
    return 0;
}
