// SPDX-License-Identifier: MIT
//
// Loads and stores of client memory and of its shadow that survive a bad pointer; private to
// the string functions. Each is one instruction with a fixup, so a good pointer pays nothing
// for the bad ones. False: it faulted, and nothing has happened.
#ifndef MUNINN_TOOLS_MEMCHECK_STRINGS_ACCESS_H
#define MUNINN_TOOLS_MEMCHECK_STRINGS_ACCESS_H

#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"

static inline bool load_u64(u64 at, u64 *ret_word)
{
    u64 word;
    __asm__ volatile goto("1: mov %1, %0\n" GUEST_FIXUP("1b", "%l2")
                          : "=r"(word) : "m"(*(const u64 *)at) : : fault);
    *ret_word = word;
    return true;
fault:
    return false;
}

static inline bool load_u32(u64 at, u64 *ret_word)
{
    u64 word;
    __asm__ volatile goto("1: movl %1, %k0\n" GUEST_FIXUP("1b", "%l2")
                          : "=r"(word) : "m"(*(const u32 *)at) : : fault);
    *ret_word = word;
    return true;
fault:
    return false;
}

static inline bool load_u16(u64 at, u64 *ret_word)
{
    u64 word;
    __asm__ volatile goto("1: movzwl %1, %k0\n" GUEST_FIXUP("1b", "%l2")
                          : "=r"(word) : "m"(*(const u16 *)at) : : fault);
    *ret_word = word;
    return true;
fault:
    return false;
}

static inline bool load_u8(u64 at, u64 *ret_word)
{
    u64 word;
    __asm__ volatile goto("1: movzbl %1, %k0\n" GUEST_FIXUP("1b", "%l2")
                          : "=r"(word) : "m"(*(const u8 *)at) : : fault);
    *ret_word = word;
    return true;
fault:
    return false;
}

static inline bool store_u64(u64 at, u64 word)
{
    __asm__ volatile goto("1: mov %0, (%1)\n" GUEST_FIXUP("1b", "%l2")
                 : : "r"(word), "r"(at) : "memory" : fault);
    return true;
fault:
    return false;
}

static inline bool store_u32(u64 at, u64 word)
{
    __asm__ volatile goto("1: movl %k0, (%1)\n" GUEST_FIXUP("1b", "%l2")
                 : : "r"(word), "r"(at) : "memory" : fault);
    return true;
fault:
    return false;
}

static inline bool store_u16(u64 at, u64 word)
{
    __asm__ volatile goto("1: movw %w0, (%1)\n" GUEST_FIXUP("1b", "%l2")
                 : : "r"(word), "r"(at) : "memory" : fault);
    return true;
fault:
    return false;
}

static inline bool store_u8(u64 at, u64 word)
{
    __asm__ volatile goto("1: movb %b0, (%1)\n" GUEST_FIXUP("1b", "%l2")
                 : : "q"(word), "r"(at) : "memory" : fault);
    return true;
fault:
    return false;
}

// *any |= what is there
static inline bool or_u64(u64 at, u64 *any)
{
    __asm__ volatile goto("1: or %1, %0\n" GUEST_FIXUP("1b", "%l[fault]")
                          : "+r"(*any) : "m"(*(const u64 *)at) : "cc" : fault);
    return true;
fault:
    return false;
}

static inline bool or_u32(u64 at, u64 *any)
{
    __asm__ volatile goto("1: orl %1, %k0\n" GUEST_FIXUP("1b", "%l[fault]")
                          : "+r"(*any) : "m"(*(const u32 *)at) : "cc" : fault);
    return true;
fault:
    return false;
}

static inline bool or_u16(u64 at, u64 *any)
{
    __asm__ volatile goto("1: orw %1, %w0\n" GUEST_FIXUP("1b", "%l[fault]")
                          : "+r"(*any) : "m"(*(const u16 *)at) : "cc" : fault);
    return true;
fault:
    return false;
}

