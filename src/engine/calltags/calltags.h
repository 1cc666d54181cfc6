// SPDX-License-Identifier: MIT
//
// Calling contexts at next to no cost where nobody asks. Every word of a client stack has a
// word of shadow, at the same distance for all, through gs. A call stores a tag of its return
// address there, a return clears it: one instruction each, without a register or a
// flag. A query walks up from the stack pointer and takes the words that have a tag and
// still hold the return address that it was made of.
//
//   call   push return_address ; mov qword gs:[rsp + DISP], tag
//   ret    pop rcx             ; mov qword gs:[rsp + DISP - 8], 0
//
// The shadow is these tags' own, or it is one that a tool keeps anyway (`shared`): memcheck's
// V bytes. There a call has to store 0 for the address that it pushes, and a return ones for
// what it leaves: the tags are free. Who reads such a word as V bytes asks calltags_is_tag().
//
// callstack/callstack.h is exact in every case, and costs 15 to 20 instructions for
// a call and its return. Here a stack that is left neither by returns nor by a load of rsp
// (`add rsp` over a return address) leaves tags behind, which count again only where a later
// frame covers them and never writes those words.
//
// Glossary
//   tag      what the lower half of a word has for a return address: the number of the landing
//            that the call has (landings/landings.h), or a hash of the address where it has none.
//            The upper half is the context of that frame, once somebody has asked (0: nobody has).
//            Some bits are the same in all tags, and no run of ones: V bytes hardly ever have them
//   signal   the lower half of the word of a handler's return address: an Interruption is known
//   elastic  a function whose frames may differ in size between two visits of the same place
//   root     the end of a stack: no frame is there or above. Known for each stack that was seen
//            to begin
//
// What must stay true
//   K1  A word with a context stands for a frame whose callers are what they were when it was
//       found: they have not returned, since it has not.
//   K2  Shadow is there for all that the client can have and the largest frame beyond it, so that
//       emitted code may look where the slot would be if the frame were what it was the last
//       time, and is the engine's alone; or, where it is shared, for all that the client has, and
//       the tool marks what a stack has left.
//   K3  Of a function that is elastic no size of a frame is remembered, nor which frame follows
//       its own: the next one is searched for each time.
#ifndef MUNINN_ENGINE_CALLTAGS_CALLTAGS_H
#define MUNINN_ENGINE_CALLTAGS_CALLTAGS_H

#include <stddef.h>

#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/landings/landings.h"
#include "engine/ctx/ctx.h"

// Its low twelve bits are not 0: a processor takes a load for one of what was just stored
// if these bits of the addresses are the same, and returns would wait for their tags.
#define CALLTAGS_OFFSET 0x200000123840ull
// A part of it is in the displacement of the stores, not in gs, and its low bits are not those
// of places near rsp: processors that rename memory by base register and the low bits of
// the displacement (Zen does for rsp) overlook the segment, and would take the tag for
// what the next pop reads. sqlite3 ran 2.4 times as long without it.
#define CALLTAGS_DISP (-116)

// What is not found within so many bytes above the frame below it is no frame.
#define CALLTAGS_FRAME_MAX (64ull << 20)

#define CALLTAG_FIXED 0x26262626u // bits of a hash that are always those of the pattern
#define CALLTAG_PATTERN 0x22222222u
#define CALLTAG_LANDING 0x22100000u // what is added to the number of a landing: no hash is that
#define CALLTAG_FIXED_TOP 0x26000000u // bits of every tag
#define CALLTAG_PATTERN_TOP 0x22000000u
#define CALLTAG_SIGNAL_BIT 0x80000000u
#define CALLTAG_SIGNAL (CALLTAG_PATTERN | CALLTAG_SIGNAL_BIT)

// Tags are kept; set before the first block is translated.
extern bool calltags_wanted;
// In the shadow of the tool, at this distance.
extern bool calltags_shared;
extern u64 calltags_offset;

static inline u64 *calltags_word(GuestAddr slot)
{
    return (u64 *)((slot & ~7ull) + calltags_offset);
}

// A word of a frame that is no more.
static inline void calltags_clear(GuestAddr slot)
{
    *calltags_word(slot) = calltags_shared ? ~0ull : 0;
}

static inline u32 calltag_hash(GuestAddr return_address)
{
    u32 hash = (u32)(return_address ^ return_address >> 29) * 0x9e3779b1u;
    return (hash & ~CALLTAG_FIXED & ~CALLTAG_SIGNAL_BIT) | CALLTAG_PATTERN;
}

// Whether a word may have a tag, or a signal's: most of what a tool has there has neither.
static inline bool calltag_is_likely(u32 tag)
{
    return (tag & CALLTAG_FIXED_TOP) == CALLTAG_PATTERN_TOP;
}

