// SPDX-License-Identifier: MIT
//
// What a tool is: a table of hooks, all optional, and a few primitives with
// which it inserts code into blocks. `none` has no hook at all.
//
// A tool sees a client thread as a ToolThread, a block that is being translated
// as a ToolBlock, and a guest instruction as a ToolInsn with its operands
// decoded on request. Hooks that run inside the cache (ToolCallFn) must be
// compiled for general registers only and call no libc: name the file *_hot.c.
#ifndef MUNINN_ENGINE_TOOLAPI_TOOLAPI_H
#define MUNINN_ENGINE_TOOLAPI_TOOLAPI_H

#include "base/types.h"
#include "engine/decode/decode.h"
#include "engine/run/run.h"

typedef struct ThreadCtx ToolThread;
typedef struct Builder ToolBlock;
typedef Insn ToolInsn;

typedef enum ToolNeeds {
    TOOL_NEEDS_FLAGS = 1,     // liveness of flags is computed, so tool_count() is cheap
    TOOL_NEEDS_CALLSTACK = 2, // the shadow call stack is kept, tool_context() works
} ToolNeeds;

typedef struct ToolSyscall {
    u64 nr;
    u64 args[6];
    i64 result; // valid in syscall_after
} ToolSyscall;

typedef struct Tool {
    const char *name;
    const char *summary;
    u32 needs; // ToolNeeds bits

    // --- life
    void (*start)(void);  // before the client's first instruction
    void (*finish)(void); // the process ends; other threads may still be running
    void (*thread_start)(ToolThread *thread);
    void (*thread_end)(ToolThread *thread);
    void (*fork_child)(ToolThread *thread); // in the child, which has this thread only

    // --- translation: called with the engine lock held
    // Before the first instruction of a block is lowered; all its instructions are known.
    void (*block)(ToolBlock *block, const ToolInsn *insns, unsigned count);
    // Before each instruction: code inserted here runs before it.
    void (*insn)(ToolBlock *block, const ToolInsn *insn);

    // --- events, outside the cache
    void (*syscall_before)(ToolThread *thread, const ToolSyscall *call);
    void (*syscall_after)(ToolThread *thread, const ToolSyscall *call);
    void (*mapped)(GuestAddr start, GuestAddr end, u32 prot);
    void (*unmapped)(GuestAddr start, GuestAddr end);
    void (*signal)(ToolThread *thread, int sig); // about to be delivered to a handler
} Tool;

// The tool of this run; never NULL.
extern const Tool *tool;

// Chooses by name; false if there is none of that name.
bool tool_select(const char *name);

// ----------------------------------------------------------- inserting code

// thread->tool_slot[slot] += amount
void tool_count(ToolBlock *block, unsigned slot, u32 amount);

// Calls fn(thread, arg, address). All registers and flags are preserved.
typedef void ToolCallFn(ToolThread *thread, u64 arg, GuestAddr address);
void tool_call(ToolBlock *block, ToolCallFn *fn, u64 arg);

// As tool_call() before the current instruction accesses memory, with the
// effective address of that access.
typedef struct ToolAccess {
    u32 size_bytes; // of one element; 0: varies at run time (xsave and the like)
    bool reads, writes;
    u8 operand; // which operand of the instruction it is
} ToolAccess;

// The memory accesses of an instruction that have an address: explicit and
// implicit operands (stack, string instructions). Returns how many, at most max.
unsigned tool_accesses(const ToolInsn *insn, ToolAccess *ret_accesses, unsigned max);
void tool_call_access(ToolBlock *block, const ToolAccess *access, ToolCallFn *fn, u64 arg);

// ------------------------------------------------------------------ queries

// The id of the thread's current calling context (callstack/callstack.h); at a
// safe point or in a ToolCallFn. 0 unless TOOL_NEEDS_CALLSTACK.
u32 tool_context(ToolThread *thread);

// Formats a line to the log (see run/log.h).
void tool_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

// For tools that keep counters per thread: calls fn for every live thread.
void tool_for_each_thread(void (*fn)(ToolThread *thread, void *arg), void *arg);

#endif
