// SPDX-License-Identifier: MIT
//
// See steps.h.
#include "tools/memcheck/translate/steps.h"

#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/translate.h"

enum { POOL_BYTES = 1 << 20, KEPT_SLOTS = 1 << 14, KEPT_TRIES = 4 };

// The one that was kept and is the same, or the place where the new one may be remembered.
static void **kept_alike(const void *what, size_t bytes)
{
    static void *kept[KEPT_SLOTS];
    u64 hash = bytes, word;
    for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
        memcpy(&word, (const u8 *)what + i, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    void **slot = NULL;
    for (unsigned i = 0; i < KEPT_TRIES; i++) {
        slot = &kept[(hash + i) % KEPT_SLOTS];
        if (!*slot || (*(u64 *)*slot == bytes && !memcmp((u64 *)*slot + 1, what, bytes)))
            break;
    }
    return slot;
}

// Steps live as long as the process: blocks name them by address. Most instructions are like
// another one somewhere, and share its step. Each has its size before it.
void *step_keep(const void *what, size_t bytes)
{
    static u8 *pool;
    static u64 left;
    void **alike = kept_alike(what, bytes);
    if (*alike && *(u64 *)*alike == bytes && !memcmp((u64 *)*alike + 1, what, bytes))
        return (u64 *)*alike + 1;
    if (left < sizeof(u64) + bytes) {
        pool = pages_map(POOL_BYTES);
        ASSERT(pool);
        left = POOL_BYTES;
    }
    u64 *at = (u64 *)pool;
    *at = bytes;
    memcpy(at + 1, what, bytes);
    pool += sizeof(u64) + bytes;
    left -= sizeof(u64) + bytes;
    *alike = at;
    return at + 1;
}

u64 step_kept(const DefinednessStep *step)
{
    return (u64)step_keep(step, DEFINEDNESS_STEP_BYTES);
}

bool step_loads_to_compare(const ToolInsn *insn, const ToolAccess *access)
{
    return access->reads && !access->writes && access->size_bytes >= 8 &&
           lookahead_is_compared(insn);
}

ToolStep step_calling(ToolCallFn *fn, const ToolInsn *insn, const DefinednessStep *step)
{
    const u32 preserved = 1u << RBX | 1u << RBP | 1u << R12 | 1u << R13 | 1u << R14 | 1u << R15;
    return (ToolStep){.fn = fn, .arg = step_kept(step),
                      .gprs = insn_gprs_used(insn) & preserved,
                      .vectors = definedness_needs_vectors(step)};
}

ToolStep step_of(const ToolInsn *insn, DefinednessStep *step, const ToolAccess *access,
                 u32 forgotten)
{
    if (access && step_loads_to_compare(insn, access))
        definedness_set_compared(step);
    ToolStep call = step_calling(access_step, insn, step);
    AccessMove move = {.step = (DefinednessStep *)call.arg, .forgotten = forgotten};
    if (definedness_move(step, &move.move)) {
        call.fn = access_move(&move.move);
        call.brief = access_brief_move(&move.move);
        call.arg = (u64)step_keep(&move, sizeof(move));
    }
    return call;
}

MemberSet step_overwrites(const DefinednessStep *step, MemberSet low)
{
    DefinednessMove move;
    MemberSet members = definedness_overwrites(step);
    bool moves = definedness_move(step, &move) || definedness_is_constant(step, &move);
    if (moves && move.to != MOVE_MEMORY && move.to_member >= 32) {
        MemberSet vector = 1ull << move.to_member;
        if (move.written == move.whole || (move.written == 16 && low & vector))
            members |= vector;
    }
    return members & ~(definedness_reads(step) | definedness_address(step));
}

static StepGist find_gist(const ToolInsn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    definedness_prepare(insn, step);
    return (StepGist){
        .reads = definedness_reads(step) | definedness_address(step),
        .writes = definedness_writes(step),
        .overwrites = step_overwrites(step, 0),
        .overwrites_low = step_overwrites(step, MEMBERS_VECTOR),
    };
}

// Looking ahead asks for thousands of instructions, of few shapes.
StepGist step_gist(const ToolInsn *insn)
{
    static StepGist gists[INSN_SHAPES_MAX];
    static u64 known[INSN_SHAPES_MAX / 64];
    static u32 forgotten;
    u32 shape = insn_shape_number(insn);
    if (forgotten != decode_forgotten) {
        memset(known, 0, sizeof(known));
        forgotten = decode_forgotten;
    }
    if (shape == INSN_SHAPES_MAX || !definedness_is_fixed(insn))
        return find_gist(insn);
    if (!(known[shape / 64] >> shape % 64 & 1)) {
        gists[shape] = find_gist(insn);
        known[shape / 64] |= 1ull << shape % 64;
    }
    return gists[shape];
}

MemberSet step_forgets(const ToolInsn *insn, const DefinednessStep *step, MemberSet current,
                       MemberSet low, u32 *ret_bytes)
{
    enum { WHOLE_BYTES = 16 };
    DefinednessMove move;
    MemberSet passed;
    *ret_bytes = 0;
    if (!definedness_move(step, &move) || move.to != MOVE_MEMORY ||
        !(current >> move.from_member & 1))
        return 0;
    MemberSet member = 1ull << move.from_member;
    MemberSet dead = lookahead_dead(insn->pc + insn->len, member, low, &passed);
    if (move.size >= WHOLE_BYTES)
        dead |= passed;
    if (dead)
        *ret_bytes = move.from_member < 32 ? 8 : member & low ? WHOLE_BYTES : 64;
    return dead;
}

void step_emit(ToolBlock *block, const ToolStep *step, const ToolAccess *access)
{
    for (u32 left = step->gprs; left; left &= left - 1)
        tool_store_gpr(block, (unsigned)__builtin_ctz(left));
    for (u32 left = step->vectors; left; left &= left - 1)
        tool_store_vector(block, (unsigned)__builtin_ctz(left));
    stats_count(block, MEMCHECK_STAT_STEPS);
    if (access)
        tool_call_access(block, access, step->fn, step->arg);
    else
        tool_call(block, step->fn, step->arg);
}

bool step_is_repeated(const ToolInsn *insn)
{
    InsnForm room;
    return insn_form(insn, &room)->is_repeated;
}

bool step_is_possible(const ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step,
                     const ToolAccess *accesses, unsigned count)
{
    bool can = insn->lowering == LOWER_COPY && !definedness_has_lanes(step) &&
               !definedness_is_state(step) && insn->mnemonic != ZYDIS_MNEMONIC_XLAT;
    for (unsigned i = 0; i < count; i++)
        can = can && tool_shadow_can_check(block, &accesses[i]);
    return can && !(count && step_is_repeated(insn));
}

static bool keeps_rsp(const ToolInsn *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_POP || insn->mnemonic == ZYDIS_MNEMONIC_PUSH ||
           insn->mnemonic == ZYDIS_MNEMONIC_RET || insn->mnemonic == ZYDIS_MNEMONIC_CALL;
}

MemberSet step_leaves(const ToolInsn *insn, const DefinednessStep *step)
{
    return definedness_writes(step) & ~(keeps_rsp(insn) ? MEMBER_GPR(RSP) : 0);
}