static inline bool calltag_fits(u32 tag, GuestAddr return_address)
{
    u32 landing = tag - CALLTAG_LANDING;
    if (LIKELY(landing < LANDINGS_MAX))
        return landing_pc(landing) == return_address && return_address;
    return tag == calltag_hash(return_address);
}

// False: the kernel refuses the address space. `shared_offset`: 0, or the distance to
// the tool's shadow, of which every byte is 0 or more for what may be read.
bool calltags_init(u64 shared_offset);
// The thread begins with the stack pointer that it has now. False: there is no memory.
bool calltags_thread_start(ThreadCtx *ctx);
void calltags_thread_end(ThreadCtx *ctx);
void calltags_unmapped(GuestAddr start, GuestAddr end);
// Contexts are to be looked up anew, by all threads.
void calltags_forget_contexts(void);
// Around a fork, so that the child finds no lock taken.
void calltags_fork_prepare(void);
void calltags_fork_done(void);
// A signal handler begins, with its return address at `slot`: its caller is what it has
// interrupted at pc and sp.
void calltags_enter_signal(GuestAddr slot, GuestAddr pc, u64 sp);
// Whether new_sp is old_sp, or further up on the same stack, as far as tags and roots tell.
bool calltags_is_up(u64 old_sp, u64 new_sp);
// rsp goes from old_sp to new_sp by a load; `returns`: a return comes next. True: up the same
// stack.
bool calltags_load_sp(u64 old_sp, u64 new_sp, bool returns);
// Whether a frame with the stack pointer sp has called another, or was interrupted by a signal: the
// return address stands right below sp, and not below `low`.
bool calltags_has_called(u64 sp, u64 low);
// The end of the stack that an address is in: the next root, the address included.
GuestAddr calltags_root_above(GuestAddr address);
void calltags_add_root(GuestAddr root);
void calltags_drop_roots(GuestAddr start, GuestAddr end);

// elastic.c: the instruction at `pc` makes its function elastic. Engine lock held.
void calltags_note_elastic(GuestAddr pc);
// Whether the code at `pc` may be of such a function: a bit for every 16 bytes of 16 MiB.
enum { ELASTIC_BYTES = 16, ELASTIC_BITS = 1 << 20, ELASTIC_WORDS = ELASTIC_BITS / 64 };
extern u64 calltags_elastic[ELASTIC_WORDS];

static inline u64 calltags_elastic_bit(GuestAddr pc)
{
    return pc / ELASTIC_BYTES % ELASTIC_BITS;
}

