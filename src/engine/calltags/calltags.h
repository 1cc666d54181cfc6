// SPDX-License-Identifier: MIT
//
// Calling contexts that cost next to nothing until somebody asks for one. Every word of a client
// stack has a word of shadow, at one distance for all, reached through gs. A call stores a tag of
// its return address there, and a return clears it: one instruction each, without a register or a
// flag. A query walks up from the stack pointer. It takes each word that has a tag and still holds
// the return address of which the tag was made.
//
//   call   push return_address ; mov qword gs:[rsp + DISP], tag
//   ret    pop rcx             ; mov qword gs:[rsp + DISP - 8], 0
//
// The shadow belongs to the tags alone, or to a tool that keeps one anyway (`shared`): memcheck's
// V bytes. There a call must store 0 for the address that it pushes, and a return must store ones
// for the word that it leaves, so a tag in place of the 0 costs nothing. Code that reads such a
// word as V bytes must ask calltags_is_tag().
//
// callstack/callstack.h is exact in every case, and costs 15 to 20 instructions for
// a call and its return. Call tags can be wrong in one case: code that moves rsp over a return
// address by `add rsp` leaves the tag behind. The tag counts again only if a later frame covers its
// word and never writes it.
//
// Glossary
//   tag      the lower half of the word of shadow of a return address: the number of the call's
//            landing (landings/landings.h), or a hash of the address if the call has no landing.
//            The upper half of the word is the frame's context, once a query has found it, else 0.
//            Some bits are the same in all tags, in a pattern that V bytes hardly ever have
//   signal   the lower half of the word of a signal handler's return address; what the handler has
//            interrupted is recorded as an Interruption
//   elastic  a function whose frames may differ in size between two visits of the same place
//   root     the end of a stack: no frame is there or above. A root is known for each stack whose
//            begin the engine has seen
//
// What must stay true
//   K1  A context in a word stays right until the word is cleared: the frame has not returned, so
//       its callers have not returned either.
//   K2  A shadow of the tags' own covers every address that the client can map and the largest
//       frame beyond: emitted code may read it at the place where a slot would be if a frame had
//       its last size. A shared shadow covers what the client has mapped, and the tool marks every
//       word that a stack has left.
//   K3  For an elastic function neither a frame's size nor the frame that follows is remembered:
//       the next frame is searched for each time.
#ifndef MUNINN_ENGINE_CALLTAGS_CALLTAGS_H
#define MUNINN_ENGINE_CALLTAGS_CALLTAGS_H

#include <stddef.h>

#include "engine/aspace/aspace.h"
#include "engine/callstack/callstack.h"
#include "engine/landings/landings.h"
#include "engine/ctx/ctx.h"

// The low twelve bits are not 0. A processor takes a load for one of a value just stored
// if these bits of the two addresses are the same, so returns would wait for the stores of tags.
#define CALLTAGS_OFFSET 0x200000123840ull
// A part of the distance is in the displacement of the stores, not in gs. Its low bits are not
// those of places near rsp: processors that rename memory by base register and the low bits of the
// displacement (Zen does for rsp) overlook the segment, and would take the tag for the value that
// the next pop reads. sqlite3 ran 2.4 times as long without it.
#define CALLTAGS_DISP (-116)

// A frame has at most this size: the search for the next frame ends so many bytes up.
#define CALLTAGS_FRAME_MAX (64ull << 20)

#define CALLTAG_FIXED 0x26262626u // bits of a hash that are always those of the pattern
#define CALLTAG_PATTERN 0x22222222u
#define CALLTAG_LANDING 0x22100000u // added to the number of a landing; no hash has this value
#define CALLTAG_FIXED_TOP 0x26000000u // bits of every tag
#define CALLTAG_PATTERN_TOP 0x22000000u
#define CALLTAG_SIGNAL_BIT 0x80000000u
#define CALLTAG_SIGNAL (CALLTAG_PATTERN | CALLTAG_SIGNAL_BIT)

