// SPDX-License-Identifier: MIT
//
// The shadow of the client's memory: where it is, V bytes and U bits and how they are marked, the
// stacks, and ranges that the program has spoken of.
#ifndef MUNINN_TOOLS_MEMCHECK_SHADOW_SHADOW_H
#define MUNINN_TOOLS_MEMCHECK_SHADOW_SHADOW_H

#include "engine/aspace/aspace.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/ranges.h"

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
// The same, and no stack grows for the question: for signal handlers.
bool shadow_is_mapped_now(GuestAddr start, u64 size);

// --- stacks_hot.c: called from blocks
void stacks_enter_frame(ToolThread *thread, u64 what, GuestAddr unused);
void stacks_leave_frame(ToolThread *thread, u64 size, GuestAddr unused);
void stacks_leave_by_rbp(ToolThread *thread, u64 above, GuestAddr unused);
void stacks_loaded(ToolThread *thread, GuestAddr old_sp, bool same);
enum { KERNEL_FRAME_MAX = 64 << 10 }; // of a handler; what is further away is on another stack
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

// --- constants.c: under the engine lock
// A block depends on something in [start, end), which nobody may write to.
void constants_note(GuestAddr start, GuestAddr end);
// What is known of [start, end) is over.
void constants_forget(GuestAddr start, GuestAddr end);

#endif
