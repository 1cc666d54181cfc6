// SPDX-License-Identifier: MIT
//
// See copies.h.
#include "tools/memcheck/copies.h"

#include "tools/memcheck/checks.h"
#include "tools/memcheck/known.h"
#include "tools/memcheck/lookahead.h"
#include "tools/memcheck/often.h"
#include "tools/memcheck/steps.h"

enum {
    INSNS_MAX = 40,       // from the first load to the last store
    OTHERS_MAX = 8,       // operands between them that are no part of the copy
    WORDS_MAX = 16,       // guards on either side
    DISTANCE_MAX = 1024,  // between the operands of one side, which lie on two pages at most
    DISP_MAX = 1 << 30,
    ACCESSES_MAX = 4,
};

static const ToolInsn *block_insns, *block_end;
static u64 covered; // bit i: instruction i of the block belongs to a copy

void copies_begin(const ToolInsn *insns, const ToolInsn *end)
{
    block_insns = insns;
    block_end = end;
    covered = 0;
}

// Bytes at a constant distance from a register.
typedef struct Span {
    u8 base;
    bool is_written;
    i64 low, high;
} Span;

static bool span_of(const ToolAccess *access, Span *ret_span)
{
    const InsnAddress *a = &access->address;
    *ret_span = (Span){a->base, access->writes, a->disp, a->disp + access->size_bytes};
    return access->is_plain && a->is_one && a->base != INSN_NO_REG && a->index == INSN_NO_REG &&
           !a->segment && !a->is_narrow && !a->is_hidden && !a->is_rip &&
           a->disp < DISP_MAX && a->disp > (a->base == RSP ? -1 : -DISP_MAX);
}

static bool meet(const Span *a, const Span *b)
{
    return a->base == b->base && a->low < b->high && b->low < a->high;
}

// A load that waits for its store, or both.
typedef struct Pair {
    const ToolInsn *load, *store; // store: NULL while there is none
    Span from, to;
    u8 member;
} Pair;

typedef struct Search {
    Pair pairs[COPY_PIECES_MAX];
    unsigned pair_count;
    Span others[OTHERS_MAX]; // that are no part of it
    unsigned other_count;
    u8 from_base, to_base;   // the latter is INSN_NO_REG while none is known
    u32 gprs_written;        // by instructions so far
    MemberSet members;       // that pairs go through
    const ToolInsn *last;    // the last store
} Search;

static Pair *pair_that_waits(Search *s, unsigned member)
{
    for (unsigned i = 0; i < s->pair_count; i++) {
        if (!s->pairs[i].store && s->pairs[i].member == member)
            return &s->pairs[i];
    }
    return NULL;
}

static bool add_other(Search *s, const Span *span)
{
    if (s->other_count == OTHERS_MAX)
        return false;
    s->others[s->other_count++] = *span;
    return true;
}

// An operand of another instruction. Where the copy goes to is not known before its first store:
// it will be one of the two sides.
static bool take_span(Search *s, const Span *span)
{
    if (s->to_base == INSN_NO_REG && span->base != s->from_base &&
        !(s->gprs_written >> span->base & 1))
        s->to_base = span->base;
    return (span->base == s->from_base || span->base == s->to_base) && add_other(s, span);
}

// False: the search ends before the instruction. The same of the two below.
static bool take_load(Search *s, const ToolInsn *insn, const DefinednessMove *move,
                      const Span *span)
{
    unsigned member = move->to_member;
    if (pair_that_waits(s, member) || s->pair_count == COPY_PIECES_MAX)
        return false;
    s->pairs[s->pair_count++] = (Pair){.load = insn, .from = *span, .member = (u8)member};
    s->members |= 1ull << member;
    return true;
}

static bool take_store(Search *s, const ToolInsn *insn, const DefinednessMove *move,
                       const Span *span)
{
    Pair *pair = pair_that_waits(s, move->from_member);
    bool is_new_base = s->to_base == INSN_NO_REG;
    bool has_base = span->base == s->to_base ||
                    (is_new_base && !(s->gprs_written >> span->base & 1));
    if (!pair || !has_base || pair->from.high - pair->from.low != span->high - span->low)
        return !(s->members >> move->from_member & 1) && take_span(s, span);
    s->to_base = span->base;
    pair->store = insn;
    pair->to = *span;
    s->last = insn;
    return true;
}

