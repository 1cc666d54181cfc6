// SPDX-License-Identifier: MIT
// BUILD: -O2 -pthread -mfsgsbase -fno-stack-protector
// STRESS: tiny-blocks
// MUNINN: --tool=memcheck -q --log-file=/dev/null
// MUNINN: --tool=memcheck -q --log-file=/dev/null --stress=signals
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=tiny-cache
//
// Words through fs of a thread that is alone: the same code with one base after another, before
// and after there are other threads, in children, and where such a word is not there.
#include "guest.h"
#include <asm/prctl.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { AREAS = 3, WORDS = 64 };
static uint64_t areas[AREAS][WORDS];
static unsigned long own_fs;

// No function that has words of its own through fs may be called while the base is another one.
static inline __attribute__((always_inline)) long set_fs(unsigned long base)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(base)
                     : "rcx", "r11", "memory");
    return result;
}

// Loads, stores and others with and without base and index.
__attribute__((noinline)) static uint64_t use_words(uint64_t at)
{
    uint64_t sum, more = 2;
    __asm__ volatile("mov %%fs:8, %0\n\t"
                     "mov %%fs:(%1), %%rcx\n\t add %%rcx, %0\n\t"
                     "add %%fs:16(%1,%2,8), %0\n\t"
                     "mov %1, %%rdx\n\t mov %%fs:(%%rdx), %%rdx\n\t xor %%rdx, %0\n\t"
                     "mov %1, %%r9\n\t movzbl %%fs:4(%%r9), %%ecx\n\t add %%rcx, %0\n\t"
                     "mov %1, %%r13\n\t addq $3, %%fs:(%%r13)\n\t"
                     "incl %%fs:0x40(,%2,4)\n\t"
                     "movups %%fs:(%1,%2), %%xmm3\n\t movq %%xmm3, %%rcx\n\t add %%rcx, %0\n\t"
                     "vpcmpeqb %%xmm4, %%xmm4, %%xmm4\n\t"
                     "vpaddb %%fs:8(%%r9), %%xmm4, %%xmm5\n\t vmovq %%xmm5, %%rcx\n\t"
                     "add %%rcx, %0\n\t cmpq $100, %%fs:8\n\t adc $0, %0\n\t"
                     "mov %0, %%fs:0x70\n\t"
                     : "=&r"(sum), "+&r"(at), "+&r"(more) : : "rcx", "rdx", "r9", "r13", "xmm3",
                       "xmm4", "xmm5", "memory", "cc");
    return sum;
}

__attribute__((noinline)) static uint64_t with_base(unsigned long base)
{
    set_fs(base);
    uint64_t sum = use_words(24);
    set_fs(own_fs);
    return sum;
}

static void fill(void)
{
    for (int i = 0; i < AREAS; i++) {
        for (int j = 0; j < WORDS; j++)
            areas[i][j] = (uint64_t)(i + 1) * 1000 + (uint64_t)j * j;
    }
}

static void by_turns(const char *when, int rounds)
{
    uint64_t sum = 0;
    fill();
    for (int i = 0; i < rounds; i++)
        sum = sum * 31 + with_base((unsigned long)areas[i % AREAS]);
    say("%s: %lx, errno %d\n", when, (unsigned long)sum, errno);
}

static void *thread_body(void *arg)
{
    uint64_t *area = arg, sum = 0;
    unsigned long base;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
    for (int i = 0; i < 2000; i++) {
        set_fs((unsigned long)area);
        sum = sum * 31 + use_words(24);
        set_fs(base);
    }
    area[WORDS - 1] = sum;
    return NULL;
}

