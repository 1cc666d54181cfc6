// SPDX-License-Identifier: MIT
//
// Sums over whole stacks: a function, a file or a line has what all stacks through it have,
// each stack once, however often it recurs.
#ifndef MUNINN_INSPECT_HTTP_STACKS_H
#define MUNINN_INSPECT_HTTP_STACKS_H

#include "inspect/http/viewer.h"

typedef struct StackValue {
    u32 context;
    i64 value;
    u64 count;
} StackValue;

typedef struct StackValues {
    StackValue *stacks; // those with a value or a count
    u32 count;
} StackValues;

// The metric by context; the memo's.
const StackValues *chosen_stacks(Call *call, const Chosen *chosen, Metric metric);

typedef struct InnerSums {
    i64 *total, *self; // self: of stacks whose innermost frame, allocators left out, it is
    u64 *counts;
    u32 count;
} InnerSums;

// By number_of[place], below `count`; PLACE_NONE is left out. To be freed.
bool sum_stacks(Call *call, const View *view, const Names *names, const StackValues *stacks,
                const u32 *number_of, u32 count, InnerSums *ret_sums);
void inner_sums_free(InnerSums *sums);

#endif
