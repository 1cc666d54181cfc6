// SPDX-License-Identifier: MIT
//
// See copies.h.
#include "tools/memcheck/translate/copies.h"

#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/translate.h"

enum {
    INSNS_MAX = 40,       // from the first load to the last store
    OTHERS_MAX = 16,      // operands between them that are no part of the copy
    WORDS_MAX = 16,       // guards on either side
    GUARDS_MAX = 32,      // in all, of 8 bytes each
    DISTANCE_MAX = 1024,  // between the operands of one side, which lie on two pages at most
    DISP_MAX = 1 << 30,
    ACCESSES_MAX = 4,
};

static const ToolInsn *block_insns, *block_end;
static u64 covered; // bit i: instruction i of the block belongs to a copy
static u64 assured; // the same: what it loads has been asked for by the guards of one
static const ToolInsn *last_store; // of the copies so far

void copies_begin(const ToolInsn *insns, const ToolInsn *end)
{
    block_insns = insns;
    block_end = end;
    covered = assured = 0;
    last_store = insns - 1;
}

static bool has_bit(u64 bits, const ToolInsn *insn)
{
    return bits >> (insn - block_insns) & 1;
}

bool copies_assures(const ToolInsn *insn)
{
    return has_bit(assured, insn);
}

bool copies_is_within(const ToolInsn *insn)
{
    return insn <= last_store;
}

// Bytes at a constant distance from what a register holds before the first load, or from 0.
typedef struct Span {
    u8 base; // INSN_NO_REG: none
    bool is_written;
    const ToolInsn *insn;
    i64 low, high;
} Span;

static bool meet(const Span *a, const Span *b)
{
    return a->base == b->base && a->low < b->high && b->low < a->high;
}

// The sum of what a general register held before the first load, and a constant.
typedef struct Held {
    u8 base; // INSN_NO_REG: it holds something else
    i64 added;
} Held;

// A load that waits for its store, or both.
typedef struct Pair {
    const ToolInsn *load, *store; // store: NULL while there is none
    Span from, to;
    u8 member;
} Pair;

typedef struct Search {
    Pair pairs[COPY_PIECES_MAX];
    unsigned pair_count;
    Span others[OTHERS_MAX];   // that are no part of it
    unsigned other_count;
    bool is_full;              // there were more of them
    bool stores_others;        // some of what they load may be stored by them
    u8 from_base, to_base;     // the latter is INSN_NO_REG while none is known
    Held gprs[GPR_COUNT];      // what they hold by now
    MemberSet held;            // have what a pair has loaded
    MemberSet unsure, loaded;  // may be undefined: since before the copy, by other loads
    MemberSet asked;           // of the former: others have read them
    const ToolInsn *last;      // the last store
} Search;

static bool span_of(const Search *s, const ToolInsn *insn, const ToolAccess *access,
                    Span *ret_span)
{
    const InsnAddress *a = &access->address;
    const Held *held = a->base == INSN_NO_REG ? NULL : &s->gprs[a->base];
    if (!access->is_plain || !a->is_one || a->index != INSN_NO_REG || a->segment ||
        a->is_narrow || a->is_hidden || (held && held->base == INSN_NO_REG))
        return false;
    u8 base = held ? held->base : INSN_NO_REG;
    i64 low = a->disp + (held ? held->added : 0) + (a->is_rip ? (i64)(insn->pc + insn->len) : 0);
    *ret_span = (Span){base, access->writes, insn, low, low + access->size_bytes};
    return low < DISP_MAX && low > (base == RSP ? -1 : -DISP_MAX);
}

static Pair *pair_that_waits(Search *s, MemberSet members)
{
    for (unsigned i = 0; i < s->pair_count; i++) {
        if (!s->pairs[i].store && members >> s->pairs[i].member & 1)
            return &s->pairs[i];
    }
    return NULL;
}

static bool add_other(Search *s, const Span *span)
{
    s->is_full |= s->other_count == OTHERS_MAX;
    if (!s->is_full)
        s->others[s->other_count++] = *span;
    return !s->is_full;
}

// A pair that is none after all: two instructions like others.
static bool drop(Search *s, Pair *pair)
{
    Pair was = *pair;
    *pair = s->pairs[--s->pair_count];
    s->stores_others |= was.store != NULL;
    return add_other(s, &was.from) && (!was.store || add_other(s, &was.to));
}