// Whether tags are kept; set before the first block is translated.
extern bool calltags_wanted;
// Whether the tags are in the tool's shadow; and the distance of the shadow.
extern bool calltags_shared;
extern u64 calltags_offset;

static inline u64 *calltags_word(GuestAddr slot)
{
    return (u64 *)((slot & ~7ull) + calltags_offset);
}

// Clears the word of a frame that no longer exists.
static inline void calltags_clear(GuestAddr slot)
{
    *calltags_word(slot) = calltags_shared ? ~0ull : 0;
}

static inline u32 calltag_hash(GuestAddr return_address)
{
    u32 hash = (u32)(return_address ^ return_address >> 29) * 0x9e3779b1u;
    return (hash & ~CALLTAG_FIXED & ~CALLTAG_SIGNAL_BIT) | CALLTAG_PATTERN;
}

// Whether a word may hold a tag or a signal: false for most words of a tool's shadow.
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

// `shared_offset` is 0, or the distance to a tool's shadow in which the tags are kept. False: the
// kernel refuses the address space.
bool calltags_init(u64 shared_offset);
// To be called when a thread begins, with the stack pointer that it begins with. False: no memory.
bool calltags_thread_start(ThreadCtx *ctx);
void calltags_thread_end(ThreadCtx *ctx);
void calltags_unmapped(GuestAddr start, GuestAddr end);
// Makes all threads look up contexts anew.
void calltags_forget_contexts(void);
// Take and release the locks around a fork, so that the child finds none taken.
void calltags_fork_prepare(void);
void calltags_fork_done(void);
// To be called when a signal handler begins, with its return address at `slot`: its caller is the
// code that it has interrupted at pc and sp.
void calltags_enter_signal(GuestAddr slot, GuestAddr pc, u64 sp);
// Whether new_sp is old_sp, or further up on the same stack, as far as tags and roots tell.
bool calltags_is_up(u64 old_sp, u64 new_sp);
// To be called when rsp goes from old_sp to new_sp by a load; `returns` is true if a return comes
// next. True if new_sp is further up the same stack.
bool calltags_load_sp(u64 old_sp, u64 new_sp, bool returns);
// Whether the frame with the stack pointer sp has called another one, or was interrupted by a
// signal: then a return address stands right below sp. Words below `low` do not count.
bool calltags_has_called(u64 sp, u64 low);
// The end of the stack that an address is in: the first root at or above the address.
GuestAddr calltags_root_above(GuestAddr address);
void calltags_add_root(GuestAddr root);
void calltags_drop_roots(GuestAddr start, GuestAddr end);

// elastic.c: the instruction at `pc` makes its function elastic. Engine lock held.
void calltags_note_elastic(GuestAddr pc);
// Whether the code at `pc` may belong to an elastic function: a bit for every 16 bytes of 16 MiB.
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

// A stack from which a function was called: the frames that the query had to walk. If the same
// return addresses stand in the same places at the next call, and the outermost of these frames
// still has its context, then the new call has the same context. To compare costs a nanosecond a
// frame; to name a frame costs eight or more.
typedef struct CallChain {
    GuestAddr pc; // the function's entry; 0: the slot is empty
    u64 sp;       // where the call's return address is
    GuestAddr to; // the return address
    u32 context;  // the call's context
    u32 count;    // the number of frames
    GuestAddr above; // the slot of the caller's own return address, and its word with a context
    u64 word_above;
    u64 unused[2];
    struct {
        GuestAddr slot, to;
        u64 word;
    } frames[24]; // from the caller outwards; the context of the last one was known
} CallChain;
_Static_assert(offsetof(CallChain, frames) == 64, "what is looked at first is one line");
enum { CALLTAGS_CHAINS_SHIFT = 9, CALLTAGS_CHAINS = 1 << CALLTAGS_CHAINS_SHIFT };

// The context of pc, called by `parent`, found by an earlier query. Emitted code reads it, too.
typedef struct CachedContext {
    GuestAddr pc;
    u32 parent, context; // context 0: empty
} CachedContext;
enum { CONTEXTS_CACHED = 32768, CALLTAGS_SHAPES = 2048 };

