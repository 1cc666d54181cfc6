// SPDX-License-Identifier: MIT
//
// Walks the cache's tables and names the first invariant that does not hold. C2's other half, that
// a block's address is taken under the engine lock, leaves no trace that a walk could find.
#include <string.h>

#include "engine/cache/unit.h"
#include "engine/landings/landings.h"
#include "engine/toolapi/toolapi.h"

// What is counted on the way, in both of the places where it can be counted.
typedef struct Sums {
    u64 live;     // blocks that are not retired
    u64 linked;   // exits that are linked, and
    u64 listed;   // those in the blocks' lists
    u64 landings; // open ones of live blocks
    u64 published; // entries of live blocks that are in the tables
} Sums;

static bool is_block(u32 number)
{
    u32 unit = (number - 1) / UNIT_BLOCKS_MAX;
    return number && unit < CACHE_UNITS && (number - 1) % UNIT_BLOCKS_MAX < units[unit].block_count;
}

// ------------------------------------------------------------------- C4: records

static const char *unit_breach(const Unit *u)
{
    if (u->start > u->next || u->next > u->cold || u->cold > u->end)
        return "C4: the blocks of a unit and its stubs overlap";
    if (u->block_count > unit_blocks_max || u->exit_count > unit_exits_max ||
        u->mark_bytes > unit_mark_bytes_max)
        return "C4: a unit has more records than its tables have room for";
    return NULL;
}

// Where the next block's records must begin.
typedef struct Ends {
    CodeRef code;
    u32 exit, marks;
} Ends;

static const char *marks_breach(const Block *b, u32 *ret_end)
{
    MarkReader r = marks_of(b);
    for (u32 last = 0; marks_next(&r); last = r.mark.host_offset) {
        if (r.mark.host_offset < last)
            return "C4: the marks of a block do not ascend";
        if (r.mark.host_offset > b->code_size)
            return "C4: a mark lies behind the code of its block";
    }
    *ret_end = (u32)(r.at - units[b->unit].marks);
    return NULL;
}

static const char *records_breach(const Block *b, Ends *ends)
{
    if (b->code < ends->code || (CodePtr)(u64)b->code + b->code_size > units[b->unit].next)
        return "C4: the blocks of a unit are not in the order of their code";
    if (b->first_exit != ends->exit)
        return "C4: the exits of two blocks overlap";
    if (b->marks != ends->marks)
        return "C4: the marks of two blocks overlap";
    const char *breach = marks_breach(b, &ends->marks);
    ends->code = b->code + b->code_size;
    ends->exit += b->exit_count;
    return breach;
}

// ------------------------------------------------------------------- C1: links

static CodeRef leads_to(const Exit *x)
{
    i32 distance;
    CodePtr site = exit_site(x);
    memcpy(&distance, site, sizeof(distance));
    return code_ref(site + sizeof(distance) + distance);
}

static const char *link_breach(u32 index)
{
    const Exit *x = &exits[index];
    if (!is_block(x->to) || block_of_number(x->to)->retired)
        return "C1: a link leads into a retired block";
    const Block *to = block_of_number(x->to);
    if (exit_target(x) != to->pc || x->version != to->version)
        return "C1: a link leads to a block of another pc or version";
    if (leads_to(x) != (exit_is_call(exit_site(x)) ? to->call_entry : to->body))
        return "C1: the jump of a link leads elsewhere than into the block that it names";
    if ((x->prev ? exits[x->prev].next : to->incoming) != index ||
        (x->next && exits[x->next].prev != index))
        return "C1: a link is not in the list of the block that it leads to";
    return NULL;
}

static const char *exits_breach(const Block *b, Sums *sums)
{
    for (u32 index = b->first_exit; index < b->first_exit + b->exit_count; index++) {
        const Exit *x = &exits[index];
        if (x->from != block_number(b))
            return "C4: an exit does not name its block";
        if (x->to && b->retired)
            return "C1: a link leads out of a retired block";
        if (!x->to && leads_to(x) != x->stub)
            return "C1: the jump of an exit without a link leads elsewhere than to its stub";
        const char *breach = x->to ? link_breach(index) : NULL;
        if (breach)
            return breach;
        sums->linked += x->to != 0;
    }
    return NULL;
}

// A list that runs in a circle is longer than there are exits.
static const char *incoming_breach(const Block *b, Sums *sums)
{
    if (b->retired && b->incoming)
        return "C1: a retired block has a list of links";
    for (u32 index = b->incoming; index; index = exits[index].next) {
        if (exits[index].to != block_number(b))
            return "C1: the list of a block has a link that leads elsewhere";
        if (++sums->listed > (u64)unit_exits_max * CACHE_UNITS)
            return "C1: the list of a block runs in a circle";
    }
    return NULL;
}

