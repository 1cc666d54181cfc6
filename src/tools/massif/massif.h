// SPDX-License-Identifier: MIT
//
// Massif, the engine's side: allocation functions are wrapped, and what they do is told to
// the monitor, event by event (wire/heap_events.h). The client keeps its own allocator.
//
//   functions.c   which functions, by name
//   calls_hot.c   a call of one of them: what it allocates, resizes or frees
//   events_hot.c  events into the ring; contexts before their first use
//   stacks_hot.c  the context of a stack that was there before
//   code.c        what is inserted into blocks: counts of instructions, depths of stacks
//   maps.c        pages: mmap, brk and the like; stacks of threads
//   requests.c    allocators of the client's own, told by client request
//
// What must stay true
//   A1  Of allocation functions that call each other the outermost counts, with the stack
//       of its caller. A block is freed when the first of nested functions is told to.
//   A2  A free is told before it happens and an allocation after, so that an
//       address that goes from one thread to another is free in between (H4 of
//       monitor/heap/heap.h says how exactly).
//   A3  A context is told in the same ring before the event that names it.
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

// In tool.slot: instructions executed; the least rsp since it was told; below which it is looked
// whose the stack is.
enum { MASSIF_INSTRUCTIONS, MASSIF_LOW_SP, MASSIF_LOOK_SP };

// A stack from which something was allocated: its return addresses, from the innermost on.
typedef struct StackChain {
    _Alignas(64) GuestAddr pc; // 0: none
    u64 sp;
    u32 context;
    u32 count;
    struct {
        GuestAddr slot;
        u64 tag; // its word, with a context
    } frames[32];
} StackChain;
enum { STACK_CHAINS = 512 };

// What the engine knows of a call that a signal interrupts: an allocation in the handler is no
// part of it.
typedef struct HeldCall {
    u64 handler_sp;
    u64 sp, size, args[4];
    u32 hook, inner;
    u64 told, told_function, told_sp;
} HeldCall;

typedef struct MassifThread {
    WireRing *ring;           // that lean.repeat is of
    u64 *announced;           // a bit for each context that this ring knows
    _Alignas(64) ContextCache cache; // of announced ones
    ToolSite sites[TOOL_SITES];
    StackChain *chains;       // STACK_CHAINS of them
    u32 misses;               // stacks that are none of these
    bool counts_instructions; // --time-unit=i
    bool tells_stack;         // --stacks=yes
    bool tells_more;          // one of them
    u64 stack_base;           // rsp at its start
    u64 told_bytes;           // of its stack
    u64 deepest_bytes;        // it has ever been, as far as that was told
    u32 deep_context;         // of the last look since it was told; 0: none
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

// Threads that live, as far as this process is concerned.
extern u32 massif_threads; // atomic

// calls_hot.c
ToolLeanFn call_ends, call_allocates, call_frees;

// stacks_hot.c: as calltags_context(). *ret_chain is the stack's if it was there before, or NULL.
u32 stack_context(ToolThread *thread, GuestAddr pc, GuestAddr *ret_slot,
                  const StackChain **ret_chain);

// events_hot.c. `pc` is the innermost frame.
// The stack becomes deeper than it ever was, by a call at `pc`.
void event_deeper(ToolThread *thread, u64 pc, GuestAddr unused);
u32 event_context(ToolThread *thread, GuestAddr pc); // told
void event_alloc(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable);
// The same; emitted code may do so next time.
void event_alloc_again(ToolThread *thread, GuestAddr pc, u64 address, u64 size, u64 usable);
void event_resize(ToolThread *thread, GuestAddr pc, u64 old, u64 address, u64 size, u64 usable);
void event_free(ToolThread *thread, const void *function, u64 address); // of it, or NULL
u32 event_site_context(ToolThread *thread, GuestAddr pc); // Tool.lean_context
void event_announce(void *thread, u32 context); // of its cache
void event_flush(ToolThread *thread); // what is held back is published
void event_more(ToolThread *thread); // what options want to be told, now

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