static inline bool or_u8(u64 at, u64 *any)
{
    __asm__ volatile goto("1: orb %1, %b0\n" GUEST_FIXUP("1b", "%l[fault]")
                          : "+q"(*any) : "m"(*(const u8 *)at) : "cc" : fault);
    return true;
fault:
    return false;
}

// The bits of 64 bytes, or'ed.
static inline bool load_any_64(u64 at, u64 *ret_any)
{
    u64 even, odd;
    __asm__ volatile goto("1: mov (%[at]), %[even]\n"
                          "2: mov 8(%[at]), %[odd]\n"
                          "3: or 16(%[at]), %[even]\n"
                          "4: or 24(%[at]), %[odd]\n"
                          "5: or 32(%[at]), %[even]\n"
                          "6: or 40(%[at]), %[odd]\n"
                          "7: or 48(%[at]), %[even]\n"
                          "8: or 56(%[at]), %[odd]\n"
                          GUEST_FIXUP("1b", "%l[fault]") GUEST_FIXUP("2b", "%l[fault]")
                          GUEST_FIXUP("3b", "%l[fault]") GUEST_FIXUP("4b", "%l[fault]")
                          GUEST_FIXUP("5b", "%l[fault]") GUEST_FIXUP("6b", "%l[fault]")
                          GUEST_FIXUP("7b", "%l[fault]") GUEST_FIXUP("8b", "%l[fault]")
                          : [even] "=&r"(even), [odd] "=&r"(odd)
                          : [at] "r"(at) : "cc", "memory" : fault);
    *ret_any = even | odd;
    return true;
fault:
    return false;
}

// Whether a store there would go through, without changing what another thread may be storing.
static inline bool probe_store(u64 at)
{
    __asm__ volatile goto("1: lock orb $0, (%0)\n" GUEST_FIXUP("1b", "%l1")
                 : : "r"(at) : "memory", "cc" : fault);
    return true;
fault:
    return false;
}

// Upwards, by the instruction: for many bytes.
static inline bool copy_string_up(u64 to, u64 from, u64 size)
{
    __asm__ volatile goto("mov %0, %%rdi\n"
                 "mov %1, %%rsi\n"
                 "mov %2, %%rcx\n"
                 "1: rep movsb\n" GUEST_FIXUP("1b", "%l3")
                 : : "r"(to), "r"(from), "r"(size) : "rdi", "rsi", "rcx", "memory" : fault);
    return true;
fault:
    return false;
}

static inline bool fill_string(u64 to, u64 value, u64 size)
{
    __asm__ volatile goto("mov %0, %%rdi\n"
                 "mov %2, %%rcx\n"
                 "1: rep stosb\n" GUEST_FIXUP("1b", "%l3")
                 : : "r"(to), "a"(value), "r"(size) : "rdi", "rcx", "memory" : fault);
    return true;
fault:
    return false;
}

// Whether [start, start + size) can be the client's at all: elsewhere its shadow would be
// memory of other owners.
static inline bool in_client(GuestAddr start, u64 size)
{
    return start < SHADOWED_END && size <= SHADOWED_END - start;
}

#define SHADOW(address) ((u64)shadow_of(address))

// One element of 1 or 4 bytes.
static inline bool load_element(u64 at, u32 element, u64 *ret_value)
{
    return element == 1 ? load_u8(at, ret_value) : load_u32(at, ret_value);
}

// --- words as elements
typedef struct Lanes {
    u64 ones, highs; // the lowest and the highest bit of each
} Lanes;

static inline Lanes lanes_of(u32 element)
{
    return element == 1 ? (Lanes){0x0101010101010101ull, 0x8080808080808080ull}
                        : (Lanes){0x0000000100000001ull, 0x8000000080000000ull};
}

// A bit in each lane that is zero. Lanes above the first such one may have it too: only the
// lowest bit is to be trusted.
static inline u64 zero_lanes(Lanes lanes, u64 word)
{
    return (word - lanes.ones) & ~word & lanes.highs;
}

// The bits of all lanes up to and including the first of `found`; all if there is none.
static inline u64 up_to(u64 found)
{
    return found ^ (found - 1);
}

#endif
