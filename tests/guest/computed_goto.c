// SPDX-License-Identifier: MIT
// BUILD: -O2
// STRESS: tiny-blocks
// STRESS: no-link
// STRESS: entries
//
// A byte-code interpreter with threaded dispatch: many indirect jumps with many targets each.
#include "guest.h"

enum { OP_PUSH, OP_ADD, OP_MUL, OP_DUP, OP_SWAP, OP_XOR, OP_LOOP, OP_HALT };

static uint64_t interpret(const uint8_t *code, int rounds)
{
    static void *const labels[] = {&&push, &&add, &&mul, &&dup, &&swap, &&xor, &&loop, &&halt};
    uint64_t stack[64] = {0}, *top = stack, t;
    const uint8_t *pc = code;
#define NEXT goto *labels[*pc++]
    NEXT;
push:
    *++top = *pc++;
    NEXT;
add:
    top[-1] += top[0];
    top--;
    NEXT;
mul:
    top[-1] *= top[0];
    top--;
    NEXT;
dup:
    top[1] = top[0];
    top++;
    NEXT;
swap:
    t = top[0];
    top[0] = top[-1];
    top[-1] = t;
    NEXT;
xor:
    top[-1] ^= top[0];
    top--;
    NEXT;
loop:
    if (--rounds)
        pc = code + 2;
    NEXT;
halt:
    return *top;
}

int main(void)
{
    static const uint8_t code[] = {OP_PUSH, 1,      OP_PUSH, 3,      OP_MUL,  OP_PUSH, 7,
                                   OP_ADD,  OP_DUP, OP_PUSH, 13,     OP_MUL,  OP_SWAP, OP_XOR,
                                   OP_LOOP, OP_HALT};
    say("%llx\n", (unsigned long long)interpret(code, 2000000));
    return 0;
}
