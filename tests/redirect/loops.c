// SPDX-License-Identifier: MIT
//
// Functions that jump to their own first instruction: a loop is one call, a
// recursive call is another. And a function that another falls or jumps into.
// BUILD: dynamic nopie static
// STDOUT: loop 10 recursion 4 into 5 some 13
// LOG: selftest_counted* calls 14 returns 14
// LOG: selftest_logged calls 4 returns 4
// LOG: selftest_replaced_some calls 1 returns 0
#include <stdio.h>

long selftest_counted_loop(long n, long sum);
long selftest_counted_into(long n);
long selftest_counted_falls(long n);
long selftest_replaced_some(long n, long sum);
long jumps_into(long n);
long selftest_logged(long n);

__asm__(".text\n"
        ".globl selftest_counted_loop\n"
        ".type selftest_counted_loop, @function\n"
        "selftest_counted_loop:\n"
        "    inc %rsi\n"
        "    dec %rdi\n"
        "    jne selftest_counted_loop\n"
        "    mov %rsi, %rax\n"
        "    ret\n"
        ".size selftest_counted_loop, . - selftest_counted_loop\n"

        ".globl selftest_replaced_some\n"
        ".type selftest_replaced_some, @function\n"
        "selftest_replaced_some:\n"
        "    inc %rsi\n"
        "    dec %rdi\n"
        "    jne selftest_replaced_some\n"
        "    mov %rsi, %rax\n"
        "    ret\n"
        ".size selftest_replaced_some, . - selftest_replaced_some\n"

        ".globl selftest_counted_falls\n"
        ".type selftest_counted_falls, @function\n"
        "selftest_counted_falls:\n"
        "    inc %rdi\n"
        ".size selftest_counted_falls, . - selftest_counted_falls\n"
        ".globl selftest_counted_into\n"
        ".type selftest_counted_into, @function\n"
        "selftest_counted_into:\n"
        "    lea 1(%rdi), %rax\n"
        "    ret\n"
        ".size selftest_counted_into, . - selftest_counted_into\n"

        ".globl jumps_into\n"
        ".type jumps_into, @function\n"
        "jumps_into:\n"
        "    inc %rdi\n"
        "    jmp selftest_counted_into\n"
        ".size jumps_into, . - jumps_into\n"

        ".globl selftest_logged\n"
        ".type selftest_logged, @function\n"
        "selftest_logged:\n"
        "    mov %rdi, %rax\n"
        "    dec %rdi\n"
        "    jle 1f\n"
        "    push %rdi\n"
        "    call selftest_logged\n"
        "    pop %rdi\n"
        "    inc %rax\n"
        "1:  ret\n"
        ".size selftest_logged, . - selftest_logged\n");

int main(void)
{
    long sum = 0;
    for (long i = 1; i <= 10; i++)
        sum = selftest_counted_loop(1, sum);
    sum += selftest_counted_loop(5, 0) - 5;
    long into = jumps_into(1) + selftest_counted_falls(0);
    printf("loop %ld recursion %ld into %ld some %ld\n", sum, selftest_logged(4), into,
           selftest_replaced_some(6, 7));
    return 0;
}
