// SPDX-License-Identifier: MIT
//
// What is lost, sorted into cliques. In order of address each lost block that no clique has yet
// becomes the leader of one and takes in what it points to, by any pointer, and what
// that points to. A leader that a later clique points to joins it with all it has. In the
// end leaders are definitely lost and the others indirectly. A cycle that is pointed to
// in another place than its leader therefore keeps its leader, as with the incumbent.
//
// Each lost block is read once, mostly by all workers before (leak_edges.c). The rest is
// sequential: the outcome depends on the order of leaders.
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
    LostBlock *lost = &check->lost[block];
    lost->parent = reader - check->codes.first_block;
    check->marks[block] = MARK_INDIRECT;
    if (mark == MARK_NONE && lost->list)
        return true; // its list has its size too
    u64 *total = &check->indirect_bytes[clique->leader];
    *total += leak_block_size(&check->input.blocks[block]);
    if (mark == MARK_LEADER && check->indirect_bytes[block]) {
        *total += check->indirect_bytes[block];
        check->indirect_bytes[block] = 0;
    }
    return mark == MARK_NONE;
}

// Whether it is known to point to nothing.
static bool is_alone(const LeakCheck *check, u64 block)
{
    u32 list = check->lost[block].list;

    return list && leak_list_count(check->edges.words[list]) == 0;
}

static void find_clique(const Clique *clique, Tracer *tracer)
{
    LeakCheck *check = clique->check;
    u64 listed_before = tracer->listed_bytes;

    leak_trace_block(tracer, clique->leader);
    leak_trace_drain(tracer);
    u64 listed = tracer->listed_bytes - listed_before;
    if (check->lost[clique->leader].list)
        listed -= leak_block_size(&check->input.blocks[clique->leader]);
    if (listed)
        check->indirect_bytes[clique->leader] += listed;
}

bool leak_find_cliques(LeakCheck *check)
{
    Clique clique = {.check = check};
    Tracer tracer;

    leak_trace_init(&tracer, check, take_in, &clique);
    leak_edges_read(check);
    tracer.has_lists = check->edges.words != NULL;
    for (u64 i = 0; i < check->input.block_count && !tracer.has_failed; i++) {
        if (check->marks[i] != MARK_NONE)
            continue;
        check->marks[i] = MARK_LEADER;
        clique.leader = (u32)i;
        if (!is_alone(check, i))
            find_clique(&clique, &tracer);
    }
    leak_trace_free(&tracer);
    leak_edges_free(check);
    return !tracer.has_failed;
}