static inline bool calltags_is_elastic(GuestAddr pc)
{
    u64 bit = calltags_elastic_bit(pc);
    return __atomic_load_n(&calltags_elastic[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1;
}

// A stack from which a function was called, as far up as it had to be walked then. If its return
// addresses stand there again, down from one whose context is known, the call's context is the
// same: to see that costs a nanosecond a frame, and to name a frame eight or more.
typedef struct CallChain {
    GuestAddr pc; // of the function; 0: none
    u64 sp;       // where its return address is
    GuestAddr to; // and what it is
    u32 context;  // of the call
    u32 count;    // of frames
    GuestAddr above; // the slot of the caller's own return address, and its word with a context
    u64 word_above;
    u64 unused[2];
    struct {
        GuestAddr slot, to;
        u64 word;
    } frames[24]; // from the caller on; the last is one that was known
} CallChain;
_Static_assert(offsetof(CallChain, frames) == 64, "what is looked at first is one line");
enum { CALLTAGS_CHAINS_SHIFT = 9, CALLTAGS_CHAINS = 1 << CALLTAGS_CHAINS_SHIFT };

// A context that was looked for: pc called by `parent`. Emitted code reads it, too.
typedef struct CachedContext {
    GuestAddr pc;
    u32 parent, context; // context 0: empty
} CachedContext;
enum { CONTEXTS_CACHED = 32768, CALLTAGS_SHAPES = 2048 };

// Contexts that are made one after the other, of a recursion say, have numbers one after the
// other: with the same pc they share lines of the cache. The bits are not the highest of the
// product, which are nearly the same for pcs that are 8, 13, 21, 34 or 55 bytes apart: calls of
// one function often are, and drove each other out.
#define CALLTAGS_CACHE_HASH 0x9e3779b97f4a7c15ull
enum { CALLTAGS_CACHE_SHIFT = 40 };
static inline u32 calltags_cache_index(GuestAddr pc, u32 parent)
{
    return ((u32)(pc * CALLTAGS_CACHE_HASH >> CALLTAGS_CACHE_SHIFT) + parent) % CONTEXTS_CACHED;
}

// A thread's own memory of contexts. `fn`, if set, is called for every context that enters it.
typedef struct ContextCache {
    void (*fn)(void *arg, u32 context);
    void *arg;
    CachedContext slots[CONTEXTS_CACHED];
    // How far it is from rsp, where a function is at this pc, to its return address: the same
    // each time, unless the function is elastic. Emitted code reads it, too.
    struct CallShape {
        GuestAddr pc;
        u64 up; // CALLTAGS_VARIES: not the same
    } shapes[CALLTAGS_SHAPES];
    CallChain chains[CALLTAGS_CHAINS]; // by function, stack pointer and return address
} ContextCache;
#define CALLTAGS_VARIES UINT64_MAX

static inline CallChain *calltags_chain(ContextCache *cache, GuestAddr pc, u64 sp, GuestAddr to)
{
    u64 hash = (pc ^ sp << 7 ^ to << 20) * 0x9e3779b97f4a7c15ull;
    return &cache->chains[hash >> (64 - CALLTAGS_CHAINS_SHIFT)];
}

// A word of the client's stack, or of its shadow; 0 if it is not there any more.
static inline u64 calltags_read(u64 at)
{
    u64 word = 0;
    __asm__ volatile("1: mov (%1), %0\n2:\n" GUEST_FIXUP("1b", "2b") : "+r"(word) : "r"(at));
    return word;
}

// Whether the return address `to` stands there, and has its tag.
static inline bool calltags_is_call(GuestAddr slot, GuestAddr to)
{
    return calltags_read(slot) == to &&
           calltag_fits((u32)calltags_read((u64)calltags_word(slot)), to);
}

static inline struct CallShape *calltags_shape(ContextCache *cache, GuestAddr pc)
{
    return &cache->shapes[(pc ^ pc >> 11) % CALLTAGS_SHAPES];
}

// The return address's slot of the frame that is at `pc` and has the stack pointer `at`, if it is
// as far away as the last time; 0: ask calltags_next_frame(). pc may be any number that stands for
// a place in the code.
static inline GuestAddr calltags_known_frame(ContextCache *cache, u64 pc, GuestAddr at,
                                             u64 *ret_word)
{
    const struct CallShape *shape = calltags_shape(cache, pc);
    if (UNLIKELY(shape->pc != pc || shape->up == CALLTAGS_VARIES))
        return 0;
    GuestAddr slot = at + shape->up;
    u64 word = calltags_read((u64)calltags_word(slot)); // it may be beyond the stack
    if (UNLIKELY(!calltag_fits((u32)word, calltags_read(slot))))
        return 0;
    *ret_word = word;
    return slot;
}
// The same by a walk over the words of the frame, if need be; 0: there is none.
GuestAddr calltags_next_frame(ContextCache *cache, u64 pc, GuestAddr at, u64 *ret_word);

// The current context: `pc` within the innermost frame. *ret_slot is where the return
// address of that frame is, 0 if there is none. Takes time proportional to the words
// of the frames that have been called since the last query.
u32 calltags_context(GuestAddr pc, u64 sp, ContextCache *cache, GuestAddr *ret_slot);
// The same at the entry of a function, which is `pc`; for such as are called again and again from
// the same stacks.
u32 calltags_call_context(GuestAddr pc, u64 sp, ContextCache *cache);
// The context of a thread at `pc`, by the tags or by the shadow call stack, whichever is kept; 0:
// neither is.
u32 calltags_thread_context(ThreadCtx *ctx, GuestAddr pc);
// The same if it was called from there the last time that this was asked with that stack pointer,
// and the caller has been asked for. 0: ask calltags_call_context().
static inline u32 calltags_call_again(ContextCache *cache, GuestAddr pc, u64 sp)
{
    GuestAddr to = calltags_read(sp);
    const CallChain *chain = calltags_chain(cache, pc, sp, to);
    if (LIKELY(chain->pc == pc && chain->sp == sp && chain->to == to) &&
        LIKELY(calltag_fits((u32)calltags_read((u64)calltags_word(sp)), to)) &&
        LIKELY(calltags_read((u64)calltags_word(chain->above)) == chain->word_above))
        return chain->context;
    return 0;
}
// Whether the shadow of this word, aligned to 8 bytes, is that of a return address.
bool calltags_is_tag(GuestAddr slot);
// The frame that an address is in: the slot of its return address, at or above the address; 0:
// it is in none.
GuestAddr calltags_frame_slot(GuestAddr address);
// The slot of the frame that it has called: below the address, not below sp; 0: there is none.
GuestAddr calltags_callee_slot(GuestAddr address, u64 sp);
// Where the frame above this slot goes on: the return address in it or, if it was interrupted
// by a signal, the place of that, with CONTEXT_EXACT_PC.
GuestAddr calltags_caller_pc(GuestAddr slot);

#endif
