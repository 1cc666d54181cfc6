// SPDX-License-Identifier: MIT
//
// Massif, the engine's side: wraps the allocation functions and sends the monitor an event for
// each allocation and free (wire/heap_events.h). The client keeps its own allocator.
//
//   functions.c   which functions, by name
//   calls_hot.c   a call of one of them: what it allocates, resizes or frees
//   events_hot.c  events into the ring; contexts before their first use
//   stacks_hot.c  the context of a stack that was seen before
//   code.c        what is inserted into blocks: counts of instructions, depths of stacks
//   maps.c        pages: mmap, brk and the like; stacks of threads
//   requests.c    allocators of the client's own, announced by client requests
//
// What must stay true
//   A1  If allocation functions call each other, the outermost call counts, with the stack
//       of its caller. If functions that free call each other, the first one counts.
//   A2  The event of a free is sent before the free happens, that of an allocation after it
//       has happened. So an address that goes from one thread to another is free in between
//       (H4 of monitor/heap/heap.h says how exactly).
//   A3  A context is sent in the same ring before the event that names it.
#ifndef MUNINN_TOOLS_MASSIF_MASSIF_H
#define MUNINN_TOOLS_MASSIF_MASSIF_H

#include "engine/calltags/calltags.h"
#include "engine/toolapi/toolapi.h"
#include "wire/heap_events.h"

// ToolFunction.data: what the function does, and where its arguments are.
typedef enum CallKind { CALL_ALLOC, CALL_RESIZE, CALL_FREE } CallKind;
typedef enum CallForm { FORM_RETURNED, FORM_STORED, FORM_IN_PLACE } CallForm;
#define CALL_DATA(kind, form, old, size, factor, glibc)                                     \
    ((u64)(kind) | (u64)(form) << 4 | (u64)(old) << 8 | (u64)(size) << 12 | (u64)(factor) << 16 | \
     (u64)(glibc) << 20)
#define CALL_KIND(data) ((CallKind)((data) & 15))
#define CALL_FORM(data) ((CallForm)((data) >> 4 & 15))
#define CALL_OLD(data) ((data) >> 8 & 15)
#define CALL_SIZE(data) ((data) >> 12 & 15)
#define CALL_FACTOR(data) ((data) >> 16 & 15)
#define CALL_IS_GLIBC(data) ((data) >> 20 & 1)
enum { CALL_NO_FACTOR = 15 };

// Indexes of tool.slot: instructions executed; the least rsp since the stack's depth was sent; and
// the rsp below which massif must look which stack this is.
enum { MASSIF_INSTRUCTIONS, MASSIF_LOW_SP, MASSIF_LOOK_SP };

// A stack from which a block was allocated: its return addresses, innermost first.
typedef struct StackChain {
    _Alignas(64) GuestAddr pc; // 0: the slot is empty
    u64 sp;
    u32 context;
    u32 count;
    struct {
        GuestAddr slot;
        u64 tag; // the slot's word of shadow, with a context
    } frames[32];
} StackChain;
enum { STACK_CHAINS = 512 };

// A call that a signal has interrupted, put aside while the handler runs: an allocation in the
// handler is no part of the call.
typedef struct HeldCall {
    u64 handler_sp;
    u64 sp, size, args[4];
    u32 hook, inner;
    u64 told, told_function, told_sp;
} HeldCall;

typedef struct MassifThread {
    WireRing *ring;           // the ring that holds lean.repeat
    u64 *announced;           // a bit for each context that was sent in this ring
    _Alignas(64) ContextCache cache; // holds announced contexts only
    ToolSite sites[TOOL_SITES];
    StackChain *chains;       // STACK_CHAINS of them
    u32 misses;               // how many stacks were not among the chains
    bool counts_instructions; // --time-unit=i
    bool tells_stack;         // --stacks=yes
    bool tells_more;          // one of the two
    u64 stack_base;           // rsp when the thread began
    u64 told_bytes;           // the depth of its stack that was sent last
    u64 deepest_bytes;        // the greatest depth that was sent
    u32 deep_context;         // context of the deepest call since the last event; 0: none
    u32 held_count;           // calls that signals have interrupted, the last on top
    HeldCall held[16];
} MassifThread;

static inline MassifThread *massif_thread(ToolThread *thread)
{
    return thread->tool.thread;
}

extern const Options *massif_options;

enum {
#define ALLOC(...) +1
#define RESIZE(...) +1
#define FREE(...) +1
#define GLIBC_ALLOC(...) +1
#define GLIBC_RESIZE(...) +1
#define LOCAL_ALLOC(...) +1
#define LOCAL_RESIZE(...) +1
#define LOCAL_FREE(...) +1
    MASSIF_FUNCTIONS = 0
#include "tools/heap/alloc_names.def"
};
extern const ToolFunction massif_functions[MASSIF_FUNCTIONS];

// The number of live threads of this process.
extern u32 massif_threads; // atomic

// calls_hot.c
ToolLeanFn call_ends, call_allocates, call_frees;

// stacks_hot.c: as calltags_context(). *ret_chain is the chain of the stack if it was seen before,
// else NULL.
u32 stack_context(ToolThread *thread, GuestAddr pc, GuestAddr *ret_slot,
                  const StackChain **ret_chain);

// events_hot.c. `pc` is the innermost frame.
// To be called when a call at `pc` makes the stack deeper than it was.
void event_deeper(ToolThread *thread, u64 pc, GuestAddr unused);
// Finds the context, and sends it if the ring does not know it.
u32 event_context(ToolThread *thread, GuestAddr pc);
void event_alloc(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable);
// The same, and lets emitted code put the next event of this site into the ring.
void event_alloc_again(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable);
void event_resize(ToolThread *thread, GuestAddr pc, u64 old, u64 address, u64 size, u64 usable);
void event_free(ToolThread *thread, const void *function, u64 address); // its row, or NULL
u32 event_site_context(ToolThread *thread, GuestAddr pc); // Tool.lean_context
void event_announce(void *thread, u32 context); // sends a context that enters the thread's cache
void event_flush(ToolThread *thread); // publishes what the ring holds back
void event_more(ToolThread *thread); // sends what options ask for: instructions, depth of stack

// code.c
void code_block(ToolBlock *block, const ToolInsn *insns, unsigned count);
void code_insn(ToolBlock *block, const ToolInsn *insn);

// maps.c
void maps_start(void);
void maps_before(ToolThread *thread, const ToolSyscall *call);
void maps_after(ToolThread *thread, const ToolSyscall *call);

// requests.c
bool massif_request(ToolThread *thread, const u64 args[6], u64 *ret_result);
void requests_fork_prepare(void);
void requests_fork_parent(void);
void requests_fork_child(void);

#endif
