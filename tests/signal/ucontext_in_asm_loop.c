// SPDX-License-Identifier: MIT
// BUILD: -O1 -mavx2
// CPU: avx2
// STRESS: tiny-blocks
// STRESS: signals
//
// Asynchronous signals land in a tight loop whose every register is known. The handler must see the
// loop's true registers and a rip inside it, and the loop must get all of them back.
#include "guest.h"
#include <sys/time.h>
#include <ucontext.h>

extern char loop_start[], loop_end[];
static volatile sig_atomic_t hits, inside, wrong_registers, wrong_vectors;
int stop_flag;
uint64_t results[16];
static _Alignas(32) uint8_t vectors[8][32], vectors_after[8][32];

static void check_general(const greg_t *g)
{
    static const struct {
        int reg;
        uint64_t value;
    } known[] = {
        {REG_RAX, 0x1a}, {REG_RBX, 0x2b}, {REG_RDX, 0x4d}, {REG_RSI, 0x5e}, {REG_RDI, 0x6f},
        {REG_R8, 0x88},  {REG_R9, 0x99},  {REG_R10, 0xaa}, {REG_R11, 0xbb}, {REG_R12, 0xcc},
        {REG_R13, 0xdd}, {REG_R14, 0xee}, {REG_R15, 0xff}, {REG_RBP, 0x77},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        wrong_registers += (uint64_t)g[known[i].reg] != known[i].value;
}

static void handler(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    const mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
    const char *rip = (const char *)m->gregs[REG_RIP];
    hits++;
    if (rip >= loop_start && rip < loop_end) {
        inside++;
        check_general(m->gregs);
        for (int i = 0; i < 8; i++)
            wrong_vectors += memcmp(&m->fpregs->_xmm[i], vectors[i], 16) != 0;
    }
    __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0; vpxor %%ymm5, %%ymm5, %%ymm5"
                     : : : "xmm0", "xmm5");
    if (inside >= 200 || hits > 4000)
        stop_flag = 1;
}

static void run_loop(void)
{
    __asm__ volatile(
        "push %%rbp\n\t"
        "vmovdqa (%0), %%ymm0; vmovdqa 32(%0), %%ymm1; vmovdqa 64(%0), %%ymm2\n\t"
        "vmovdqa 96(%0), %%ymm3; vmovdqa 128(%0), %%ymm4; vmovdqa 160(%0), %%ymm5\n\t"
        "vmovdqa 192(%0), %%ymm6; vmovdqa 224(%0), %%ymm7\n\t"
        "mov $0x1a, %%eax; mov $0x2b, %%ebx; xor %%ecx, %%ecx; mov $0x4d, %%edx\n\t"
        "mov $0x5e, %%esi; mov $0x6f, %%edi; mov $0x88, %%r8d; mov $0x99, %%r9d\n\t"
        "mov $0xaa, %%r10d; mov $0xbb, %%r11d; mov $0xcc, %%r12d; mov $0xdd, %%r13d\n\t"
        "mov $0xee, %%r14d; mov $0xff, %%r15d; mov $0x77, %%ebp\n\t"
        ".globl loop_start, loop_end\n"
        "loop_start: inc %%rcx; lea (%%rcx,%%rcx,1), %%rcx; shr %%rcx\n\t"
        "cmpl $0, stop_flag(%%rip); je loop_start\n"
        "loop_end:\n\t"
        "mov %%rax, results+0(%%rip); mov %%rbx, results+8(%%rip)\n\t"
        "mov %%rdx, results+16(%%rip); mov %%rsi, results+24(%%rip)\n\t"
        "mov %%rdi, results+32(%%rip); mov %%r8, results+40(%%rip)\n\t"
        "mov %%r9, results+48(%%rip); mov %%r10, results+56(%%rip)\n\t"
        "mov %%r11, results+64(%%rip); mov %%r12, results+72(%%rip)\n\t"
        "mov %%r13, results+80(%%rip); mov %%r14, results+88(%%rip)\n\t"
        "mov %%r15, results+96(%%rip); mov %%rbp, results+104(%%rip)\n\t"
        "pop %%rbp\n\t"
        : : "r"(vectors)
        : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
          "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    __asm__ volatile("vmovdqa %%ymm0, (%0); vmovdqa %%ymm1, 32(%0); vmovdqa %%ymm5, 160(%0)"
                     : : "r"(vectors_after) : "memory");
}

int main(void)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 32; j++)
            vectors[i][j] = (uint8_t)(i * 32 + j + 3);
    on_signal(SIGALRM, handler, 0);
    struct itimerval interval = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &interval, NULL);
    run_loop();
    memset(&interval, 0, sizeof interval);
    setitimer(ITIMER_REAL, &interval, NULL);
    say("landed inside %d, wrong registers %d, vectors %d\n", inside >= 200, wrong_registers,
        wrong_vectors);
    for (int i = 0; i < 14; i++)
        say("%lx ", (unsigned long)results[i]);
    say("\nymm after: %d %d %d\n", memcmp(vectors[0], vectors_after[0], 32),
        memcmp(vectors[1], vectors_after[1], 32), memcmp(vectors[5], vectors_after[5], 32));
    return 0;
}
