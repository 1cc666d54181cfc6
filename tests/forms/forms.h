// SPDX-License-Identifier: MIT
//
// What the generator and the guest share: instructions (or short sequences) with the registers that
// they read or write, and the state that they start from and leave behind.
#ifndef MUNINN_TESTS_FORMS_H
#define MUNINN_TESTS_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

// Registers as bits of a set, as memcheck's definedness.h has them.
#define MEMBER_GPR(r) (1ull << (r))
#define MEMBER_FLAGS (1ull << 16)
#define MEMBER_X87 (1ull << 17)
#define MEMBER_MASK(k) (1ull << (20 + (k)))
#define MEMBER_VECTOR(n) (1ull << (32 + (n)))
#define MEMBERS_VECTOR (~0ull << 32)
#define FLAGS_STATUS 0x8d5u // CF PF AF ZF SF OF

enum { RSP_NUMBER = 4, RDI_NUMBER = 7 };

// An instruction. Its only memory operand is [rdi], where `memory` of the state is, or it has none.
typedef struct FormInsn {
    u64 members;    // that it reads or writes, without rdi and rsp
    u32 flags_open; // that the processor's manual leaves undefined
    u8 len;
    u8 modrm_at;    // of an operand [rdi] that may be made one of [rsp]; 0: there is none
    u8 is_judged;   // by what changes with undefined bits: not x87, nor what asks the machine
    u8 is_bit_string; // bt and its like: a register is an index beside memory
    u8 bytes[128];
    char name[32];
} FormInsn;

#endif
