// SPDX-License-Identifier: MIT
//
// Which arithmetic flags are live before each instruction of a block: one
// backward pass. What follows a way out of the block is not known, so all flags
// are live there, unless it is the end and the next instructions tell; compilers set flags
// shortly before they use them, and code in between is rare. An instruction that may fault shows
// the flags before it to a signal handler. As soon as the client has one for faults, they are live
// there too: its state is exact at every fault, whatever a tool inserts.
#include <sys/mman.h>

#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "engine/redirect/redirect.h"
#include "engine/translate/builder.h"
#include "engine/translate/translate.h"

enum { FLAGS_ARITHMETIC = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF |
                          ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF };

// CF 0, PF 2, AF 4, ZF 6, SF 7, OF 11: folded into a byte, OF in place of bit 1.
static u8 fold(u32 flags)
{
    flags &= FLAGS_ARITHMETIC;
    return (u8)((flags & 0xff) | (flags & ZYDIS_CPUFLAG_OF ? 2 : 0));
}

// Shifts and rotates by zero, and repeated compares of no element, leave the
// flags as they were: never a kill.
static bool may_keep_flags(const Insn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_SHL: case ZYDIS_MNEMONIC_SHR: case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL: case ZYDIS_MNEMONIC_ROR: case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR: case ZYDIS_MNEMONIC_SHLD: case ZYDIS_MNEMONIC_SHRD:
    case ZYDIS_MNEMONIC_CMPSB: case ZYDIS_MNEMONIC_CMPSW: case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ: case ZYDIS_MNEMONIC_SCASB: case ZYDIS_MNEMONIC_SCASW:
    case ZYDIS_MNEMONIC_SCASD: case ZYDIS_MNEMONIC_SCASQ: return true;
    default: return false;
    }
}

// 88 to 8b, c6, c7: no moffs, no segment, control or debug register.
static bool is_plain_move(const Insn *insn)
{
    u8 opcode = insn->modrm_at ? insn->bytes[insn->modrm_at - 1] : 0;
    return (opcode >= 0x88 && opcode <= 0x8b) || opcode == 0xc6 || opcode == 0xc7;
}

// Plain integer instructions on registers; all others are taken to fault.
static bool cannot_fault(const Insn *insn)
{
    bool memory = insn->modrm_at && insn->bytes[insn->modrm_at] >> 6 != 3;
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_LEA: case ZYDIS_MNEMONIC_NOP: return true;
    case ZYDIS_MNEMONIC_ADD: case ZYDIS_MNEMONIC_SUB: case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR: case ZYDIS_MNEMONIC_XOR: case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST: case ZYDIS_MNEMONIC_INC: case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG: case ZYDIS_MNEMONIC_NOT: case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR: case ZYDIS_MNEMONIC_SAR: case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MOVZX: case ZYDIS_MNEMONIC_MOVSX: case ZYDIS_MNEMONIC_MOVSXD:
        return !memory;
    case ZYDIS_MNEMONIC_MOV: return !memory && is_plain_move(insn);
    default: return false;
    }
}

// A jump to where a constant place says: to another function, as in a PLT.
static bool is_tail_call(const Insn *insn)
{
    return insn->lowering == LOWER_JMP_INDIRECT && insn->memory == MEMORY_RIP;
}

// Instructions that make nothing but flags.
static bool makes_only_flags(const Insn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_CMP: case ZYDIS_MNEMONIC_TEST: case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_CLC: case ZYDIS_MNEMONIC_STC: case ZYDIS_MNEMONIC_CMC:
    case ZYDIS_MNEMONIC_SAHF: case ZYDIS_MNEMONIC_POPFQ: case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_COMISS: case ZYDIS_MNEMONIC_UCOMISD: case ZYDIS_MNEMONIC_UCOMISS:
        return true;
    default: return false;
    }
}

// A block may begin behind such an instruction. What looks like clc, stc, cmc, or cmp or test of
// two registers is taken for it.
static bool follows_flags(GuestAddr pc)
{
    enum { CMC = 0xf5, CLC = 0xf8, STC = 0xf9, CMP = 0x39, CMP_BACK = 0x3b, TEST = 0x85 };
    u8 before[2] = {0};
    guest_read(pc - 2, before, 2);
    switch (before[1]) {
    case CMC: case CLC: case STC: return true;
    default: break;
    }
    return before[1] >= 0xc0 &&
           (before[0] == CMP || before[0] == CMP_BACK || before[0] == TEST);
}

