// SPDX-License-Identifier: MIT
//
// See ahead.h.
#include "tools/memcheck/translate/ahead.h"

#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/constants.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/often.h"

enum { ACCESSES_MAX = 4, INSNS_MAX = 24, BYTES_MAX = 4 };

static const ToolInsn *block_end;

void ahead_begin(const ToolInsn *end)
{
    block_end = end;
}

// The place of an operand, as the registers are at the instruction where the guard is to stand.
typedef struct Place {
    u8 base, index, scale;
    i64 disp, end;
} Place;

// False: the instruction loads nothing, or in a way of its own.
static bool find_load(const ToolInsn *insn, ToolAccess *ret_access)
{
    return tool_accesses(insn, ret_access, 1) && ret_access->reads && ret_access->is_plain &&
           insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
           insn->mnemonic != ZYDIS_MNEMONIC_XLAT && !touches_nothing(insn);
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
static bool can_pass(const ToolInsn *insn, const Place *place)
{
    ToolAccess accesses[ACCESSES_MAX];
    unsigned count = tool_accesses(insn, accesses, ACCESSES_MAX);
    bool is_plain = insn->lowering == LOWER_COPY || insn->lowering == LOWER_JCC ||
                    insn->lowering == LOWER_JMP;
    for (unsigned i = 0; i < count && is_plain; i++) {
        if (accesses[i].writes && (accesses[i].address.base != RSP || place->base == RSP))
            return false;
    }
    return is_plain;
}

// The displacement of the base changes with it.
static bool registers_stay(const ToolInsn *insn, const Place *place, i64 *moved)
{
    InsnForm room;
    u32 written = insn_form(insn, &room)->gprs_written;
    i64 amount;
    if (place->index != INSN_NO_REG && written >> place->index & 1)
        return false;
    if (place->base == INSN_NO_REG || !(written >> place->base & 1))
        return true;
    if (place->base == RSP || !known_adds(insn, place->base, &amount))
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

// The places that are read behind `insn`, and hang together with its own.
static unsigned find_beside(const ToolInsn *insn, const Place *own, Place *ret_places)
{
    i64 moved = 0;
    unsigned found = 0;
    const ToolInsn *end = block_end - insn > INSNS_MAX ? insn + INSNS_MAX : block_end;
    for (const ToolInsn *at = insn; registers_stay(at, own, &moved) && can_pass(at, own);) {
        ToolAccess access;
        Place *place = &ret_places[found];
        if (++at == end)
            break;
        if (!find_load(at, &access) || !place_of(at, &access, place) || often_fails(at->pc))
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

void ahead_guard(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    Place own, places[INSNS_MAX];
    ToolAccess load;
    if (access->size_bytes < BYTES_MAX && tool_version(block) == 0 && tool_flags_are_dead(block) &&
        find_load(insn, &load) && load.operand == access->operand &&
        place_of(insn, access, &own) && own.base != RSP && !often_is_narrow(insn->pc)) {
        widen(&own, places, find_beside(insn, &own, places));
        ToolAccess wide = access_to(&own, access);
        if (wide.size_bytes > access->size_bytes) {
            often_note_wide(insn->pc);
            tool_shadow_guard_early(block, &wide);
            known_add(insn, &wide);
            return;
        }
    }
    tool_shadow_guard(block, access);
    known_add(insn, access);
}

// ------------------------------------------------------------ where flags are live

// Whether it may be asked before `insn` what `at` reads.
static bool can_move(const ToolInsn *insn, const ToolInsn *at, const Place *place)
{
    for (; insn < at; insn++) {
        i64 moved = 0;
        if (!registers_stay(insn, place, &moved) || moved || !can_pass(insn, place) ||
            insn->lowering != LOWER_COPY)
            return false;
    }
    return true;
}

void ahead_insert(ToolBlock *block, const ToolInsn *insn)
{
    if (insn->lowering != LOWER_COPY || !tool_flags_are_dead(block) || tool_version(block) != 0)
        return;
    for (const ToolInsn *at = insn + 1; at < block_end && at->lowering == LOWER_COPY &&
                                        !tool_flags_are_dead_at(block, at); at++) {
        ToolAccess access;
        Place place;
        if (!find_load(at, &access) || !place_of(at, &access, &place) ||
            !tool_shadow_can_check(block, &access) || known_defined(at, &access) ||
            often_fails(at->pc) || often_is_narrow(insn->pc) || !can_move(insn, at, &place) ||
            constants_has(block, at, &access))
            continue;
        ToolAccess early = access_to(&place, &access);
        often_note_wide(insn->pc);
        tool_shadow_guard_early(block, &early);
        known_add(at, &access);
    }
}
