// SPDX-License-Identifier: MIT
//
// The structures behind heap.h, whose words they use, and the lookup from an
// address to a slot: table of segments → unit → slab → slot by multiplication
// with the inverse of the stride.
#ifndef MUNINN_TOOLS_HEAP_HEAP_INTERNAL_H
#define MUNINN_TOOLS_HEAP_HEAP_INTERNAL_H

#include "base/assert.h"
#include "base/futex_lock.h"
#include "base/types.h"
#include "base/vec.h"
#include "tools/heap/heap.h"
#include "tools/heap/size_class.h"

#define SEGMENT_SHIFT 22
#define SEGMENT_BYTES (1ull << SEGMENT_SHIFT)
#define UNIT_SHIFT    14
#define UNIT_BYTES    (1ull << UNIT_SHIFT)
#define UNITS         256 // in a segment
#define ADDRESS_BITS  47
#define TABLE_ENTRIES (1ull << (ADDRESS_BITS - SEGMENT_SHIFT))

#define SLOT_ALIGN    16ull
#define UNIT_SLOTS    (UNIT_BYTES / SLOT_ALIGN) // the most slots that a slab can have
#define MEDIUM_MAX    (1 * MiB - 1)             // larger blocks are huge
#define CLASS_MEDIUM  CLASS_COUNT               // of a slab with a single slot
#define NO_SLAB       0xffff
#define DIRTY_MAX     (8 * MiB)

// All that is known about a block, 16 bytes for each slot.
typedef struct SlotMeta {
    u32 size; // requested
    u32 alloc_context;
    u32 free_context; // of a live block: alignment_code()
    u32 word; // thread:16 kind:3 state:2 shift:11, see meta_word()
} SlotMeta;
_Static_assert(sizeof(SlotMeta) == 16, "four to a line of the cache");

// Where the block starts inside its slot, in multiples of 16: aligned blocks have it.
static inline u32 meta_word(u32 thread, u32 kind, HeapState state, u64 shift_bytes)
{
    return thread | kind << 16 | (u32)state << 19 | (u32)(shift_bytes / SLOT_ALIGN) << 21;
}

// The alignment that a caller asked for, a power of two, in the word that will be the context of
// the release: 0 is none, n is 2^(n - 1).
static inline u32 alignment_code(u64 alignment, u32 kind)
{
    return kind & HEAP_ALIGNED ? (u32)__builtin_ctzll(alignment) + 1 : 0;
}

static inline u64 code_alignment(u32 code)
{
    return code ? 1ull << (code - 1) : 0;
}

static inline HeapState word_state(u32 word)
{
    return (HeapState)(word >> 19 & 3);
}

static inline u32 word_kind(u32 word)
{
    return word >> 16 & 7;
}

static inline u64 word_shift(u32 word)
{
    return (word >> 21) * SLOT_ALIGN;
}

static inline u32 word_with_state(u32 word, HeapState state)
{
    return (word & ~(3u << 19)) | (u32)state << 19;
}

// Some of a segment's units.
typedef struct UnitSet {
    u64 words[UNITS / 64];
} UnitSet;

static inline bool units_have(const UnitSet *set, u32 unit)
{
    return set->words[unit / 64] >> (unit % 64) & 1;
}

static inline bool units_any(const UnitSet *set)
{
    u64 any = 0;
    for (u32 i = 0; i < UNITS / 64; i++)
        any |= set->words[i];
    return any != 0;
}

// The metadata of a slab is a piece of 2^n slots.
#define PIECE_SIZES   11 // up to UNIT_SLOTS
// Room for all, if every unit had a piece of each size once; and one that ends lists.
#define META_SLOTS    (UNITS * ((1 << PIECE_SIZES) - 1) + 1)

