// SPDX-License-Identifier: MIT
//
// What origins remember of values that travel: notes of what was stored where, and whose a place
// is. The part of it that steps need all the time; the rest is origins_hot.c.
#ifndef MUNINN_TOOLS_MEMCHECK_ORIGINS_NOTES_H
#define MUNINN_TOOLS_MEMCHECK_ORIGINS_NOTES_H

#include "engine/calltags/calltags.h"
#include "tools/memcheck/memcheck.h"

// The client's addresses end below 23 TiB here, where its shadow does.
#define ORIGIN_KIND_SHIFT     61
#define ORIGIN_DISTANCE_SHIFT 45
#define ORIGIN_DISTANCES      (1ull << (ORIGIN_KIND_SHIFT - ORIGIN_DISTANCE_SHIFT))
#define ORIGIN_PAYLOAD        ((1ull << ORIGIN_DISTANCE_SHIFT) - 1)

static inline Origin origin_make(OriginKind kind, u64 payload)
{
    return (u64)kind << ORIGIN_KIND_SHIFT | (payload & ORIGIN_PAYLOAD);
}

// The place in the innermost frame: the instruction before which the block has called.
static inline Origin origin_here(const ToolThread *thread)
{
    return thread->dispatch.in_cache ? origin_make(ORIGIN_HOST, thread->gateway.call_return - 1)
                            : origin_make(ORIGIN_EXACT, thread->pc);
}

// ------------------------------------------------------------------ frames

// To find the frame that an address is in takes a walk over its words, and code that copies
// undefined values asks for the same again and again: it is what it was as long as
// the stack pointer is, and the return addresses.
static inline FrameExtent *frame_slot(MemcheckThread *mt, GuestAddr sp, GuestAddr address)
{
    return &mt->frames[((sp >> 4) + (address >> 8) * 37) % FRAME_EXTENTS];
}

static inline bool frame_is_same(const FrameExtent *e, GuestAddr sp, GuestAddr address)
{
    return e->sp == sp && address >= e->low && address < e->slot + 8 &&
           (u32)*calltags_word(e->slot) == e->tag &&
           (!e->callee || (u32)*calltags_word(e->callee) == e->callee_tag);
}

// Of an undefined byte of the frame that was there already. How far below the CFA it lies tells the
// variable; where that is too far the function has to do.
static inline Origin origin_of_frame(const ToolThread *thread, const FrameExtent *e,
                                     GuestAddr address)
{
    Origin place = e->callee ? e->place : origin_here(thread);
    u64 distance = e->slot + 8 - address;
    return distance < ORIGIN_DISTANCES ? place | distance << ORIGIN_DISTANCE_SHIFT : place;
}

// Its code goes on where the frame that it has called returns to.
static inline void frame_set_callee(FrameExtent *e, GuestAddr callee, u32 tag, Origin place)
{
    e->low = callee + 8;
    e->callee = callee;
    e->callee_tag = tag;
    e->place = place;
}

// Fills it in if the frame can be found by how far frames reach where their code is, as a rule:
// the innermost where the block has called, or one of the next few. For fast steps.
bool frame_by_shape(ToolThread *thread, FrameExtent *e, GuestAddr sp, GuestAddr address)
    __attribute__((no_caller_saved_registers));

// NULL: that takes longer.
static inline __attribute__((always_inline)) const FrameExtent *
frame_briefly(ToolThread *thread, GuestAddr address)
{
    GuestAddr sp = thread->gpr[RSP];
    FrameExtent *e = frame_slot(memcheck_thread(thread), sp, address);
    return LIKELY(frame_is_same(e, sp, address)) || frame_by_shape(thread, e, sp, address) ? e
                                                                                         : NULL;
}

// The frame that an address is in, if it is on the stack, and what origins ask for is at hand
// then. False: there is none.
bool origins_frame(ToolThread *thread, GuestAddr address, FrameExtent *ret_frame);

static inline bool is_on_stack(const MemcheckThread *mt, GuestAddr address)
{
    return address >= mt->stack_lo && address < mt->stack_hi;
}

// ------------------------------------------------------------------ owners

// Who owns a place now. A note of what was stored there is void when that has changed: the
// frame was left, or the heap has given the memory to another block. The latter is counted,
// for 64 bytes each: to look the block up would take longer than all the rest of a step.
static inline u64 owner_in_heap(GuestAddr address)
{
    if (UNLIKELY(!*origins_piece(address)))
        *origins_piece(address) = true;
    return 2 + ((u64)origins_turns[address / ORIGINS_GRAIN_BYTES % ORIGINS_GRAINS] << 8);
}

static inline u64 owner_in_frame(const FrameExtent *e)
{
    return e->slot * 3 ^ e->tag;
}

// ------------------------------------------------------------------ notes

enum { NOTES = 1 << 14 };

// One for 8 bytes; a newer one takes its place. Threads race: `check` shows a torn one.
typedef struct Note {
    GuestAddr at;
    Origin origin;
    u64 owner;
    u64 check; // at ^ origin ^ owner
} Note;

extern Note notes[NOTES];

static inline Note *note_of(GuestAddr address)
{
    u64 word = address >> 3;
    return &notes[(word ^ word >> 14) % NOTES];
}

static inline void note_put(GuestAddr address, Origin origin, u64 owner)
{
    GuestAddr at = address & ~7ull;
    Note *note = note_of(address);
    *(volatile u64 *)&note->check = 0;
    note->at = at;
    note->origin = origin;
    note->owner = owner;
    *(volatile u64 *)&note->check = at ^ origin ^ owner;
}

// 0: there is none.
static inline Origin note_find(GuestAddr address, u64 owner)
{
    Note note = *note_of(address);
    return note.at == (address & ~7ull) && (note.at ^ note.origin ^ note.owner) == note.check &&
                   note.owner == owner
               ? note.origin
               : 0;
}

// For parts of memory, hashed: how many notes of ranges there were when its last was made.
enum { RANGES = 64, RANGE_PARTS = 4096, RANGE_PART_BYTES = 512 };
extern u32 range_turns[RANGE_PARTS];
extern u32 range_count; // how many there were; the last RANGES are kept

static inline u32 *range_turn(GuestAddr address)
{
    return &range_turns[address / RANGE_PART_BYTES % RANGE_PARTS];
}

static inline bool is_near_a_range(GuestAddr address)
{
    u32 turn = *range_turn(address);
    return turn && __atomic_load_n(&range_count, __ATOMIC_RELAXED) - turn < RANGES;
}

// What the notes have said last of that part.
static inline RangeAnswer *range_slot(MemcheckThread *mt, GuestAddr address)
{
    return &mt->ranges[address / RANGE_PART_BYTES % RANGE_ANSWERS];
}

// Whether they would say it again. `e`: the frame that the address is in, or NULL.
static inline bool range_is_same(const MemcheckThread *mt, const RangeAnswer *last,
                                 GuestAddr address, const FrameExtent *e)
{
    bool on_stack = is_on_stack(mt, last->start);
    bool in_frame = e && last->start >= e->low && last->start < e->slot;
    return (i32)(last->turn - *range_turn(address)) >= 0 && address >= last->low &&
           address < last->high &&
           (!last->owner || (on_stack && in_frame && last->owner == owner_in_frame(e)) ||
            (!on_stack && last->owner == owner_in_heap(last->start)));
}

#endif
