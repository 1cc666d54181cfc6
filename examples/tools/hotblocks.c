// SPDX-License-Identifier: MIT
//
// hotblocks: which blocks of instructions run most often. Shows counters: one for each block, added
// to by the blocks themselves, and read when the program ends.
#include <muninn/tool.h>
#include <stdlib.h>

MUNINN_TOOL("hotblocks", "lists the blocks that run most often")

typedef struct Hot {
    MuninnAddress address;
    uint32_t instructions;
    uint64_t times;
} Hot;

static Hot blocks[MUNINN_COUNTERS_MAX]; // by the number of their counter
static uint32_t slots[2 * MUNINN_COUNTERS_MAX]; // hash table: 1 + the number
static size_t used;
static uint64_t unnumbered; // blocks for which no counter was left
static uint64_t limit = 20;

// The number of the block's counter; it is the same if the block is translated again. Block
// callbacks never run in parallel, so the table needs no lock.
static bool number_of(MuninnAddress address, uint32_t instructions, MuninnCounter *number)
{
    size_t at = (address * 0x9e3779b97f4a7c15ull) >> 47;
    while (slots[at] && (blocks[slots[at] - 1].address != address ||
                         blocks[slots[at] - 1].instructions != instructions))
        at = (at + 1) % (2 * MUNINN_COUNTERS_MAX);
    if (!slots[at] && used == MUNINN_COUNTERS_MAX)
        return false;
    if (!slots[at]) {
        MuninnCounter new_one = muninn_counter(); // counters are numbered from 0
        blocks[new_one] = (Hot){.address = address, .instructions = instructions};
        slots[at] = new_one + 1;
        used++;
    }
    *number = slots[at] - 1;
    return true;
}

static void on_block(MuninnBlock *block, void *data)
{
    MuninnCounter counter;
    if (number_of(muninn_block_address(block), (uint32_t)muninn_block_count(block), &counter))
        muninn_count(muninn_block_insn(block, 0), counter, 1);
    else
        unnumbered++;
}

static int most_first(const void *a, const void *b)
{
    uint64_t x = ((const Hot *)a)->times, y = ((const Hot *)b)->times;
    return (x < y) - (x > y);
}

static void on_end(void *data)
{
    static uint64_t totals[MUNINN_COUNTERS_MAX];
    char name[256];
    muninn_counter_totals(totals, used);
    for (size_t i = 0; i < used; i++)
        blocks[i].times = totals[i];
    qsort(blocks, used, sizeof(blocks[0]), most_first);
    muninn_log("%14s  %12s  %s", "times", "instructions", "block");
    for (size_t i = 0; i < used && i < limit; i++)
        muninn_log("%14lu  %12u  %#lx %s", blocks[i].times, blocks[i].instructions,
                   blocks[i].address, muninn_name(NULL, blocks[i].address, name, sizeof(name)));
    if (unnumbered)
        muninn_log("%lu blocks were not counted: there are %d counters", unnumbered,
                   MUNINN_COUNTERS_MAX);
}

int muninn_tool_start(void)
{
    muninn_option_number("limit", &limit, "How many blocks are listed.");
    muninn_need(MUNINN_NEED_NAMES);
    muninn_on_block(on_block, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
