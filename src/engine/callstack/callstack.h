// SPDX-License-Identifier: MIT
//
// The shadow call stack and the calling-context tree: "where are we, and who
// called us" as a 32-bit id, at any point, without frame pointers or CFI.
//
// Glossary
//   entry     one call that has not returned: the return address, and the address
//             (sp) of the stack slot that holds it
//   span      the entries of one client stack: the thread's own, an alternate
//             signal stack, a coroutine's, a goroutine's
//   chain     the spans of this thread that wait for each other: a handler on its
//             alternate stack continues the stack it interrupted
//   parked    a span whose stack nobody runs on now; any thread may resume it
//   context   a node of the tree: (parent context, pc). Its id names a whole stack
//   live      an entry whose frame has not been left
//
// What emitted code does (no C call, no flag is touched; the entry is complete
// before `top` shows it; `code` is the emitter's, e.g. the translated return):
//   call   mov  rcx, fs:[top]
//          mov  qword [rcx+SIZE+ret], imm32 ; mov [rcx+SIZE+sp], rsp   (after the push)
//          mov  dword [rcx+SIZE+context], 0
//          lea  rcx, [rcx+SIZE] ; mov fs:[top], rcx
//   ret    mov  rcx, fs:[top] ; rdx = the return address just popped
//          if [rcx+ret] == rdx:  lea rcx, [rcx-SIZE] ; mov fs:[top], rcx   (jmp [code])
//          else:                 callstack_ret_miss()
//          Without flags, equality is: mov rax,[rcx+ret] ; not rax ;
//          lea rcx,[rax+rdx+1] ; jrcxz. Comparing `ret` and not `sp` is enough (C4)
//          and lets one compare both pop and predict the return.
//   rsp loaded from anything but rsp or rbp (mov, xchg, pop, lea, cmov):
//          callstack_load_sp(). longjmp, unwinders, VLAs and every stack switch pass here.
//   `call` to the next instruction (a pc thunk) pushes no entry.
//
// Invariants
//   C1  Entries are pushed only at top+1 and popped only at top. Entries of one
//       span lie together, spans in chain order, the innermost last.
//   C2  In a span, a live entry has sp >= the current sp, and a live entry has a
//       greater sp than every entry pushed after it. Whatever breaks either is
//       dead; nothing else in the array between base and top is dead, because sp
//       rises past an entry only by ret (which pops, or misses) or by a load of rsp
//       (which reports).
//   C3  An entry with context != 0 at or below top has not been re-pushed since that
//       context was found, since a push clears the field; and by C1 then nothing below it
//       has changed either. So the search for contexts stops at the first one.
//   C4  A ret that finds its return address in the top entry pops an entry that is
//       its own or dead: a live entry of another frame would mean that two
//       frames return to one address and the outer one has been left first. (Code that
//       pushes a copy of its return address and rets to it does that; it has, for
//       every purpose, returned.)
//   C5  A span is in exactly one place: one thread's chain, or the parking table.
//   C6  Memory is bounded: ENTRIES_MAX entries a thread (then the middle of the
//       stack is dropped and marked), PARKED_MAX parked spans (then the one left
//       longest ago is forgotten), CONTEXT_FRAMES_MAX frames a context.
//
// Threads and signals: a CallStack belongs to its thread; all functions on it are
// called by that thread at safe points (never from a signal handler that interrupted
// emitted code between a push's instructions, nor one that interrupted a function
// declared here). Context ids are global, immutable and never reused: reading them
// (context_*) is lock-free and safe anywhere, signal handlers included. New ids
// are made under a lock that no other part of the engine takes or calls out of.
#ifndef MUNINN_ENGINE_CALLSTACK_H
#define MUNINN_ENGINE_CALLSTACK_H

#include "base/types.h"
#include "engine/callstack/callstack_state.h"

enum {
    CALLSTACK_ENTRIES_MAX = 1 << 20,
    CALLSTACK_PARKED_MAX = 1024,
    CONTEXT_FRAMES_MAX = 2048, // no context has more, see context_frames()
};

// In a context's frames: "frames were left out here".
#define CONTEXT_OMITTED_PC 0ull

// Set in the pc of a frame that was interrupted by a signal: it is the pc itself
// and not a return address, so symbolisers must not step back into the call.
#define CONTEXT_EXACT_PC (1ull << 63)

// In these bits of a frame's pc: the number of the unloading that took its code away, from 1. Other
// code that is loaded at the same addresses makes other contexts.
enum { CONTEXT_UNLOADING_SHIFT = 48, CONTEXT_UNLOADINGS_MAX = (1 << 14) - 1 };

// The shadow call stack is kept: for a tool with TOOL_NEEDS_CALLSTACK, or for what the
// engine itself reports. Set before the first block is translated.
extern bool callstack_wanted;