// The first 64 bytes are what a lookup reads.
typedef struct Slab {
    _Alignas(64) GuestAddr first; // start of slot 0
    u64 reciprocal;  // 2^40 / stride, rounded up
    SlotMeta *meta;
    u32 stride;
    u16 slot_count; // 0: not a slab
    u16 free_count; // bits set in free_bits. Class lock
    u8 class_index; // or CLASS_MEDIUM
    u8 unit_count;
    bool is_listed;    // in a list of its class. Class lock
    u8 list;           // which
    bool is_parked;    // of a medium block in quarantine: park() has its pages. Quarantine lock
    struct Slab *next; // slabs of the class with free slots. Class lock
    struct Slab *previous;
    u64 free_bits[UNIT_SLOTS / 64]; // slots that are in no cache and in no block. Class lock
} Slab;

typedef struct Segment {
    GuestAddr base;
    u32 index;                  // in heap.segments
    SlotMeta *meta;             // META_SLOTS: address space, used from the bottom
    u32 meta_used;              // segment lock
    u32 meta_free[PIECE_SIZES]; // pieces to use again, as indices; 0: none. Segment lock
    UnitSet free_units;         // segment lock
    UnitSet fresh_units;        // must be announced by fresh() before use. Segment lock
    UnitSet dirty_units;        // free, and still holding pages. Segment lock
    UnitSet parked_units;       // free, and park() has seen them since. Segment lock
    u16 head[UNITS];            // the first unit of the slab that covers this one, or NO_SLAB
    Slab slabs[UNITS];
} Segment;

typedef struct HugeBlock {
    GuestAddr base; // of its mapping
    u64 mapped_bytes;
    GuestAddr start;
    u64 size;
    u32 alloc_context;
    u32 free_context;       // as in SlotMeta, as the next
    u32 word;
    u32 index;              // in heap.huge_live
    struct HugeBlock *next; // unused records, or those to unmap. Huge lock
} HugeBlock;

typedef struct FreeSlot {
    GuestAddr start; // of the slot
    SlotMeta *meta;
} FreeSlot;

#define MAGAZINE_SLOTS 192

#define CHUNK_ENTRIES  124
typedef struct QuarantineChunk {
    struct QuarantineChunk *next;
    u32 first; // entries before it are gone
    u32 count;
    u64 volume;                       // footprint of its blocks
    bool has_medium;                  // blocks that are not parked
    GuestAddr entries[CHUNK_ENTRIES]; // starts of blocks
} QuarantineChunk;

// Everything here but the counters belongs to its thread; those are read by heap_stats().
// The brief quarantine, for blocks that one place frees again and again: they wait for a short
// time, so their memory stays in the processor's cache.
enum {
    BRIEF_BLOCKS = 2048,
    BRIEF_PLACES = 1024,
    BRIEF_FREES = 512, // so many, and a place is one of those
    BRIEF_SAMPLE = 16, // of which one in so many goes the long way all the same
    BRIEF_TURN = 4096, // so many frees, and other ones do
    BRIEF_PIECE_SHIFT = 16,
};

// All that it takes to use the slot again, so that nothing has to be looked up.
typedef struct BriefBlock {
    FreeSlot slot;
    u32 footprint;
    u32 class_index; // or CLASS_MEDIUM
} BriefBlock;

typedef struct BriefQueue {
    BriefBlock blocks[BRIEF_BLOCKS];
    u32 first, count;
    u64 volume;
    u64 turn;                // counts frees of such places
    u16 frees[BRIEF_PLACES]; // by a hash of the context
} BriefQueue;

struct HeapThread {
    HeapCounts *tally;      // `own`, or what heap_count_in() was given
    HeapCounts own;         // of a fork's child at first; else unused
    u32 number;             // of its place there
    QuarantineChunk *chunk; // open: not in the queue yet. NULL at first
    BriefQueue brief;
    HeapThread *next;       // threads lock
    u16 index;
    bool is_active;
    u16 counts[CLASS_COUNT];
    FreeSlot slots[CLASS_COUNT][MAGAZINE_SLOTS];
};

