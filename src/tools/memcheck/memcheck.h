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

#include "engine/aspace/aspace.h"
#include "engine/relay/relay.h"
#include "engine/toolapi/toolapi.h"
#include "engine/uring/uring.h"
#include "tools/heap/heap.h"
#include "tools/memcheck/definedness.h"
#include "tools/memcheck/origins.h"

// --- where shadow is. SKEW keeps a byte and its shadow out of each other's way in the
// cache: without it everything takes four times as long. Its low twelve bits are not 0: by
// these processors look for the store that a load waits for, and would find the shadow's
// (docs/design/shadow-skew.md). So the shadow of a page lies in two.
#define SHADOW_SKEW 0x123840ull
#define SHADOW_OFFSET (0x200000000000ull + SHADOW_SKEW)
// Of the client's addresses these have a shadow: what the engine chooses ends at CLIENT_END, but
// Java's ZGC insists on 16 to 20 TiB. More cannot be mapped (aspace_end).
#define SHADOWED_END 0x170000000000ull
#define V_FORBIDDEN 0xfe
#define U_MAP_OFFSET (0x380000000000ull + 0x5a000ull) // + address / 8

static inline u8 *shadow_of(GuestAddr address)
{
    return (u8 *)(address + SHADOW_OFFSET);
}

static inline u8 *u_bits_of(GuestAddr address) // of 8 bytes
{
    return (u8 *)((address >> 3) + U_MAP_OFFSET);
}

// Which pages of the client have a shadow: a bit for each, set under the engine lock.
extern u64 *shadow_open_pages;

static inline bool shadow_is_open(GuestAddr address)
{
    u64 page = address >> 12;
    return address < SHADOWED_END &&
           __atomic_load_n(&shadow_open_pages[page / 64], __ATOMIC_RELAXED) >> page % 64 & 1;
}

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

// Whether an address is on the stack that the thread began with: not above where it began, since
// the mapping may go on there with what has nothing to do with it.
static inline bool is_in_home(const MemcheckThread *mt, GuestAddr sp)
{
    return sp > mt->stack_lo && sp <= mt->first_sp;
}

// Whether that stack's innermost frame is at this stack pointer of the thread's.
static inline bool is_at_home(const MemcheckThread *mt, GuestAddr sp)
{
    return is_in_home(mt, sp) && !mt->is_elsewhere;
}

bool stacks_guess_holds(ToolThread *thread, GuestAddr address);

// K3: below its own stack pointer a thread has nothing.
static inline bool shadow_below_stack(ToolThread *thread, GuestAddr address)
{
    enum { RED_ZONE_BYTES = 128 };
    const MemcheckThread *mt = thread->tool.thread;
    return address >= mt->stack_lo && address < thread->gpr[RSP] - RED_ZONE_BYTES &&
           is_at_home(mt, thread->gpr[RSP]) &&
           (!mt->is_guessed || stacks_guess_holds(thread, address));
}

// --- shadow.c
void shadow_init(void);
void shadow_mapped(GuestAddr start, GuestAddr end, u32 prot);
void shadow_moved(GuestAddr from, GuestAddr to, u64 size);
void shadow_unmapped(GuestAddr start, GuestAddr end);
// The part of a stack below its pointer: undefined, and not to be touched (K3).
void shadow_open_stack(GuestAddr start, GuestAddr end);
// Of what may not be touched: it stays so, and costs no memory, nor does its content.
void shadow_park(GuestAddr start, u64 size);
bool shadow_fault(ToolThread *thread, u64 *address, bool *is_mapped);
// [start, start + size), all of it mapped client memory; general registers only.
void shadow_make_defined(GuestAddr start, u64 size);
void shadow_make_undefined(GuestAddr start, u64 size);
void shadow_make_noaccess(GuestAddr start, u64 size);
void shadow_forbid_stack(GuestAddr start, u64 size); // until its frame is left
void shadow_forget_forbidden(GuestAddr start, GuestAddr end); // it is no stack any more
bool shadow_is_forbidden(GuestAddr address); // by the U map alone, whose shadow is there
void shadow_fork_prepare(void);
void shadow_fork_done(bool in_child);
void shadow_clear_v(GuestAddr start, u64 size); // of what may be touched
void shadow_define_touchable(ToolThread *thread, GuestAddr start, u64 size); // and no more
void shadow_make_touchable(GuestAddr start, u64 size); // of V bytes that are all ones
// The first byte that may not be touched, or is undefined; start + size: none.
GuestAddr shadow_first_noaccess(ToolThread *thread, GuestAddr start, u64 size);
// True: each byte may be touched, if its shadow is mapped. False: some may not.
bool shadow_all_touchable(ToolThread *thread, GuestAddr start, u64 size);
GuestAddr shadow_first_undefined(GuestAddr start, u64 size);
// Whether some of these bytes are a return address's: then V bytes are to be read by
// shadow_read(). Light if there is none.
bool shadow_has_tag(GuestAddr start, u64 size);
void shadow_read(GuestAddr start, u64 size, u8 *ret_v);
// The return addresses that it touches are data from now on.
void shadow_drop_tags(GuestAddr start, u64 size);
bool shadow_is_mapped(GuestAddr start, u64 size);

