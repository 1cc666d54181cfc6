// SPDX-License-Identifier: MIT
//
// The encoders of moves between registers, constants and fs:[constant]; see x64.h. Byte by byte
// they took a fifth of the translation of a program without a tool.
#ifndef MUNINN_ENGINE_EMIT_FS_X64_H
#define MUNINN_ENGINE_EMIT_FS_X64_H

#include <string.h>

#include "engine/emit/emit.h"

enum { SIB_ABSOLUTE = 0x25 };

// 64 REX opcode modrm, then sib and displacement: an absolute address.
static inline void x64_put_fs(Emitter *e, u32 opcode, unsigned reg, i32 disp)
{
    enum { REX_W = 0x48, RM_SIB = 4 };
    u32 head = X64_FS | (REX_W | (reg & 8) >> 1) << 8 | opcode << 16 |
               (RM_SIB | (reg & 7) << 3) << 24;
    CodePtr at = e->pc;
    DEBUG_ASSERT(emit_room(e) >= INSN_MAX);
    memcpy(at, &head, sizeof(head));
    at[4] = SIB_ABSOLUTE;
    memcpy(at + 5, &disp, sizeof(disp));
    e->pc = at + 9;
}

static inline void x64_mov_reg_fs(Emitter *e, unsigned reg, i32 disp)
{
    enum { MOV_LOAD = 0x8b };
    x64_put_fs(e, MOV_LOAD, reg, disp);
}

static inline void x64_mov_fs_reg(Emitter *e, i32 disp, unsigned reg)
{
    enum { MOV_STORE = 0x89 };
    x64_put_fs(e, MOV_STORE, reg, disp);
}

static inline void x64_mov_fs_imm32(Emitter *e, i32 disp, u32 imm)
{
    const u32 words[] = {0x2504c764, (u32)disp, imm}; // 64 c7 /0 on an absolute address
    emit_bytes(e, words, sizeof(words));
}

static inline void x64_mov_fs_imm64(Emitter *e, i32 disp, u64 imm)
{
    if (!fits_i32((i64)imm)) {
        x64_mov_fs_imm32(e, disp, (u32)imm);
        x64_mov_fs_imm32(e, disp + (i32)sizeof(u32), (u32)(imm >> 32));
        return;
    }
    const u32 words[] = {0x04c74864, (u32)disp, (u32)imm}; // 64 REX.W c7 /0, and the sib byte:
    CodePtr at = e->pc;
    DEBUG_ASSERT(emit_room(e) >= INSN_MAX);
    memcpy(at, &words[0], sizeof(u32));
    at[4] = SIB_ABSOLUTE;
    memcpy(at + 5, &words[1], 2 * sizeof(u32));
    e->pc = at + 13;
}

#endif