// The registers are used for something else than to store them.
static bool drop_waiting(Search *s, MemberSet members)
{
    for (Pair *pair; (pair = pair_that_waits(s, members));) {
        MemberSet member = 1ull << pair->member;
        s->held &= ~member;
        s->loaded |= member;
        if (!drop(s, pair))
            return false;
    }
    return true;
}

// False: the search ends before the instruction. The same of the two below.
static bool take_load(Search *s, const ToolInsn *insn, const DefinednessMove *move,
                      const Span *span)
{
    MemberSet member = 1ull << move->to_member;
    if (!drop_waiting(s, member) || s->pair_count == COPY_PIECES_MAX)
        return false;
    s->pairs[s->pair_count++] = (Pair){.load = insn, .from = *span, .member = move->to_member};
    s->held |= member;
    s->unsure &= ~member;
    s->loaded &= ~member;
    return true;
}

static bool take_store(Search *s, const ToolInsn *insn, const DefinednessMove *move,
                       const Span *span)
{
    Pair *pair = pair_that_waits(s, 1ull << move->from_member);
    if (!pair || (s->to_base != INSN_NO_REG && span->base != s->to_base) ||
        span->base == INSN_NO_REG || pair->from.high - pair->from.low != span->high - span->low)
        return false;
    s->to_base = span->base;
    pair->store = insn;
    pair->to = *span;
    s->last = insn;
    return true;
}

// An instruction between them. What it stores must not be undefined unless that is noticed by a
// guard of the copy: it may store to either side, by another register. And nothing may leave the
// block before the last store, for one where the copy is not known of.
static bool take_other(Search *s, const ToolBlock *block, const ToolInsn *insn,
                       const DefinednessStep *step, const ToolAccess *accesses, unsigned count)
{
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    MemberSet writes = definedness_writes(step), overwrites = step_overwrites(step, 0);
    if (!drop_waiting(s, reads | writes) || (reads | (writes & ~overwrites)) & s->held ||
        !step_is_possible(block, insn, step, accesses, count))
        return false;
    bool loads = false, stores = false;
    for (unsigned i = 0; i < count; i++) {
        Span span;
        if ((accesses[i].reads && accesses[i].writes) ||
            !span_of(s, insn, &accesses[i], &span) || !add_other(s, &span))
            return false;
        loads |= accesses[i].reads;
        stores |= accesses[i].writes;
    }
    bool has_loaded = loads || reads & s->loaded, is_unsure = reads & s->unsure;
    s->stores_others |= stores && has_loaded;
    s->asked |= reads & s->unsure;
    s->held &= ~writes;
    s->loaded = has_loaded ? s->loaded | writes : s->loaded & ~overwrites;
    s->unsure = is_unsure ? s->unsure | writes : s->unsure & ~overwrites;
    return !(stores && is_unsure);
}

static bool is_move_of_words(const DefinednessMove *move)
{
    return move->size == 4 || move->size == 8 || move->size == 16 || move->size == 32;
}

// What `reg`, which the instruction writes, holds behind it.
static Held held_behind(const Search *s, const ToolInsn *insn, const InsnForm *form, unsigned reg)
{
    bool is_lea = insn->mnemonic == ZYDIS_MNEMONIC_LEA && !form->lea_indexed;
    unsigned from = reg;
    i64 amount = 0;
    if (form->dst == reg && insn->mnemonic == ZYDIS_MNEMONIC_MOV && form->src != INSN_NO_REG)
        from = form->src;
    else if (form->dst == reg && is_lea && form->lea_base != INSN_NO_REG)
        from = form->lea_base, amount = insn_disp(insn);
    else if (!known_adds(insn, reg, &amount))
        return (Held){INSN_NO_REG, 0};
    return (Held){s->gprs[from].base, s->gprs[from].added + amount};
}

// What is left of the stack is marked by who leaves it.
static bool note_written(Search *s, const ToolInsn *insn)
{
    InsnForm room;
    const InsnForm *form = insn_form(insn, &room);
    i64 sp = s->gprs[RSP].added;
    for (u32 left = form->gprs_written; left; left &= left - 1) {
        unsigned reg = (unsigned)__builtin_ctz(left);
        s->gprs[reg] = held_behind(s, insn, form, reg);
    }
    return s->gprs[RSP].base == RSP && s->gprs[RSP].added <= sp;
}

