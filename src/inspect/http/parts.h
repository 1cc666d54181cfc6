// SPDX-License-Identifier: MIT
//
// A large recording is cut into some dozens of parts, and what a walk through all events
// would find out is kept of each: how many blocks of which size and lifetime every site had,
// and which blocks lived when it began. A question of any range or moment is then a few sums and a
// walk through the rest of a part at its ends, however long the recording is.
//
// A thread of its own, called "parts", does that once after the start, at a low priority; who
// asks before it is done walks.
#ifndef MUNINN_INSPECT_HTTP_PARTS_H
#define MUNINN_INSPECT_HTTP_PARTS_H

#include "inspect/http/blocks.h"

typedef struct BlockCounts {
    u64 sizes[HISTOGRAM_BUCKETS], bytes[HISTOGRAM_BUCKETS]; // of allocations
    u64 lifetimes[HISTOGRAM_BUCKETS];                       // of what was freed
    u64 largest;
} BlockCounts;

void counts_add_alloc(BlockCounts *counts, u64 size);
void counts_add_free(BlockCounts *counts, u64 lifetime_ns);

// Adds those of the parts that lie in [from_ns, to_ns), of the sites that `chosen` has; the range
// of time that they make up is [*ret_from, *ret_to), empty if there are none. `all_spaces` is not
// 0: all sites of these spaces are chosen.
void parts_add_counts(const Parts *parts, u64 from_ns, u64 to_ns, const u8 *chosen,
                      u32 all_spaces, BlockCounts *counts, u64 *ret_from, u64 *ret_to);

// The heap blocks that were born before `at_ns` and lived at a later moment, which is returned;
// 0: nothing is known.
typedef bool LiveBlockFn(void *arg, const LiveBlock *block);
u64 parts_each_living(const Parts *parts, u64 at_ns, LiveBlockFn *fn, void *arg);

// Begins with all recordings of the viewer, also those that still grow: when they have ended.
void parts_start(Viewer *viewer);
void parts_free(Parts *parts);

#endif