// Code in which functions return something in flags, by 64 KiB. A block may begin anywhere
// between such flags and their return: a signal came, a guard failed, somebody jumps there. What
// such functions look like tells it of some, and code that calls them of all.
enum { REGION_SHIFT = 16, REGIONS = 65536 };
typedef u64 Regions[REGIONS / 64];
static Regions returning_regions, asked_regions; // engine lock
static GuestAddr new_region;                     // 0: none; engine lock

static bool has_region(const Regions regions, GuestAddr pc)
{
    u64 region = (pc >> REGION_SHIFT) % REGIONS;
    return regions[region / 64] >> region % 64 & 1;
}

static void note_region(Regions regions, GuestAddr pc)
{
    u64 region = (pc >> REGION_SHIFT) % REGIONS;
    if (has_region(regions, pc))
        return;
    regions[region / 64] |= 1ull << region % 64;
    new_region = pc >> REGION_SHIFT << REGION_SHIFT;
    translate_stats.flag_regions++;
}

bool drop_blocks_of_new_region(void)
{
    if (LIKELY(!new_region))
        return false;
    cache_invalidate(new_region, new_region + (1 << REGION_SHIFT));
    new_region = 0;
    return true;
}

// Whether the flags before instruction `count` were made by one that makes nothing else, and not
// looked at; or by one before the block (*ret_outside).
static bool has_idle_flags(const Builder *b, unsigned count, bool *ret_outside)
{
    *ret_outside = false;
    for (unsigned i = count; i-- > 0;) {
        const Insn *insn = &b->insns[i];
        if (makes_only_flags(insn))
            return true;
        const ZydisAccessedFlags *f = insn->flags;
        if (f && fold(f->tested | f->modified | f->set_0 | f->set_1 | f->undefined))
            return false;
    }
    *ret_outside = true;
    return b->block->version & VERSION_FIRST || follows_flags(b->insns[0].pc);
}

bool ends_with_idle_flags(const Builder *b)
{
    bool outside;
    return tool->needs & TOOL_LOOSE_FLAGS && has_idle_flags(b, b->insn_count, &outside) && !outside;
}

// What a function returns in flags: Lisp tells so how many values there are, or what a comparison
// gave, and code in assembler whether it has failed. No compiler that keeps to the ABI makes
// flags that nobody reads before the return.
static u8 returned_flags(const Builder *b, unsigned ret)
{
    GuestAddr pc = b->insns[ret].pc;
    bool outside;
    bool is_idle = has_idle_flags(b, ret, &outside);
    if (is_idle && !outside)
        note_region(returning_regions, pc);
    bool is_live = is_idle || has_region(asked_regions, pc) ||
                   (outside && has_region(returning_regions, pc));
    return is_live ? fold(FLAGS_ARITHMETIC) : 0;
}

// "Undefined" often means unchanged: no kill either, but of the strict.
static u8 killed_by(const Insn *insn, bool loose)
{
    const ZydisAccessedFlags *f = insn->flags;
    if (!f || may_keep_flags(insn))
        return 0;
    return fold(f->modified | f->set_0 | f->set_1 | (loose ? f->undefined : 0));
}

// Behind a call: whether flags are looked at before any are made, so that they are the callee's.
static bool asks_for_flags(GuestAddr pc)
{
    enum { AHEAD_MAX = 8 };
    GuestAddr end = 0;
    Insn insn;
    for (unsigned i = 0; i < AHEAD_MAX; i++) {
        if (!aspace_executable(pc, &end) ||
            decode_shared(pc, (const u8 *)pc, min_u64(end - pc, DECODE_BYTES_MAX), &insn) !=
                DECODE_OK)
            return false;
        const ZydisAccessedFlags *f = insn.flags;
        if (f && fold(f->tested))
            return true;
        if (insn.lowering != LOWER_COPY || killed_by(&insn, true))
            return false;
        pc += insn.len;
    }
    return false;
}

