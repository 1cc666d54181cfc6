// SPDX-License-Identifier: MIT
//
// Memcheck: which bits of the client's memory and registers are defined, which bytes
// it may touch, and what it does to them.
//
// Glossary
//   V byte     the shadow of a client byte, 8 V bits: 0 is defined. Memory that may not be
//              touched has 0xff, so that one comparison with zero answers both questions.
//              Those of a return address are a tag (calltags/calltags.h), which counts as 0
//   U bit      1: the byte may not be touched. Only slow paths read it
//   clean      a block version for threads whose registers are all defined
//   dirty      a version for one set of registers that may not be
//   mixed      a clean block in which guards often fail: it takes their steps itself and asks
//              the thread's set before it uses what they loaded
//   guard      the comparison before a load; if it fails the thread goes on in the dirty
//              version that begins at that instruction
//   step       a C call before an instruction in a dirty version (definedness.h)
//
// What must stay true
//   K1  A byte with a U bit has a V byte of 0xff; of V_FORBIDDEN on a stack where the program has
//       forbidden it (MAKE_MEM_NOACCESS). Whoever leaves that frame makes it 0xff, and does not
//       know of U bits: one beside another V byte means nothing any more there.
//   K2  In a clean block every register is wholly defined, but for what a mixed one has
//       loaded since it was entered. Where it is left, all are.
//   K3  Below the stack pointer (and its red zone) stacks are 0xff; the U bit there is not
//       kept: what is below is known by comparing.
//   K4  The shadow of mapped client memory is mapped, that of all other is inaccessible.
#ifndef MUNINN_TOOLS_MEMCHECK_MEMCHECK_H
#define MUNINN_TOOLS_MEMCHECK_MEMCHECK_H

#include "engine/toolapi/toolapi.h"
#include "tools/heap/heap.h"
#include "tools/memcheck/definedness/definedness.h"
#include "tools/memcheck/origins/origins.h"

// A block that the program has given a name (CREATE_BLOCK).
typedef struct NamedBlock {
    GuestAddr start;
    u64 size;
    u32 context; // of the request; 0: the slot is free
    char name[108];
} NamedBlock;

// --- a thread

// What a signal has interrupted.
typedef struct SavedDefinedness {
    Definedness defined;
    GuestAddr sp; // of the handler when it began
    struct SavedDefinedness *outer;
} SavedDefinedness;

// A frame of the stack, from `low` to its return address in `slot`.
typedef struct FrameExtent {
    _Alignas(64) GuestAddr sp; // the thread's, when it was found
    GuestAddr low, slot;
    GuestAddr callee; // the slot of the frame that it has called; 0: it is the innermost
    Origin place;     // in the frame's code, if it has called one
    u32 tag, callee_tag;
} FrameExtent;
enum { FRAME_EXTENTS = 512 };

// What the notes of ranges have said last (origins_hot.c): the same for all of [low, high).
typedef struct RangeAnswer {
    _Alignas(64) GuestAddr low, high;
    GuestAddr start; // of the range
    u64 owner;       // that it was noted with; 0: anybody
    Origin origin;   // 0: none
    u32 turn;        // how many had been made then
} RangeAnswer;
enum { RANGE_ANSWERS = 16 };

enum { STACKS_LEFT = 64 };

typedef struct MemcheckThread {
    Origin origins[64];         // of undefined members, as far as known
    Origin value_origin, address_origin; // of the step that runs, for its report
    NamedBlock named;           // that is being described
    FrameExtent frames[FRAME_EXTENTS]; // that were asked for last, by hash (notes.h)
    RangeAnswer ranges[RANGE_ANSWERS]; // the same
    HeapThread *heap;
    SavedDefinedness *interrupted; // innermost first
    u64 fishy_told;                // the size that a throwing new was told of
    GuestAddr told_address;        // of the invalid access that was told last
    // Of the stack that it began with, its home: not known if they are the same. A thread's own
    // until it is guessed, then also under the engine lock (stacks.c).
    GuestAddr stack_lo, stack_hi;
    GuestAddr first_sp;              // that the thread began with
    GuestAddr left_sp;               // where it has left its home last; 0: it has not
    GuestAddr left[STACKS_LEFT];     // where other stacks wait that were left last; 0: none
    u32 left_turn;
    ToolThread *next_guessed;
    bool is_elsewhere;               // though the stack pointer is within the bounds of its home
    bool is_guessed;                 // stack_lo, by what the mapping looks like
    GuestAddr letters;               // the word that points to the table of lower case; 0: unknown
    GuestAddr glibc_entry;           // a string function of glibc
    GuestAddr malloc_entry;          // 0: not asked for yet
    GuestAddr told_entry, told_sp;   // a call that runs after its bad access was told of
} MemcheckThread;

static inline MemcheckThread *memcheck_thread(ToolThread *thread)
{
    return thread->tool.thread;
}

static inline HeapThread *memcheck_heap(ToolThread *thread)
{
    return memcheck_thread(thread)->heap;
}

// The V bits of the thread's registers. Their set is the state that versions are made for.
static inline Definedness *definedness_of(ToolThread *thread)
{
    _Static_assert(sizeof(Definedness) <= sizeof(thread->tool.state) &&
                       offsetof(Definedness, set) == 0,
                   "they are the thread's tool.state");
    return (Definedness *)thread->tool.state;
}

// --- memcheck.c
extern const Options *memcheck_options;

#endif
