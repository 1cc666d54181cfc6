// SPDX-License-Identifier: MIT
//
// The plan of a block: its instructions, what memcheck knows of each, and what is to be inserted
// before it. Passes make it, one after the other; each reads what the passes before it have found.
// When all have run, plan_emit() makes code of it (docs/design/plans.md).
//
// The order of the passes:
//   plan_read       the instructions, their accesses, where flags are dead
//   plan_red_zones  functions that use the stack without opening it, and where they return
//   plan_constants  where an operand may lie, by what the block's own instructions say
//   plan_values     members that may be undefined: steps, copies, what is forgotten
//   plan_checks     what each access needs, by itself
//   plan_guards     checks that others make unnecessary; guards that move ahead
//   plan_stack      marks of the stack that is left, by what is known of the frame until then
//   plan_fit        where the block has to end, as it would have no room for a copy
//
// At translation, with the engine lock. No pass keeps anything of a block outside of its plan.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_PLAN_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_PLAN_H

#include "tools/memcheck/memcheck.h"

enum {
    PLAN_INSNS_MAX = 64,
    PLAN_ITEMS_MAX = 1024,
    PLAN_ACCESSES_MAX = 4, // of an instruction
    PLAN_COPIED_MAX = 160, // accesses that copies ask for, of all copies of the block
};

// Where something is inserted before its instruction, in this order.
typedef enum PlanPlace {
    PLACE_OPEN,   // prefetches, counters, the red zone of a function
    PLACE_VALUES, // steps, and guards that take steps
    PLACE_EARLY,  // guards of loads that come later
    PLACE_CHECKS, // of the instruction's accesses
    PLACE_JOIN,   // where guards of PLACE_VALUES go on
    PLACE_FORGET, // what the instruction overwrites counts as defined
    PLACE_LEAVE,  // the stack that it leaves is marked
    PLAN_PLACES
} PlanPlace;

// What is inserted: an item. Behind each kind stand the members of PlanItem that it uses.
typedef enum PlanKind {
    PLAN_NOTHING,       // it was dropped
    PLAN_COUNT,         // stat: --stats counts
    PLAN_PREFETCH,      // access: its shadow
    PLAN_FILL,          // disp, size: the shadow of [rsp + disp, rsp + disp + size) becomes 0xff
    PLAN_CALL,          // step.fn and .arg, with has_access the address
    PLAN_STEP,          // step: called with the registers that it wants
    PLAN_GUARD,         // access: the block is left if its shadow is not 0
    PLAN_GUARD_EARLY,   // access: the same of what is accessed later, or more of it
    PLAN_GUARD_BITS,    // access, bits: the same of these bits
    PLAN_GUARD_LOAD,    // access, step: called if the shadow is not 0
    PLAN_GUARD_STORE,   // access: what is undefined becomes defined, if it may be touched
    PLAN_CLEAR,         // access: the same where it may be touched in any case
    PLAN_STEP_IF,       // access, step: the step is taken if the shadow is not 0, up to PLAN_JOIN
    PLAN_STEP_IF_STATE, // members, step: the same if the thread has any of them
    PLAN_JOIN,          // opened: where the code goes on behind these steps
    PLAN_LEAVE_IF_STATE, // members: the block is left if the thread has any of them
    PLAN_COPY,          // step, copied, copied_count, members, last: V bytes of several moves
    PLAN_FORGET,        // members: they count as defined
    PLAN_FORGET_COPIES, // members: the same of vectors of which no scalar is undefined
    PLAN_MASK,          // offset, bits: the V bits that a register keeps
} PlanKind;

typedef struct PlanItem {
    u8 kind;         // PlanKind
    u8 stat;         // MemcheckStat
    bool has_access; // of PLAN_CALL, PLAN_STEP and PLAN_STEP_IF_STATE: `access` is one
    bool ends_facts; // what was known of memory is not known behind it (known.h)
    u8 which;        // of the instruction's accesses `access` is
    u16 next;        // in its place, as an index + 1; 0: it is the last
    u16 opened;      // the item whose guards go on here
    u16 first_guard; // set when it is emitted
    u16 copied, copied_count; // Plan.copied
    u16 last;        // instruction of a copy
    u16 guards, insns; // of a copy and what is between its instructions, at most
    i32 disp;
    u32 size, offset;
    u64 bits;
    MemberSet members;
    ToolAccess access; // this and what follows is set by the kinds that use it alone
    ToolStep step;
} PlanItem;

// Values that a register may hold, or addresses where an operand may begin: both ends are included.
typedef struct ValueRange {
    u64 low, high;
} ValueRange;

// Which of an instruction's accesses are checked.
typedef enum PlanChecks { CHECK_NONE, CHECK_LOADS, CHECK_ALL } PlanChecks;

