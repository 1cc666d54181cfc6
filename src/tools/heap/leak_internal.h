// SPDX-License-Identifier: MIT
//
// What the stages of a leak check share: index → marking from roots → what lost blocks
// point to → cliques of them → records.
#ifndef MUNINN_TOOLS_HEAP_LEAK_INTERNAL_H
#define MUNINN_TOOLS_HEAP_LEAK_INTERNAL_H

#include "base/assert.h"
#include "base/map.h"
#include "base/prefetch.h"
#include "base/vec.h"
#include "tools/heap/leak.h"

// What is known of a block. From roots the value only grows, by an atomic maximum; the
// last two are of the lost, which only the stage of cliques sees.
enum {
    MARK_NONE = 0,
    MARK_POSSIBLE = 1,
    MARK_REACHED = 2, // and above: by a heuristic, the first of leak.h highest, …
    MARK_START = 2 + LEAK_HEURISTIC_COUNT - 1, // … or by a start pointer
    MARK_INDIRECT,
    MARK_LEADER,
};

static inline u8 mark_of_heuristic(LeakHeuristic heuristic)
{
    return (u8)(MARK_START - heuristic);
}

#define NO_BLOCK      0xffffffffu
#define GRANULE_SHIFT 22
#define GRANULE_PAGES 1024
#define LEAF_ENTRIES  (GRANULE_PAGES + 1)
#define TOP_ENTRIES   (1ull << (47 - GRANULE_SHIFT))
#define TOP_IS_BLOCK  0x80000000u

// A block that others lie in.
typedef struct LeakContainer {
    u32 block;
    u32 outer; // the number of the container that it lies in, or NO_BLOCK
} LeakContainer;

// From address to block. top[address >> 22] is 0, a leaf's number + 1, or TOP_IS_BLOCK | block
// when no block starts in the granule. leaf[page] is the first block that starts at or
// behind the page.
typedef struct LeakIndex {
    u32 *top;
    u32 *leaves;
    u64 leaves_bytes;
    GuestAddr low; // all blocks are in [low, high)
    GuestAddr high;
    Vec containers; // LeakContainer, in the order of their blocks
} LeakIndex;

// Where a pointer was read: words of roots, then words of the input, then blocks. A root whose
// words are not told apart has one code.
typedef struct LeakCodes {
    u32 *of_root; // of the first word of each
    u64 root_bytes;
    u64 fine_roots; // the words of those are told apart
    u32 first_word;
    u32 first_block;
} LeakCodes;

// Of a block that is lost, in one place, since the sorting looks at it in any order.
typedef struct LostBlock {
    u32 list;   // what it points to: where in LeakEdges.words. 0: it was not read ahead
    u32 parent; // of the indirectly lost: the block that points to it
} LostBlock;

// What lost blocks point to (leak_edges.c). A list is a head and then blocks; NO_BLOCK is of a word
// that only looked like a pointer.
typedef struct LeakEdges {
    u32 *words; // NULL: nothing was read ahead
    u64 room;   // of so many words, …
    u64 used;   // … of which these are taken. Atomic
} LeakEdges;

static inline u32 leak_list_head(u32 size_bytes, u32 count)
{
    return size_bytes | count << 16;
}

static inline u32 leak_list_size(u32 head) // of the block, in bytes
{
    return head & 0xffff;
}

static inline u32 leak_list_count(u32 head)
{
    return head >> 16;
}

struct LeakCheck {
    LeakInput input;
    LeakIndex index;
    LeakCodes codes;
    u8 *marks;
    u32 *holders; // of what is reached: the code of who holds it. NULL: not wanted
    u32 *made_of; // LeakRecord.made of its record. NULL: not wanted
    struct LeakHolderTable *holder_table; // NULL: not wanted
    LostBlock *lost;     // Touched only there
    LeakEdges edges;     // while cliques are sought
    u64 *indirect_bytes; // of leaders. Touched only there
    u32 *first_child;    // made when blocks are listed: the lost, by parent
    u32 *next_sibling;
    Map keys;           // context → key
    Map records_by_key; // key, kind → record
    Vec records;
    LeakSummary summary;
};

