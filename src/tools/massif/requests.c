// SPDX-License-Identifier: MIT
//
// Allocators of the client's own, told by the requests of valgrind.h. A block in a pool is
// a block like any other; what a pool holds when it is trimmed or destroyed is kept
// here, so that the monitor needs no notion of pools.
#include "base/futex_lock.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/callstack/callstack.h"
#include "engine/toolapi/toolapi.h"
#include "tools/massif/massif.h"

enum {
    MALLOCLIKE_BLOCK = 0x1301,
    FREELIKE_BLOCK,
    CREATE_MEMPOOL,
    DESTROY_MEMPOOL,
    MEMPOOL_ALLOC,
    MEMPOOL_FREE,
    MEMPOOL_TRIM,
    MOVE_MEMPOOL,
    MEMPOOL_CHANGE,
    MEMPOOL_EXISTS,
    RESIZEINPLACE_BLOCK,
};

typedef struct Pool {
    u64 anchor; // 0: free for another
    Map sizes;  // address → size of its blocks
} Pool;

static Lock pools_lock; // of all below
static Vec pools;       // of Pool

static Pool *find_pool(u64 anchor)
{
    for (size_t i = 0; i < pools.count; i++) {
        Pool *pool = vec_at(&pools, i);
        if (pool->anchor == anchor)
            return pool;
    }
    return NULL;
}

static GuestAddr here(const ToolThread *thread)
{
    return thread->pc | CONTEXT_EXACT_PC;
}

static void create(u64 anchor)
{
    if (anchor == 0 || find_pool(anchor))
        return;
    if (pools.element_bytes == 0)
        vec_init(&pools, sizeof(Pool));
    Pool *pool = find_pool(0);
    if (!pool)
        pool = vec_push(&pools, &(Pool){0});
    if (pool)
        pool->anchor = anchor;
}

// Frees the blocks that are not within [start, end).
static void trim(ToolThread *thread, Pool *pool, u64 start, u64 end)
{
    Map kept = {0};
    size_t cursor = 0;
    u64 address, size;
    while (map_next(&pool->sizes, &cursor, &address, &size)) {
        if (address >= start && address + size <= end)
            map_put(&kept, address, size);
        else
            event_free(thread, NULL, address);
    }
    map_free(&pool->sizes);
    pool->sizes = kept;
}

static void destroy(ToolThread *thread, Pool *pool)
{
    trim(thread, pool, 0, 0);
    map_free(&pool->sizes);
    *pool = (Pool){0};
}

static void change(ToolThread *thread, Pool *pool, const u64 args[6])
{
    u64 size;
    if (!map_get(&pool->sizes, args[2], &size))
        return;
    map_remove(&pool->sizes, args[2]);
    map_put(&pool->sizes, args[3], args[4]);
    event_resize(thread, here(thread), args[2], args[3], args[4], args[4]);
}

static void run_on_pool(ToolThread *thread, Pool *pool, const u64 args[6])
{
    switch (args[0]) {
    case DESTROY_MEMPOOL: destroy(thread, pool); break;
    case MEMPOOL_ALLOC:
        map_put(&pool->sizes, args[2], args[3]);
        event_alloc(thread, here(thread), args[2], args[3], args[3]);
        break;
    case MEMPOOL_FREE:
        if (map_remove(&pool->sizes, args[2]))
            event_free(thread, NULL, args[2]);
        break;
    case MEMPOOL_TRIM: trim(thread, pool, args[2], args[2] + args[3]); break;
    case MOVE_MEMPOOL: pool->anchor = args[2]; break;
    case MEMPOOL_CHANGE: change(thread, pool, args); break;
    default: break;
    }
}

bool massif_request(ToolThread *thread, const u64 args[6], u64 *ret_result)
{
    if (args[0] < MALLOCLIKE_BLOCK || args[0] > RESIZEINPLACE_BLOCK)
        return false;
    if (args[0] == MALLOCLIKE_BLOCK) {
        event_alloc(thread, here(thread), args[1], args[2], args[2]);
    } else if (args[0] == FREELIKE_BLOCK) {
        event_free(thread, NULL, args[1]);
    } else if (args[0] == RESIZEINPLACE_BLOCK) {
        event_resize(thread, here(thread), args[1], args[1], args[3], args[3]);
    } else {
        lock_acquire(&pools_lock);
        Pool *pool = find_pool(args[1]);
        if (args[0] == CREATE_MEMPOOL)
            create(args[1]);
        else if (args[0] == MEMPOOL_EXISTS)
            *ret_result = args[1] && pool;
        else if (pool && args[1])
            run_on_pool(thread, pool, args);
        lock_release(&pools_lock);
    }
    return true;
}

void requests_fork_prepare(void)
{
    lock_acquire(&pools_lock);
}

void requests_fork_parent(void)
{
    lock_release(&pools_lock);
}

void requests_fork_child(void)
{
    lock_reset_after_fork(&pools_lock);
}
