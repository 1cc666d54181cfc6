// SPDX-License-Identifier: MIT
// BUILD: -O2 -mcx16
// STRESS: tiny-blocks
//
// rep string operations forwards and backwards, with zero counts and overlaps, address-size
// prefixes, and cmpxchg in every size, 16 bytes included.
#include "guest.h"
#include <sys/mman.h>

static uint8_t buffer[4096];

static uint32_t checksum(void)
{
    uint32_t sum = 1;
    for (size_t i = 0; i < sizeof buffer; i++)
        sum = sum * 31 + buffer[i];
    return sum;
}

static void fill(void)
{
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (uint8_t)(i * 7 + i / 256);
}

#define STRING(code, destination, source, count, value) \
    ({ \
        fill(); \
        uint8_t *rdi = buffer + (destination), *rsi = buffer + (source); \
        uint64_t rcx = (count), rax = (value), flags; \
        __asm__ volatile("cmp %%rsp, %%rsp; " code "; cld; pushfq; pop %4" \
                         : "+D"(rdi), "+S"(rsi), "+c"(rcx), "+a"(rax), "=&r"(flags) \
                         : : "memory", "cc"); \
        say("%-32s di %ld si %ld cx %ld ax %lx flags %lx sum %x\n", code, (long)(rdi - buffer), \
            (long)(rsi - buffer), (long)rcx, (unsigned long)rax, flags & 0x8d5, checksum()); \
    })

static void compare_exchanges(void)
{
    static _Alignas(16) uint64_t pair[2] = {5, 6};
    for (int round = 0; round < 2; round++) {
        uint64_t lo = 5, hi = 6, new_lo = 50, new_hi = 60;
        uint8_t equal;
        __asm__ volatile("lock cmpxchg16b %2; sete %3"
                         : "+a"(lo), "+d"(hi), "+m"(pair), "=q"(equal)
                         : "b"(new_lo), "c"(new_hi) : "cc");
        say("cmpxchg16b equal %d, was %lu %lu, is %lu %lu\n", equal, lo, hi, pair[0], pair[1]);
    }
    uint64_t cell = 0x1122334455667788, expected = 0x88, result;
    __asm__ volatile("lock cmpxchgb %b2, %1" : "+a"(expected), "+m"(cell) : "q"(0x99) : "cc");
    __asm__ volatile("lock xaddw %w0, %1" : "=r"(result), "+m"(cell) : "0"(0x101) : "cc");
    say("%lx %lx\n", cell, result & 0xffff);
    __asm__ volatile("lock cmpxchg8b %0"
                     : "+m"(cell) : "a"(0), "d"(0), "b"(1), "c"(2) : "cc");
    __asm__ volatile("lock btsq $63, %0; lock btcl $3, %0; lock negq %0" : "+m"(cell) : : "cc");
    say("%lx\n", cell);
}

static void address_size_prefix(void)
{
    uint32_t *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK((uint64_t)low < 1UL << 31);
    uint64_t base = (uint64_t)low | 0xabcdef0000000000, value;
    __asm__ volatile("movl $77, 16(%k1)\n\tmov %k1, %k1\n\tmov 16(%1), %k0"
                     : "=r"(value), "+r"(base) : : "memory");
    say("addr32: %lu\n", value);
    uint64_t rdi = (uint64_t)low | 0x700000000, rcx = 0x900000008;
    __asm__ volatile("addr32 rep stosl" : "+D"(rdi), "+c"(rcx) : "a"(9) : "memory");
    say("addr32 rep stos: %ld %lx %u %u\n", (long)(rdi - (uint64_t)low), rcx, low[7], low[8]);
}

int main(void)
{
    STRING("rep movsb", 100, 1000, 500, 0);
    STRING("rep movsb", 101, 100, 500, 0);
    STRING("rep movsq", 2000, 100, 200, 0);
    STRING("std; rep movsw", 2000, 1990, 300, 0);
    STRING("rep movsl", 0, 16, 0, 0);
    STRING("rep stosb", 64, 0, 900, 0xabcd);
    STRING("std; rep stosq", 3000, 0, 100, 0x0102030405060708);
    STRING("rep lodsw", 0, 500, 30, 0);
    STRING("stc; repne scasb", 0, 0, 4000, 0x99);
    STRING("stc; repe scasb", 0, 0, 0, 0);
    STRING("repe cmpsb", 10, 10 + 256, 300, 0);
    STRING("cmp %%rax, %%rax; repe cmpsb", 0, 0, 0, 0);
    STRING("repne cmpsl", 0, 512, 300, 0);
    STRING("movsb; stosw; lodsl; cmpsw; scasb", 300, 400, 3, 7);
    compare_exchanges();
    address_size_prefix();
    return 0;
}
