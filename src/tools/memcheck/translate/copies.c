// SPDX-License-Identifier: MIT
//
// See values.h. Copies of structures, as compilers write them: loads and stores by turns, or all
// loads and then all stores, with other instructions between them. Where they often meet undefined
// bytes (often.h) the V bytes of all are copied by one step before the first, and none of them
// needs a guard or a step of its own (docs/design/mixed-blocks.md).
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/translate.h"
#include "tools/memcheck/translate/values.h"

enum {
    INSNS_MAX = 40,       // from the first load to the last store
    OTHERS_MAX = 16,      // operands between them that are no part of the copy
    WORDS_MAX = 16,       // guards on either side
    GUARDS_MAX = 32,      // in all, of 8 bytes each
    DISTANCE_MAX = 1024,  // between the operands of one side, which lie on two pages at most
    DISP_MAX = 1 << 30,
};

// Bytes at a constant distance from what a register holds before the first load, or from 0.
typedef struct Span {
    u8 base; // INSN_NO_REG: none
    bool is_written;
    PlanInsn *at;
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
    PlanInsn *load, *store; // store: NULL while there is none
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
    PlanInsn *last;            // the last store
} Search;

static bool span_of(const Search *s, PlanInsn *at, const ToolAccess *access, Span *ret_span)
{
    const ToolInsn *insn = at->insn;
    const InsnAddress *a = &access->address;
    const Held *held = a->base == INSN_NO_REG ? NULL : &s->gprs[a->base];
    if (!access->is_plain || !a->is_one || a->index != INSN_NO_REG || a->segment ||
        a->is_narrow || a->is_hidden || (held && held->base == INSN_NO_REG))
        return false;
    u8 base = held ? held->base : INSN_NO_REG;
    i64 low = a->disp + (held ? held->added : 0) + (a->is_rip ? (i64)(insn->pc + insn->len) : 0);
    *ret_span = (Span){base, access->writes, at, low, low + access->size_bytes};
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
static bool take_load(Search *s, PlanInsn *at, const DefinednessMove *move, const Span *span)
{
    MemberSet member = 1ull << move->to_member;
    if (!drop_waiting(s, member) || s->pair_count == COPY_PIECES_MAX)
        return false;
    s->pairs[s->pair_count++] = (Pair){.load = at, .from = *span, .member = move->to_member};
    s->held |= member;
    s->unsure &= ~member;
    s->loaded &= ~member;
    return true;
}

static bool take_store(Search *s, PlanInsn *at, const DefinednessMove *move, const Span *span)
{
    Pair *pair = pair_that_waits(s, 1ull << move->from_member);
    if (!pair || (s->to_base != INSN_NO_REG && span->base != s->to_base) ||
        span->base == INSN_NO_REG || pair->from.high - pair->from.low != span->high - span->low)
        return false;
    s->to_base = span->base;
    pair->store = at;
    pair->to = *span;
    s->last = at;
    return true;
}

// An instruction between them. What it stores must not be undefined unless that is noticed by a
// guard of the copy: it may store to either side, by another register. And nothing may leave the
// block before the last store, for one where the copy is not known of.
static bool take_other(Search *s, const ToolBlock *block, PlanInsn *at, const DefinednessStep *step,
                       unsigned count)
{
    const ToolAccess *accesses = at->accesses;
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    MemberSet writes = definedness_writes(step), overwrites = step_overwrites(step, 0);
    if (!drop_waiting(s, reads | writes) || (reads | (writes & ~overwrites)) & s->held ||
        !step_is_possible(block, at->insn, step, accesses, count))
        return false;
    bool loads = false, stores = false;
    for (unsigned i = 0; i < count; i++) {
        Span span;
        if ((accesses[i].reads && accesses[i].writes) ||
            !span_of(s, at, &accesses[i], &span) || !add_other(s, &span))
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

static bool take(Search *s, const ToolBlock *block, PlanInsn *at)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    DefinednessMove move;
    Span span;
    if (at->insn->lowering != LOWER_COPY)
        return false;
    unsigned count = at->touches_nothing ? 0 : at->named;
    definedness_prepare(at->insn, step);
    bool is_move = count == 1 && definedness_move(step, &move) && is_move_of_words(&move) &&
                   span_of(s, at, &at->accesses[0], &span);
    bool is_load = is_move && move.from == MOVE_MEMORY && span.base == s->from_base;
    bool is_store = is_move && move.to == MOVE_MEMORY;
    bool is_taken = is_load ? take_load(s, at, &move, &span)
                            : (is_store && take_store(s, at, &move, &span)) ||
                                  take_other(s, block, at, step, count);
    return is_taken && note_written(s, at->insn);
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

static void forget_others_behind(Search *s, const PlanInsn *last)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->other_count; i++) {
        if (s->others[i].at <= last)
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
    MemberSet dead = lookahead_dead(s->last->insn->pc + s->last->insn->len, members,
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
    return !other->is_written && !plan_often(other->at);
}

// Whether a block has room for the copy and all that is between, if it begins with it; plan_fit()
// sees to it that it does if there is no room behind what is before the copy.
static bool is_room(const Plan *plan, const Search *s, const PlanInsn *at, u32 *ret_guards,
                    u32 *ret_insns)
{
    u32 guards = 0, others = 0, insns = (u32)(s->last + 1 - at);
    for (unsigned i = 0; i < s->pair_count; i++)
        guards += words_of(&s->pairs[i].from) + words_of(&s->pairs[i].to);
    for (unsigned i = 0; i < s->other_count; i++)
        others += words_of(&s->others[i]);
    *ret_guards = guards + 2 * (others + insns); // and two of the state
    *ret_insns = insns;
    return guards + others <= GUARDS_MAX && tool_has_room(plan->block, insns, *ret_guards) &&
           plan->copied_count + 2 * COPY_PIECES_MAX + OTHERS_MAX <= PLAN_COPIED_MAX;
}

// Something undefined may be stored, by another of the others, before this one loads.
static bool may_be_stored_before(const Search *s, const Span *other)
{
    for (unsigned i = 0; i < s->other_count && s->stores_others; i++) {
        if (s->others[i].is_written && s->others[i].at < other->at)
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

static u16 add_copied(Plan *plan, const Search *s)
{
    u32 first = plan->copied_count;
    for (unsigned i = 0; i < s->pair_count; i++) {
        plan->copied[plan->copied_count++] = access_at(&s->pairs[i].from);
        plan->copied[plan->copied_count++] = access_at(&s->pairs[i].to);
    }
    for (unsigned i = 0; i < s->other_count; i++) {
        const Span *other = &s->others[i];
        if (is_assured(other) || (s->stores_others && !other->is_written))
            plan->copied[plan->copied_count++] = access_at(other);
    }
    return (u16)first;
}

static void note_instructions(const Search *s, PlanInsn *at)
{
    for (unsigned i = 0; i < s->pair_count; i++)
        s->pairs[i].load->is_covered = s->pairs[i].store->is_covered = true;
    for (unsigned i = 0; i < s->other_count; i++)
        s->others[i].at->is_assured |= is_assured(&s->others[i]);
    for (PlanInsn *within = at; within <= s->last; within++)
        within->is_within = true;
}

static void add_copy(Plan *plan, PlanInsn *at, const Search *s, const CopyRun *run, MemberSet asked,
                     u32 guards, u32 insns)
{
    PlanItem *item = plan_add(plan, at, PLACE_VALUES, PLAN_COPY);
    item->copied = add_copied(plan, s);
    item->copied_count = (u16)(plan->copied_count - item->copied);
    item->members = asked;
    item->last = (u16)(s->last - plan->insns);
    item->guards = (u16)guards;
    item->insns = (u16)insns;
    item->step = (ToolStep){
        .fn = access_copy,
        .arg = (u64)step_keep(run, sizeof(*run)),
        .brief = access_brief_copy(run),
        .gprs = gprs_of(s, run),
        .counts = stats_of_step(plan->block, true),
    };
    plan->has_copies = true;
    at->ends_facts = true;
    note_instructions(s, at);
}

// The load from which a copy may be found that begins before the instruction: itself, or one behind
// it where it is too late, as the flags that the instruction makes are live.
static PlanInsn *load_to_begin_with(const Plan *plan, PlanInsn *from)
{
    enum { AHEAD = 6 };
    if (!from->flags_dead)
        return NULL;
    if (plan_often(from))
        return from;
    for (PlanInsn *at = from + 1; at < plan_end(plan) && at - from <= AHEAD; at++) {
        if (at->flags_dead || at->insn->lowering != LOWER_COPY)
            return NULL;
        if (plan_often(at))
            return at;
    }
    return NULL;
}

static bool has_load(const Search *s, const PlanInsn *load)
{
    for (unsigned i = 0; i < s->pair_count; i++) {
        if (s->pairs[i].load == load)
            return true;
    }
    return false;
}

static void search(Search *s, Plan *plan, PlanInsn *from, unsigned base)
{
    s->pair_count = s->other_count = 0;
    s->stores_others = s->is_full = false;
    s->from_base = (u8)base;
    s->to_base = INSN_NO_REG;
    s->held = s->loaded = s->asked = 0;
    s->unsure = plan->state.current;
    s->last = NULL;
    for (unsigned i = 0; i < GPR_COUNT; i++)
        s->gprs[i] = (Held){(u8)i, 0};
    for (PlanInsn *at = from; at < plan_end(plan) && at - from < INSNS_MAX; at++) {
        if (!take(s, plan->block, at))
            break;
    }
}

bool copies_plan(Plan *plan, PlanInsn *at)
{
    PlanInsn *load;
    MemberSet current = plan->state.current;
    if (at->is_covered)
        return true;
    if (at->is_within || !(load = load_to_begin_with(plan, at)) || !load->named ||
        !load->accesses[0].reads || load->accesses[0].address.base == INSN_NO_REG)
        return false;
    Search s; // most of its arrays stay unset
    search(&s, plan, at, load->accesses[0].address.base);
    CopyRun run = {0};
    u32 guards, insns;
    MemberSet bases = 1ull << s.from_base | (s.last ? 1ull << s.to_base : 0);
    if (!s.last || s.is_full || current & bases || !drop_unfit(&s, current) ||
        !has_load(&s, load) || !is_in_order(&s) || !find_sides(&s, &run) ||
        run.members & s.asked || !ask_for_others(&s, &run) ||
        !is_room(plan, &s, at, &guards, &insns))
        return false;
    add_copy(plan, at, &s, &run, run.members & current, guards, insns);
    plan->state.current &= ~run.members;
    return at->is_covered;
}
