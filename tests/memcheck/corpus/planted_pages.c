// SPDX-License-Identifier: MIT
//
// A small store of records of the kind of sqlite: pages with slots that point to cells, a cache of
// pages, a file. Each case plants one bug in it; the first plants none.
#include "corpus.h"

#include <fcntl.h>

enum Bug {
    BUG_NONE, BUG_CELL_TOO_LONG, BUG_PAGE_NOT_CLEARED, BUG_EVICTED, BUG_MEMCPY, BUG_SLOT_TOO_MANY,
    BUG_PAGE_LOST, BUG_WRONG_SIZE,
};
static volatile int bug;

enum { PAGE = 512, PAGES = 16, CACHED = 3 };

// Slots grow up behind the header, cells down from the end.
typedef struct Page {
    u16 count, cells; // slots; where the lowest cell begins
    u16 slots[(PAGE - 4) / 2];
} Page;

typedef struct Cache {
    Page *page[PAGES];
    u64 used[PAGES], clock;
    int fd;
} Cache;

static NOINLINE void page_write(Cache *cache, int number)
{
    CHECK(pwrite(cache->fd, cache->page[number], PAGE, number * PAGE) == PAGE);
}

static NOINLINE void cache_evict(Cache *cache)
{
    int oldest = -1, count = 0;
    for (int i = 0; i < PAGES; i++) {
        if (!cache->page[i])
            continue;
        count++;
        if (oldest < 0 || cache->used[i] < cache->used[oldest])
            oldest = i;
    }
    if (count <= CACHED)
        return;
    page_write(cache, oldest);
    if (bug != BUG_PAGE_LOST)
        free(cache->page[oldest]);
    cache->page[oldest] = NULL;
}

static NOINLINE Page *cache_get(Cache *cache, int number, int is_new)
{
    cache->used[number] = ++cache->clock;
    if (cache->page[number])
        return cache->page[number];
    u64 size = bug == BUG_WRONG_SIZE ? PAGE - 8 : PAGE;
    int clears = bug != BUG_PAGE_NOT_CLEARED && bug != BUG_SLOT_TOO_MANY;
    Page *page = (Page *)(clears ? calloc(1, size) : malloc(size));
    if (!is_new)
        CHECK(pread(cache->fd, page, PAGE, number * PAGE) == PAGE);
    else
        page->count = 0, page->cells = PAGE;
    cache->page[number] = page;
    cache_evict(cache);
    return page;
}

static NOINLINE int page_find(const Page *page, u16 key, int extra)
{
    int low = 0, high = page->count + extra;
    while (low < high) {
        int middle = (low + high) / 2;
        const u8 *cell = (const u8 *)page + page->slots[middle];
        if (cell[0] + cell[1] * 256 < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static NOINLINE int page_insert(Page *page, u16 key, const u8 *data, u32 size)
{
    u32 room = page->cells - 4 - 2 * page->count;
    u32 needed = size + 3 + 2;
    if (room < needed)
        return 0;
    int at = page_find(page, key, 0);
    page->cells -= size + 3;
    u8 *cell = (u8 *)page + page->cells;
    cell[0] = key;
    cell[1] = key >> 8;
    cell[2] = size;
    memcpy(cell + 3, data, bug == BUG_CELL_TOO_LONG ? size + 1 : size);
    memmove(&page->slots[at + 1], &page->slots[at], 2 * (page->count - at));
    page->slots[at] = page->cells;
    page->count++;
    return 1;
}

// Takes a slot out; those behind it move up.
static NOINLINE void page_delete(Page *page, int at)
{
    u16 *to = &page->slots[at], *from = to + 1;
    u64 size = 2 * (page->count - at - 1);
    void *(*move)(void *, const void *, size_t) = memmove;
    if (bug == BUG_MEMCPY)
        memcpy(to, from, size);
    else
        move(to, from, size);
    page->count--;
}

static NOINLINE void work(enum Bug planted)
{
    char name[] = "/tmp/muninn-pages.XXXXXX";
    Cache cache = {.fd = mkstemp(name)};
    u8 data[20];
    bug = planted;
    unlink(name);
    for (int i = 0; i < 20; i++)
        data[i] = i;
    for (int number = 0; number < 6; number++) {
        Page *page = cache_get(&cache, number, 1);
        for (int i = 0; i < 40; i++) {
            if (!page_insert(page, i * 37 % 41, data, 5 + i % 15))
                break;
        }
        BRANCH(page_find(page, 99, bug == BUG_SLOT_TOO_MANY));
        if (page->count > 3)
            page_delete(page, 1);
    }
    Page *first = cache_get(&cache, 0, 0);
    for (int number = 1; number < 6; number++)
        cache_get(&cache, number, 0);
    u64 sum = 0;
    Page *again = bug == BUG_EVICTED ? first : cache_get(&cache, 0, 0);
    for (int i = 0; i < again->count; i++)
        sum += ((u8 *)again)[again->slots[i] + 3];
    BRANCH(sum);
    for (int i = 0; i < PAGES; i++)
        free(cache.page[i]);
    close(cache.fd);
}

CASE(none) // OPTIONS --leak-check=full
{
    work(BUG_NONE);
}

CASE(cell_too_long)
{
    work(BUG_CELL_TOO_LONG);
    // EXPECT memcheck invalid-write of=512 line=any
}

CASE(page_not_cleared)
{
    work(BUG_PAGE_NOT_CLEARED);
    // EXPECT memcheck syscall-param param=pwrite64(buf) bad=uninitialised line=any
}

CASE(evicted)
{
    work(BUG_EVICTED);
    // EXPECT memcheck invalid-read size=2 of=512 state=freed line=any
    // MAYBE memcheck invalid-read size=1 of=512 state=freed line=any
}

CASE(memcpy_that_overlaps) // OPTIONS --num-callers=3
{
    work(BUG_MEMCPY); // EXPECT-MUNINN memcheck overlap fn=memcpy line=any why=memcpy-overlap
}

CASE(slot_too_many) // OPTIONS --malloc-fill=00
{
    work(BUG_SLOT_TOO_MANY);
    // EXPECT memcheck uninit-value size=8 origin=heap line=any top=page_find
    // MAYBE memcheck uninit-branch line=any
    // MAYBE memcheck syscall-param param=pwrite64(buf) bad=uninitialised line=any
}

CASE(page_lost) // OPTIONS --leak-check=full
{
    work(BUG_PAGE_LOST); // EXPECT memcheck leak-definite line=any
    // MAYBE memcheck leak-possible line=any
}

CASE(page_of_the_wrong_size)
{
    work(BUG_WRONG_SIZE);
    // EXPECT memcheck invalid-write of=504 line=any
    // MAYBE memcheck invalid-read of=504 line=any
    // MAYBE memcheck syscall-param param=pwrite64(buf) bad=unaddressable line=any
    // MAYBE memcheck syscall-param param=pread64(buf) bad=unaddressable line=any
}
