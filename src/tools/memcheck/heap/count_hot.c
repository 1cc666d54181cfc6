// SPDX-License-Identifier: MIT
//
// See count.h. Contexts are small numbers, so that a table by context is enough; what is never
// touched of it costs nothing.
#include <sys/mman.h>

#include "engine/callstack/callstack.h"
#include "engine/log/log.h"
#include "engine/relay/relay.h"
#include "tools/memcheck/heap/count.h"
#include "tools/memcheck/heap/heap.h"

typedef struct Count {
    u64 bytes, blocks;             // now
    u64 all_bytes, all_blocks;     // ever allocated
    u64 freed_bytes, freed_blocks; // ever freed by this context
} Count;

static Count *counts; // by context
static bool is_full;

void heap_count_start(bool full)
{
    void *table = mmap(NULL, (size_t)CONTEXTS_MAX * sizeof(Count), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        log_refuse("--xtree-memory: no address space for the sums by calling context");
    counts = table;
    is_full = full;
}

bool heap_is_counted(void)
{
    return counts != NULL;
}

static void add(u64 *sum, u64 amount)
{
    __atomic_fetch_add(sum, amount, __ATOMIC_RELAXED);
}

void heap_count_allocation(u32 context, u64 size)
{
    Count *c = &counts[context];
    add(&c->bytes, size);
    add(&c->blocks, 1);
    add(&c->all_bytes, size);
    add(&c->all_blocks, 1);
}

void heap_count_release(u32 allocated_by, u32 freed_by, u64 size)
{
    add(&counts[allocated_by].bytes, -size);
    add(&counts[allocated_by].blocks, -1ull);
    add(&counts[freed_by].freed_bytes, size);
    add(&counts[freed_by].freed_blocks, 1);
}

void heap_count_tell(ToolThread *thread, bool by_command)
{
    static u32 told;
    u32 tree = is_full ? TREE_MEMORY_FULL : TREE_MEMORY, contexts = context_count();
    for (u32 i = 0; i < contexts && counts; i++) {
        const Count *c = &counts[i];
        bool is_used = c->blocks || (is_full && (c->all_blocks || c->freed_blocks));
        u64 values[] = {c->bytes,      c->blocks,      c->all_bytes,
                        c->all_blocks, c->freed_bytes, c->freed_blocks};
        if (is_used)
            relay_tree_node(thread, tree, values, is_full ? ARRAY_LEN(values) : 2, i);
    }
    relay_tree_done(thread, tree, by_command ? __atomic_add_fetch(&told, 1, __ATOMIC_RELAXED) : 0);
}
