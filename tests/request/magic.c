// SPDX-License-Identifier: MIT
//
// The magic sequence, encoded by hand as runtimes do that cannot include a C header: reached in
// every way code can be reached, whole and in parts, in memory made at run time. The argument is
// the depth it expects: 0 natively, 1 under muninn.
#include <sys/mman.h>

#include "guest.h"

#define PREAMBLE "rolq $3, %rdi; rolq $13, %rdi; rolq $61, %rdi; rolq $51, %rdi\n"
enum { SEQUENCE = 19, PAGE = 4096 };

static const unsigned char sequence[SEQUENCE] = {
    0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1,
    0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb,
};

typedef uint64_t Asked(uint64_t otherwise, const uint64_t request[6], uint64_t spare);

// u64 f(otherwise, request, spare): rax = request, rdx = otherwise; the result in rax.
// `jumped` comes to the sequence by a jump; `partial` jumps behind the first rotation, so that
// there is no request and rdi is turned by 125 bits; `lone` has the preamble only; `other` goes
// on with an exchange of no meaning; `apart` has a nop before the exchange.
__asm__(".text\n"
        "plain: mov %rsi, %rax; mov %rdi, %rdx\n" PREAMBLE "xchgq %rbx, %rbx; mov %rdx, %rax; ret\n"
        "jumped: mov %rsi, %rax; mov %rdi, %rdx; jmp 1f; ud2; 1:\n" PREAMBLE
        "xchgq %rbx, %rbx; mov %rdx, %rax; ret\n"
        "branched: mov %rsi, %rax; mov %rdi, %rdx; cmp %rdi, %rdi; je 1f; ud2; 1:\n" PREAMBLE
        "xchgq %rbx, %rbx; mov %rdx, %rax; ret\n"
        "indirect: mov %rsi, %rax; mov %rdi, %rdx; lea 1f(%rip), %rcx; jmp *%rcx; ud2; 1:\n" PREAMBLE
        "xchgq %rbx, %rbx; mov %rdx, %rax; ret\n"
        "partial: mov %rsi, %rax; mov %rdi, %rdx; jmp 1f; rolq $3, %rdi; 1: rolq $13, %rdi;"
        "  rolq $61, %rdi; rolq $51, %rdi; xchgq %rbx, %rbx; mov %rdi, %rax; ret\n"
        "lone: mov %rsi, %rax; mov %rdi, %rdx\n" PREAMBLE "mov %rdi, %rax; ret\n"
        "other: mov %rsi, %rax; mov %rdi, %rdx\n" PREAMBLE "xchgq %rsi, %rsi; mov %rdx, %rax; ret\n"
        "apart: mov %rsi, %rax; mov %rdi, %rdx\n" PREAMBLE "nop; xchgq %rbx, %rbx;"
        "  mov %rdx, %rax; ret\n"
        "original: mov $77, %eax\n" PREAMBLE "xchgq %rcx, %rcx; ret\n"
        "inject: mov %rdi, %rax\n" PREAMBLE "xchgq %rdi, %rdi; ret\n");
Asked plain, jumped, branched, indirect, partial, lone, other, apart, original, inject;

static uint64_t depth;
static const uint64_t running[6] = {0x1001};

static void every_way(void)
{
    for (int i = 0; i < 200; i++) {
        CHECK(plain(42, running, 0) == (depth ? depth : 42));
        CHECK(jumped(42, running, 0) == (depth ? depth : 42));
        CHECK(branched(42, running, 0) == (depth ? depth : 42));
        CHECK(indirect(42, running, 0) == (depth ? depth : 42));
        CHECK(partial(42, running, 0) == ((42ull >> 3) | (42ull << 61)));
        CHECK(lone(42, running, 0) == 42);
        CHECK(other(42, running, 0) == 42);
        CHECK(apart(42, running, 0) == 42);
        CHECK(inject(42, running, 0) == 42);
    }
    CHECK(original(0, running, 0) == (depth ? 0 : 77));
}

// call-noredir: a call of rax with rdi as it is. Natively nothing calls, and rax stays.
static uint64_t twice(uint64_t x)
{
    return 2 * x;
}

