// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q --log-file=/dev/null
// MUNINN: --tool=memcheck -q --log-file=/dev/null --stress=signals
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null
// MUNINN: --tool=massif -q --recording=no --massif-out-file=/dev/null --stress=signals
//
// r11 after all that may change it, and then a call and its return, which the tools make with r11:
// instructions of every form, a callee, system calls, a signal handler, a thread.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

// Each takes a place of 64 bytes and a number, puts that into r11, and does what its name says. It
// returns what r11 is behind a call.
#define CASE(name, ...)                                                                            \
    uint64_t name(uint64_t *place, uint64_t number);                                               \
    __asm__(".text\n.type " #name ", @function\n" #name ":\n"                                      \
            "    push %rbx\n    mov %rsi, %r11\n    mov %rdi, %rbx\n"                              \
            "    call only_returns\n    " __VA_ARGS__ "\n    call only_returns\n"                  \
            "    mov %r11, %rax\n    pop %rbx\n    ret\n")

__asm__(".text\n"
        "only_returns: ret\n"
        "calls: call only_returns\n    lea 9(%r11), %r11\n    call only_returns\n    ret\n"
        "swaps: xchg %r11, (%rbx)\n    ret\n");

#define CASES(DO)                                                                                  \
    DO(nothing, "nop")                                                                             \
    DO(moved, "mov $0x123456789abc, %r11")                                                         \
    DO(moved_half, "mov $-2, %r11d")                                                               \
    DO(moved_word, "mov $-2, %r11w")                                                               \
    DO(moved_byte, "mov $-2, %r11b")                                                               \
    DO(loaded, "mov (%rbx), %r11")                                                                 \
    DO(loaded_zero, "movzbl 1(%rbx), %r11d")                                                       \
    DO(loaded_sign, "movsbq 7(%rbx), %r11")                                                        \
    DO(of_thread, "mov %fs:0, %r11\n    sub %fs:0, %r11\n    add $3, %r11")                       \
    DO(of_rip, "lea moved(%rip), %r11\n    lea moved_half(%rip), %rax\n    sub %rax, %r11")        \
    DO(added, "add (%rbx), %r11")                                                                  \
    DO(added_to, "lea (%r11, %r11, 4), %r11")                                                      \
    DO(shifted, "shl $5, %r11\n    ror $3, %r11")                                                  \
    DO(multiplied, "imul $77, %r11, %r11")                                                         \
    DO(negated, "not %r11\n    neg %r11")                                                          \
    DO(counted, "incq %r11\n    dec %r11w")                                                        \
    DO(swapped_bytes, "bswap %r11")                                                                \
    DO(scanned, "bsf (%rbx), %r11")                                                                \
    DO(is_set, "test %rbx, %rbx\n    setnz %r11b")                                                 \
    DO(if_zero, "xor %eax, %eax\n    cmovz (%rbx), %r11")                                          \
    DO(if_not_zero, "xor %eax, %eax\n    cmovnz (%rbx), %r11d")                                    \
    DO(popped, "pushq (%rbx)\n    pop %r11")                                                       \
    DO(exchanged, "mov (%rbx), %rax\n    xchg %rax, %r11")                                         \
    DO(exchanged_rax, "mov 8(%rbx), %rax\n    xchg %r11, %rax")                                    \
    DO(exchanged_memory, "lock xadd %r11, (%rbx)")                                                 \
    DO(compared, "mov %r11, %rax\n    mov 8(%rbx), %rcx\n    cmpxchg %rcx, %r11")                  \
    DO(of_vector, "movq (%rbx), %xmm3\n    movq %xmm3, %r11")                                      \
    DO(of_element, "movdqu (%rbx), %xmm3\n    pextrw $2, %xmm3, %r11d")                            \
    DO(of_signs, "movdqu (%rbx), %xmm3\n    pmovmskb %xmm3, %r11d")                                \
    DO(of_real, "mov $5, %eax\n    cvtsi2sd %eax, %xmm3\n    cvttsd2si %xmm3, %r11")               \
    DO(carried, "stc\n    adc $0, %r11\n    clc\n    sbb $2, %r11")                                \
    DO(of_callee, "call calls")                                                                    \
    DO(of_swap, "call swaps\n    call swaps\n    call swaps")                                      \
    DO(of_loop, "mov $200, %eax\n1: call calls\n    dec %eax\n    jnz 1b")                         \
    DO(of_jump, "lea 2f(%rip), %r11\n    jmp *%r11\n    ud2\n2: mov 16(%rbx), %r11")               \
    DO(of_call, "lea calls(%rip), %rax\n    call *%rax")                                           \
    DO(of_trap, "ud2")                                                                             \
    DO(of_system, "mov $39, %eax\n    syscall\n    and $2, %r11d")

#define DEFINE(name, ...) CASE(name, __VA_ARGS__);
CASES(DEFINE)

// AVX2's, where they are.
#define CASES_OF_BMI(DO)                                                                           \
    DO(mulx_low, "mov %r11, %rdx\n    mulx (%rbx), %r11, %rax")                                    \
    DO(mulx_high, "mov %r11, %rdx\n    mulx (%rbx), %rax, %r11")                                   \
    DO(andn, "mov (%rbx), %rax\n    andn %rax, %r11, %r11")                                        \
    DO(shlx, "mov $9, %eax\n    shlx %rax, (%rbx), %r11")                                          \
    DO(rorx, "rorx $7, (%rbx), %r11")                                                              \
    DO(blsr, "blsr (%rbx), %r11")                                                                  \
    DO(pext, "mov (%rbx), %rax\n    pext 8(%rbx), %rax, %r11")                                     \
    DO(wide_signs, "vmovdqu (%rbx), %ymm3\n    vpmovmskb %ymm3, %r11d\n    vzeroupper")
CASES_OF_BMI(DEFINE)

static void on_trap(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    registers[REG_R11] = registers[REG_R11] * 3 + 1;
    registers[REG_RIP] += 2;
}

static const struct {
    const char *name;
    uint64_t (*fn)(uint64_t *place, uint64_t number);
    int is_bmi;
} cases[] = {
#define ENTRY(name, ...) {#name, name, 0},
#define ENTRY_BMI(name, ...) {#name, name, 1},
    CASES(ENTRY) CASES_OF_BMI(ENTRY_BMI)};

static void run_all(uint64_t number, int prints)
{
    int has_bmi = __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx2");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t place[8] = {0x8070605040302010, 0x7fdf3f1f0f070301, 3, 4, 5, 6, 7, 8};
        uint64_t result = 0;
        if (cases[i].is_bmi && !has_bmi)
            continue;
        for (int again = 0; again < 3; again++)
            result = result * 31 + cases[i].fn(place, number);
        if (prints)
            printf("%s %llx\n", cases[i].name, (unsigned long long)result);
    }
}

static void *run_thread(void *arg)
{
    run_all((uint64_t)(uintptr_t)arg, 0);
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    sigaction(SIGILL, &action, NULL);
    run_all(0x1122334455667788, 1);
    pthread_create(&thread, NULL, run_thread, (void *)99);
    run_all(7, 1); // the other thread has its own
    pthread_join(thread, NULL);
    run_all(0xfedcba9876543210, 1);
    return 0;
}