// Gives a thread its stack, which lies in [stack_lo, stack_hi]. If the bounds are not
// known, the caller passes 0 and the first sp of the thread. False: no memory.
bool callstack_init(CallStack *cs, GuestAddr stack_lo, GuestAddr stack_hi);
void callstack_free(CallStack *cs);

// Take and release the parking lock and the tree lock around a fork, so that the
// child finds both free. The engine forks at a safe point of the forking thread. It
// calls callstack_fork_prepare() before, and callstack_fork_done() after it, in
// parent and child.
void callstack_fork_prepare(void);
void callstack_fork_done(bool in_child);

// The current context: `pc` within the innermost frame, `sp` the client's stack
// pointer there. Takes time proportional to the frames changed since the last query.
u32 callstack_context(CallStack *cs, GuestAddr pc, GuestAddr sp);

// To be called after a ret whose return address was not in the top entry. `slot` is the
// place from which the ret popped it.
void callstack_ret_miss(CallStack *cs, GuestAddr slot);

// To be called when a load takes rsp from old_sp to new_sp. `continues` is true if the same
// block goes on to a call without loading rsp again: such code runs a function on another
// stack and comes back (stacker, systemstack), and the function's frames count as standing
// on the present ones. The way back may be an unreported `mov rsp, rbp`: the ret after it
// misses and finds the old stack. True if both surely lie on one stack.
bool callstack_load_sp(CallStack *cs, GuestAddr old_sp, GuestAddr new_sp, bool continues);

// A signal interrupted the client at pc and sp; the engine built a frame whose return
// address (of the restorer) lies in `slot`. alt_lo is the lowest address of the alternate stack
// when the delivery switched to it, else 0. sigreturn is
// callstack_load_sp(cs, sp of the handler, restored sp, false).
void callstack_enter_signal(CallStack *cs, GuestAddr pc, GuestAddr sp, GuestAddr slot,
                            GuestAddr alt_lo);

// True when the address lies in the guard above the open entries: the push
// that touched it faults before `top` moves. After callstack_overflow() the faulting
// instruction is restarted with rcx (its entry pointer) reloaded from cs->top.
bool callstack_is_guard(const CallStack *cs, const void *address);
void callstack_overflow(CallStack *cs);

// To be called when client memory was unmapped: forgets the stacks parked there.
void callstack_forget_range(GuestAddr lo, GuestAddr hi);

// Reads a word of client memory, false when it cannot be read. With it a stack that
// the client has copied elsewhere (Go does, when one grows) is recognised: the same
// return addresses at the same distances. Set once, early; may stay NULL.
typedef bool CallstackPeek(GuestAddr address, u64 *ret_word);
void callstack_set_peek(CallstackPeek *peek);

// Checks C1–C3 on everything reachable from cs; for tests and debug builds.
void callstack_validate(const CallStack *cs);

// The tree. Id 0 is the empty stack.
//
// The id of (parent, pc): lock-free when it exists, made under the lock otherwise.
// When ids or memory run out the parent itself is returned: the context is then
// true but less deep.
u32 context_intern(u32 parent, GuestAddr pc);
// From now on a cycle of at most `frames` frames counts as one round of itself.
void context_tree_merge(u32 frames);
u32 context_find(u32 parent, GuestAddr pc); // 0: it has not been made
#define CONTEXTS_MAX (1u << 27) // 2 GiB of address space
// To be called when code at [start, end) is unloaded: marks its frames in all present contexts with
// the number of the unloading. The caller must empty the caches of contexts
// (calltags_forget_contexts()).
void context_mark_unloaded(GuestAddr start, GuestAddr end, u32 unloading);
u32 context_parent(u32 id);
GuestAddr context_pc(u32 id);
u32 context_depth(u32 id); // how many frames it has
u32 context_count(void); // ids are 0 … context_count() - 1

// Writes the pcs, innermost first, and returns how many there are (it may exceed
// `max`, as snprintf does). Frame 0 is the pc of the query, the others are return
// addresses. A stack deeper than CONTEXT_FRAMES_MAX keeps its outermost 512 and its
// innermost 1024 to 1535 frames, with CONTEXT_OMITTED_PC between them.
size_t context_frames(u32 id, GuestAddr *out, size_t max);

typedef struct ContextNode {
    GuestAddr pc;
    u32 parent;
    u32 depth; // how many frames it has
} ContextNode;
extern ContextNode *context_nodes;
extern u32 context_node_count;

// Whether the context behind `parent` is its child at `pc`. Frames that were new in one query get
// consecutive numbers, so a context's first child mostly has the next number, and to look there
// touches little memory.
static inline bool context_next_is_child(u32 parent, GuestAddr pc)
{
    u32 next = parent + 1;
    return next < __atomic_load_n(&context_node_count, __ATOMIC_ACQUIRE) &&
           context_nodes[next].pc == pc && context_nodes[next].parent == parent;
}

#endif