// For memory that is touched at random: 3.6 → 2.8 s of CPU for 10 million blocks in disorder
// (tests/unit/heap_leak_speed_test.c, Zen 3 in a VM).
void leak_prefer_huge_pages(void *memory, u64 size_bytes);

bool leak_index_build(LeakIndex *index, const LeakInput *input);
void leak_index_free(LeakIndex *index);

// About where in the list the block of an address in [low, high) is: those of a page are mostly
// of one size. What is added makes up for what a page has beside whole blocks. NO_BLOCK: not known.
static inline u32 leak_index_guess(const LeakIndex *index, GuestAddr address)
{
    u32 entry = index->top[address >> GRANULE_SHIFT];

    if (entry == 0 || (entry & TOP_IS_BLOCK))
        return NO_BLOCK;
    const u32 *page =
        &index->leaves[(u64)(entry - 1) * LEAF_ENTRIES] + (address >> 12) % GRANULE_PAGES;
    return page[0] + (u32)(((page[1] - page[0]) * (address % 4096) + 1024) / 4096);
}

static inline bool leak_block_has(const LeakBlock *block, GuestAddr address)
{
    u64 size = leak_block_size(block);

    return address - leak_block_start(block) < size + (size == 0);
}

// The innermost container that the address is in: its number, or NO_BLOCK; and the next one around
// that.
u32 leak_container_at(const LeakIndex *index, const LeakBlock *blocks, GuestAddr address);
u32 leak_container_around(const LeakIndex *index, const LeakBlock *blocks, u32 container,
                          GuestAddr address);
u32 leak_container_block(const LeakIndex *index, u32 container);

static inline u32 leak_index_find_outer(const LeakIndex *index, const LeakBlock *blocks,
                                        GuestAddr address)
{
    if (LIKELY(index->containers.count == 0))
        return NO_BLOCK;
    u32 container = leak_container_at(index, blocks, address);
    return container == NO_BLOCK ? NO_BLOCK : leak_container_block(index, container);
}

// The innermost block.
static inline u32 leak_index_find(const LeakIndex *index, const LeakBlock *blocks,
                                  GuestAddr address)
{
    if (address - index->low >= index->high - index->low)
        return NO_BLOCK;
    u32 entry = index->top[address >> GRANULE_SHIFT];
    if (entry == 0)
        return leak_index_find_outer(index, blocks, address);
    u32 found = entry & ~TOP_IS_BLOCK;
    if (!(entry & TOP_IS_BLOCK)) {
        const u32 *page =
            &index->leaves[(u64)(entry - 1) * LEAF_ENTRIES] + (address >> 12) % GRANULE_PAGES;
        u32 low = page[0], high = page[1];
        u32 guess = leak_index_guess(index, address);
        while (guess < high && leak_block_start(&blocks[guess]) <= address)
            guess++;
        while (guess > low && leak_block_start(&blocks[guess - 1]) > address)
            guess--;
        if (guess == 0)
            return NO_BLOCK;
        found = guess - 1;
    }
    return leak_block_has(&blocks[found], address)
               ? found
               : leak_index_find_outer(index, blocks, address);
}

// Reads [address, high) page by page, whole aligned words only, and calls fn for each
// word that is not 0. False as soon as fn returns false.
typedef bool WordVisit(void *data, GuestAddr location, u64 value);
bool leak_for_each_word(const LeakInput *input, GuestAddr address, GuestAddr high, WordVisit *fn,
                        void *data);

bool leak_codes_make(LeakCodes *codes, const LeakInput *input);
void leak_codes_free(LeakCodes *codes);
bool leak_make_holders(LeakCheck *check); // of all records; after them
void leak_holders_free(LeakCheck *check);

bool leak_mark_from_roots(LeakCheck *check); // false: no memory
void leak_edges_read(LeakCheck *check);
void leak_edges_free(LeakCheck *check);
bool leak_find_cliques(LeakCheck *check);
bool leak_make_records(LeakCheck *check, LeakHistory *history);
u64 leak_record_of(LeakCheck *check, u64 block);

#endif