// Code that is made at run time has conventions of its own, which the code nearby shares. What
// compilers leave in files has none, and often a place behind a call that never returns, at which
// flags come from elsewhere.
static void note_asked(const Insn *call)
{
    const Mapping *mapping = aspace_find(call->pc);
    bool is_from_file = !mapping || (mapping->inode && mapping->flags & MAP_PRIVATE);
    if (!is_from_file && asks_for_flags(call->pc + call->len))
        note_region(asked_regions, call->lowering == LOWER_CALL ? call->target : call->pc);
}

// At calls and returns the ABI has no flags.
static bool ends_function(const Insn *insn)
{
    return is_tail_call(insn) || insn->lowering == LOWER_RET || insn->lowering == LOWER_CALL ||
           insn->lowering == LOWER_CALL_INDIRECT;
}

// Whether the block goes when any byte of [start, end) changes: it has instructions in that page.
static bool is_watched(const Builder *b, GuestAddr start, GuestAddr end)
{
    GuestAddr page = PAGE_DOWN(start);
    for (unsigned i = 0; i < b->run_count; i++) {
        if (page >= PAGE_DOWN(b->runs[i].start) && page < b->runs[i].end)
            return end <= page + PAGE_SIZE;
    }
    return false;
}

// The flags that are live where the client goes on behind the block, at pc, as far as the code
// there tells. A page whose blocks check themselves tells nothing.
static u8 live_behind(const Builder *b, GuestAddr pc)
{
    enum { AHEAD_MAX = 32 };
    u8 live = fold(FLAGS_ARITHMETIC);
    GuestAddr end = 0;
    Insn insn;
    bool arrives = true;
    for (unsigned i = 0; i < AHEAD_MAX && live; i++) {
        if ((arrives && aspace_code_is_busy(pc)) || redirect_is_hooked(pc) ||
            !is_watched(b, pc, pc + DECODE_BYTES_MAX) || !aspace_executable(pc, &end) ||
            decode_shared(pc, (const u8 *)pc, min_u64(end - pc, DECODE_BYTES_MAX), &insn) !=
                DECODE_OK)
            return live;
        if (ends_function(&insn) && insn.lowering != LOWER_RET)
            return 0;
        if ((insn.lowering != LOWER_COPY && insn.lowering != LOWER_JMP) ||
            (insn.flags && fold(insn.flags->tested) & live))
            return live;
        live &= (u8)~killed_by(&insn, true);
        arrives = insn.lowering == LOWER_JMP;
        pc = arrives ? insn.target : pc + insn.len;
    }
    return live;
}

static u8 live_at_end(const Builder *b)
{
    const Insn *last = &b->insns[b->insn_count - 1];
    if (last->lowering == LOWER_JMP)
        return live_behind(b, last->target);
    return last->lowering == LOWER_COPY ? live_behind(b, b->next_pc) : fold(FLAGS_ARITHMETIC);
}

static bool faults_are_seen; // engine lock

// The blocks that there are were made without a thought of it.
void translate_faults_are_seen(void)
{
    if (__atomic_load_n(&faults_are_seen, __ATOMIC_RELAXED))
        return;
    lock_acquire(&engine_lock);
    __atomic_store_n(&faults_are_seen, true, __ATOMIC_RELAXED);
    if (tool->needs & TOOL_NEEDS_FLAGS && !(tool->needs & TOOL_LOOSE_FLAGS))
        cache_invalidate(0, ~0ull);
    lock_release(&engine_lock);
}

void find_live_flags(Builder *b)
{
    const u8 all = fold(FLAGS_ARITHMETIC);
    const bool loose = tool->needs & TOOL_LOOSE_FLAGS;
    u8 live = loose ? live_at_end(b) : all;
    for (unsigned i = b->insn_count; i-- > 0;) {
        const Insn *insn = &b->insns[i];
        if (loose && (insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT))
            note_asked(insn);
        if (insn->lowering != LOWER_COPY && insn->lowering != LOWER_JMP)
            live = !loose || !ends_function(insn) ? all :
                   insn->lowering == LOWER_RET    ? returned_flags(b, i) : 0;
        const ZydisAccessedFlags *f = insn->flags;
        live &= (u8)~killed_by(insn, loose);
        if (f)
            live |= fold(f->tested);
        if (!loose && faults_are_seen && !cannot_fault(insn))
            live = all;
        b->flags_live[i] = live;
    }
}
