// SPDX-License-Identifier: MIT
//
// The code cache: where blocks live, how they are found, linked and retired,
// and how a host pc inside one is mapped back to the client's state.
//
// Blocks are allocated by bumping through a unit; there are CACHE_UNITS of them,
// filled in turn. Before a unit is filled again all its blocks are retired, and
// its memory is reused when every thread has passed a safe point since.
//
// What must stay true (the engine lock protects everything that is written)
//   C1  A retired block is in no table, and no link leads into or out of it, so
//       a thread that executes it leaves it at its end.
//   C2  A thread that takes a block's address from a table does so under the
//       engine lock and sets dispatch.in_cache and cache.safe_epoch before releasing it.
//   C3  A unit is refilled only when every thread is outside the cache or has
//       a cache.safe_epoch at least as new as the unit's retirement.
//   C4  Block, exit and mark records live as long as their unit, retired or not:
//       a handler may look up a thread's pc in them without a lock.
#ifndef MUNINN_ENGINE_CACHE_CACHE_H
#define MUNINN_ENGINE_CACHE_CACHE_H

#include "base/types.h"
#include "engine/aspace/aspace.h"
#include "engine/ctx/ctx.h"
#include "engine/emit/emit.h"
#include "engine/landings/landings.h"

#define CACHE_UNITS 8
#define TABLES_START 0x60200000ull // 2 MiB: one huge page, if the kernel gives huge pages
#define LOOKUP_TABLE TABLES_START  // 64 Ki code pointers, indexed by the low 16 bits of a guest pc
#define LOOKUP_ENTRIES 65536
#define RETURN_TABLE 0x60280000ull // for returns, whose target is found below rsp
#define SECOND_TABLE 0x60300000ull // second_word()s of entries that are, or were, in those two
#define SECOND_BITS 17
#define VERSION_TABLE 0x60400000ull // code pointers for dirty blocks, by the top of version_sum()
#define VERSION_BITS 18
#define BLOCKS_START LANDINGS_END // behind the tables of landings.h

// Bit of a version: the block lacks the prologue of its hook (redirect/redirect.h).
#define VERSION_ORIGINAL (1u << 31)
// Bit of a version: the block is for a client that has set its trap flag. Such a block has one
// instruction and no links, so that also a jump is followed by code in which the trap can happen.
#define VERSION_STEPPED (1u << 30)
// Bit of a version: the guard of the block's first instruction has failed.
#define VERSION_FIRST (1u << 29)
#define VERSION_NUMBER (VERSION_FIRST - 1) // the bits of the number that the tool gave

// The return table holds CodeRefs. Its index is the low 16 bits of the guest pc or, where a return
// may change flags, bits 2 to 17: then one cache line of the table serves 64 bytes of code. That
// matters because large programs return to many places, and the table competes with the client's
// data for the processor's caches. Two return addresses are never less than four bytes apart.
#define RETURN_SHIFT 2
extern u32 return_shift; // RETURN_SHIFT, or 0 where a return must leave flags alone
static inline u32 return_index(GuestAddr pc)
{
    return (u32)(pc >> return_shift) % LOOKUP_ENTRIES;
}

// The gateways look in the second table for a pc that another one has driven out of the lookup
// table or the return table; this takes a few instructions more. An entry is one word, so that a
// reader always sees it whole: the low bits are the body's place in the cache, the others are the
// bits of the pc that second_index() does not tell. 0: the entry is empty.
#define SECOND_CODE_BITS 28
static inline u32 second_index(GuestAddr pc)
{
    return (u32)(pc ^ (u32)pc >> SECOND_BITS) & ((1u << SECOND_BITS) - 1);
}
static inline u64 second_word(GuestAddr pc, CodePtr body)
{
    return ((pc >> 12) + 1) << SECOND_CODE_BITS | ((u64)body & ((1u << SECOND_CODE_BITS) - 1));
}

