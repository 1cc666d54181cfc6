// SPDX-License-Identifier: MIT
//
// What someone who mistyped a name probably meant.

#include <string.h>

#include "launch/option_table.h"

#define SUGGEST_NAME_MAX 31

// How many single-letter insertions, deletions, substitutions and swaps of
// neighbours turn a into b.
static u32 edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    u8 cost[SUGGEST_NAME_MAX + 1][SUGGEST_NAME_MAX + 1];

    for (size_t i = 0; i <= a_len; i++)
        cost[i][0] = (u8)i;
    for (size_t j = 0; j <= b_len; j++)
        cost[0][j] = (u8)j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            u64 best = min_u64(cost[i - 1][j], cost[i][j - 1]) + 1u;
            best = min_u64(best, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = min_u64(best, cost[i - 2][j - 2] + 1u);
            cost[i][j] = (u8)best;
        }
    }
    return cost[a_len][b_len];
}

// Keeps the candidate in *best if it is nearer than what is there. A name that
// starts with what was typed is as near as one slip.
static void suggest_consider(const char *typed, size_t typed_len, const char *candidate,
                             const char **best, u32 *best_distance)
{
    size_t len = strlen(candidate);

    if (typed_len == 0 || typed_len > SUGGEST_NAME_MAX || len > SUGGEST_NAME_MAX)
        return;
    u32 distance = edit_distance(typed, typed_len, candidate, len);
    if (typed_len >= 3 && strncmp(typed, candidate, typed_len) == 0)
        distance = (u32)min_u64(distance, 1);
    if (distance < *best_distance && distance < max_u64(typed_len, len) &&
        distance <= max_u64(1, min_u64(typed_len, len) / 3)) {
        *best = candidate;
        *best_distance = distance;
    }
}

const char *suggest_option(const char *typed, size_t typed_len)
{
    const char *best = NULL;
    u32 distance = UINT32_MAX;

    for (u32 i = 0; i < option_row_count; i++)
        if (option_rows[i].group < GROUP_IGNORED)
            suggest_consider(typed, typed_len, option_rows[i].name, &best, &distance);
    return best;
}

const char *suggest_value(const OptionValue *values, const char *typed, size_t typed_len)
{
    const char *best = NULL;
    u32 distance = UINT32_MAX;

    for (; values->name != NULL; values++)
        if (values->refusal == NULL)
            suggest_consider(typed, typed_len, values->name, &best, &distance);
    return best;
}
