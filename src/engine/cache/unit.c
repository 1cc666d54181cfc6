// SPDX-License-Identifier: MIT
//
// Allocation of blocks in units, recycling of units, and the way back from a
// host pc to a guest pc.
#include "engine/cache/unit.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "engine/aspace/aspace.h"
#include "engine/landings/landings.h"
#include "engine/log/log.h"
#include "engine/toolapi/toolapi.h"

Unit units[CACHE_UNITS];
u64 cache_epoch = 1;
bool cache_links;
CacheMisses cache_misses;
Exit *exits;
CacheStats cache_stats;

static unsigned current_unit;
static u64 unit_size;
u32 unit_blocks_max, unit_exits_max, unit_mark_bytes_max;

// Mostly address space, of which a user may have been given too little.
static _Noreturn void refuse_to_start(void)
{
    log_refuse("no room for the code cache; is there a limit on memory (ulimit -v, ulimit -d)?");
}

void *cache_reserve_table(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        refuse_to_start();
    return at;
}

static void fill_table(u64 table, u64 entries, CodePtr miss)
{
    for (u64 i = 0; i < entries; i++)
        __atomic_store_n(&((CodePtr *)table)[i], miss, __ATOMIC_RELEASE);
}

static void empty_tables(void)
{
    fill_table(LOOKUP_TABLE, LOOKUP_ENTRIES, cache_misses.lookup);
    for (u64 i = 0; i < LOOKUP_ENTRIES; i++)
        __atomic_store_n(&((CodeRef *)RETURN_TABLE)[i], code_ref(cache_misses.returns),
                         __ATOMIC_RELEASE);
    if (tool->version)
        fill_table(VERSION_TABLE, 1u << VERSION_BITS, cache_misses.version);
}