// The version table tells the versions of one pc apart by the state that each is made for. The
// gateways' code computes the same keys and sums.
#define VERSION_FACTOR 0x9e3779b97f4a7c15ull
#define VERSION_FIRST_KEY 0x5bd1e9955bd16b43ull
static inline u64 version_key(u64 state, u32 version)
{
    return state * VERSION_FACTOR + (version & VERSION_FIRST ? VERSION_FIRST_KEY : 0);
}
static inline u64 version_sum(GuestAddr pc, u64 state, u32 version)
{
    return (pc + version_key(state, version)) * VERSION_FACTOR;
}

// From `host_offset` on, the code belongs to the guest instruction at
// block->pc + guest_delta, and the registers in `spilled` are in ctx->translate.spill.
typedef struct CodeMark {
    u16 host_offset; // from block->code
    u16 spilled;
    u32 boundary : 1;
    i32 guest_delta : 31;
} CodeMark;

// A mark with this `spilled` begins code that belongs to no guest instruction.
#define MARK_NOWHERE 0xffffu

// Large programs have a hundred thousand blocks and three times as many exits, so the records of
// blocks and exits are packed. The code cache lies below 4 GiB, so 32 bits name a place in it.
// 0: no place.
typedef u32 CodeRef;
_Static_assert(CACHE_END <= 1ull << 32, "a CodeRef has room for it");

static inline CodePtr code_at(CodeRef ref)
{
    return (CodePtr)(u64)ref;
}

static inline CodeRef code_ref(CodePtr code)
{
    return (CodeRef)(u64)code;
}

typedef struct Block {
    GuestAddr pc;
    u64 state;             // the thread's state that the version is made for
    u32 version;           // the number by which the tool calls what it assumes on entry
    CodeRef code;          // first byte, entry prefix included
    CodeRef body;          // where direct exits enter
    CodeRef entry;         // where the lookup table enters: checks the pc; 0: none yet
    CodeRef return_entry;  // where the return table enters; 0: none yet
    CodeRef call_entry;    // where a real `call` of the processor enters; 0: none yet
    CodeRef version_entry; // where the version table enters; 0: none yet
    u32 first_exit;        // index of the first of exit_count exits
    u32 incoming;          // exits linked to this block, as a list; 0 ends it
    u32 marks : 24;        // where the block's marks begin in the unit's packed marks
    u32 unit : 7;
    u32 retired : 1;
    u32 landing : 19;      // the number of its landing, 0: none (landings.h)
    u32 falls : 1;         // its code runs on into the next block of the unit
    u32 mark_count : 12;
    u16 code_size;
    u8 exit_count;
    u8 insn_count;
} Block;
_Static_assert(sizeof(Block) == 64, "one line");

// A version other than 0 holds for one state of a thread. Its blocks are in the version table only.
static inline bool block_is_dirty(const Block *block)
{
    return (block->version & ~VERSION_ORIGINAL) != 0;
}

// A direct way out of a block. Index 0 is never used.
typedef struct Exit {
    i64 target : 48; // a guest address: exit_target()
    u64 site : 16;   // the rel32 to patch, from the code of its block: exit_site()
    CodeRef stub;    // where it leads while unlinked
    u32 version;     // of the block it leads to, or EXIT_DYNAMIC
    u32 from, to;    // cache_number(); `to` is 0 while unlinked
    u32 next, prev;  // in the target's list `incoming`
} Exit;
_Static_assert(sizeof(Exit) == 32, "half a line");

// OR this bit into the version of an exit whose target's version is known only at run time. Such an
// exit is never linked. The other bits stay valid: the exit may lead to VERSION_ORIGINAL.
#define EXIT_DYNAMIC VERSION_STEPPED

// Whether the exit at `site` is a `call`.
static inline bool exit_is_call(const CodePtr site)
{
    return x64_is_call_site(site);
}

static inline GuestAddr exit_target(const Exit *x)
{
    return (GuestAddr)(i64)x->target;
}

// How blocks are entered other than by direct exits.
typedef enum EntryKind {
    ENTRY_NONE,    // no entry is asked for
    ENTRY_LOOKUP,  // through the lookup table
    ENTRY_RETURN,  // through the return table
    ENTRY_VERSION, // through the version table
    ENTRY_CALL,    // by a real `call`: the entry drops the return address that it pushed
} EntryKind;