// --- versions_hot.c
u32 version_of_thread(ToolThread *thread);
u64 version_set(u32 version); // a MemberSet
u32 version_number(MemberSet set);
void version_fork_prepare(void);
void version_fork_done(bool in_child);
// Of what follows a block that ends at `block_end`, where no more than these may be undefined.
u32 version_of_exit(GuestAddr block_end, MemberSet set);

// --- instrument.c
void instrument_insn(ToolBlock *block, const ToolInsn *insn);
bool instrument_exit_version(ToolBlock *block, u32 *ret_version);
void instrument_block(ToolBlock *block, const ToolInsn *insns, unsigned count);

// --- stats.c: slots of thread->tool.slot, counted in dirty blocks with --stats
typedef enum MemcheckStat {
    MEMCHECK_STAT_GUARDS, // guards that failed
    MEMCHECK_STAT_STEPS,  // steps run
    MEMCHECK_STAT_INSNS,  // instructions executed
    MEMCHECK_STATS
} MemcheckStat;
void stats_count(ToolBlock *block, MemcheckStat stat);
void stats_insn(ToolBlock *block, const ToolInsn *insn);
u32 stats_of_step(const ToolBlock *block, bool by_guard); // slots, for ToolStep
void stats_thread_ended(ToolThread *thread);
void stats_fork_child(ToolThread *thread);
void stats_tell(void);

// --- access_hot.c: called from blocks
void access_step(ToolThread *thread, u64 step, GuestAddr address);
ToolCallFn *access_move(const DefinednessMove *move); // for an AccessMove; moves_hot.c
ToolBriefFn *access_brief_move(const DefinednessMove *move); // or NULL
typedef struct AccessMove {
    DefinednessMove move;
    u32 forgotten;               // bytes of what is stored, behind it: nobody reads it any more
    const DefinednessStep *step; // the same as a step
} AccessMove;
// Several loads and their stores; copies.h. Distances count from the first of either.
enum { COPY_PIECES_MAX = 12, COPY_STRANGERS_MAX = 3, COPY_ASKED_MAX = 6 };
typedef struct CopyPiece {
    i16 from, to;
    u8 size, unused;
} CopyPiece;
typedef struct CopySide {
    i16 low, high; // of all that is accessed there
} CopySide;
typedef struct CopyStranger {
    i32 low, high; // what is accessed between the first and the last piece, at neither side
    u8 base;       // INSN_NO_REG: 0
    bool is_written;
    u8 unused[6];
} CopyStranger;
typedef struct CopyAsked {
    i32 low;
    u8 base, size; // as of a stranger
    u8 unused[2];
} CopyAsked;
typedef struct CopyRun {
    MemberSet members; // that it goes through; dead behind it
    CopySide from, to;
    i32 to_disp;       // from to_base; the address is that of the first load
    u8 to_base, count;
    bool is_apart;     // as both sides have one register
    u8 stranger_count;
    u8 asked_count;
    u8 unused[3];
    CopyAsked asked[COPY_ASKED_MAX]; // has to be defined
    CopyStranger strangers[COPY_STRANGERS_MAX];
    CopyPiece pieces[COPY_PIECES_MAX];
} CopyRun;
void access_copy(ToolThread *thread, u64 run, GuestAddr from);
ToolBriefFn *access_brief_copy(const CopyRun *run);
void access_store(ToolThread *thread, u64 size, GuestAddr address); // its shadow is not 0
void access_give_up(GuestAddr address, u64 size);
void access_load(ToolThread *thread, u64 what, GuestAddr address);  // and no V bits are kept
void access_any(ToolThread *thread, u64 what, GuestAddr address);   // of unusual size
void access_lanes(ToolThread *thread, u64 step, GuestAddr address);
void access_table(ToolThread *thread, u64 unused, GuestAddr base);
void access_string(ToolThread *thread, u64 what, GuestAddr address);
// ACCESS_WRITES, which tile, and the register that says how far apart its rows are.
void access_tile(ToolThread *thread, u64 what, GuestAddr second_row);
enum {
    ACCESS_TILE_INDEX = 15, ACCESS_TILE_STRIDE = 16, // a register; there is one
    ACCESS_TILE_SCALE_AT = 5, ACCESS_TILE_AT = 8,
};
void access_call(ToolThread *thread, u64 is_return, GuestAddr unused);
void access_forget(ToolThread *thread, u64 members, GuestAddr unused); // they are overwritten
void access_forget_copies(ToolThread *thread, u64 vectors, GuestAddr unused); // as at a call
// Members that hold nothing at a call or a return, by the ABI; vectors may.
#define ACCESS_DEAD_GPRS_AT_CALL (MEMBER_GPR(RAX) | MEMBER_GPR(R10) | MEMBER_GPR(R11))
#define ACCESS_DEAD_GPRS_AT_RETURN (MEMBER_GPR(RCX) | MEMBER_GPR(RSI) | MEMBER_GPR(RDI) | \
                                    MEMBER_GPR(R8) | MEMBER_GPR(R9) | MEMBER_GPR(R10) |   \
                                    MEMBER_GPR(R11))
