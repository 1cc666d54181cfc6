// SPDX-License-Identifier: MIT
//
// The replacement allocator that tools share. It runs in the engine and serves
// client memory. Its records of blocks lie elsewhere, where the client's
// overflows cannot reach them. The same index holds blocks that the client's own
// allocators announce by client requests.
//
// Words
//   segment     4 MiB of client memory, aligned to its size, cut into 256 units
//   unit        16 KiB
//   slab        1 to 67 units cut into slots of one size class; a medium block has
//               a slab to itself
//   slot        room for one block and for the gap behind it
//   gap         the room between two blocks: at least redzone_bytes. Neighbours share
//               it, so each block has a full redzone on both sides at half the price
//   huge        a block of 1 MiB or more: a mapping of its own, unmapped when it
//               leaves quarantine
//   quarantine  freed blocks whose memory is not used again yet, oldest out first
//   recycled    out of quarantine and not used again: still described by heap_find()
//   external    a block announced by the client: MALLOCLIKE or part of a pool
//
// Light and full. The functions below may be called from a light exit (general
// registers only, no libc), except those that say "full context": these call map and
// unmap, which concern the whole engine. 4 MiB of small blocks cost one map.
//
// What must stay true
//   H1  Memory of the heap that is not inside a live block is not addressable. fresh()
//       makes it so at first, allocated() makes a block addressable, and freed() undoes
//       that. Gaps therefore never need marking.
//   H2  A block is freed by exactly one caller, since its state changes by compare and
//       exchange. The other words of a slot belong to the thread that holds the slot.
//   H3  Segments, their metadata and records of huge blocks are never unmapped. So a
//       reader without a lock may see stale values, but never faults.
//   H4  Locks, in order: a size class, segments; quarantine, huge, external and
//       threads are leaves. None is held while map, unmap, allocated or freed run.
#ifndef MUNINN_TOOLS_HEAP_HEAP_H
#define MUNINN_TOOLS_HEAP_HEAP_H

#include "base/types.h"

typedef struct HeapThread HeapThread; // a client thread's caches and counters

#define HEAP_REDZONE_MAX 4096
#define HEAP_SIZE_MAX    (1ull << 45) // larger requests fail

typedef enum HeapKind {
    HEAP_MALLOC,
    HEAP_NEW,
    HEAP_NEW_ARRAY,
    HEAP_MEMALIGN, // freed as HEAP_MALLOC
    HEAP_CUSTOM,   // external: MALLOCLIKE
    HEAP_POOL,     // external: part of a pool
    // Kinds of a function that has several names at one address, so that its kind is not certain.
    HEAP_ANY_NEW, // operator new and new[], or delete and delete[]
    HEAP_ANY,     // the same and malloc, or free
    HEAP_KIND_COUNT
} HeapKind;

typedef enum HeapState {
    HEAP_NEVER_USED, // of slots only: heap_find() does not return it
    HEAP_LIVE,
    HEAP_QUARANTINED,
    HEAP_RECYCLED,
} HeapState;

typedef enum HeapResult {
    HEAP_OK,
    HEAP_NOT_A_BLOCK,
    HEAP_DOUBLE_FREE,
    HEAP_MISMATCHED, // freed by a function of another kind; it is freed all the same
    HEAP_NO_MEMORY,
    HEAP_NEEDS_FULL, // nothing was done: call again in full context
} HeapResult;

// What the tool does for the heap. map and unmap run in full context only. All other hooks must be
// fit for light exits, and discard, park and fresh may run under locks of the heap. Hooks marked *
// may be NULL. The range of an external block is what the client said; it need not be mapped.
typedef struct HeapHooks {
    // Maps client memory, readable, writable and zero, and registers it as the client's. 0:
    // refused.
    GuestAddr (*map)(u64 size_bytes, u64 alignment);
    void (*unmap)(GuestAddr start, u64 size_bytes);
    // * The content is not needed any more: gives the pages back, those of the shadow too if
    // the tool likes. The heap calls fresh() before it uses the range again. NULL: MADV_DONTNEED.
    void (*discard)(GuestAddr start, u64 size_bytes);
    // * The range is not addressable, and nobody will use it soon: gives back its pages and those
    // of its shadow, whose values stay as they are. NULL: pages are kept.
    void (*park)(GuestAddr start, u64 size_bytes);
    // * Makes a range of the heap that belongs to no block not addressable. Called before the range
    // is first cut into slots; memory that is mapped and not yet cut is announced by map alone.
    void (*fresh)(GuestAddr start, u64 size_bytes);
    // * Makes [start, +size) a block: addressable, and defined if it was zeroed, else undefined.
    // `context` is the origin.
    void (*allocated)(GuestAddr start, u64 size_bytes, bool is_zeroed, u32 context);
    // The same for memory that is the client's own (MALLOCLIKE, pools). NULL: allocated().
    void (*adopted)(GuestAddr start, u64 size_bytes, bool is_zeroed, u32 context);
    // * A block will begin here soon: may prefetch its shadow. NULL: nothing is prefetched.
    void (*soon)(GuestAddr start);
    // * Makes [start, +size) not addressable.
    void (*freed)(GuestAddr start, u64 size_bytes);
    // * Writes `byte`, for fills and zeroing. The client may have unmapped the place: a tool that
    // can survive such a fault sets this hook. NULL: the heap writes directly.
    void (*fill)(GuestAddr start, u64 size_bytes, u8 byte);
    // * For heap_realloc(): copies data and their shadow. NULL: data only.
    void (*copy)(GuestAddr from, GuestAddr to, u64 size_bytes);
} HeapHooks;