typedef struct PlanInsn {
    const ToolInsn *insn;
    u16 first[PLAN_PLACES], last[PLAN_PLACES]; // items, as indices + 1; only of `places`
    u8 places;          // a bit for each that has an item

    // plan_read()
    u8 named;           // accesses, as the decoder tells
    u8 count;           // and those that count: 0 if nothing is touched
    bool flags_dead;    // before it
    bool flags_die;     // and behind it
    bool is_first;      // with the step of it the version begins
    bool is_call, leaves; // a call; or a return
    bool touches_nothing; // although it names memory
    u16 gprs_written;   // bit r: general register r

    // plan_constants()
    u8 has_span;        // a bit for each access of which `spans` tells

    // plan_values()
    u8 checks;          // PlanChecks
    u8 check_from;      // the first access of these
    u8 often;           // PlanOften: see plan_often()
    bool is_covered;    // it belongs to a copy, whose step has done all
    bool is_within;     // a copy whose step has been taken ends at it or behind it
    bool is_assured;    // the copy has asked for what it accesses
    bool may_ask_ahead; // guards of later loads may stand here
    bool ends_facts, ends_facts_behind; // before its checks; behind them
    bool exit_exact;    // a thread that leaves behind it has just this set
    MemberSet exit_set;

    ToolAccess accesses[PLAN_ACCESSES_MAX];
    ValueRange spans[PLAN_ACCESSES_MAX];
} PlanInsn;

typedef enum PlanOften { OFTEN_UNASKED, OFTEN_NO, OFTEN_YES } PlanOften;

// Members that may be undefined before the instruction that plan_values() looks at.
typedef struct PlanState {
    MemberSet current;
    MemberSet low;  // in a clean block: vectors of these whose low 16 bytes alone may be
    bool exact;     // in a dirty one: a thread that gets here has just this set
} PlanState;

typedef struct Plan {
    ToolBlock *block;
    u32 version;
    bool is_clean;      // version 0: what may be undefined has been loaded in the block (mixed.h)
    bool values_matter; // --undef-value-errors
    u32 count;          // instructions
    u32 emitted;        // of these: the last one for which code was made
    u32 item_count, copied_count;
    bool has_copies;
    PlanState state;
    PlanInsn insns[PLAN_INSNS_MAX];
    PlanItem items[PLAN_ITEMS_MAX];
    ToolAccess copied[PLAN_COPIED_MAX];
} Plan;

// All passes. The plan is the caller's until the block is done.
void plan_make(Plan *plan, ToolBlock *block, const ToolInsn *insns, unsigned count);
// The code that stands before an instruction.
void plan_emit(Plan *plan, const ToolInsn *insn);
// The plan as text, a line for each instruction and each item.
typedef void PlanLine(const char *line);
void plan_print(const Plan *plan, PlanLine *put);

void plan_red_zones(Plan *plan);
void plan_constants(Plan *plan);
void plan_values(Plan *plan);
void plan_checks(Plan *plan);
void plan_guards(Plan *plan);
void plan_stack(Plan *plan);

// ------------------------------------------------------------------ for passes

// The instruction behind the last one.
static inline const PlanInsn *plan_end(const Plan *plan)
{
    return plan->insns + plan->count;
}

// Inserts an item behind those that are in that place.
PlanItem *plan_add(Plan *plan, PlanInsn *at, PlanPlace place, PlanKind kind);
PlanItem *plan_add_access(Plan *plan, PlanInsn *at, PlanPlace place, PlanKind kind,
                          const ToolAccess *access);
void plan_add_call(Plan *plan, PlanInsn *at, PlanPlace place, ToolCallFn *fn, u64 arg);
void plan_add_call_access(Plan *plan, PlanInsn *at, PlanPlace place, const ToolAccess *access,
                          ToolCallFn *fn, u64 arg);
void plan_add_step(Plan *plan, PlanInsn *at, PlanPlace place, const ToolStep *step,
                   const ToolAccess *access);
// Where the guards of an item, and those of the items behind it, go on.
void plan_add_join(Plan *plan, PlanInsn *at, PlanPlace place, const PlanItem *opened);
// The item behind this one in its place, or NULL; the first one of a place.
static inline PlanItem *plan_first(Plan *plan, const PlanInsn *at, PlanPlace place)
{
    return at->places >> place & 1 ? &plan->items[at->first[place] - 1] : NULL;
}

static inline PlanItem *plan_next(Plan *plan, const PlanItem *item)
{
    return item->next ? &plan->items[item->next - 1] : NULL;
}

// Whether the guard of what it loads often fails (often.h); asked once in a plan.
bool plan_often(PlanInsn *at);

#endif
