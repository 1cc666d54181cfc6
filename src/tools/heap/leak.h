// SPDX-License-Identifier: MIT
//
// The core of the leak check: which blocks can still be reached, and how. It knows
// blocks, roots and a reader of words; it does not know the heap, threads or the tool.
//
// A word points to a block if it holds the address of its first byte (a start pointer)
// or of a later one (an interior pointer). A block of size 0 counts as one byte.
//   reachable   by a chain of start pointers from a root
//   possible    by a chain from a root that has an interior pointer in it
//   definite    lost, and leader of what is lost with it: no lost block points to it, except
//               from a cycle that it leads, being its lowest block
//   indirect    lost, and led by a definite one: that one's record is charged with its bytes
// Blocks may lie in others, as MALLOCLIKE blocks do in a pool's chunk. A word then points to the
// innermost; and, from a root or from what is not lost, to those around it as well: as long as
// somebody has a piece of a chunk, the chunk is not lost for certain.
//
// A heuristic makes an interior pointer count as a start pointer. What can be reached from two
// leaders is charged to the lower one.
//
// Full context only: it maps memory. The client must be stopped.
#ifndef MUNINN_TOOLS_HEAP_LEAK_H
#define MUNINN_TOOLS_HEAP_LEAK_H

#include "base/types.h"

typedef enum LeakKind {
    LOSS_REACHABLE,
    LOSS_POSSIBLE,
    LOSS_INDIRECT,
    LOSS_DEFINITE,
    LEAK_KIND_COUNT
} LeakKind;

typedef enum LeakHeuristic {
    LEAK_BY_START, // none was needed
    LEAK_STDSTRING,
    LEAK_LENGTH64,
    LEAK_NEWARRAY,
    LEAK_MULTIPLE_INHERITANCE,
    LEAK_HEURISTIC_COUNT
} LeakHeuristic;

#define LEAK_HEURISTIC_BIT(h) (1u << (h)) // for LeakInput.heuristics

// Start, size and context in 16 bytes: a heap may have many millions of blocks.
typedef struct LeakBlock {
    u64 low;  // start:47, low bits of the size:17
    u64 high; // context:32, high bits of the size:32
} LeakBlock;

static inline LeakBlock leak_block(GuestAddr start, u64 size_bytes, u32 context)
{
    return (LeakBlock){start | size_bytes << 47, context | size_bytes >> 17 << 32};
}

static inline GuestAddr leak_block_start(const LeakBlock *block)
{
    return block->low & ((1ull << 47) - 1);
}

static inline u64 leak_block_size(const LeakBlock *block)
{
    return block->low >> 47 | block->high >> 32 << 17;
}

static inline u32 leak_block_context(const LeakBlock *block)
{
    return (u32)block->high;
}

// A growing list of blocks. A zeroed one is valid and empty.
typedef struct LeakBlockList {
    LeakBlock *blocks;
    u64 count;
    u64 capacity;
} LeakBlockList;

// Room for `capacity` blocks; more may be added at the cost of a move. False: no memory.
bool leak_list_reserve(LeakBlockList *list, u64 capacity);
bool leak_list_add(LeakBlockList *list, GuestAddr start, u64 size_bytes, u32 context);
void leak_list_free(LeakBlockList *list);

typedef struct LeakRange {
    GuestAddr low;
    GuestAddr high; // not in it
} LeakRange;

typedef void LeakWork(void *argument, u32 worker, u32 count);

typedef struct LeakInput {
    const LeakBlock *blocks; // ascending by start, outer ones first; fewer than 2^31; below 2^47
    u64 block_count;
    const LeakRange *roots; // memory that is not the heap's: data, stacks, thread-local
    u64 root_count;
    u64 coarse_roots; // so many at the end are not told apart by words as holders
    const u64 *words; // more roots: registers of all threads
    u64 word_count;
    u32 heuristics; // LEAK_HEURISTIC_BIT()s
    u32 workers;    // at least 1
    bool wants_holders; // leak_holders() will be asked: one worker marks, to find shortest ways
    void *data;     // for the functions below, which all workers call at once

    // Copies `count` words, at most 512 and all in one page. A word that is not wholly
    // addressable and defined must read as 0. False: nothing there can be read.
    bool (*read_words)(void *data, GuestAddr address, u32 count, u64 *ret_words);
    // A hint that the block here will be read soon. NULL: the address itself is prefetched. A
    // reader that looks at shadow memory should prefetch that too.
    void (*prefetch)(void *data, GuestAddr address);
    // Whether this value looks like the address of a C++ virtual table. May be NULL.
    bool (*is_vtable)(void *data, GuestAddr value);
    // Contexts with equal keys are merged in one record. NULL: each is its own key.
    u32 (*context_key)(void *data, u32 context);
    // Runs fn(argument, 0 … count-1, count) at the same time and waits; count is at least 1 and at
    // most `workers`. May be NULL for one worker. fn uses neither thread-local variables nor
    // a Lock.
    void (*run_workers)(void *data, u32 workers, LeakWork *fn, void *argument);
} LeakInput;