typedef struct ClassList {
    Lock lock;
    u32 stride;
    u32 unit_count;
    u16 slot_count;
    u16 magazine_slots; // the most that a thread keeps
    u64 reciprocal;
    Slab *partial[2]; // slabs with free slots: less than half of them free, and the others
    u64 padding[3];   // a cache line each: the locks of classes are taken independently
} ClassList;
_Static_assert(sizeof(ClassList) == 64, "one line");

typedef struct QuarantineQueue {
    QuarantineChunk *head;
    QuarantineChunk *tail;
} QuarantineQueue;

typedef struct Heap {
    HeapOptions options;
    u64 gap;          // the redzone, rounded up to SLOT_ALIGN
    u64 chunk_volume; // an open chunk is queued when it holds as much
    u64 quick_free_max; // the largest block that heap_quick_free() takes
    u64 *table;       // by address >> SEGMENT_SHIFT: Segment *, HugeBlock * | 1, or 0

    Lock segment_lock;
    u32 first_free_segment; // none before it has free units
    Vec segments;           // Segment *
    u64 dirty_bytes;        // in free units that keep their pages. Read without the lock

    Lock quarantine_lock;
    QuarantineQueue small;
    QuarantineQueue big;
    QuarantineChunk *unused_chunks;
    u64 volume; // of both queues
    u64 parkable;   // footprint of medium blocks freed since the last trim. Atomic
    u64 trimmed_at; // by the time stamp counter. Atomic
    u64 trim_ticks; // not sooner again than after as many. Atomic
    u64 parked_bytes; // by the last trim, and how much of it has come to be used since. Atomic
    u64 unparked_bytes;

    Lock huge_lock;
    Vec huge_live; // HugeBlock *, all that have a mapping
    HugeBlock *huge_unused;
    HugeBlock *huge_dying; // left quarantine, still mapped

    Lock thread_lock;
    HeapThread *threads; // never freed, used again
    u32 active_threads;  // a thread that waits for another to begin is in no function of the heap
    u32 thread_count;    // all of `threads`
    // Threads that ended, and what counts as use alone. Threads lock
    HeapCounts *ended;
    HeapCounts own_ended;
    HeapCounts *shared_counts; // NULL: none
    u32 shared_count;
    // A fork's child: other threads went on allocating while it was made, so what they had counted
    // does not fit what they had allocated.
    bool is_counted_late;

    ClassList classes[CLASS_COUNT];
} Heap;

extern Heap heap;

static inline u64 round_up(u64 x, u64 alignment)
{
    return (x + alignment - 1) & ~(alignment - 1);
}

static inline u64 table_entry(GuestAddr address)
{
    if (UNLIKELY(address >> ADDRESS_BITS))
        return 0;
    return __atomic_load_n(&heap.table[address >> SEGMENT_SHIFT], __ATOMIC_ACQUIRE);
}

static inline bool entry_is_huge(u64 entry)
{
    return entry & 1;
}

static inline HugeBlock *entry_huge(u64 entry)
{
    return (HugeBlock *)(entry & ~1ull);
}

// The slab that covers an address of the segment, or NULL.
static inline Slab *segment_slab(Segment *segment, GuestAddr address)
{
    u32 head = segment->head[(address >> UNIT_SHIFT) % UNITS];

    return head == NO_SLAB ? NULL : &segment->slabs[head];
}

// For an address at or behind slot 0. Exact: offsets are below 2^21, strides below 2^21.
static inline u64 slab_slot(const Slab *slab, GuestAddr address)
{
    if (slab->slot_count == 1)
        return 0;
    return ((address - slab->first) * slab->reciprocal) >> 40;
}

typedef struct SlotRef {
    Slab *slab;
    SlotMeta *meta;
    u32 slot;
} SlotRef;