// Contexts that are made one after the other, by a recursion for instance, have consecutive
// numbers: if they have the same pc, they share cache lines of the table. The index does not take
// the highest bits of the product: these are nearly the same for pcs that are 8, 13, 21, 34 or 55
// bytes apart, as the calls in one function often are, and such calls drove each other out.
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
    // The distance from rsp to a function's return address while the function is at this pc: the
    // same each time, unless the function is elastic. Emitted code reads it, too.
    struct CallShape {
        GuestAddr pc;
        u64 up; // bytes; CALLTAGS_VARIES: the distance differs
    } shapes[CALLTAGS_SHAPES];
    CallChain chains[CALLTAGS_CHAINS]; // by function, stack pointer and return address
} ContextCache;
#define CALLTAGS_VARIES UINT64_MAX

static inline CallChain *calltags_chain(ContextCache *cache, GuestAddr pc, u64 sp, GuestAddr to)
{
    u64 hash = (pc ^ sp << 7 ^ to << 20) * 0x9e3779b97f4a7c15ull;
    return &cache->chains[hash >> (64 - CALLTAGS_CHAINS_SHIFT)];
}

// Reads a word of the client's stack or of the shadow; 0 if that memory is not mapped any more.
static inline u64 calltags_read(u64 at)
{
    u64 word = 0;
    __asm__ volatile("1: mov (%1), %0\n2:\n" GUEST_FIXUP("1b", "2b") : "+r"(word) : "r"(at));
    return word;
}

// Whether the return address `to` stands in `slot`, and its tag in the shadow.
static inline bool calltags_is_call(GuestAddr slot, GuestAddr to)
{
    return calltags_read(slot) == to &&
           calltag_fits((u32)calltags_read((u64)calltags_word(slot)), to);
}

static inline struct CallShape *calltags_shape(ContextCache *cache, GuestAddr pc)
{
    return &cache->shapes[(pc ^ pc >> 11) % CALLTAGS_SHAPES];
}

// Finds the slot of the return address of the frame that is at `pc` and has the stack pointer `at`,
// if the slot is as far away as the last time. 0: the caller must ask calltags_next_frame(). `pc`
// may be any number that stands for a place in the code.
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
// The same, by a walk over the words of the frame if it must; 0: there is no next frame.
GuestAddr calltags_next_frame(ContextCache *cache, u64 pc, GuestAddr at, u64 *ret_word);

// The current context: `pc` within the innermost frame. *ret_slot is where the return
// address of that frame is, 0 if there is none. Takes time proportional to the words
// of the frames that have been called since the last query.
u32 calltags_context(GuestAddr pc, u64 sp, ContextCache *cache, GuestAddr *ret_slot);
// The same at the entry `pc` of a function; for functions that are called again and again from the
// same stacks.
u32 calltags_call_context(GuestAddr pc, u64 sp, ContextCache *cache);
// The context of a thread at `pc`, by the tags or by the shadow call stack, whichever is kept. 0:
// neither of them is kept.
u32 calltags_thread_context(ThreadCtx *ctx, GuestAddr pc);
// As calltags_call_context(), but answers only if the function was called with the same stack
// pointer and return address before, and the caller's context is still known. 0: the caller must
// ask calltags_call_context().
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
// Whether the shadow of the word at `slot`, aligned to 8 bytes, is the tag of a return address.
bool calltags_is_tag(GuestAddr slot);
// Finds the frame that an address is in: the slot of its return address, at or above the address.
// 0: the address is in no frame.
GuestAddr calltags_frame_slot(GuestAddr address);
// Finds the return address of the frame that the frame of `address` has called: its slot is below
// the address and not below sp. 0: there is none.
GuestAddr calltags_callee_slot(GuestAddr address, u64 sp);
// Where the frame above this slot goes on: the return address in the slot or, if the frame was
// interrupted by a signal, the interrupted pc with CONTEXT_EXACT_PC.
GuestAddr calltags_caller_pc(GuestAddr slot);

#endif