static void with_threads(void)
{
    pthread_t threads[2];
    fill();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, thread_body, areas[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    say("threads: %lx %lx\n", (unsigned long)areas[0][WORDS - 1],
        (unsigned long)areas[1][WORDS - 1]);
}

static void by_instruction(void)
{
    uint64_t sum = 0;
    fill();
    for (int i = 0; i < 30; i++) {
        _writefsbase_u64((unsigned long)areas[i % AREAS]);
        sum = sum * 31 + use_words(24);
        _writefsbase_u64(own_fs);
    }
    say("wrfsbase: %lx\n", (unsigned long)sum);
}

// The child of a vfork has another base, and its parent goes on with its own.
static void after_vfork(void)
{
    fill();
    uint64_t before = with_base((unsigned long)areas[0]);
    long pid;
    __asm__ volatile("mov $58, %%eax\n\t syscall\n\t test %%rax, %%rax\n\t jne 1f\n\t"
                     "mov $158, %%eax\n\t mov $0x1002, %%edi\n\t mov %1, %%rsi\n\t syscall\n\t"
                     "mov $24, %%edi\n\t and $-16, %%rsp\n\t call %P2\n\t"
                     "mov %%eax, %%edi\n\t and $63, %%edi\n\t mov $60, %%eax\n\t syscall\n\t"
                     "1:" : "=&a"(pid) : "r"(areas[1]), "i"(use_words)
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r13", "xmm3", "xmm4",
                       "xmm5", "memory", "cc");
    int status = 0;
    waitpid((pid_t)pid, &status, 0);
    uint64_t after = with_base((unsigned long)areas[0]);
    say("vfork: %lx, child %d, %lx\n", (unsigned long)before, WEXITSTATUS(status),
        (unsigned long)after);
}

static __thread long own = 3;

__attribute__((noinline)) static void count_own(void)
{
    own++;
}

static void *count_body(void *arg)
{
    for (int i = 0; i < 1000; i++)
        count_own();
    *(long *)arg = own;
    return NULL;
}

// A child that sets the base that it has anyway; then a thread with its own.
static void same_base_then_threads(void)
{
    long pid, counted = 0;
    pthread_t thread;
    count_own();
    __asm__ volatile("mov $58, %%eax\n\t syscall\n\t test %%rax, %%rax\n\t jne 1f\n\t"
                     "mov $158, %%eax\n\t mov $0x1002, %%edi\n\t mov %1, %%rsi\n\t syscall\n\t"
                     "xor %%edi, %%edi\n\t mov $60, %%eax\n\t syscall\n\t"
                     "1:" : "=&a"(pid) : "r"(own_fs)
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    waitpid((pid_t)pid, NULL, 0);
    pthread_create(&thread, NULL, count_body, &counted);
    pthread_join(thread, NULL);
    count_own();
    say("own %ld, the thread's %ld\n", own, counted);
}

static volatile unsigned long fault_at, fault_rbx, fault_rcx;

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)number;
    set_fs(own_fs);
    fault_at = (unsigned long)info->si_addr;
    fault_rbx = (unsigned long)u->uc_mcontext.gregs[REG_RBX];
    fault_rcx = (unsigned long)u->uc_mcontext.gregs[REG_RCX];
    u->uc_mcontext.gregs[REG_RIP] = u->uc_mcontext.gregs[REG_R8];
}

static void at_a_missing_word(void)
{
    unsigned long page = (unsigned long)mmap(NULL, 8192, PROT_NONE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 6; i++) {
        set_fs(page);
        if (i % 2)
            __asm__ volatile("lea 1f(%%rip), %%r8\n\t mov $64, %%ebx\n\t mov $77, %%ecx\n\t"
                             "mov %%fs:8(%%rbx), %%rcx\n\t 1:"
                             : : : "rbx", "rcx", "r8", "memory");
        else
            __asm__ volatile("lea 1f(%%rip), %%r8\n\t mov $40, %%ebx\n\t mov $78, %%ecx\n\t"
                             "add %%ecx, %%fs:(%%rbx)\n\t 1:"
                             : : : "rbx", "rcx", "r8", "memory", "cc");
        say("fault at +%lu, rbx %lu, rcx %lu\n", fault_at - page, fault_rbx, fault_rcx);
    }
}

static void in_child(void (*fn)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        fn();
        exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    say("child: %x\n", status);
}

static void few_turns_then_threads(void)
{
    by_turns("few", 4);
    with_threads();
    by_turns("after threads", 12);
}

static void many_turns(void)
{
    by_turns("many", 60);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    syscall(SYS_arch_prctl, ARCH_GET_FS, &own_fs);
    by_turns("first", 2);
    in_child(few_turns_then_threads);
    in_child(many_turns);
    in_child(after_vfork);
    in_child(same_base_then_threads);
    in_child(at_a_missing_word);
    if (getauxval(AT_HWCAP2) & 2)
        in_child(by_instruction);
    by_turns("last", 3);
    return 0;
}
