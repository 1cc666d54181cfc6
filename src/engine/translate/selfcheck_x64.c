// SPDX-License-Identifier: MIT
//
// Blocks that check their own source. A page that the client keeps rewriting
// (a JIT that patches its code) would fault on each write if it were guarded;
// instead, its blocks compare the guest's bytes with those they were made from.
#include "engine/gateway/gateway.h"
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

// One word, without touching a flag; rax and rcx are spilled. Returns the jump for when it is
// another.
static X64Jump emit_compare_word(Builder *b, GuestAddr at)
{
    Emitter *e = &b->e;
    u64 expected = expected_word(b, at);
    x64_mov_reg_imm(e, RCX, at);
    x64_mov_reg_mem(e, QWORD, RCX, x64_at(RCX, 0));
    x64_mov_reg_imm(e, RAX, -expected);
    x64_lea_reg_mem(e, QWORD, RCX, x64_sum(RCX, RAX));
    X64Jump same = x64_jrcxz(e);
    X64Jump stale = x64_branch(e, X64_JMP);
    x64_land(e, same);
    return stale;
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
    X64Jump stale[BLOCK_INSNS_MAX * 2];
    unsigned words = (unsigned)((end - start + 7) / 8);
    ASSERT(words <= ARRAY_LEN(stale));
    builder_spill(b, RAX);
    builder_spill(b, RCX);
    for (unsigned i = 0; i < words; i++)
        stale[i] = emit_compare_word(b, word_at(start, end, i));
    X64Jump skip = x64_jmp_short(&b->e);
    for (unsigned i = 0; i < words; i++)
        x64_land(&b->e, stale[i]);
    x64_mov_reg_fs(&b->e, RAX, CTX_SPILL(RAX));
    x64_mov_reg_fs(&b->e, RCX, CTX_SPILL(RCX));
    x64_mov_fs_imm64(&b->e, CTX(pc), b->block->pc);
    x64_jmp_to(&b->e, gateway_leave(EXIT_STALE));
    x64_land(&b->e, skip);
    builder_unspill(b, RCX);
    builder_unspill(b, RAX);
}
