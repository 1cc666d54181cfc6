// SPDX-License-Identifier: MIT
//
// How many blocks a unit of the cache holds: too few, and a program translates all day.
#include "engine/cache/unit.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"

#include "unit.h"

enum {
    LARGEST = 64 * 1024, // what memcheck's largest block may need
    USUAL = 600,         // what most turn out to need
};

// Blocks that are reserved at the largest size and committed at a usual one.
static unsigned blocks_in_a_unit(void)
{
    unsigned count = 0, unit = 0;

    lock_acquire(&engine_lock);
    for (;; count++) {
        Block *block = cache_reserve(LARGEST, 4, 100);
        if (count == 0)
            unit = block->unit;
        if (block->unit != unit)
            break;
        block->pc = 0x1000 + count;
        block->body = block->code;
        block->code_size = USUAL;
        cache_commit(block, NULL, 0);
    }
    lock_release(&engine_lock);
    return count;
}

TEST(the_smallest_cache_holds_many_blocks_of_a_tool_whose_largest_ones_are_large)
{
    CHECK(tool_select(&(Options){.tool = "memcheck"}));
    cache_init(0, LARGEST, true);
    CHECK(blocks_in_a_unit() >= 100);
    CHECK(blocks_in_a_unit() >= 100);
}
