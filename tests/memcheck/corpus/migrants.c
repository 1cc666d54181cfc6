// SPDX-License-Identifier: MIT
//
// Stacks side by side that go from thread to thread, as goroutines do: what waits on one is as it
// was after its upper neighbour, which another thread had left, was gone on with.
// BUILD -pthread
#include "corpus.h"

#include <pthread.h>
#include <sys/mman.h>
#include <valgrind/memcheck.h>

enum { EACH = 64 << 10, WORDS = 100 };

__asm__(".text\n.globl go_to\n.type go_to, @function\n"
        "go_to: pushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\tpushq %rbp\n\t"
        "call 1f\n\t"
        "popq %rbp\n\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tret\n"
        // As Go does it: below what waits stands the return address of what left it.
        "1: movq (%rsp), %rax\n\tleaq 8(%rsp), %rdx\n\tmovq %rdx, (%rdi)\n\tmovq %rsi, %rsp\n\tjmp *%rax\n"
        ".size go_to, . - go_to\n"
        "rise: addq $8192, %rsp\n\tret\n");
extern void go_to(void **save, void *to);
extern void rise(void) __asm__("rise");

static void *home_sp, *low_sp, *high_sp;
static u32 low_rounds, high_rounds;

// A stack on which nothing has run, with what go_to() pops. The function begins above where the
// stack is entered first: so it is with stacks that were made larger and moved.
static void *fresh_stack(u8 *low, void (*function)(void), bool rises)
{
    enum { REGISTERS = 6, RISE = 8192 };
    void **sp = (void **)(low + EACH - (rises ? RISE : 0) - 256);
    for (u32 i = 0; i < REGISTERS; i++)
        sp[i] = NULL;
    sp[REGISTERS] = (void *)(rises ? rise : function);
    if (rises)
        sp[REGISTERS + 1 + RISE / sizeof(void *)] = (void *)function;
    return sp;
}

static NOINLINE void fill(volatile u64 *words, u64 value)
{
    for (u32 i = 0; i < WORDS; i++)
        words[i] = value + i;
}

static NOINLINE void check_words(volatile u64 *words, u64 value)
{
    CHECK(VALGRIND_CHECK_MEM_IS_DEFINED(words, WORDS * sizeof(u64)) == 0);
    for (u32 i = 0; i < WORDS; i++)
        BRANCH(words[i] - value - i);
}

static void run_high(void)
{
    volatile u64 words[WORDS];
    fill(words, 1);
    for (;;) {
        go_to(&high_sp, home_sp);
        check_words(words, 1);
        high_rounds++;
    }
}

// Goes to its neighbour at once the second time.
static void run_low(void)
{
    volatile u64 words[WORDS];
    fill(words, 2);
    for (;;) {
        go_to(&low_sp, home_sp);
        check_words(words, 2);
        low_rounds++;
        go_to(&low_sp, high_sp);
        check_words(words, 2);
        low_rounds++;
    }
}

static void *run_thread(void *arena)
{
    low_sp = fresh_stack((u8 *)arena + 4 * EACH, run_low, true);
    go_to(&home_sp, low_sp);
    for (u32 i = 0; i < 10; i++) {
        go_to(&home_sp, high_sp); // what the other thread has left
        go_to(&home_sp, low_sp);  // and it goes to the upper one, which comes back here
        go_to(&home_sp, low_sp);
    }
    return NULL;
}

CASE(stacks_that_another_thread_has_left)
{
    pthread_t thread;
    u8 *arena = (u8 *)mmap(NULL, 8 * EACH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(arena != MAP_FAILED);
    low_rounds = high_rounds = 0;
    high_sp = fresh_stack(arena + 5 * EACH, run_high, false);
    go_to(&home_sp, high_sp);
    CHECK(pthread_create(&thread, NULL, run_thread, arena) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(low_rounds == 20 && high_rounds == 20);
    CHECK(munmap(arena, 8 * EACH) == 0);
}