typedef struct HeapOptions {
    u32 redzone_bytes;   // --redzone-size; heap_defaults(): 16
    u64 freelist_volume; // --freelist-vol: 20,000,000
    u64 freelist_big;    // --freelist-big-blocks: 1,000,000; 0: strict order
    u64 brief_volume;    // bytes in a thread's brief quarantine; 0: there is none
    int malloc_fill;     // --malloc-fill: a byte, or -1
    int free_fill;       // --free-fill
    HeapHooks hooks;
} HeapOptions;

void heap_defaults(HeapOptions *ret_options);
bool heap_init(const HeapOptions *options);
// Changes the quarantine while threads run: a free that runs meanwhile uses old or new values.
void heap_change_freelist(u64 volume, u64 big, u64 brief_volume); // false: no memory for the tables
void heap_destroy(void);                    // for tests: every thread must have ended

// --- threads. `thread_index` is what descriptions of blocks will show.
HeapThread *heap_thread_start(u16 thread_index); // NULL: no memory
void heap_thread_end(HeapThread *thread);        // its caches go back to everyone

// Makes the heap count in shared memory, which outlives the process. The first slot has the counts
// of threads that have ended and those of usage alone; each thread has a slot behind it. To be
// called before there are other threads. Without slots (NULL, or more threads than `count`) the
// heap counts in its own memory.
typedef struct HeapCounts {
    _Alignas(64) u64 allocs;
    u64 frees, allocated_bytes, freed_bytes;
    u64 more_allocs, more_frees, more_bytes; // what HeapStats.usage_… have beyond the others
    u64 is_used; // 0: neither this nor any behind it
} HeapCounts;
void heap_count_in(HeapCounts *shared, u32 count);

// To be called around a fork. From prepare on every lock of the heap is held, so
// heap_fork_prepare/parent also serve to stop the heap for a walk. The child
// keeps the thread `self` alone, and gives up the blocks in the caches of all others.
void heap_fork_prepare(void);
void heap_fork_parent(void);
void heap_fork_child(HeapThread *self);

// --- blocks
#define HEAP_ZEROED  0x80 // OR this bit into a kind: the block is zeroed (calloc)
#define HEAP_ALIGNED 0x40 // OR this bit into a kind: HeapBlock.alignment tells the alignment

// Returns the start of the new block, aligned to `alignment` (a power of two) and to 16. 0: the
// caller must try heap_alloc_full().
GuestAddr heap_alloc(HeapThread *thread, u64 size_bytes, u64 alignment, u32 kind, u32 context);
GuestAddr heap_alloc_full(HeapThread *thread, u64 size_bytes, u64 alignment, u32 kind,
                          u32 context); // full context; 0: no memory

typedef enum HeapRelation { HEAP_INSIDE, HEAP_BEFORE, HEAP_AFTER } HeapRelation;

// A block and where an address lies relative to it.
typedef struct HeapBlock {
    GuestAddr start;
    u64 size_bytes; // as requested
    u64 alignment;  // as requested with HEAP_ALIGNED, while it is live; else 0
    u32 alloc_context;
    u32 free_context; // valid unless the block is live
    u16 thread;       // the thread that allocated it
    u8 kind;          // HeapKind
    u8 state;         // HeapState
    u8 relation;      // HeapRelation
    bool is_external;
    u64 distance_bytes; // from the start, to the start, or from the end
    GuestAddr pool;     // the pool's anchor, for HEAP_POOL
} HeapBlock;

// Prefetches the records of the block at `start`, which is about to be freed.
void heap_fetch(GuestAddr start);

// Frees a block. `ret_block`, which may be NULL, is filled for HEAP_DOUBLE_FREE and for
// HEAP_MISMATCHED, then with the block as it was before. HEAP_NOT_A_BLOCK: heap_find() tells more.
HeapResult heap_free(HeapThread *thread, GuestAddr start, HeapKind kind, u32 context,
                     HeapBlock *ret_block);