// What a host pc in the cache means for the client.
typedef struct CodePlace {
    GuestAddr pc;  // the guest instruction being executed
    u32 spilled;   // bit r: the client's register r is in ctx->translate.spill[r]
    bool boundary; // exactly before that instruction
    u32 block;     // cache_number() of the block
} CodePlace;

typedef struct CacheStats {
    u64 blocks, exits, links, retired_blocks, recycled_units, code_bytes, invalidations;
} CacheStats;
extern CacheStats cache_stats;

// Where an empty slot of each table leads: code that looks further. Set before cache_init().
typedef struct CacheMisses {
    CodePtr lookup, returns, version;
} CacheMisses;
extern CacheMisses cache_misses;

// The units share `size_bytes` evenly. `block_room` is the largest size that cache_reserve() will
// be asked for; if a unit could hold only a few blocks of that size, size_bytes is raised. With
// `link` false no exit is ever linked and the lookup table stays empty (--stress=no-link).
void cache_init(u64 size_bytes, size_t block_room, bool link);

// True if `host_pc` lies in the cache's reservation (gateways excluded).
bool cache_contains(u64 host_pc);

// Finds the guest instruction to which a host pc inside a block belongs. False for
// the parts of a block that belong to no guest instruction (entry prefix, exit stubs):
// the caller single-steps the thread out of those.
// Takes no lock; callable from the handler of a signal that interrupted the cache.
bool cache_place(u64 host_pc, CodePlace *ret_place);

// Reads the marks of a block in ascending order. Takes no lock.
typedef struct MarkReader {
    const u8 *at;
    u32 left;
    CodeMark mark; // valid after marks_next() returned true
} MarkReader;
MarkReader marks_of(const Block *block);
bool marks_next(MarkReader *reader);

// The caller of every function below holds the engine lock.

// Retires every block and builds all tables anew: a thread that held the engine lock was killed
// and may have left a change half done.
void cache_start_again(void);

// Retires the blocks made from the client's code in [start, end), which is gone or has changed:
// no thread enters them again.
void cache_invalidate(GuestAddr start, GuestAddr end);
// Retires only the blocks that hold the instruction at `pc` and, where it is the jump of a PLT
// entry, the blocks that call the jump's target directly.
void cache_invalidate_insn(GuestAddr pc);

Block *cache_find(GuestAddr pc, u32 version);

// Returns a new block with at least `code_room` bytes at its `code`. May retire an older unit and
// wait for it. The caller commits the block by cache_commit(), or drops it by doing nothing.
Block *cache_reserve(size_t code_room, size_t max_exits, size_t max_marks);
// Whether the next cache_reserve() of this size would give room directly behind `block`.
bool cache_has_room_behind(const Block *block, size_t code_room, size_t max_exits,
                           size_t max_marks);
// Makes a reserved block part of the cache. `marks` ascend by host_offset.
void cache_commit(Block *block, const CodeMark *marks, size_t mark_count);
// Adds `bytes` of code, which stand behind it already, to the block that was committed last.
void cache_lengthen(Block *block, u32 bytes);
// Notes that the block was made from guest bytes in [start, end).
void cache_note_source(Block *block, GuestAddr start, GuestAddr end);
// Returns memory in the unit of `like`, away from the blocks, for code that runs rarely: exit
// stubs, late entry prefixes. NULL when there is no room.
CodePtr cache_reserve_cold(const Block *like, size_t bytes);

// Prefetches the memory that cache_find() will look at.
void cache_expect(GuestAddr pc, u32 version);

u32 cache_number(const Block *block); // never 0
Block *cache_numbered(u32 number);    // NULL if the number is 0
Exit *cache_exit(u32 index);
CodePtr exit_site(const Exit *x);
void cache_link(u32 exit_index, Block *to);
// Puts the block's entry of that kind into its table. False: the block has no such entry.
bool cache_publish_entry(Block *block, EntryKind kind);

// Walks all tables, which takes milliseconds. Returns NULL, or a sentence that names the invariant
// that does not hold. For --stress=validate and tests.
const char *cache_validate(void);

// Notes that the calling thread enters the cache now, as C2 and C3 ask.
void cache_enter(ThreadCtx *ctx);

#endif