static void map_tables(void)
{
    size_t size = BLOCKS_START - TABLES_START;
    void *tables = mmap((void *)TABLES_START, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (tables != (void *)TABLES_START)
        refuse_to_start();
    madvise(tables, LANDING_TABLE - TABLES_START, MADV_HUGEPAGE); // branches touch them all over
    empty_tables();
    landings_init();
}

// Tables are address space above all, which is limited where a cache is made small for that.
static u32 table_size(u64 max)
{
    return (u32)max_u64(max / UNIT_TABLES_LEAST, min_u64(max, max * unit_size / UNIT_FULL_BYTES));
}

// Blocks are reserved at the size of the largest, and most turn out to be a hundredth of that. A
// unit that has just that room would hold one block, and a program would translate each of its
// blocks anew each time. With twice the room, the first blocks of a unit may also fall into the
// next one (cache_has_room_behind()).
static void size_units(u64 size_bytes, size_t block_room)
{
    unit_size = PAGE_DOWN(min_u64(size_bytes, CACHE_END - BLOCKS_START) / CACHE_UNITS);
    unit_size = max_u64(unit_size, 2 * block_room + 16 * KiB);
    unit_blocks_max = table_size(UNIT_BLOCKS_MAX);
    unit_exits_max = table_size(UNIT_EXITS_MAX);
    unit_mark_bytes_max = table_size(UNIT_MARK_BYTES_MAX);
}

void cache_init(u64 size_bytes, size_t block_room, bool link)
{
    size_units(size_bytes, block_room);
    cache_links = link;
    aspace_code_changed_hook = cache_invalidate;
    return_shift = tool->needs & TOOL_LOOSE_FLAGS ? RETURN_SHIFT : 0;
    exits = cache_reserve_table(sizeof(Exit) * (u64)unit_exits_max * CACHE_UNITS);

    void *code = mmap((void *)BLOCKS_START, unit_size * CACHE_UNITS,
                      PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (code != (void *)BLOCKS_START)
        refuse_to_start();
    madvise(code, unit_size * CACHE_UNITS, MADV_HUGEPAGE); // fewer page faults and iTLB misses
    map_tables();

    for (unsigned i = 0; i < CACHE_UNITS; i++) {
        Unit *u = &units[i];
        u->start = u->next = (CodePtr)BLOCKS_START + i * unit_size;
        u->end = u->cold = u->start + unit_size;
        u->blocks = cache_reserve_table(sizeof(Block) * (u64)unit_blocks_max);
        u->marks = cache_reserve_table(unit_mark_bytes_max);
        u->exit_count = 1; // index 0 of the first unit means "none"
    }
    pages_init();
    index_init();
}

bool cache_contains(u64 host_pc)
{
    return host_pc - BLOCKS_START < unit_size * CACHE_UNITS;
}

static void retire_unit(Unit *u)
{
    if (!u->filled)
        return;
    for (u32 i = 0; i < u->block_count; i++) {
        if (!u->blocks[i].retired)
            block_drop(&u->blocks[i]);
    }
    pages_sweep();
    u->filled = false;
    u->retired_at = ++cache_epoch;
}

typedef struct Laggards {
    u64 epoch;
    bool any;
} Laggards;

static void look_for_laggard(ThreadCtx *ctx, void *arg)
{
    Laggards *l = arg;
    if (__atomic_load_n(&ctx->dispatch.in_cache, __ATOMIC_SEQ_CST) &&
        __atomic_load_n(&ctx->cache.safe_epoch, __ATOMIC_SEQ_CST) < l->epoch)
        l->any = true;
}

static bool any_laggard(u64 epoch)
{
    Laggards l = {.epoch = epoch};
    ctx_for_each(look_for_laggard, &l);
    return l.any;
}

// Severs every link and empties the lookup table, so that each thread leaves the
// cache at the end of the block it is in.
static void unlink_all(void)
{
    for (unsigned i = 0; i < CACHE_UNITS; i++) {
        for (u32 k = 0; k < units[i].block_count; k++) {
            if (!units[i].blocks[k].retired)
                block_unlink(&units[i].blocks[k]);
        }
    }
}

// Waits until no thread can still execute the unit's old code (C3). A thread
// that has long left it may be spinning in linked blocks elsewhere, for what
// only we can give: those are unlinked, and it arrives at the engine lock, where
// it counts as outside.
static void wait_for_safe_points(u64 epoch)
{
    if (!any_laggard(epoch))
        return;
    unlink_all();
    while (any_laggard(epoch))
        sched_yield();
}

// The next unit becomes the current one; the one behind it is retired already
// now, so that its stragglers have all the time it takes to fill this one.
static Unit *next_unit(void)
{
    current_unit = (current_unit + 1) % CACHE_UNITS;
    Unit *u = &units[current_unit];
    retire_unit(u);
    if (u->retired_at) {
        wait_for_safe_points(u->retired_at);
        cache_stats.recycled_units++;
    }
    __atomic_store_n(&u->block_count, 0, __ATOMIC_RELEASE);
    u->next = u->start;
    u->cold = u->end;
    u->mark_bytes = 0;
    u->exit_count = 1;
    retire_unit(&units[(current_unit + 1) % CACHE_UNITS]);
    return u;
}

void cache_start_again(void)
{
    for (unsigned i = 0; i < CACHE_UNITS; i++) {
        for (u32 k = 0; k < units[i].block_count; k++) {
            units[i].blocks[k].retired = true;
            block_sever(&units[i].blocks[k]);
        }
    }
    index_clear();
    pages_clear();
    landings_close_all();
    memset((void *)SECOND_TABLE, 0, sizeof(u64) << SECOND_BITS);
    empty_tables();
}

static bool unit_has_room(const Unit *u, size_t code_room, size_t max_exits, size_t max_marks)
{
    return (size_t)(u->cold - u->next) >= code_room && u->block_count < unit_blocks_max &&
           u->exit_count + max_exits <= unit_exits_max &&
           u->mark_bytes + max_marks * MARK_BYTES_MAX <= unit_mark_bytes_max;
}

Block *cache_reserve(size_t code_room, size_t max_exits, size_t max_marks)
{
    DEBUG_ASSERT(lock_is_held(&engine_lock));
    Unit *u = &units[current_unit];
    if (!unit_has_room(u, code_room, max_exits, max_marks))
        u = next_unit();
    ASSERT(unit_has_room(u, code_room, max_exits, max_marks));

    Block *b = &u->blocks[u->block_count];
    *b = (Block){.code = code_ref(u->next), .unit = (u8)current_unit, .marks = u->mark_bytes};
    b->first_exit = current_unit * unit_exits_max + u->exit_count;
    return b;
}

bool cache_has_room_behind(const Block *b, size_t code_room, size_t max_exits, size_t max_marks)
{
    const Unit *u = &units[b->unit];
    return b->unit == current_unit && u->block_count + 2 < unit_blocks_max &&
           unit_has_room(u, 2 * code_room, 2 * max_exits, 2 * max_marks);
}

void cache_commit(Block *b, const CodeMark *marks, size_t mark_count)
{
    Unit *u = &units[b->unit];
    u->filled = true;
    u->next = code_at(b->code) + b->code_size;
    u->exit_count += b->exit_count;
    b->mark_count = (u32)mark_count & 0xfff;
    u->mark_bytes = (u32)(marks_pack(marks, mark_count, u->marks + b->marks) - u->marks);
    __atomic_store_n(&u->block_count, u->block_count + 1, __ATOMIC_RELEASE);
    block_hash_insert(b);
    cache_stats.blocks++;
    cache_stats.exits += b->exit_count;
    cache_stats.code_bytes += b->code_size;
}

void cache_lengthen(Block *b, u32 bytes)
{
    b->code_size += (u16)bytes;
    units[b->unit].next += bytes;
}

CodePtr cache_reserve_cold(const Block *like, size_t bytes)
{
    Unit *u = &units[like->unit];
    if (like->retired || (size_t)(u->cold - u->next) < bytes)
        return NULL;
    u->cold -= bytes;
    return u->cold;
}

static const Block *block_at(u64 host_pc)
{
    const Unit *u = &units[(host_pc - BLOCKS_START) / unit_size];
    u32 lo = 0, hi = __atomic_load_n(&u->block_count, __ATOMIC_ACQUIRE);
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        if (u->blocks[mid].code + (u64)u->blocks[mid].code_size <= host_pc)
            lo = mid + 1;
        else
            hi = mid;
    }
    const Block *b = &u->blocks[lo];
    if (lo == u->block_count || host_pc < b->code)
        return NULL;
    return b;
}

bool cache_place(u64 host_pc, CodePlace *ret_place)
{
    if (!cache_contains(host_pc))
        return false;
    const Block *b = block_at(host_pc);
    if (!b)
        return false;
    u32 offset = (u32)(host_pc - b->code);
    CodeMark found = {.spilled = MARK_NOWHERE};
    for (MarkReader r = marks_of(b); marks_next(&r) && r.mark.host_offset <= offset;)
        found = r.mark;
    if (found.spilled == MARK_NOWHERE)
        return false;
    ret_place->pc = b->pc + (u64)(i64)found.guest_delta;
    ret_place->spilled = found.spilled;
    ret_place->boundary = found.boundary && found.host_offset == offset;
    ret_place->block = cache_number(b);
    return true;
}

void cache_enter(ThreadCtx *ctx)
{
    DEBUG_ASSERT(lock_is_held(&engine_lock));
    __atomic_store_n(&ctx->cache.safe_epoch, cache_epoch, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ctx->dispatch.in_cache, 1, __ATOMIC_SEQ_CST);
}
