// SPDX-License-Identifier: MIT
//
// What is lost, sorted into cliques. In order of address each lost block that no clique has yet
// becomes the leader of one and takes in what it points to, by any pointer, and what
// that points to. A leader that a later clique points to joins it with all it has. In the
// end leaders are definitely lost and the others indirectly. A cycle that is pointed to
// in another place than its leader therefore keeps its leader, as with the incumbent.
//
// Each lost block is read once. This stage is sequential: the outcome depends on the order of
// leaders.
#include "tools/heap/leak_trace.h"

typedef struct Clique {
    LeakCheck *check;
    u32 leader;
} Clique;

static bool take_in(void *owner, u32 block, GuestAddr value, u32 reader)
{
    const Clique *clique = owner;
    LeakCheck *check = clique->check;
    u8 mark = check->marks[block];

    (void)value;
    if (block == clique->leader || (mark != MARK_NONE && mark != MARK_LEADER))
        return false;
    u64 *total = &check->indirect_bytes[clique->leader];
    *total += leak_block_size(&check->input.blocks[block]);
    check->parents[block] = reader - check->codes.first_block;
    check->marks[block] = MARK_INDIRECT;
    if (mark == MARK_LEADER && check->indirect_bytes[block]) {
        *total += check->indirect_bytes[block];
        check->indirect_bytes[block] = 0;
    }
    return mark == MARK_NONE;
}

bool leak_find_cliques(LeakCheck *check)
{
    Clique clique = {.check = check};
    Tracer tracer;

    leak_trace_init(&tracer, check, take_in, &clique);
    for (u64 i = 0; i < check->input.block_count && !tracer.has_failed; i++) {
        if (check->marks[i] != MARK_NONE)
            continue;
        check->marks[i] = MARK_LEADER;
        clique.leader = (u32)i;
        leak_trace_block(&tracer, i);
        leak_trace_drain(&tracer);
    }
    leak_trace_free(&tracer);
    return !tracer.has_failed;
}
