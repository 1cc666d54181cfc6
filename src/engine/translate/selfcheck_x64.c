// SPDX-License-Identifier: MIT
//
// Blocks that check their own source. A page that the client keeps rewriting
// (a JIT that patches its code) would fault on each write if it were guarded;
// instead, its blocks compare the guest's bytes with those they were made from.
#include "engine/translate/builder.h"

// What was there when the block's instructions were decoded.
static u64 expected_word(const Builder *b, GuestAddr at)
{
    u8 bytes[8];
    u64 word;
    memcpy(bytes, (const void *)at, sizeof(bytes)); // of those that do not matter
    for (unsigned i = 0; i < b->insn_count; i++) {
        const Insn *insn = &b->insns[i];
        for (u64 j = 0; j < insn->decided_by; j++) {
            if (insn->pc + j - at < sizeof(bytes))
                bytes[insn->pc + j - at] = insn->bytes[j];
        }
    }
    memcpy(&word, bytes, sizeof(word));
    return word;
}

// One word, flag-free; rax and rcx are spilled.
//     mov rcx, [at] ; mov rax, -expected ; lea rcx, [rcx + rax] ; jrcxz same ; jmp stale
static void emit_compare_word(Builder *b, GuestAddr at, CodePtr *ret_stale_site)
{
    Emitter *e = &b->e;
    u64 expected = expected_word(b, at);
    emit_mov_imm(e, RCX, at);
    emit_op_base(e, 0x8b, RCX, RCX, 0);
    emit_mov_imm(e, RAX, -expected);
    emit_lea_sum(e, RCX, RCX, RAX);
    put_bytes(e, (u8[]){OP_JRCXZ, 5}, 2);
    put_u8(e, OP_JMP_REL32);
    *ret_stale_site = e->pc;
    put_u32(e, 0);
}

// The last word overlaps its neighbour; a run shorter than a word is compared
// together with bytes of the same page that do not matter, which may cause a
// needless translation and nothing worse.
static GuestAddr word_at(GuestAddr start, GuestAddr end, unsigned i)
{
    GuestAddr at = start + 8ull * i;
    if (at + 8 > end)
        at = end - start >= 8 ? end - 8 : start;
    GuestAddr page_end = PAGE_DOWN(start) + PAGE_SIZE;
    if (end - start < 8 && at + 8 > page_end && end <= page_end)
        at = page_end - 8;
    return at;
}

void emit_self_check(Builder *b, GuestAddr start, GuestAddr end)
{
    CodePtr stale[BLOCK_INSNS_MAX * 2];
    unsigned words = (unsigned)((end - start + 7) / 8);
    ASSERT(words <= ARRAY_LEN(stale));
    builder_spill(b, RAX);
    builder_spill(b, RCX);
    for (unsigned i = 0; i < words; i++)
        emit_compare_word(b, word_at(start, end, i), &stale[i]);
    put_u8(&b->e, OP_JMP_REL8);
    put_u8(&b->e, 0);
    CodePtr skip = b->e.pc;
    for (unsigned i = 0; i < words; i++) {
        i32 distance = (i32)(b->e.pc - (stale[i] + 4));
        memcpy(stale[i], &distance, 4);
    }
    emit_load_fs(&b->e, RAX, CTX_SPILL(RAX));
    emit_load_fs(&b->e, RCX, CTX_SPILL(RCX));
    emit_store_fs_imm64(&b->e, CTX(pc), b->block->pc);
    emit_jmp(&b->e, gateway_leave(EXIT_STALE));
    skip[-1] = (u8)(b->e.pc - skip);
    builder_unspill(b, RCX);
    builder_unspill(b, RAX);
}
