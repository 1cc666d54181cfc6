// SPDX-License-Identifier: MIT
//
// plan_guards(): which of the checks are left out, since another has found what they would find,
// and which guards stand ahead of the loads they are for, in clean blocks: where flags are still
// dead, or in the guard of a load beside them. A guard that stands ahead and fails leaves the block
// at an instruction whose own step then finds nothing, and the load meets its own guard in the next
// block; so nothing is told that would not be told without.
#include "tools/memcheck/translate/constants.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/plan.h"

enum { INSNS_MAX = 24, BYTES_MAX = 4 };

// The place of an operand, as the registers are at the instruction where the guard is to stand.
typedef struct Place {
    u8 base, index, scale;
    i64 disp, end;
} Place;

// The load of an instruction. NULL: it loads nothing, or in a way of its own.
static const ToolAccess *find_load(const PlanInsn *at)
{
    const ToolAccess *access = &at->accesses[0];
    bool is_load = at->named && access->reads && access->is_plain && !at->touches_nothing &&
                   at->insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
                   at->insn->mnemonic != ZYDIS_MNEMONIC_XLAT;
    return is_load ? access : NULL;
}

static bool place_of(const ToolInsn *insn, const ToolAccess *access, Place *ret_place)
{
    const InsnAddress *a = &access->address;
    i64 disp = a->disp + (a->is_rip ? (i64)(insn->pc + insn->len) : 0);
    *ret_place = (Place){a->base, a->index, a->index == INSN_NO_REG ? 0 : a->scale, disp,
                         disp + access->size_bytes};
    return a->is_one && !a->segment && !a->is_narrow && !a->is_hidden;
}

// The access to a place.
static ToolAccess access_to(const Place *place, const ToolAccess *like)
{
    ToolAccess access = *like;
    access.address.is_rip = false;
    access.address.disp = place->disp;
    access.size_bytes = (u32)(place->end - place->disp);
    return access;
}

// Whether a guard that is moved from behind the instruction to before it asks the same. A store may
// make defined what it asks for; those to the stack seldom have to do with other pointers.
static bool can_pass(const PlanInsn *at, const Place *place)
{
    const ToolInsn *insn = at->insn;
    bool is_plain = insn->lowering == LOWER_COPY || insn->lowering == LOWER_JCC ||
                    insn->lowering == LOWER_JMP;
    for (unsigned i = 0; i < at->named && is_plain; i++) {
        const ToolAccess *access = &at->accesses[i];
        if (access->writes && (access->address.base != RSP || place->base == RSP))
            return false;
    }
    return is_plain;
}

// The displacement of the base changes with it.
static bool registers_stay(const PlanInsn *at, const Place *place, i64 *moved)
{
    u32 written = at->gprs_written;
    i64 amount;
    if (place->index != INSN_NO_REG && written >> place->index & 1)
        return false;
    if (place->base == INSN_NO_REG || !(written >> place->base & 1))
        return true;
    if (place->base == RSP || !known_adds(at->insn, place->base, &amount))
        return false;
    *moved += amount;
    return true;
}

// -------------------------------------------------------------- loads side by side

static bool is_beside(const Place *a, const Place *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale &&
           a->disp <= b->end && b->disp <= a->end;
}

// The places that are read behind an instruction, and hang together with its own.
static unsigned find_beside(const Plan *plan, PlanInsn *from, const Place *own, Place *ret_places)
{
    i64 moved = 0;
    unsigned found = 0;
    const PlanInsn *end = plan_end(plan) - from > INSNS_MAX ? from + INSNS_MAX : plan_end(plan);
    for (PlanInsn *at = from; registers_stay(at, own, &moved) && can_pass(at, own);) {
        Place *place = &ret_places[found];
        if (++at == end)
            break;
        const ToolAccess *access = find_load(at);
        if (!access || !place_of(at->insn, access, place) || plan_often(at))
            continue;
        place->disp += moved;
        place->end += moved;
        if (place->base == own->base && place->end - own->disp <= BYTES_MAX &&
            own->end - place->disp <= BYTES_MAX)
            found++;
    }
    return found;
}