// An instruction between them: it may access other memory at either side.
static bool take_other(Search *s, const DefinednessStep *step, const ToolAccess *accesses,
                       unsigned count)
{
    MemberSet touched = definedness_reads(step) | definedness_writes(step) |
                        definedness_address(step);
    if (touched & s->members)
        return false;
    for (unsigned i = 0; i < count; i++) {
        Span span;
        if (!span_of(&accesses[i], &span) || !take_span(s, &span))
            return false;
    }
    return true;
}

static bool is_move_of_words(const DefinednessMove *move)
{
    return move->size == 4 || move->size == 8 || move->size == 16 || move->size == 32;
}

static bool take(Search *s, const ToolInsn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    ToolAccess accesses[ACCESSES_MAX];
    DefinednessMove move;
    Span span;
    InsnForm form;
    if (insn->lowering != LOWER_COPY)
        return false;
    unsigned count = touches_nothing(insn) ? 0 : tool_accesses(insn, accesses, ACCESSES_MAX);
    u32 written = insn_form(insn, &form)->gprs_written;
    if (written & (1u << s->from_base | 1u << s->to_base | 1u << RSP))
        return false;
    definedness_prepare(insn, step);
    s->gprs_written |= written;
    bool is_move = count == 1 && definedness_move(step, &move) && is_move_of_words(&move) &&
                   span_of(&accesses[0], &span);
    if (is_move && move.from == MOVE_MEMORY && span.base == s->from_base)
        return take_load(s, insn, &move, &span);
    if (is_move && move.to == MOVE_MEMORY)
        return take_store(s, insn, &move, &span);
    return take_other(s, step, accesses, count);
}

// --------------------------------------------------------------- what was found

static u32 size_of(const Pair *pair)
{
    return (u32)(pair->from.high - pair->from.low);
}

// A pair that is none after all: two instructions like others.
static bool drop(Search *s, unsigned index)
{
    Pair pair = s->pairs[index];
    s->pairs[index] = s->pairs[--s->pair_count];
    return add_other(s, &pair.from) && (!pair.store || add_other(s, &pair.to));
}

// Drops what has no store, too much, and what goes through a register that is read later.
static bool drop_unfit(Search *s)
{
    MemberSet members = 0, whole = 0, wide = 0, passed;
    for (unsigned i = 0; i < s->pair_count; i++) {
        if (s->pairs[i].store) {
            MemberSet member = 1ull << s->pairs[i].member;
            members |= member;
            whole |= size_of(&s->pairs[i]) >= 16 ? member : 0;
            wide |= size_of(&s->pairs[i]) > 16 ? member : 0;
        }
    }
    MemberSet dead = lookahead_dead(s->last->pc + s->last->len, members, members & ~wide, &passed);
    dead |= passed & whole;
    u32 words = 0;
    for (unsigned i = 0; i < s->pair_count;) {
        const Pair *pair = &s->pairs[i];
        words += (size_of(pair) + 7) / 8;
        if (pair->store && dead >> pair->member & 1 && words <= WORDS_MAX) {
            i++;
            continue;
        }
        words -= (size_of(pair) + 7) / 8;
        if (!drop(s, i))
            return false;
    }
    return s->pair_count > 0;
}

// Whether it makes no difference, as far as constants tell, that all is copied before the first.
static bool is_in_order(const Search *s)
{
    for (unsigned i = 0; i < s->pair_count; i++) {
        const Pair *pair = &s->pairs[i];
        for (unsigned k = 0; k < s->pair_count; k++) {
            if (meet(&pair->to, &s->pairs[k].from) || (k != i && meet(&pair->to, &s->pairs[k].to)))
                return false;
        }
        for (unsigned k = 0; k < s->other_count; k++) {
            const Span *other = &s->others[k];
            if (meet(&pair->to, other) || (other->is_written && meet(&pair->from, other)))
                return false;
        }
    }
    return true;
}

