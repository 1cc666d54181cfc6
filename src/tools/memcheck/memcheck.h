// SPDX-License-Identifier: MIT
//
// Memcheck knows which bits of the client's memory and registers are defined and which bytes
// the client may touch, and reports the client's errors with both.
//
// Glossary
//   V byte     the shadow of a client byte, 8 V bits: 0 is defined. Memory that may not be
//              touched has 0xff, so that one comparison with zero answers both questions.
//              The V bytes of a return address are a tag (calltags/calltags.h) and count as 0
//   U bit      1: the byte may not be touched. Only slow paths read it
//   clean      a block version for threads whose registers are all defined
//   dirty      a block version for one set of registers that may hold undefined bits
//   mixed      a clean block in which guards often fail: it takes their steps itself, and asks
//              the thread's set before it uses the registers that these loads have written
//   guard      the comparison before a load; if it fails the thread goes on in the dirty
//              version that begins at that instruction
//   step       a C call before an instruction in a dirty version (definedness.h)
//
// What must stay true
//   K1  A byte with a U bit has a V byte of 0xff, or of V_FORBIDDEN if the program has forbidden
//       the byte on a stack (MAKE_MEM_NOACCESS). Code that leaves that frame sets the V byte to
//       0xff and does not change U bits. So a U bit on a stack counts only if the V byte is one
//       of these two.
//   K2  In a clean block every register is fully defined, except those that a mixed block has
//       loaded since it was entered. Every register is fully defined when control leaves the
//       block.
//   K3  V bytes below the stack pointer (and its red zone) are 0xff. U bits are not kept there:
//       slow paths compare the address with the stack pointer.
//   K4  The shadow of mapped client memory is mapped; all other shadow is inaccessible.
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

// The definedness of registers in code that a signal has interrupted.
typedef struct SavedDefinedness {
    Definedness defined;
    GuestAddr sp; // the handler's stack pointer when it began
    struct SavedDefinedness *outer;
} SavedDefinedness;

// A frame of the stack, from `low` to its return address in `slot`.
typedef struct FrameExtent {
    _Alignas(64) GuestAddr sp; // the thread's stack pointer when the frame was found
    GuestAddr low, slot;
    GuestAddr callee; // the slot of the frame that this one has called; 0: this is the innermost
    Origin place;     // the place in the frame's code from which it has called
    u32 tag, callee_tag;
} FrameExtent;
enum { FRAME_EXTENTS = 512 };

// A remembered answer of the notes of ranges (origins_hot.c), the same for all of [low, high).
typedef struct RangeAnswer {
    _Alignas(64) GuestAddr low, high;
    GuestAddr start; // the start of the range
    u64 owner;       // the owner in the note; 0: any owner
    Origin origin;   // 0: none
    u32 turn;        // how many notes of ranges had been made then
} RangeAnswer;
enum { RANGE_ANSWERS = 16 };

enum { STACKS_LEFT = 64 };

typedef struct MemcheckThread {
    Origin origins[64];         // origins of undefined members of the set, as far as known
    Origin value_origin, address_origin; // of the present step, for its report
    NamedBlock named;           // the block that is being described
    FrameExtent frames[FRAME_EXTENTS]; // the frames asked for last, by hash (notes.h)
    RangeAnswer ranges[RANGE_ANSWERS]; // the answers for ranges asked for last
    HeapThread *heap;
    SavedDefinedness *interrupted; // innermost first
    u64 fishy_told;                // the size for which a throwing `new` was reported
    GuestAddr told_address;        // the address of the invalid access reported last
    // The bounds of the thread's home, the stack that it began with; unknown if they are equal.
    // Only the thread uses them until they are guessed, then others do under the engine lock
    // (stacks.c).
    GuestAddr stack_lo, stack_hi;
    GuestAddr first_sp;              // the stack pointer that the thread began with
    GuestAddr left_sp;               // where it has left its home last; 0: it has not left it
    GuestAddr left[STACKS_LEFT];     // where other stacks wait that were left last; 0: none
    u32 left_turn;
    ToolThread *next_guessed;
    bool is_elsewhere;               // on another stack, although rsp is within the home's bounds
    bool is_guessed;                 // stack_lo is a guess from the mapping
    GuestAddr letters;               // the word that points to the table of lower case; 0: unknown
    GuestAddr glibc_entry;           // a string function of glibc
    GuestAddr malloc_entry;          // 0: not looked for yet
    GuestAddr told_entry, told_sp;   // a call that runs on after its bad access was reported
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
