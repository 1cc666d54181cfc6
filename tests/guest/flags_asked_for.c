// SPDX-License-Identifier: MIT
// MUNINN: --tool=memcheck -q
// MUNINN: --tool=memcheck -q --stress=tiny-blocks
// MUNINN: --tool=memcheck -q --stress=signals
// MUNINN: --tool=massif -q --recording=no
// MUNINN: --tool=massif -q --recording=no --stress=tiny-blocks
//
// Functions whose flags nobody would take for a result by the look of them, as in code that is made
// at run time: they were looked at already, or came about by the way. But their callers ask for
// them. Each is far from the others, and was called before by somebody who did not ask.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 3000, APART = 0x10000 };

// Of one that says whether two numbers are equal: a caller that asks it, and one that does not.
typedef struct Function {
    unsigned long (*ask)(long a, long b);
    void (*call)(long a, long b);
} Function;

#define FUNCTION(name, code, call, asks)                                                           \
    extern const char is_##name[], ask_##name[], call_##name[];                                    \
    __asm__(".text\n    .p2align 16\n"                                                             \
            ".globl is_" #name ", ask_" #name ", call_" #name "\n"                                 \
            "is_" #name ": " code "\n"                                                             \
            "ask_" #name ": push %rbx\n    lea is_" #name "(%rip), %rax\n"                         \
            "    call " call "\n    " asks "\n    movzbl %al, %eax\n    pop %rbx\n    ret\n"       \
            "call_" #name ": push %rbx\n    call is_" #name "\n    xor %eax, %eax\n"               \
            "    pop %rbx\n    ret\n")

#define COMPARE "cmp %rsi, %rdi\n    je 1f\n    mov $3, %edx\n1:  ret"
#define SUBTRACT "mov %rdi, %rdx\n    sub %rsi, %rdx\n    ret"
FUNCTION(compared, COMPARE, "is_compared", "sete %al");
FUNCTION(subtracted, SUBTRACT, "is_subtracted", "sete %al");
FUNCTION(through_pointer, SUBTRACT, "*%rax", "sete %al");
FUNCTION(late, COMPARE, "is_late",
         "mov $7, %ecx\n    lea (%rcx, %rcx), %rdx\n    mov $0, %eax\n    jne 2f\n"
         "    mov $1, %eax\n2:");
__asm__(".text\n    .p2align 16\n");

// A copy, as if it was made here.
static Function make(const char *is, const char *ask, const char *call)
{
    char *code = mmap(NULL, 2 * APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code += -(unsigned long)code % APART;
    memcpy(code, is, APART);
    mprotect(code, APART, PROT_READ | PROT_EXEC);
    return (Function){(unsigned long (*)(long, long))(code + (ask - is)),
                      (void (*)(long, long))(code + (call - is))};
}

int main(void)
{
    const Function functions[] = {
        make(is_compared, ask_compared, call_compared),
        make(is_subtracted, ask_subtracted, call_subtracted),
        make(is_through_pointer, ask_through_pointer, call_through_pointer),
        make(is_late, ask_late, call_late),
    };
    enum { COUNT = sizeof(functions) / sizeof(functions[0]) };
    unsigned lost = 0;
    for (unsigned i = 0; i < COUNT * ROUNDS; i++) {
        const Function *f = &functions[i % COUNT];
        f->call(i, i);
        lost += f->ask(i, i) != 1;
        lost += f->ask(i, i + 1) != 0;
    }
    printf("%u lost\n", lost);
    return lost != 0;
}