// True if huge blocks that left the quarantine wait to be unmapped: heap_settle() must be called in
// full context soon.
bool heap_is_unsettled(void);
void heap_settle(void);

// Makes a new block with the old content and frees the old block. The new one is always
// elsewhere, so that stale pointers are caught. The caller handles NULL and size 0. A failure has
// no effect, except that HEAP_MISMATCHED has moved the block all the same. HEAP_NEEDS_FULL: the
// caller must call again in full context.
HeapResult heap_realloc(HeapThread *thread, GuestAddr start, u64 size_bytes, u32 context,
                        bool is_full, GuestAddr *ret_start);

// Finds the live block that starts here, external ones excluded.
bool heap_live_at(GuestAddr start, HeapBlock *ret_block);

// Whether a function of kind `freed` is right for a block of kind `allocated`.
bool heap_kinds_match(u32 allocated, u32 freed);

// The requested size of the live block that starts here, external ones included.
bool heap_usable_size(GuestAddr start, u64 *ret_size_bytes);

// Finds the block that an address is in or near: the block in whose redzone it is, else the
// nearest within 4 KiB in the same slab, else an external one within 64 bytes. Live and
// quarantined blocks win over recycled ones.
bool heap_find(GuestAddr address, HeapBlock *ret_block);

// Calls fn for every live block, ascending, external ones included, outer ones first. With
// `skip_containers` it leaves out a block of the heap from which external blocks are carved, and
// the outer one of two external blocks that are the same piece of memory. Other threads must be
// stopped, or the caller must hold heap_fork_prepare(). False: no memory for the walk.
typedef void HeapVisit(void *data, const HeapBlock *block);
bool heap_for_each_live(bool skip_containers, HeapVisit *fn, void *data);

// Calls fn for every piece of client memory that is the heap's, in no order. The same condition
// holds for other threads.
typedef void HeapRegionVisit(void *data, GuestAddr start, u64 size_bytes);
void heap_for_each_region(HeapRegionVisit *fn, void *data);

typedef struct HeapStats {
    u64 allocs;
    u64 frees;
    u64 allocated_bytes; // ever
    u64 freed_bytes;
    u64 live_blocks;
    u64 live_bytes;
    // For "total heap usage", as the incumbent counts: chunks of pools count as allocated and never
    // as freed; refused calls count; growth in place does not.
    u64 usage_allocs, usage_frees, usage_bytes;
    u64 quarantine_bytes; // memory in quarantine, without the open chunks of threads
} HeapStats;

// Exact while no thread is inside the heap.
void heap_stats(HeapStats *ret_stats);

// Panics if any structure is inconsistent. Threads must be stopped.
void heap_validate(void);

// --- external blocks. `context` and `thread` as for heap_alloc(); the shadow is marked by
// allocated() and freed(). A FREELIKE'd block stays described until its place is
// announced again or many others were freed since.
HeapResult heap_malloclike(HeapThread *thread, GuestAddr start, u64 size_bytes, u32 redzone_bytes,
                           bool is_zeroed, u32 context); // HEAP_MISMATCHED: one is live there
HeapResult heap_freelike(HeapThread *thread, GuestAddr start, u32 context, HeapBlock *ret_block);

// Count a refused free, and a refused realloc to `size` bytes, in the usage.
void heap_count_refused_free(void);
void heap_count_refused_realloc(u64 size);
HeapResult heap_resize_inplace(HeapThread *thread, GuestAddr start, u64 new_size_bytes, u32 context,
                               HeapBlock *ret_old);

enum { HEAP_POOL_AUTO_FREE = 1, HEAP_POOL_META = 2 }; // as in valgrind.h

// HEAP_NOT_A_BLOCK: no such pool, or no such chunk in it. HEAP_MISMATCHED: exists already.
HeapResult heap_pool_create(GuestAddr pool, u32 redzone_bytes, bool is_zeroed, u32 flags);
HeapResult heap_pool_destroy(HeapThread *thread, GuestAddr pool, u32 context);
HeapResult heap_pool_alloc(HeapThread *thread, GuestAddr pool, GuestAddr start, u64 size_bytes,
                           u32 context);
HeapResult heap_pool_free(HeapThread *thread, GuestAddr pool, GuestAddr start, u32 context,
                          HeapBlock *ret_block);
HeapResult heap_pool_trim(HeapThread *thread, GuestAddr pool, GuestAddr start, u64 size_bytes,
                          u32 context);
HeapResult heap_pool_move(GuestAddr from, GuestAddr to);
HeapResult heap_pool_change(GuestAddr pool, GuestAddr from, GuestAddr to, u64 size_bytes,
                            u32 context);
bool heap_pool_exists(GuestAddr pool);

#endif
