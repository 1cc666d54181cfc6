// SPDX-License-Identifier: MIT
//
// Live bytes over time, for the stacked chart and for sparklines.
#ifndef MUNINN_INSPECT_HTTP_SERIES_H
#define MUNINN_INSPECT_HTTP_SERIES_H

#include "inspect/http/viewer.h"

typedef struct Span {
    u64 from_ns, to_ns;
    size_t points;
} Span;

// When the i-th point is: the end of the i-th of equal spans.
u64 span_time(const Span *span, size_t index);

// Of each site whether the selection has something of it at any time, to be freed.
u8 *chosen_mask(Call *call, const Chosen *chosen);

// Rows of `group_count` for each point. Sites that the selection leaves out do not count,
// whatever group_of says; U32_MAX in it leaves out too.
bool chosen_series(Call *call, const Chosen *chosen, const Span *span, const u32 *group_of,
                   u32 group_count, u64 *ret_bytes);

// The sparklines of some groups: ret_bytes is group by group. `chosen_groups` are indexes
// into groups, or U32_MAX: a line of zeros.
bool chosen_sparks(Call *call, const Chosen *chosen, const Groups *groups,
                   const u32 *chosen_groups, u32 count, const Span *span, u64 *ret_bytes);

#endif