static void calls(void)
{
    for (int i = 0; i < 200; i++) {
        uint64_t rax = (uint64_t)twice, rdi = 21;
        __asm__ volatile("mov %%rsp, %%r12; sub $128, %%rsp; and $-16, %%rsp\n"
                         "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n"
                         "xchgq %%rdx, %%rdx; mov %%r12, %%rsp"
                         : "+a"(rax), "+D"(rdi)
                         :
                         : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
        CHECK(rax == (depth ? 42 : (uint64_t)twice));
    }
}

// What a request may not touch: all but rdx, as far as 19 bytes of code can see.
static void registers(void)
{
    uint64_t before[14], after[14];
    double in = 1.25, out = 0;
    for (int i = 0; i < 14; i++)
        before[i] = 0x1111111111111111ull * (unsigned)(i + 1);
    before[0] = (uint64_t)running;
    __asm__ volatile(
        "push %%rbp; push %%rbx; mov %[in], %%r15; mov %[out], %%r14; push %%r14\n"
        "movsd (%[din]), %%xmm7; mov 0(%%r15), %%rax; mov 8(%%r15), %%rcx; mov 16(%%r15), %%rdx\n"
        "mov 24(%%r15), %%rbx; mov 32(%%r15), %%rsi; mov 40(%%r15), %%rdi; mov 48(%%r15), %%r8\n"
        "mov 56(%%r15), %%r9; mov 64(%%r15), %%r10; mov 72(%%r15), %%r11; mov 80(%%r15), %%r12\n"
        "mov 88(%%r15), %%r13; mov 96(%%r15), %%r14; mov 104(%%r15), %%rbp\n"
        "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx\n"
        "pop %%r15; mov %%rax, 0(%%r15); mov %%rcx, 8(%%r15); mov %%rdx, 16(%%r15)\n"
        "mov %%rbx, 24(%%r15); mov %%rsi, 32(%%r15); mov %%rdi, 40(%%r15); mov %%r8, 48(%%r15)\n"
        "mov %%r9, 56(%%r15); mov %%r10, 64(%%r15); mov %%r11, 72(%%r15); mov %%r12, 80(%%r15)\n"
        "mov %%r13, 88(%%r15); mov %%r14, 96(%%r15); mov %%rbp, 104(%%r15); pop %%rbx; pop %%rbp\n"
        "movsd %%xmm7, %[dout]"
        : [dout] "=m"(out)
        : [in] "a"(before), [out] "c"(after), [din] "d"(&in)
        : "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm7", "cc", "memory");
    if (depth)
        before[2] = depth;
    CHECK(memcmp(before, after, sizeof before) == 0);
    CHECK(out == in);
}

// mov rax, rsi ; mov rdx, rdi ; the sequence ; mov rax, rdx ; ret
static size_t put_function(unsigned char *at)
{
    static const unsigned char head[] = {0x48, 0x89, 0xf0, 0x48, 0x89, 0xfa};
    static const unsigned char tail[] = {0x48, 0x89, 0xd0, 0xc3};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, sequence, SEQUENCE);
    memcpy(at + sizeof head + SEQUENCE, tail, sizeof tail);
    return sizeof head + SEQUENCE + sizeof tail;
}

// Across the border of two pages, which are two mappings, at every byte; then the marker is
// changed in place and back again.
static void made_at_run_time(void)
{
    unsigned char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    CHECK(mmap(code + PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == code + PAGE);
    for (int before = 0; before <= 6 + SEQUENCE; before++) {
        unsigned char *at = code + PAGE - before;
        put_function(at);
        CHECK(((Asked *)at)(7, running, 0) == (depth ? depth : 7));
    }
    put_function(code);
    for (int i = 0; i < 40; i++) {
        code[6 + 18] = 0xf6; // xchg rsi, rsi
        CHECK(((Asked *)code)(7, running, 0) == 7);
        code[6 + 18] = 0xdb;
        CHECK(((Asked *)code)(7, running, 0) == (depth ? depth : 7));
    }
    munmap(code, 2 * PAGE);
}

// At the end of executable memory the preamble is code like any other, and then comes a fault.
static void *volatile fault_address;
static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    fault_address = info->si_addr;
    _exit(!(info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR));
}

static void cut_off(void)
{
    unsigned char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int kept = 1; kept < SEQUENCE; kept += 5) {
        pid_t child = fork();
        if (child == 0) {
            struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
            sigaction(SIGSEGV, &action, NULL);
            memcpy(code + PAGE - kept, sequence, (size_t)kept);
            mprotect(code + PAGE, PAGE, PROT_NONE);
            ((Asked *)(code + PAGE - kept))(7, running, 0);
            _exit(9);
        }
        int status;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

// Arguments that nobody can read: the default.
static void hostile(void)
{
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page, PAGE);
    CHECK(plain(42, (const uint64_t *)page, 0) == 42);
    CHECK(plain(42, (const uint64_t *)0x8000000000000000, 0) == 42);
    CHECK(plain(42, NULL, 0) == 42);
    uint64_t unknown[6] = {0x58580000, 1, 2, 3, 4, 5};
    CHECK(plain(42, unknown, 0) == 42);
    CHECK(plain(43, unknown, 0) == 43);
    for (uint64_t number = 0x1001; number < 0x1a00; number++) {
        uint64_t wild[6] = {number, 0xdeadbeef000, ~0ull, 3, 0x7fffffffffff, 5};
        bool calls_client = number >= 0x1101 && number <= 0x1104;
        if (!calls_client)
            plain(42, wild, 0);
    }
    uint64_t huge[6] = {0xffffffff00001001, 1, 2, 3, 4, 5};
    CHECK(plain(42, huge, 0) == 42);
}

static volatile int alarms;
static void on_alarm(int sig)
{
    (void)sig;
    alarms++;
    CHECK(plain(5, running, 0) == (depth ? depth : 5));
}

static void steps(void);

int main(int argc, char **argv)
{
    (void)argv;
    depth = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    every_way();
    calls();
    registers();
    made_at_run_time();
    cut_off();
    hostile();
    steps();
    signal(SIGALRM, on_alarm);
    ualarm(500, 500);
    while (alarms < 20)
        CHECK(plain(42, running, 0) == (depth ? depth : 42));
    ualarm(0, 0);
    say("done\n");
}

// A client that steps itself sees the sequence as one instruction under the engine, as five
// natively; what comes behind it is stepped again.
static volatile int traps;
static void on_trap(int sig)
{
    (void)sig;
    traps++;
}

static void steps(void)
{
    signal(SIGTRAP, on_trap);
    uint64_t result = 3;
    __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq\n"
                     "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n"
                     "xchgq %%rbx, %%rbx; nop; pushfq; andl $~0x100, (%%rsp); popfq"
                     : "+d"(result)
                     : "a"(running)
                     : "cc", "memory");
    CHECK(result == (depth ? depth : 3));
    CHECK(traps == (depth ? 5 : 9));
}
