// SPDX-License-Identifier: MIT
//
// Emitted addresses; see emit.h. The length of the code must not depend on where the engine lies,
// so the form of an address follows from its kind: the cache lies below 2 GiB, the engine above 4
// GiB.
#include "engine/emit/emit.h"

static void note(Emitter *e, const EmitAddress *address)
{
    EmitAddresses *all = e->addresses;
    if (!all)
        return;
    if (all->count < EMIT_ADDRESSES_MAX)
        all->items[all->count] = *address;
    all->count++;
}

static void check(EmitAddressKind kind, u64 address)
{
    ASSERT(kind == EMIT_CACHE_ADDRESS ? address <= INT32_MAX : !fits_i32((i64)address));
}

void emit_address(Emitter *e, EmitAddressKind kind, u64 address)
{
    check(kind, address);
    note(e, &(EmitAddress){.at = e->pc, .kind = kind, .form = EMIT_WORD64});
    emit_u64(e, address);
}

void x64_mov_reg_address(Emitter *e, unsigned reg, EmitAddressKind kind, u64 address)
{
    check(kind, address);
    x64_mov_reg_imm(e, reg, address);
    bool is_short = kind == EMIT_CACHE_ADDRESS;
    note(e, &(EmitAddress){.at = e->pc - (is_short ? sizeof(u32) : sizeof(u64)), .kind = kind,
                           .form = is_short ? EMIT_WORD32 : EMIT_WORD64});
}

void x64_mov_fs_address(Emitter *e, i32 disp, EmitAddressKind kind, u64 address)
{
    check(kind, address);
    if (kind == EMIT_CACHE_ADDRESS) {
        x64_mov_fs_imm64(e, disp, address);
        note(e, &(EmitAddress){.at = e->pc - sizeof(u32), .kind = kind, .form = EMIT_WORD32});
        return;
    }
    EmitAddress both = {.kind = kind, .form = EMIT_TWO_STORES};
    x64_mov_fs_imm32(e, disp, (u32)address);
    both.at = e->pc - sizeof(u32);
    x64_mov_fs_imm32(e, disp + (i32)sizeof(u32), (u32)(address >> 32));
    both.upper = e->pc - sizeof(u32);
    note(e, &both);
}
