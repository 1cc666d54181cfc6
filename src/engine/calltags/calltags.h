// SPDX-License-Identifier: MIT
//
// Calling contexts for tools that ask seldom and must cost little otherwise. Every word of
// a client stack has a word of shadow, at the same distance for all, through gs. A call
// stores a tag of its return address there, a return clears it: one instruction each,
// without a register or a flag. A query walks up from the stack pointer and takes the words
// that have a tag and still hold the return address that it was made of.
//
//   call   push return_address ; mov qword gs:[rsp + DISP], tag
//   ret    pop rcx             ; mov qword gs:[rsp + DISP - 8], 0
//
// callstack/callstack.h is exact in every case, and costs 15 to 20 instructions for
// a call and its return. Here a stack that is left neither by returns nor by a load of rsp
// (`add rsp` over a return address) leaves tags behind, which count again only where a later
// frame covers them and never writes those words.
//
// Glossary
//   tag      31 bits of a return address, not 0; the upper half of the word is then the
//            context of that frame, once somebody has asked (0: nobody has)
//   signal   a word whose lower half has the upper bit, and the index of an Interruption
//   root     a word that ends the walk: there is nothing above it
//
// What must stay true
//   K1  A word with a context stands for a frame whose callers are what they were when it was
//       found: they have not returned, since it has not.
//   K2  Shadow is there for all that the client can have, and is the engine's alone.
#ifndef MUNINN_ENGINE_CALLTAGS_CALLTAGS_H
#define MUNINN_ENGINE_CALLTAGS_CALLTAGS_H

#include "engine/callstack/callstack.h"
#include "engine/run/run.h"

// Its low twelve bits are not 0: a processor takes a load for one of what was just stored
// if these bits of the addresses are the same, and returns would wait for their tags.
#define CALLTAGS_OFFSET 0x200000123840ull
// A part of it is in the displacement of the stores, not in gs, and its low bits are not those
// of places near rsp: processors that rename memory by base register and the low bits of
// the displacement (Zen does for rsp) overlook the segment, and would take the tag for
// what the next pop reads. sqlite3 ran 2.4 times as long without it.
#define CALLTAGS_DISP 0x1231f8
#define CALLTAG_ROOT (~0ull)

extern u16 *calltags_depths; // how many frames a context has, by its id

// Tags are kept; set before the first block is translated.
extern bool calltags_wanted;

static inline u64 *calltags_word(GuestAddr slot)
{
    return (u64 *)((slot & ~7ull) + CALLTAGS_OFFSET);
}

static inline u32 calltag_of(GuestAddr return_address)
{
    u32 tag = (u32)return_address & 0x7fffffff;
    return tag ? tag : 1;
}

// False: the kernel refuses the address space.
bool calltags_init(void);
// The thread begins with the stack pointer that it has now.
void calltags_thread_start(ThreadCtx *ctx);
void calltags_unmapped(GuestAddr start, GuestAddr end);
// A signal handler begins, with its return address at `slot`: its caller is what it has
// interrupted at pc and sp.
void calltags_enter_signal(GuestAddr slot, GuestAddr pc, u64 sp);
// rsp goes from old_sp to new_sp by a load: up the same stack, or to another.
void calltags_load_sp(u64 old_sp, u64 new_sp);

// A thread's own memory of contexts. `fn`, if set, is called for every context that enters it.
typedef struct ContextCache {
    void (*fn)(void *arg, u32 context);
    void *arg;
    struct {
        GuestAddr pc;
        u32 parent, context; // context 0: empty
    } slots[16384];
    // How far it is from rsp, where a function is at this pc, to its return address: the same
    // each time, unless the function takes stack as it needs it.
    struct CallShape {
        GuestAddr pc;
        u64 up; // CALLTAGS_VARIES: not the same
    } shapes[2048];
} ContextCache;
#define CALLTAGS_VARIES UINT64_MAX

// The current context: `pc` within the innermost frame. *ret_slot is where the return
// address of that frame is, 0 if there is none. Takes time proportional to the words
// of the frames that have been called since the last query.
u32 calltags_context(GuestAddr pc, u64 sp, ContextCache *cache, GuestAddr *ret_slot);
// The same for one who asks seldom.
u32 calltags_context_once(GuestAddr pc, u64 sp);

#endif
