// SPDX-License-Identifier: MIT
//
// A counter for each address of code. What names an address has is the monitor's to find out, when
// the program has ended.
#include "tools/cachegrind/cachegrind.h"

#include <stdlib.h>

static uint32_t profile;

// Open addressing: which counter an address has. Written when blocks are made, so by one thread at
// a time, and read when the process ends.
static struct {
    MuninnAddress *addresses; // 0: free
    MuninnCounter *counters;
    size_t capacity, used;
} table;

static size_t find(MuninnAddress pc)
{
    size_t at = (size_t)(pc * 0x9e3779b97f4a7c15ull >> 20) & (table.capacity - 1);
    while (table.addresses[at] && table.addresses[at] != pc)
        at = (at + 1) & (table.capacity - 1);
    return at;
}

static bool grow(void)
{
    size_t old_capacity = table.capacity;
    MuninnAddress *addresses = table.addresses;
    MuninnCounter *counters = table.counters;
    table.capacity = old_capacity ? 2 * old_capacity : 1 << 14;
    table.addresses = calloc(table.capacity, sizeof(*table.addresses));
    table.counters = calloc(table.capacity, sizeof(*table.counters));
    if (!table.addresses || !table.counters)
        return false;
    for (size_t i = 0; i < old_capacity; i++) {
        if (!addresses[i])
            continue;
        size_t at = find(addresses[i]);
        table.addresses[at] = addresses[i];
        table.counters[at] = counters[i];
    }
    free(addresses);
    free(counters);
    return true;
}

static MuninnCounter counter_of(MuninnAddress pc)
{
    if (2 * table.used >= table.capacity && !grow()) {
        muninn_log("no memory for its counters");
        abort();
    }
    size_t at = find(pc);
    if (!table.addresses[at]) {
        table.addresses[at] = pc;
        table.counters[at] = muninn_counter();
        table.used++;
    }
    return table.counters[at];
}

static void on_block(MuninnBlock *block, void *data)
{
    (void)data;
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        muninn_count(insn, counter_of(muninn_insn_address(insn)), 1);
    }
}

static void on_fork_child(MuninnThread *thread, void *data)
{
    (void)thread;
    (void)data;
    muninn_counters_reset();
}

static void on_end(void *data)
{
    (void)data;
    uint64_t total = 0, *totals = calloc(table.used + 1, sizeof(*totals));
    if (!totals) {
        muninn_log("no memory for the profile");
        return;
    }
    muninn_counter_totals(totals, table.used);
    for (size_t i = 0; i < table.capacity; i++) {
        uint64_t count = table.addresses[i] ? totals[table.counters[i]] : 0;
        total += count;
        if (count)
            muninn_profile_cost(profile, table.addresses[i], &count);
    }
    muninn_profile_done(profile);
    muninn_log("%lu instructions", total);
    free(totals);
}

int cachegrind_start(void)
{
    profile = muninn_profile("Ir");
    muninn_on_block(on_block, NULL);
    muninn_on_fork_child(on_fork_child, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}

const MuninnTool cachegrind_description = {
    MUNINN_TOOL_API, MUNINN_TOOL_API_MINOR, "cachegrind",
    "counts the instructions of each line of the source",
};