static bool take(Search *s, const ToolBlock *block, const ToolInsn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    ToolAccess accesses[ACCESSES_MAX];
    DefinednessMove move;
    Span span;
    if (insn->lowering != LOWER_COPY)
        return false;
    unsigned count = touches_nothing(insn) ? 0 : tool_accesses(insn, accesses, ACCESSES_MAX);
    definedness_prepare(insn, step);
    bool is_move = count == 1 && definedness_move(step, &move) && is_move_of_words(&move) &&
                   span_of(s, insn, &accesses[0], &span);
    bool is_load = is_move && move.from == MOVE_MEMORY && span.base == s->from_base;
    bool is_store = is_move && move.to == MOVE_MEMORY;
    bool is_taken = is_load ? take_load(s, insn, &move, &span)
                            : (is_store && take_store(s, insn, &move, &span)) ||
                                  take_other(s, block, insn, step, accesses, count);
    return is_taken && note_written(s, insn);
}

// --------------------------------------------------------------- what was found

static u32 size_of(const Pair *pair)
{
    return (u32)(pair->from.high - pair->from.low);
}

static u32 words_of(const Span *span)
{
    return (u32)(span->high - span->low + 7) / 8;
}

static void forget_others_behind(Search *s, const ToolInsn *last)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->other_count; i++) {
        if (s->others[i].insn <= last)
            s->others[count++] = s->others[i];
    }
    s->other_count = count;
}

// Drops what has no store, too much, and what goes through a register that is read later. Of
// vectors in `unsure` the upper halves may be undefined, which a copy leaves as they are.
static bool drop_unfit(Search *s, MemberSet unsure)
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
    MemberSet dead = lookahead_dead(s->last->pc + s->last->len, members,
                                    members & ~(wide | unsure), &passed);
    dead |= passed & whole;
    u32 words = 0;
    for (unsigned i = 0; i < s->pair_count;) {
        const Pair *pair = &s->pairs[i];
        words += words_of(&pair->from);
        if (pair->store && dead >> pair->member & 1 && words <= WORDS_MAX) {
            i++;
            continue;
        }
        words -= words_of(&pair->from);
        if (!drop(s, &s->pairs[i]))
            return false;
    }
    forget_others_behind(s, s->last);
    return s->pair_count > 0;
}