// All blocks of one kind and one context (or what context_key() takes for one).
typedef struct LeakRecord {
    u32 context; // of the first of its blocks
    u32 key;
    u32 kind; // LeakKind
    u64 blocks;
    u64 bytes;          // direct
    u64 indirect_bytes; // of LOSS_DEFINITE: what is lost with them
    u64 old_blocks;     // the same at the last check
    u64 old_bytes;
    u64 old_indirect_bytes;
    bool is_new; // there was no such record then
    u32 made;    // its number in the order of making
} LeakRecord;

typedef struct LeakAmount {
    u64 blocks;
    u64 bytes;
} LeakAmount;

typedef struct LeakSummary {
    LeakAmount now[LEAK_KIND_COUNT];
    LeakAmount before[LEAK_KIND_COUNT];            // at the last check
    LeakAmount by_heuristic[LEAK_HEURISTIC_COUNT]; // of now[LOSS_REACHABLE]
} LeakSummary;

typedef struct LeakCheck LeakCheck;

// What the last check found, for deltas. A zeroed one is valid and empty.
typedef struct LeakHistory {
    LeakRecord *records;
    u64 record_count;
    u64 mapped_bytes;
} LeakHistory;

// NULL: no memory. `history` may be NULL, and is brought up to date. The input's arrays must
// live as long as the result.
LeakCheck *leak_check(const LeakInput *input, LeakHistory *history);
void leak_free(LeakCheck *check);
void leak_history_free(LeakHistory *history);

const LeakSummary *leak_summary(const LeakCheck *check);

// Records in the order in which they are worth looking at. With a history, records that are gone
// are there too, with no blocks.
u64 leak_record_count(const LeakCheck *check);
const LeakRecord *leak_record(const LeakCheck *check, u64 index);

typedef enum LeakDelta { LEAK_ANY, LEAK_INCREASED, LEAK_CHANGED, LEAK_NEW } LeakDelta;

bool leak_record_matches(const LeakRecord *record, LeakDelta delta);

LeakKind leak_kind_of(const LeakCheck *check, u64 block);
// Whether a heuristic takes a pointer to the inside of this block for one to its start.
bool leak_heuristic_takes(const LeakInput *input, LeakHeuristic heuristic, GuestAddr start,
                          u64 size_bytes, GuestAddr pointer);
LeakHeuristic leak_heuristic_of(const LeakCheck *check, u64 block);

// The blocks of a record, ascending. Behind each lost one come, one level deeper, the blocks
// that are lost through it. Stops when fn returns false.
typedef struct LeakListed {
    u64 block;  // index in LeakInput.blocks
    u64 record; // its own
    u32 level;
    LeakHeuristic heuristic;
} LeakListed;
typedef bool LeakListVisit(void *data, const LeakListed *listed);
void leak_list_blocks(LeakCheck *check, u64 record, LeakListVisit *fn, void *data);

// Who holds the blocks of a record. Each block has one holder: the last step of a shortest way
// from a root, the first of the roots and then of the words if there are several. A block that is
// indirectly lost is held by one that is lost, a definitely lost one by nobody. So holders are
// trees.
typedef enum LeakPlace { LEAK_IN_WORD, LEAK_IN_ROOT, LEAK_IN_BLOCK, LEAK_IN_OTHERS } LeakPlace;
typedef struct LeakHolder {
    LeakPlace place;
    u64 index;          // of the word, the root, the record that the block is of; how many others
    GuestAddr location; // of a root: its first pointer, or the first of neighbours
    u64 blocks;         // of the record that is asked for
    u64 bytes;
} LeakHolder;

enum { LEAK_HOLDERS_MAX = 49 };
// Returns how many: roots and words, in pieces as large as it takes, then records, the most bytes
// first, then the others. 0 without wants_holders.
u32 leak_holders(const LeakCheck *check, u64 record, LeakHolder ret_holders[LEAK_HOLDERS_MAX]);

// Every place that holds a pointer into [address, +size): words, then roots, then blocks.
typedef struct LeakPointer {
    LeakPlace place;
    u64 index;          // of the word, the root or the block
    GuestAddr location; // of a word: 0
    u64 value;
} LeakPointer;
typedef bool LeakPointerVisit(void *data, const LeakPointer *pointer);
void leak_who_points_at(const LeakInput *input, GuestAddr address, u64 size_bytes,
                        LeakPointerVisit *fn, void *data);

#endif
