// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread -mfsgsbase
// STRESS: tiny-blocks
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=signals
//
// The client's %fs and %gs are its own: arch_prctl, rdfsbase/wrgsbase, gs-relative operands in many
// forms, another fs base for a while, a base per thread, and both kept across system calls.
#include "guest.h"
#include <asm/prctl.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

static uint64_t area[64], other_area[64];

static uint64_t gs_forms(void)
{
    uint64_t a, b, c;
    __asm__ volatile("mov %%gs:8, %0\n\t"
                     "mov $16, %1\n\t"
                     "mov %%gs:(%1), %1\n\t"
                     "mov $3, %2\n\t"
                     "addq $5, %%gs:(,%2,8)\n\t"
                     "lock incq %%gs:24\n\t"
                     "mov %%gs:(,%2,8), %2\n\t"
                     "xchg %2, %%gs:32\n\t"
                     : "=&r"(a), "=&r"(b), "=&r"(c) : : "memory", "cc");
    return a * 1000000 + b * 1000 + c;
}

// Every register as base of a load and as its destination; and other instructions on them.
#define LOAD(to, base) "mov $8, %%" #base "\n\t mov %%gs:16(%%" #base "), %%" #to "\n\t" \
                       "add %%" #to ", %0\n\t rol $7, %0\n\t"
#define LOAD_32(to, to64, base) "mov $40, %%" #base "\n\t mov %%gs:-8(%%" #base "), %%" #to "\n\t" \
                                "add %%" #to64 ", %0\n\t rol $7, %0\n\t"
#define OTHERS(base) "mov $48, %%" #base "\n\t addq $3, %%gs:(%%" #base ")\n\t" \
                     "cmpq $9, %%gs:(%%" #base ")\n\t adc $0, %0\n\t" \
                     "movzwl %%gs:2(%%" #base "), %%ecx\n\t add %%rcx, %0\n\t" \
                     "mov %0, %%gs:64(%%" #base ")\n\t"

static uint64_t register_forms(void)
{
    uint64_t sum;
    __asm__ volatile("xor %%eax, %%eax\n\t"
                     LOAD(rcx, rdx) LOAD(rdx, rcx) LOAD(rbx, rsi) LOAD(rsi, rdi) LOAD(rdi, rbx)
                     LOAD(r8, r15) LOAD(r9, rcx) LOAD(rcx, r10) LOAD(r12, r13) LOAD(r13, r12)
                     LOAD(r14, r11) LOAD(r15, r14) LOAD(rdx, rdx) LOAD(r12, r12)
                     LOAD_32(ecx, rcx, rdx) LOAD_32(r9d, r9, r13) LOAD_32(r13d, r13, r12)
                     "push %%rbp\n\t" LOAD(rbp, rcx) LOAD(rcx, rbp) LOAD_32(ebp, rbp, r13)
                     LOAD(r13, rbp) OTHERS(rbp) "pop %%rbp\n\t"
                     OTHERS(rbx) OTHERS(rdx) OTHERS(rsi) OTHERS(r12) OTHERS(r13) OTHERS(r8)
                     // The X bit of the prefix means nothing without an index: it is no r10.
                     "mov $48, %%edx\n\t mov $1000, %%r10d\n\t"
                     ".byte 0x65, 0x4a, 0x03, 0x02\n\t" // add rax, gs:[rdx], X is set
                     : "=&a"(sum) : : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
                       "r11", "r12", "r13", "r14", "r15", "memory", "cc");
    return sum;
}

// Relative to rip and to gs at once: with small displacements, which other forms treat specially.
static void rip_relative(void)
{
    uint64_t a, b;
    __asm__ volatile("mov %%gs:1f(%%rip), %0\n\t"
                     "mov $7, %1\n\t"
                     "add %%gs:1f(%%rip), %1\n\t"
                     "jmp 2f\n"
                     "1:  .quad 0x1122334455667788, 0x99aabbccddeeff00\n"
                     "2:" : "=&r"(a), "=&r"(b) : : "cc");
    say("rip-relative: %lx %lx\n", (unsigned long)a, (unsigned long)b);
}

static void *thread_body(void *arg)
{
    unsigned long before;
    syscall(SYS_arch_prctl, ARCH_GET_GS, &before);
    syscall(SYS_arch_prctl, ARCH_SET_GS, arg);
    uint64_t total = 0, value;
    for (int i = 0; i < 20000; i++) {
        __asm__ volatile("mov %%gs:0, %0" : "=r"(value));
        total += value;
        if (i % 1000 == 0)
            sched_yield();
    }
    say("thread: gs was %s, total %lu\n", before ? "set" : "zero", (unsigned long)total);
    return NULL;
}

static void use_fsgsbase(void)
{
    if (!(getauxval(AT_HWCAP2) & 2)) {
        say("no fsgsbase\n");
        return;
    }
    unsigned long fs, self;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
    __asm__ volatile("mov %%fs:0, %0" : "=r"(self));
    say("rdfsbase %d, fs:0 %d\n", _readfsbase_u64() == fs, self == fs);
    _writegsbase_u64((uint64_t)other_area);
    say("rdgsbase %d\n", _readgsbase_u64() == (uint64_t)other_area);
    other_area[1] = 55;
    uint64_t value, moved;
    __asm__ volatile("mov %%gs:8, %0" : "=r"(value));
    other_area[0] = 4321;
    // Nothing here may touch thread-local storage while fs points elsewhere.
    __asm__ volatile("wrfsbase %2; mov %%fs:0, %0; mov %%fs:8, %1; add %1, %0; wrfsbase %3"
                     : "=&r"(moved), "=&r"(self) : "r"(other_area), "r"(fs));
    say("%lu %lu\n", (unsigned long)value, (unsigned long)moved);
}

int main(void)
{
    rip_relative(); // the base is 0 still
    for (int i = 0; i < 64; i++)
        area[i] = i;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    uint64_t first = gs_forms();
    unsigned long base;
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
    say("%lu %lu, base kept %d\n", (unsigned long)first, (unsigned long)area[4],
        base == (unsigned long)area);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        area[40 + i] = 7;
        pthread_create(&threads[i], NULL, thread_body, &area[40 + i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    say("again %lu\n", (unsigned long)gs_forms());
    say("registers %lx\n", (unsigned long)register_forms());
    use_fsgsbase();
    errno = 0;
    SHOW(syscall(SYS_arch_prctl, 0x9999, 0));
    SHOW(syscall(SYS_arch_prctl, ARCH_SET_GS, 1UL << 63));
    return 0;
}