// Whether it makes no difference, as far as constants tell, that all is copied before the first.
static bool is_in_order(const Search *s)
{
    for (unsigned i = 0; i < s->pair_count; i++) {
        const Pair *pair = &s->pairs[i];
        for (unsigned k = 0; k < s->pair_count; k++) {
            const Pair *next = &s->pairs[k];
            if (meet(&pair->to, &next->from) ||
                (meet(&pair->to, &next->to) &&
                 pair->to.low - pair->from.low != next->to.low - next->from.low))
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

// Memory that other registers lead to, by register.
static bool add_stranger(CopyRun *run, const Span *span)
{
    unsigned i = 0;
    while (i < run->stranger_count && run->strangers[i].base != span->base)
        i++;
    if (i == COPY_STRANGERS_MAX)
        return false;
    CopyStranger *stranger = &run->strangers[i];
    if (i == run->stranger_count) {
        *stranger = (CopyStranger){(i32)span->low, (i32)span->high, span->base, false, {0}};
        run->stranger_count++;
    }
    stranger->low = span->low < stranger->low ? (i32)span->low : stranger->low;
    stranger->high = span->high > stranger->high ? (i32)span->high : stranger->high;
    stranger->is_written |= span->is_written;
    return true;
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
        if (!is_from && other->base != s->to_base) {
            if (!add_stranger(run, other))
                return false;
            continue;
        }
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

static u32 gprs_of(const Search *s, const CopyRun *run)
{
    u32 gprs = 1u << s->from_base | 1u << run->to_base;
    for (unsigned i = 0; i < run->stranger_count; i++)
        gprs |= 1u << run->strangers[i].base;
    return gprs & ~(1u << RSP | 1u << INSN_NO_REG);
}

// What others load is defined before the copy, or the step leaves it all to the steps of the
// instructions. Where that would be often, it has a step of its own.
static bool is_assured(const Span *other)
{
    return !other->is_written && !often_fails(other->insn->pc);
}

// Whether the block has room for the copy and all that is between. If it ended there, who goes on
// would not know of the copy.
static bool is_room(const ToolBlock *block, const Search *s, const ToolInsn *insn)
{
    u32 guards = 0, others = 0, insns = (u32)(s->last + 1 - insn);
    for (unsigned i = 0; i < s->pair_count; i++)
        guards += words_of(&s->pairs[i].from) + words_of(&s->pairs[i].to);
    for (unsigned i = 0; i < s->other_count; i++)
        others += words_of(&s->others[i]);
    return guards + others <= GUARDS_MAX &&
           tool_has_room(block, insns, guards + 2 * (others + insns)); // and two of the state
}

// Something undefined may be stored, by another of the others, before this one loads.
static bool may_be_stored_before(const Search *s, const Span *other)
{
    for (unsigned i = 0; i < s->other_count && s->stores_others; i++) {
        if (s->others[i].is_written && s->others[i].insn < other->insn)
            return true;
    }
    return false;
}

static bool ask_for_others(const Search *s, CopyRun *run)
{
    for (unsigned i = 0; i < s->other_count; i++) {
        const Span *other = &s->others[i];
        if (!is_assured(other))
            continue;
        if (run->asked_count == COPY_ASKED_MAX || may_be_stored_before(s, other))
            return false;
        run->asked[run->asked_count++] =
            (CopyAsked){(i32)other->low, other->base, (u8)(other->high - other->low), {0}};
    }
    return true;
}

static void emit(ToolBlock *block, const Search *s, const CopyRun *run, MemberSet asked)
{
    ToolAccess accesses[2 * COPY_PIECES_MAX + OTHERS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < s->pair_count; i++) {
        accesses[count++] = access_at(&s->pairs[i].from);
        accesses[count++] = access_at(&s->pairs[i].to);
        covered |= 1ull << (s->pairs[i].load - block_insns);
        covered |= 1ull << (s->pairs[i].store - block_insns);
    }
    for (unsigned i = 0; i < s->other_count; i++) {
        const Span *other = &s->others[i];
        if (is_assured(other))
            assured |= 1ull << (other->insn - block_insns);
        if (is_assured(other) || (s->stores_others && !other->is_written))
            accesses[count++] = access_at(other);
    }
    last_store = s->last;
    tool_keep_whole(block, s->last);
    const ToolStep call = {
        .fn = access_copy,
        .arg = (u64)step_keep(run, sizeof(*run)),
        .brief = access_brief_copy(run),
        .gprs = gprs_of(s, run),
        .counts = stats_of_step(block, true),
    };
    tool_shadow_guards_step(block, accesses, count, asked, &call);
    known_nothing();
}

// The load from which a copy may be found that begins before `insn`: itself, or one behind it where
// it is too late, as the flags that `insn` makes are live.
static const ToolInsn *load_to_begin_with(const ToolBlock *block, const ToolInsn *insn)
{
    enum { AHEAD = 6 };
    if (!tool_flags_are_dead(block))
        return NULL;
    if (often_fails(insn->pc))
        return insn;
    for (const ToolInsn *at = insn + 1; at < block_end && at - insn <= AHEAD; at++) {
        if (tool_flags_are_dead_at(block, at) || at->lowering != LOWER_COPY)
            return NULL;
        if (often_fails(at->pc))
            return at;
    }
    return NULL;
}

static bool has_load(const Search *s, const ToolInsn *load)
{
    for (unsigned i = 0; i < s->pair_count; i++) {
        if (s->pairs[i].load == load)
            return true;
    }
    return false;
}

bool copies_insert(ToolBlock *block, const ToolInsn *insn, MemberSet *current)
{
    ToolAccess access;
    const ToolInsn *load;
    if (has_bit(covered, insn))
        return true;
    if (copies_is_within(insn) || !(load = load_to_begin_with(block, insn)) ||
        tool_accesses(load, &access, 1) != 1 || !access.reads)
        return false;
    Search s; // most of its arrays are as good as they are
    s.pair_count = s.other_count = 0;
    s.stores_others = s.is_full = false;
    s.from_base = access.address.base;
    s.to_base = INSN_NO_REG;
    s.held = s.loaded = s.asked = 0;
    s.unsure = *current;
    s.last = NULL;
    for (unsigned i = 0; i < GPR_COUNT; i++)
        s.gprs[i] = (Held){(u8)i, 0};
    if (s.from_base == INSN_NO_REG)
        return false;
    for (const ToolInsn *at = insn; at < block_end && at - insn < INSNS_MAX && take(&s, block, at);
         at++)
        ;
    CopyRun run = {0};
    MemberSet bases = 1ull << s.from_base | (s.last ? 1ull << s.to_base : 0);
    if (!s.last || s.is_full || *current & bases || !drop_unfit(&s, *current) ||
        !has_load(&s, load) || !is_in_order(&s) || !find_sides(&s, &run) ||
        run.members & s.asked || !ask_for_others(&s, &run) || !is_room(block, &s, insn))
        return false;
    emit(block, &s, &run, run.members & *current);
    *current &= ~run.members;
    return has_bit(covered, insn);
}
