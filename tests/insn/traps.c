// SPDX-License-Identifier: MIT
//
// Turns the records of traps_x64.S into cases. The records of one trap stand in the order of the
// source: TRAP_BEGIN, TRAP_CODE, any others, TRAP_END.
#include "traps.h"

#include <stdio.h>
#include <stdlib.h>

#define STATES_PER_TRAP 6

_Static_assert((int)TRAP_SET_GPR == (int)SET_GPR && (int)TRAP_SET_FLAGS == (int)SET_FLAGS, "sets");
_Static_assert((int)TRAP_SET_DATA == (int)SET_DATA && (int)TRAP_SET_NEAR == (int)SET_NEAR, "sets");
_Static_assert((int)TRAP_FIX_REL32 == (int)FIX_REL32 && (int)TRAP_FIX_ABS64 == (int)FIX_ABS64,
               "fixes");
_Static_assert((int)TRAP_FIX_EXIT == (int)FIX_EXIT &&
                   (int)TRAP_FIX_EXIT_TAKEN == (int)FIX_EXIT_TAKEN,
               "fixes");
_Static_assert((int)TRAP_BASE_DATA == (int)BASE_DATA && (int)TRAP_BASE_NEAR == (int)BASE_NEAR &&
                   (int)TRAP_BASE_CODE == (int)BASE_CODE,
               "bases");

// The linker delimits the section of the records with these.
extern const TrapRecord __start_trap_records[], __stop_trap_records[];

typedef struct Trap {
    const char *name;
    const u8 *code;
    const u8 *end;
    const TrapRecord *first;
    const TrapRecord *stop;
    bool at_edge;
    u8 edge_bytes;
} Trap;

static void apply(CaseBuilder *c, const Trap *trap, const TrapRecord *r)
{
    switch (r->what) {
    case TRAP_SET:
        case_set(c, r->kind, r->index, r->base, r->value);
        break;
    case TRAP_FIX:
        case_fix(c, r->kind, (u32)(r->pointer - trap->code), (u32)(r->end - trap->code), r->base,
                 r->value);
        break;
    case TRAP_TRAIT:
        c->head.traits |= (u8)r->value;
        break;
    case TRAP_FLAGS:
        c->head.flags_mask &= ~(u32)r->value;
        break;
    case TRAP_IGNORE:
        case_ignore(c, r->base, r->index, (u32)r->value);
        break;
    default:
        break;
    }
}

static void write_case(CaseWriter *w, const Trap *trap, u8 edge_bytes, u64 seed)
{
    CaseBuilder c;
    case_begin(&c, seed);
    for (const TrapRecord *r = trap->first; r < trap->stop; r++)
        apply(&c, trap, r);
    if (edge_bytes) {
        c.head.traits |= CASE_AT_EDGE;
        c.head.edge_bytes = edge_bytes;
    }
    case_code_add(&c, trap->code, (u32)(trap->end - trap->code));
    case_end(w, &c, casefile_group(w, trap->name));
}

static void write_trap(CaseWriter *w, const Trap *trap, u64 *rng)
{
    u32 len_bytes = (u32)(trap->end - trap->code);
    if (!trap->at_edge) {
        for (int i = 0; i < STATES_PER_TRAP; i++)
            write_case(w, trap, 0, rng_next(rng));
        return;
    }
    u32 from = trap->edge_bytes ? trap->edge_bytes : 1;
    u32 to = trap->edge_bytes ? trap->edge_bytes : len_bytes;
    for (u32 n = from; n <= to; n++)
        for (int i = 0; i < 2; i++)
            write_case(w, trap, (u8)n, rng_next(rng));
}

void traps_write(CaseWriter *w, u64 *rng)
{
    Trap trap = { 0 };
    for (const TrapRecord *r = __start_trap_records; r < __stop_trap_records; r++) {
        switch (r->what) {
        case TRAP_BEGIN:
            trap = (Trap){ .name = (const char *)r->pointer, .first = r };
            break;
        case TRAP_CODE:
            trap.code = r->pointer;
            break;
        case TRAP_EDGE:
            trap.at_edge = true;
            trap.edge_bytes = (u8)r->value;
            break;
        case TRAP_END:
            trap.end = r->pointer;
            trap.stop = r;
            write_trap(w, &trap, rng);
            break;
        default:
            break;
        }
    }
}
