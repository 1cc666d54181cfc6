// SPDX-License-Identifier: MIT
//
// See stacks.h.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/http/stacks.h"

static void free_values(void *object)
{
    StackValues *values = object;

    free(values->stacks);
    free(values);
}

// All contexts, then only those with something.
static StackValues *gather(Call *call, const Chosen *chosen, const i64 *values, const u64 *counts)
{
    Recording *recording = chosen->view->recording;
    u32 contexts = recording_context_count(recording);
    StackValues *result = call_alloc(call, 1, sizeof(*result));
    StackValue *stacks = call_alloc(call, contexts, sizeof(*stacks));

    if (!result || !stacks) {
        free(result);
        free(stacks);
        return NULL;
    }
    for (u32 i = 0; i < recording_site_count(recording); i++) {
        u32 context = recording_site(recording, i)->context;
        if (context < contexts) {
            saturate_grow_i64(&stacks[context].value, values[i]);
            saturate_grow_u64(&stacks[context].count, values[i] ? counts[i] : 0);
        }
    }
    for (u32 i = 0; i < contexts; i++) {
        StackValue stack = stacks[i];
        stack.context = i;
        if (stack.value || stack.count)
            stacks[result->count++] = stack;
    }
    StackValue *fitting = realloc(stacks, (result->count + 1) * sizeof(*stacks));
    result->stacks = fitting ? fitting : stacks;
    return result;
}

const StackValues *chosen_stacks(Call *call, const Chosen *chosen, Metric metric)
{
    char key[700];

    snprintf(key, sizeof(key), "stacks %d %s", metric, chosen->key);
    const StackValues *known = memo_get(&chosen->view->memo, key);
    if (known)
        return known;
    const i64 *values = chosen_values(call, chosen, metric);
    const u64 *counts = values ? chosen_counts(call, chosen, metric) : NULL;
    StackValues *stacks = counts ? gather(call, chosen, values, counts) : NULL;
    if (!stacks)
        return NULL;
    return memo_put(&chosen->view->memo, key, stacks, stacks->count * sizeof(StackValue),
                    free_values);
}

void inner_sums_free(InnerSums *sums)
{
    free(sums->total);
    free(sums->self);
    free(sums->counts);
    *sums = (InnerSums){0};
}

bool sum_stacks(Call *call, const View *view, const Names *names, const StackValues *stacks,
                const u32 *number_of, u32 count, InnerSums *ret_sums)
{
    InnerSums sums = {call_alloc(call, count, sizeof(i64)), call_alloc(call, count, sizeof(i64)),
                      call_alloc(call, count, sizeof(u64)), count};
    u32 *seen = call_alloc(call, count, sizeof(u32)); // the last stack that had it, plus one

    if (!sums.total || !sums.self || !sums.counts || !seen) {
        inner_sums_free(&sums);
        free(seen);
        return false;
    }
    for (u32 i = 0; i < stacks->count; i++) {
        const StackValue *stack = &stacks->stacks[i];
        StackWalk walk = stack_walk(view->recording, stack->context);
        u32 place, inner = names->inner_of[stack->context];
        while ((place = stack_walk_next(&walk)) != (u32)PLACE_NONE) {
            u32 number = number_of[place];
            if (number >= count)
                continue;
            if (place == inner)
                saturate_grow_i64(&sums.self[number], stack->value);
            if (seen[number] == i + 1)
                continue;
            seen[number] = i + 1;
            saturate_grow_i64(&sums.total[number], stack->value);
            saturate_grow_u64(&sums.counts[number], stack->count);
        }
    }
    free(seen);
    *ret_sums = sums;
    return true;
}