// ------------------------------------------------------------------- C1: tables

static u64 in_tables(const Block *b)
{
    u64 second = ((const u64 *)SECOND_TABLE)[second_index(b->pc)];
    u64 state = version_sum(b->pc, b->state, b->version) >> (64 - VERSION_BITS);
    u64 count = 0;

    count += b->entry && ((const CodePtr *)LOOKUP_TABLE)[(u16)b->pc] == code_at(b->entry);
    count += b->return_entry &&
             ((const CodeRef *)RETURN_TABLE)[return_index(b->pc)] == b->return_entry;
    count += b->version == 0 && b->pc >> 47 == 0 && second == second_word(b->pc, code_at(b->body));
    count += b->version_entry &&
             ((const CodePtr *)VERSION_TABLE)[state] == code_at(b->version_entry);
    return count;
}

static u64 filled_slots(void)
{
    u64 count = 0;

    for (u64 i = 0; i < LOOKUP_ENTRIES; i++) {
        count += ((const CodePtr *)LOOKUP_TABLE)[i] != cache_misses.lookup;
        count += ((const CodeRef *)RETURN_TABLE)[i] != code_ref(cache_misses.returns);
    }
    for (u64 i = 0; i < 1u << SECOND_BITS; i++)
        count += ((const u64 *)SECOND_TABLE)[i] != 0;
    for (u64 i = 0; tool->version && i < 1u << VERSION_BITS; i++)
        count += ((const CodePtr *)VERSION_TABLE)[i] != cache_misses.version;
    return count;
}

static const char *index_breach(u64 live)
{
    u64 used = 0;

    for (u64 i = 0; i <= block_index.mask; i++) {
        const IndexSlot *slot = &block_index.slots[i];
        if (!slot->block)
            continue;
        used++;
        if (!is_block(slot->block) || block_of_number(slot->block)->retired)
            return "C1: a retired block is in the index";
        const Block *b = block_of_number(slot->block);
        if (slot->tag != index_tag(b->pc, b->version))
            return "C1: the index has a block at the place of another";
    }
    if (used != live || used != block_index.used)
        return "C1: a block is twice in the index, or not at all";
    return NULL;
}

static const char *block_breach(const Block *b, Sums *sums)
{
    const char *breach = exits_breach(b, sums);
    if (!breach)
        breach = incoming_breach(b, sums);
    if (breach || b->retired)
        return breach;
    sums->live++;
    sums->published += in_tables(b);
    sums->landings += b->landing && landing_is_open(b->landing);
    if (!units[b->unit].filled)
        return "C1: a unit that is retired has a block that is not";
    if (cache_find(b->pc, b->version) != b)
        return "C1: a block is not found by its pc and version";
    return NULL;
}

// ------------------------------------------------------------------- C3: threads

static void look_at_thread(ThreadCtx *ctx, void *arg)
{
    const char **breach = arg;
    bool in_cache = __atomic_load_n(&ctx->dispatch.in_cache, __ATOMIC_SEQ_CST);
    u64 epoch = __atomic_load_n(&ctx->cache.safe_epoch, __ATOMIC_SEQ_CST);

    if (epoch > cache_epoch)
        *breach = "C3: a thread has an epoch that has not come yet";
    for (unsigned i = 0; in_cache && i < CACHE_UNITS; i++) {
        if (units[i].filled && epoch < units[i].retired_at)
            *breach = "C3: a unit was filled again while a thread might execute its old code";
    }
}

const char *cache_validate(void)
{
    const char *breach = NULL;
    Sums sums = {0};
    u64 open;

    for (unsigned i = 0; i < CACHE_UNITS; i++) {
        Ends ends = {code_ref(units[i].start), unit_first_exit(i), 0};
        if ((breach = unit_breach(&units[i])))
            return breach;
        for (u32 k = 0; k < units[i].block_count; k++) {
            if ((breach = records_breach(&units[i].blocks[k], &ends)) ||
                (breach = block_breach(&units[i].blocks[k], &sums)))
                return breach;
        }
    }
    if (sums.linked != sums.listed)
        return "C1: the lists of links and the exits tell different numbers of links";
    if (sums.published != filled_slots())
        return "C1: a table leads to code that is no live block's entry";
    if ((breach = index_breach(sums.live)) || (breach = pages_breach()) ||
        (breach = landings_validate(&open)))
        return breach;
    if (open != sums.landings)
        return "C1: a landing is open whose block is retired";
    ctx_for_each(look_at_thread, &breach);
    return breach;
}
