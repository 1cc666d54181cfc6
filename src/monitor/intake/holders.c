// SPDX-License-Identifier: MIT
//
// Who holds the blocks of a leak, as people know it. The engine tells of pieces of memory; here
// they get the names of variables, and what has one name becomes one holder. The largest are
// kept, the rest summed.
#include <stdlib.h>
#include <string.h>

#include "monitor/intake/run.h"

enum { TOLD_MAX = 16, FRAMES_MAX = 4 };

static const char *register_name(u64 number)
{
    static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    return number < ARRAY_LEN(names) ? names[number] : NULL;
}

static void name_data(Run *run, LeakHolding *holding)
{
    DataName name;
    if (!symbols_data(run->symbols, holding->address, &name) || !name.name)
        return;
    holding->kind = HOLDER_GLOBAL;
    holding->name = findings_keep_text(run, name.name);
    if (name.object)
        holding->object = findings_keep_text(run, name.object);
    holding->address -= name.offset;
}

static ReportStack innermost(Run *run, WireWords pcs)
{
    pcs.count = min_u64(pcs.count, FRAMES_MAX);
    ReportStack stack = findings_stack(run, pcs);
    stack.count = min_u64(stack.count, FRAMES_MAX);
    return stack;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

// Pieces of one stack are one holder, and those of one variable or one file; anonymous memory is
// what the engine found to be one piece.
static bool is_one(const LeakHolding *a, const LeakHolding *b)
{
    if (a->kind != b->kind || a->thread != b->thread || a->record != b->record ||
        !is_same_text(a->name, b->name) || !is_same_text(a->object, b->object))
        return false;
    return a->kind != HOLDER_MEMORY || a->object || a->address == b->address;
}

static void add_to(LeakHolding *holding, const LeakHolding *more)
{
    holding->blocks += more->blocks;
    holding->bytes += more->bytes;
    holding->holders += more->holders;
    if (more->address < holding->address)
        holding->address = more->address;
}

// False: it makes no sense.
static bool fill(Run *run, LeakHolding *holding, const FieldsHolder *fields, WireWords pcs)
{
    switch (holding->kind) {
    case HOLDER_RECORD:
        holding->record = fields->record;
        holding->record_kind = vocabulary_kind(run->vocabulary, fields->record_kind);
        if (!holding->record_kind)
            return false;
        holding->stack = innermost(run, pcs);
        return true;
    case HOLDER_REGISTER:
        holding->thread = fields->thread;
        holding->name = register_name(fields->reg);
        return true;
    case HOLDER_OTHERS: holding->holders = fields->holders; return true;
    case HOLDER_DATA:
    case HOLDER_TLS:
    case HOLDER_STACK:
    case HOLDER_MEMORY:
        holding->thread = fields->thread;
        holding->address = fields->address;
        if (fields->object && fields->object[0])
            holding->object = findings_keep_text(run, fields->object);
        if (holding->kind == HOLDER_DATA)
            name_data(run, holding);
        return true;
    default: return false;
    }
}

void holders_add(Run *run, RunFinding *f, const FieldsHolder *fields, WireWords pcs)
{
    LeakHolding holding = {
        .kind = (u32)fields->place,
        .blocks = fields->blocks,
        .bytes = fields->bytes,
    };
    if (!fill(run, &holding, fields, pcs))
        return;
    for (size_t i = 0; i < f->finding.holding_count; i++) {
        if (is_one(&f->holdings[i], &holding)) {
            add_to(&f->holdings[i], &holding);
            return;
        }
    }
    f->holdings[f->finding.holding_count++] = holding;
}

// The others come last, whatever they are.
static int compare(const void *left, const void *right)
{
    const LeakHolding *a = left, *b = right;
    bool a_is_others = a->kind == HOLDER_OTHERS, b_is_others = b->kind == HOLDER_OTHERS;
    if (a_is_others != b_is_others)
        return a_is_others - b_is_others;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->blocks != b->blocks)
        return a->blocks < b->blocks ? 1 : -1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->record != b->record)
        return a->record < b->record ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

void holders_sort(RunFinding *f)
{
    size_t count = f->finding.holding_count;
    f->finding.holdings = f->holdings;
    if (count == 0)
        return;
    qsort(f->holdings, count, sizeof(LeakHolding), compare);
    LeakHolding *others = &f->holdings[TOLD_MAX];
    if (count <= TOLD_MAX || (count == TOLD_MAX + 1 && others->kind == HOLDER_OTHERS))
        return;
    for (size_t i = TOLD_MAX; i < count; i++) {
        if (f->holdings[i].kind != HOLDER_OTHERS)
            f->holdings[i].holders = 1;
        if (i > TOLD_MAX)
            add_to(others, &f->holdings[i]);
    }
    *others = (LeakHolding){
        .kind = HOLDER_OTHERS,
        .blocks = others->blocks,
        .bytes = others->bytes,
        .holders = others->holders,
    };
    f->finding.holding_count = TOLD_MAX + 1;
}