static void widen(CopySide *side, i64 low, i64 high)
{
    side->low = low < side->low ? (i16)low : side->low;
    side->high = high > side->high ? (i16)high : side->high;
}

static bool is_near(i64 distance)
{
    return distance >= -DISTANCE_MAX && distance <= DISTANCE_MAX;
}

// All that is accessed from either register, which is asked for when the copy is made: two
// registers may point to the same.
static bool find_sides(const Search *s, CopyRun *run)
{
    i64 from = s->pairs[0].from.low, to = s->pairs[0].to.low;
    for (unsigned i = 0; i < s->pair_count; i++) {
        const Pair *pair = &s->pairs[i];
        i64 a = pair->from.low - from, b = pair->to.low - to;
        if (!is_near(a) || !is_near(b))
            return false;
        run->pieces[i] = (CopyPiece){(i16)a, (i16)b, (u8)size_of(pair), 0};
        run->members |= 1ull << pair->member;
        widen(&run->from, a, a + size_of(pair));
        widen(&run->to, b, b + size_of(pair));
    }
    for (unsigned i = 0; i < s->other_count; i++) {
        const Span *other = &s->others[i];
        bool is_from = other->base == s->from_base;
        i64 start = is_from ? from : to;
        if (!is_near(other->low - start) || !is_near(other->high - start))
            return false;
        if (is_from || other->is_written)
            widen(is_from ? &run->from : &run->to, other->low - start, other->high - start);
    }
    run->count = (u8)s->pair_count;
    run->to_base = s->to_base;
    run->to_disp = (i32)to;
    run->is_apart = s->from_base == s->to_base;
    return true;
}

static ToolAccess access_at(const Span *span)
{
    return (ToolAccess){
        .address = {.base = span->base, .index = INSN_NO_REG, .is_one = true, .disp = span->low},
        .size_bytes = (u32)(span->high - span->low),
        .is_plain = true,
    };
}

static void emit(ToolBlock *block, const Search *s, const CopyRun *run, MemberSet asked)
{
    ToolAccess accesses[2 * COPY_PIECES_MAX];
    for (unsigned i = 0; i < s->pair_count; i++) {
        accesses[2 * i] = access_at(&s->pairs[i].from);
        accesses[2 * i + 1] = access_at(&s->pairs[i].to);
        covered |= 1ull << (s->pairs[i].load - block_insns);
        covered |= 1ull << (s->pairs[i].store - block_insns);
    }
    const ToolStep call = {
        .fn = access_copy,
        .arg = (u64)step_keep(run, sizeof(*run)),
        .brief = access_brief_copy(run),
        .gprs = s->to_base == RSP ? 0 : 1u << s->to_base,
        .counts = stats_of_step(block, true),
    };
    tool_shadow_guards_step(block, accesses, 2 * s->pair_count, asked, &call);
    known_nothing();
}

// From a load that reads `first` on.
static bool insert_from(ToolBlock *block, const ToolInsn *insn, const Span *first,
                        MemberSet *current)
{
    Search s; // its arrays are as good as they are
    s.pair_count = s.other_count = 0;
    s.from_base = first->base;
    s.to_base = INSN_NO_REG;
    s.gprs_written = 0;
    s.members = 0;
    s.last = NULL;
    for (const ToolInsn *at = insn; at < block_end && at - insn < INSNS_MAX && take(&s, at); at++)
        ;
    CopyRun run = {0};
    MemberSet bases = 1ull << s.from_base | (s.last ? 1ull << s.to_base : 0);
    if (!s.last || *current & bases || !drop_unfit(&s) || s.pairs[0].load != insn ||
        !is_in_order(&s) || !find_sides(&s, &run))
        return false;
    emit(block, &s, &run, run.members & *current);
    *current &= ~run.members;
    return true;
}

bool copies_insert(ToolBlock *block, const ToolInsn *insn, MemberSet *current)
{
    ToolAccess access;
    Span span;
    if (covered >> (insn - block_insns) & 1)
        return true;
    return often_fails(insn->pc) && tool_flags_are_dead(block) &&
           tool_accesses(insn, &access, 1) == 1 && access.reads && span_of(&access, &span) &&
           insert_from(block, insn, &span, current);
}