#define ACCESS_DEAD_AT_BOTH (MEMBER_FLAGS | 0xffull << 20 | MEMBERS_VECTOR)
#define ACCESS_DEAD_AT_CALL (ACCESS_DEAD_GPRS_AT_CALL | ACCESS_DEAD_AT_BOTH)
#define ACCESS_DEAD_AT_RETURN (ACCESS_DEAD_GPRS_AT_RETURN | ACCESS_DEAD_AT_BOTH)
void access_below(ToolThread *thread, u64 what, GuestAddr address); // as access_any()
// access_any(), access_string(): size in the low 32 bits, and these.
#define ACCESS_READS (1ull << 32)
#define ACCESS_WRITES (1ull << 33)
#define ACCESS_COMPARED (1ull << 34) // access_load(): what is loaded is (lookahead.h)

// --- stacks_hot.c: called from blocks
void stacks_enter_frame(ToolThread *thread, u64 what, GuestAddr unused);
void stacks_leave_frame(ToolThread *thread, u64 size, GuestAddr unused);
void stacks_leave_by_rbp(ToolThread *thread, u64 above, GuestAddr unused);
void stacks_loaded(ToolThread *thread, GuestAddr old_sp, bool same);
// A handler begins, and has ended, perhaps on an alternate stack.
void stacks_interrupted(ToolThread *thread, GuestAddr old_sp);
void stacks_interruption_ended(ToolThread *thread, GuestAddr handler_sp);
typedef enum StackPages { STACK_NONE_TOUCHED, STACK_SOME_TOUCHED, STACK_ALL_TOUCHED } StackPages;
StackPages stacks_pages(GuestAddr start, GuestAddr end);
void stacks_forget_bounds(ToolThread *thread); // that were guessed; engine lock held, or its own

// --- stacks.c
void stacks_thread_start(ToolThread *thread);
void stacks_thread_end(ToolThread *thread);
void stacks_fork_child(ToolThread *thread);

// --- access_state_hot.c
void access_state(ToolThread *thread, u64 step, GuestAddr address); // in a clean block
bool access_state_is_good(ToolThread *thread, const DefinednessStep *step, GuestAddr address);

// --- describe_hot.c: the parts of a finding that say what an address is
#define MEMCHECK_PARTS_MAX 4
u32 describe_block(const HeapBlock *block, GuestAddr address, RelayPart *ret_parts);
u32 describe_address(ToolThread *thread, GuestAddr address, RelayPart *ret_parts);

// --- signals.c
enum { KERNEL_FRAME_MAX = 64 << 10 }; // of a handler; what is further away is on another stack
void signals_written(ToolThread *thread, GuestAddr start, u64 size);
void signals_delivered(ToolThread *thread, int sig, GuestAddr old_sp);
void signals_returned(ToolThread *thread, GuestAddr handler_sp);
void signals_fault(ToolThread *thread, const siginfo_t *info);

// --- syscalls.c
// Marks what the kernel has written without a call since we last looked (io_uring). To be called
// before memory is called undefined; callable from the cache.
void syscalls_settle_rings(ToolThread *thread);
static inline void syscalls_settle(ToolThread *thread)
{
    if (UNLIKELY(__atomic_load_n(&uring_is_watched, __ATOMIC_ACQUIRE)))
        syscalls_settle_rings(thread);
}
// Whether the program has registered memory with a userfaultfd.
extern bool syscalls_have_userfaults;
void syscalls_before(ToolThread *thread, const ToolSyscall *call);
void syscalls_after(ToolThread *thread, const ToolSyscall *call);
void syscalls_answered(ToolThread *thread);

// --- memcheck.c
extern const Options *memcheck_options;

// --- errors_hot.c
void error_jump(ToolThread *thread, GuestAddr target);
void error_access(ToolThread *thread, GuestAddr address, u64 size, bool is_write);
void error_undefined(ToolThread *thread, u32 events);
extern u64 error_undefined_count; // atomic: uses of undefined values that were seen

#endif
