// SPDX-License-Identifier: MIT
//
// What the programs of the corpus share. CASE(name) defines a case and registers it; main runs the
// one that argv[1] names, once or argv[2] times. Accesses are inline assembly where it matters that
// they are made with exactly this size, on exactly this line, whatever the optimiser thinks of them;
// a branch likewise.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define NOINLINE __attribute__((noinline, unused))

struct Case {
    const char *name;
    void (*run)(void);
};

#define CASE(name) \
    static void __attribute__((noinline)) name##_case(void); \
    static const struct Case name##_entry __attribute__((used, section("cases"), aligned(8))) = { \
        #name, name##_case}; \
    static void name##_case(void)

extern const struct Case __start_cases[], __stop_cases[];

// Where what was read goes: a load whose value nobody wants may be dropped, by the incumbent too.
volatile u64 corpus_sink[4] __attribute__((aligned(32), used));

// An access of so many bytes at P, as one instruction.
#define READ_AS(p, load, store) \
    __asm__ volatile(load "\n\t" store ", corpus_sink(%%rip)" \
                     : : "r"(p) : "rax", "xmm0", "memory")
#define READ1(p) READ_AS(p, "movzbl (%0), %%eax", "movq %%rax")
#define READ2(p) READ_AS(p, "movzwl (%0), %%eax", "movq %%rax")
#define READ4(p) READ_AS(p, "movl (%0), %%eax", "movq %%rax")
#define READ8(p) READ_AS(p, "movq (%0), %%rax", "movq %%rax")
#define READ16(p) READ_AS(p, "movups (%0), %%xmm0", "movups %%xmm0")
#define READ32(p) READ_AS(p, "vmovups (%0), %%ymm0", "vmovups %%ymm0")
#define WRITE1(p) __asm__ volatile("movb $7, (%0)" : : "r"(p) : "memory")
#define WRITE2(p) __asm__ volatile("movw $7, (%0)" : : "r"(p) : "memory")
#define WRITE4(p) __asm__ volatile("movl $7, (%0)" : : "r"(p) : "memory")
#define WRITE8(p) __asm__ volatile("movq $7, (%0)" : : "r"(p) : "memory")
#define WRITE16(p) \
    __asm__ volatile("xorps %%xmm0, %%xmm0\n\tmovups %%xmm0, (%0)" : : "r"(p) : "xmm0", "memory")
#define WRITE32(p) \
    __asm__ volatile("vxorps %%ymm0, %%ymm0, %%ymm0\n\tvmovups %%ymm0, (%0)" \
                     : : "r"(p) : "xmm0", "memory")

// A conditional jump on whether X is zero, and nothing else.
#define BRANCH(x) \
    __asm__ volatile("testq %0, %0\n\tjz 1f\n\tnop\n1:" : : "r"((u64)(x)) : "cc")

// The optimiser forgets all it knows: of a pointer, or of a value.
#define HIDE(x) __asm__ volatile("" : "+r"(x) : : "memory")

// A block on the heap that the compiler knows nothing about.
static NOINLINE u8 *block(size_t size)
{
    u8 *p = (u8 *)malloc(size);
    HIDE(p);
    return p;
}

static NOINLINE u8 *zeroed_block(size_t size)
{
    u8 *p = (u8 *)calloc(1, size);
    HIDE(p);
    return p;
}

static NOINLINE u8 *freed_block(size_t size)
{
    u8 *p = (u8 *)calloc(1, size);
    HIDE(p);
    free(p);
    HIDE(p);
    return p;
}

// Overwrites what dead frames and registers may still hold of pointers.
static NOINLINE void scrub(void)
{
    volatile char space[4096];
    for (size_t i = 0; i < sizeof space; i++)
        space[i] = 0;
    __asm__ volatile("xorl %%eax, %%eax\n\txorl %%ecx, %%ecx\n\txorl %%edx, %%edx\n\t"
                     "xorl %%esi, %%esi\n\txorl %%edi, %%edi\n\txorl %%r8d, %%r8d\n\t"
                     "xorl %%r9d, %%r9d\n\txorl %%r10d, %%r10d\n\txorl %%r11d, %%r11d\n\t"
                     "xorl %%ebx, %%ebx\n\txorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d\n\t"
                     "xorl %%r14d, %%r14d\n\txorl %%r15d, %%r15d\n\t"
                     "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1"
                     : : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "rbx",
                       "r12", "r13", "r14", "r15", "xmm0", "xmm1", "memory", "cc");
}

// A program that misbehaves in a way the tool has no part in.
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            dprintf(2, "FAIL line %d: %s\n", __LINE__, #condition); \
            _exit(98); \
        } \
    } while (0)

int main(int argc, char **argv)
{
    unsigned times = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    for (const struct Case *c = __start_cases; c < __stop_cases; c++) {
        if (argc > 1 && strcmp(c->name, argv[1]) == 0) {
            for (unsigned i = 0; i < times; i++)
                c->run();
            scrub();
            return 0;
        }
    }
    dprintf(2, "FAIL: no case of that name\n");
    return 99;
}