// `own` becomes as long as one comparison may be, without a byte that nobody reads.
static void widen(Place *own, const Place *places, unsigned count)
{
    Place joined = *own;
    for (unsigned i = 0; i < count;) {
        i64 disp = joined.disp < places[i].disp ? joined.disp : places[i].disp;
        i64 end = joined.end > places[i].end ? joined.end : places[i].end;
        bool joins = is_beside(&joined, &places[i]) && end - disp <= BYTES_MAX &&
                     end - disp > joined.end - joined.disp;
        if (!joins) {
            i++;
            continue;
        }
        joined.disp = disp;
        joined.end = end;
        u64 size = (u64)(end - disp);
        if (!(size & (size - 1)))
            *own = joined;
        i = 0;
    }
}

// The guard of a load may ask for loads beside it that come later.
static void widen_guard(Plan *plan, PlanInsn *at, PlanItem *guard)
{
    Place own, places[INSNS_MAX];
    const ToolAccess *access = &at->accesses[guard->which], *load = find_load(at);
    if (access->size_bytes >= BYTES_MAX || !plan->is_clean || !at->flags_dead || load != access ||
        !place_of(at->insn, access, &own) || own.base == RSP || often_is_narrow(at->insn->pc))
        return;
    widen(&own, places, find_beside(plan, at, &own, places));
    ToolAccess wide = access_to(&own, access);
    if (wide.size_bytes <= access->size_bytes)
        return;
    often_note_wide(at->insn->pc);
    guard->kind = PLAN_GUARD_EARLY;
    guard->access = wide;
}

// ------------------------------------------------------------ where flags are live

// Whether it may be asked before `from` what `at` reads.
static bool can_move(const PlanInsn *from, const PlanInsn *at, const Place *place)
{
    for (; from < at; from++) {
        i64 moved = 0;
        if (!registers_stay(from, place, &moved) || moved || !can_pass(from, place) ||
            from->insn->lowering != LOWER_COPY)
            return false;
    }
    return true;
}

// Guards of loads behind the instruction, where flags are live, stand before it.
static void guard_ahead(Plan *plan, Known *known, PlanInsn *from)
{
    if (from->insn->lowering != LOWER_COPY)
        return;
    for (PlanInsn *at = from + 1;
         at < plan_end(plan) && at->insn->lowering == LOWER_COPY && !at->flags_dead; at++) {
        Place place;
        const ToolAccess *access = find_load(at);
        if (!access || !place_of(at->insn, access, &place) ||
            !tool_shadow_can_check(plan->block, access) ||
            known_defined(known, at->insn, access) || plan_often(at) ||
            often_is_narrow(from->insn->pc) || !can_move(from, at, &place) ||
            constants_has(plan, at, 0))
            continue;
        ToolAccess early = access_to(&place, access);
        often_note_wide(from->insn->pc);
        plan_add_access(plan, from, PLACE_EARLY, PLAN_GUARD_EARLY, &early);
        known_add(known, at->insn, access);
    }
}

// ------------------------------------------------------------------ what is left out

static bool is_check(const PlanItem *item)
{
    return item->kind == PLAN_GUARD || item->kind == PLAN_GUARD_LOAD ||
           item->kind == PLAN_GUARD_STORE || item->kind == PLAN_CLEAR;
}

static void look_at_check(Plan *plan, Known *known, PlanInsn *at, PlanItem *item)
{
    if (item->ends_facts)
        known_nothing(known);
    if (!is_check(item))
        return;
    if (known_defined(known, at->insn, &item->access) || constants_has(plan, at, item->which)) {
        item->kind = PLAN_NOTHING;
        return;
    }
    bool is_guard = item->kind == PLAN_GUARD;
    if (is_guard)
        widen_guard(plan, at, item);
    if (is_guard || item->kind == PLAN_CLEAR)
        known_add(known, at->insn, &item->access);
}

void plan_guards(Plan *plan)
{
    Known known;
    known_nothing(&known);
    for (u32 i = 0; i < plan->count; i++) {
        PlanInsn *at = &plan->insns[i];
        if (at->ends_facts)
            known_nothing(&known);
        if (at->may_ask_ahead)
            guard_ahead(plan, &known, at);
        for (PlanItem *item = plan_first(plan, at, PLACE_CHECKS); item;
             item = plan_next(plan, item))
            look_at_check(plan, &known, at, item);
        if (at->ends_facts_behind)
            known_nothing(&known);
        if (known.used && at->gprs_written & known.gprs)
            known_after(&known, at->insn, at->gprs_written);
    }
}
