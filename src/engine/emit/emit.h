// SPDX-License-Identifier: MIT
//
// Writing machine code: where it goes, what it consists of, and which words of it are addresses.
//
// An emitted instruction is written as that instruction: `x64_mov_reg_mem(e, QWORD, RAX, ...)`.
// The functions come from a table, emit/x64.def; emit/x64.h explains their names. Nothing outside
// this folder knows an opcode of what it emits. The emit_* functions below are for what is no
// instruction of ours: bytes of the client's code, and data between instructions.
//
// An address of the engine or of the code cache is written with a function of its own
// (x64_mov_reg_address() and its kin), so that whoever keeps the code finds it: Emitter.addresses.
// Code that is emitted twice, with the engine at different places, differs in those words alone
// (tests/codegen).
#ifndef MUNINN_ENGINE_EMIT_EMIT_H
#define MUNINN_ENGINE_EMIT_EMIT_H

#include <string.h>

#include "base/assert.h"
#include "base/types.h"

// What an emitted address refers to.
typedef enum EmitAddressKind {
    EMIT_ENGINE_ADDRESS, // a function or an object of the engine's image
    EMIT_CACHE_ADDRESS,  // a place in the code cache, which lies below 2 GiB
} EmitAddressKind;

// How an address stands in the code.
typedef enum EmitAddressForm {
    EMIT_WORD32,     // 4 bytes
    EMIT_WORD64,     // 8 bytes
    EMIT_TWO_STORES, // the constants of two stores: the lower half here, the upper at `upper`
} EmitAddressForm;

typedef struct EmitAddress {
    CodePtr at, upper;
    EmitAddressKind kind;
    EmitAddressForm form;
} EmitAddress;

#define EMIT_ADDRESSES_MAX 512

typedef struct EmitAddresses {
    EmitAddress items[EMIT_ADDRESSES_MAX];
    unsigned count; // of all addresses written, including those beyond the maximum
} EmitAddresses;

typedef struct Emitter {
    CodePtr pc;               // where the next byte goes
    CodePtr end;              // first byte that must not be written
    EmitAddresses *addresses; // where addresses are noted, or NULL
} Emitter;

#define INSN_MAX 15

static inline size_t emit_room(const Emitter *e)
{
    return (size_t)(e->end - e->pc);
}

static inline bool fits_i32(i64 v)
{
    return v == (i32)v;
}

static inline void emit_u8(Emitter *e, u8 byte)
{
    DEBUG_ASSERT(e->pc < e->end);
    *e->pc++ = byte;
}

static inline void emit_bytes(Emitter *e, const void *bytes, size_t n)
{
    DEBUG_ASSERT(n <= emit_room(e));
    memcpy(e->pc, bytes, n);
    e->pc += n;
}

static inline void emit_u16(Emitter *e, u16 v)
{
    emit_bytes(e, &v, sizeof(v));
}

static inline void emit_u32(Emitter *e, u32 v)
{
    emit_bytes(e, &v, sizeof(v));
}

// A word of data, which emitted code loads. It must be aligned: a client may have set AC, and then
// a load that is not aligned faults.
static inline void emit_u64(Emitter *e, u64 v)
{
    ASSERT((uintptr_t)e->pc % sizeof(v) == 0);
    emit_bytes(e, &v, sizeof(v));
}

// An address as data, aligned as emit_u64() asks for.
void emit_address(Emitter *e, EmitAddressKind kind, u64 address);

// mov reg, address
void x64_mov_reg_address(Emitter *e, unsigned reg, EmitAddressKind kind, u64 address);

// Stores an address in fs:[disp], as x64_mov_fs_imm64() does.
void x64_mov_fs_address(Emitter *e, i32 disp, EmitAddressKind kind, u64 address);

#include "engine/emit/x64.h"

#include "engine/emit/fs_x64.h"

#endif