// The slot that an address is in, if it is one of the segment's.
static inline bool slot_at(GuestAddr address, u64 entry, SlotRef *ret)
{
    Slab *slab = segment_slab((Segment *)entry, address);

    if (UNLIKELY(!slab || address < slab->first))
        return false;
    u64 slot = slab_slot(slab, address);
    if (UNLIKELY(slot >= slab->slot_count))
        return false;
    *ret = (SlotRef){slab, &slab->meta[slot], (u32)slot};
    return true;
}

// Whether a block with this word begins there.
static inline bool slot_begins(const SlotRef *ref, u32 word, GuestAddr start)
{
    return ref->slab->first + (u64)ref->slot * ref->slab->stride + word_shift(word) == start;
}

// A slot by the exact start of the block in it.
static inline bool slot_by_start(GuestAddr start, u64 entry, SlotRef *ret)
{
    return slot_at(start, entry, ret) &&
           LIKELY(slot_begins(ret, __atomic_load_n(&ret->meta->word, __ATOMIC_ACQUIRE), start));
}

// The word goes last: whoever reads "live" reads the rest of this block too.
static inline void write_meta(SlotMeta *meta, u64 size, u32 context, u32 alignment, u32 word)
{
    meta->size = (u32)size;
    meta->alloc_context = context;
    meta->free_context = alignment;
    __atomic_store_n(&meta->word, word, __ATOMIC_RELEASE);
}

// Live → quarantined, by one caller only. *word is what was seen.
static inline bool claim(u32 *place, u32 *word)
{
    *word = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (LIKELY(word_state(*word) == HEAP_LIVE)) {
        if (__atomic_compare_exchange_n(place, word, word_with_state(*word, HEAP_QUARANTINED),
                                        false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

// --- segment_hot.c
Slab *units_take(u64 unit_count, u32 slot_count); // NULL: map a segment first. slot_count is 0
void slab_publish(Slab *slab);    // from now on lookups find it
void units_give(Slab *slab);      // the slab ends; lock order H4
bool segment_add(void);           // full context
void units_park(void);            // all that are free
Segment *slab_segment(const Slab *slab, u32 *ret_unit);
void segments_destroy(void);

// --- slab_hot.c
void classes_init(void);
bool magazine_refill(HeapThread *thread, u32 class_index);
void magazine_put(HeapThread *thread, u32 class_index, FreeSlot slot);
void magazines_empty(HeapThread *thread);
void slot_give(u32 class_index, FreeSlot slot); // to its slab
GuestAddr medium_alloc(u64 size, u64 alignment, SlotMeta **ret_meta);

// --- huge_hot.c
HugeBlock *huge_alloc(u64 size, u64 alignment); // full context. NULL: no memory
void huge_retire(HugeBlock *block);             // left quarantine
void huge_destroy(void);

// --- quarantine_hot.c
// `ref` is NULL for a huge block.
void quarantine_put(HeapThread *thread, GuestAddr start, u64 size, u64 footprint,
                    const SlotRef *ref, u32 context);
void quarantine_close(HeapThread *thread);
void quarantine_drain(HeapThread *thread); // all of it: memory is short
// What the heap holds without need is given back. That costs page faults later, so it is done when
// the heap grows, and now and then when much was freed.
void quarantine_trim(void);

// --- find_hot.c
void describe_slot(const Slab *slab, u32 slot, HeapBlock *ret_block);
void describe_huge(const HugeBlock *block, HeapBlock *ret_block);

// --- external_hot.c: all of these take the external lock themselves, except where noted
extern Lock external_lock;
bool external_find(GuestAddr address, HeapBlock *ret_block); // inside, or in its redzone
bool external_find_near(GuestAddr address, HeapBlock *ret_block); // of what has none, too
bool external_live_at(GuestAddr start, HeapBlock *ret_block);
// Live blocks, ascending: the first that starts at or after `from`. Under the lock.
bool external_next(GuestAddr from, HeapBlock *ret_block);
// The next of the walk: what lies at the same start within a chunk comes behind the chunk.
bool external_next_behind(const HeapBlock *last, HeapBlock *ret_block);
void external_validate(void);
void external_destroy(void);

#endif
