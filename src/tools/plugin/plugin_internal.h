// SPDX-License-Identifier: MIT
//
// What the files of plugin/ share.
#ifndef MUNINN_TOOLS_PLUGIN_PLUGIN_INTERNAL_H
#define MUNINN_TOOLS_PLUGIN_PLUGIN_INTERNAL_H

#include "engine/cache/cache.h"
#include "engine/toolapi/observe.h"
#include "engine/toolapi/toolapi.h"
#include "muninn/tool.h"
#include "tools/plugin/plugin.h"

// ------------------------------------------------------------------- threads

typedef struct PluginThread {
    void *data;       // the tool's own
    u64 *declined;    // chain.c: of the call whose replacement has declined just now
    u32 number;       // from 1
    u32 in_callback;  // atomic: G1
    u32 is_inside;    // a callback runs that may be in a block's place: [outside] of tool.h is not
    u32 alloc_depth;  // functions that allocate and have not returned
} PluginThread;

static inline PluginThread *plugin_thread(const ToolThread *thread)
{
    return thread->tool.thread;
}

static inline MuninnThread *handle_of(ToolThread *thread)
{
    return (MuninnThread *)thread;
}

static inline ToolThread *thread_of(const MuninnThread *handle)
{
    return (ToolThread *)(u64)handle;
}

// The slots of ToolThread.tool.slot.
enum {
    SLOT_WORDS = 0, // MUNINN_WORDS_MAX of them
    SLOT_ADDRESSES = MUNINN_WORDS_MAX, // of accesses, until the instruction has made them
    ADDRESSES_MAX = 4,
    SLOT_BUFFERS = SLOT_ADDRESSES + ADDRESSES_MAX, // two for each: the next record, and the end
    BUFFERS_MAX = (32 - SLOT_BUFFERS) / 2,
};

// --------------------------------------------------------------------- calls

// What a block calls: fn(thread, data, value). There is one of these for each combination that was
// ever asked for (calls.c).
typedef struct PluginCall {
    MuninnInsnFn *fn;
    void *data;
} PluginCall;

const PluginCall *plugin_call(MuninnInsnFn *fn, void *data);

// From a block, as a ToolCallFn whose arg is a PluginCall; and the same for hot ones.
void gate_call(ToolThread *thread, u64 arg, GuestAddr value);
void gate_call_hot(ToolThread *thread, u64 arg, GuestAddr value);
// From a fast handler of a function, which runs in the cache or, sometimes, outside of it.
void gate_run(ToolThread *thread, MuninnInsnFn *fn, void *data, const char *what);
// Around any other callback that runs while other threads may fork.
void gate_enter(ToolThread *thread);
void gate_leave(ToolThread *thread);
// The thread is in a callback and runs code of the client's there: it counts as outside meanwhile.
u32 gate_pause(ToolThread *thread);
void gate_resume(ToolThread *thread, u32 depth);
// What the thread's callback is of, for the report of a crash; NULL: it is in none.
extern _Thread_local const char *plugin_callback;
// No thread but the caller is in a callback, or enters one, until gate_open().
void gate_close(ToolThread *thread);
void gate_open(void);

// ---------------------------------------------------------------------- plan

typedef enum InsertionKind { INSERT_UPDATE, INSERT_CALL, INSERT_RECORD } InsertionKind;
typedef enum CallValue { VALUE_NONE, VALUE_ADDRESS, VALUE_TAKEN, VALUE_TARGET } CallValue;

typedef struct Insertion {
    u16 insn;
    u8 kind;      // InsertionKind
    u8 value;     // CallValue
    bool is_after;
    bool is_conditional;
    u8 condition; // ToolCondition
    u8 access;
    u8 flags;     // MuninnCallFlags
    u8 update, source;
    u32 slot;
    u16 record, records; // of a record: its number in its segment, and how many there are
    bool is_held;        // by registers that are held from the first to the last of them
    ToolHold hold;
    i32 constant; // of the condition, or the tag of a record
    i64 operand;
    const PluginCall *call;
    u32 next; // of the same instruction, NO_INSERTION: none
} Insertion;
#define NO_INSERTION (~0u)

struct MuninnInsn {
    MuninnBlock *block;
    const ToolInsn *insn;
    u32 index;
    u32 insertions;
    u32 first, last; // of them
    u32 access_count; // once somebody has asked; ~0u before
    ToolAccess accesses[MUNINN_ACCESSES_MAX];
};

enum { INSNS_MAX = 64, INSERTIONS_MAX = INSNS_MAX * TOOL_INSERTIONS_MAX };

struct MuninnBlock {
    ToolBlock *block;
    u32 count;
    struct MuninnInsn insns[INSNS_MAX];
    Insertion insertions[INSERTIONS_MAX]; // in the order in which they were asked for
    u32 insertion_count;
    u32 records[BUFFERS_MAX]; // of each buffer
};

// The one that is being made; the engine lock is held.
extern struct MuninnBlock plan;

void plan_begin(ToolBlock *block, const ToolInsn *insns, unsigned count);
const ToolAccess *plan_access(MuninnInsn *insn, size_t index); // NULL: there is none

// ------------------------------------------------------------------ emission

void emit_insn_insertions(ToolBlock *block, const ToolInsn *insn);
void emit_done_insertions(ToolBlock *block, const ToolInsn *insn);
u32 emit_insertions(ToolBlock *block, const ToolInsn *insn);
void emit_cut_insertions(ToolBlock *block);

// ------------------------------------------------------------------ counters

void counters_init(void);
bool counters_thread_start(ToolThread *thread);
void counters_thread_end(ToolThread *thread);
// The block's additions: noted, then divided into segments when all are known.
// What is written to a buffer is an addition, too: the buffer's place moves on once a segment, by
// all records of that.
void counters_note_record(u32 insn, u32 buffer);
void counters_plan_begin(void);
void counters_plan_end(MuninnBlock *block);
// Inserts what is due before an instruction, behind one, and at the end of a block that is cut.
void counters_emit(ToolBlock *block, u32 insn);
void counters_emit_done(ToolBlock *block, u32 insn);
void counters_emit_cut(ToolBlock *block, u32 insn);
// Books back what a thread has not done of the segment that it leaves; in a signal handler.
void counters_left(ToolThread *thread, const CodePlace *place);

// ------------------------------------------------------------------- buffers

struct MuninnBuffer {
    MuninnBufferFn *fn;
    void *data;
    size_t capacity; // in records
    u32 number;
    const PluginCall *flush;
};
bool buffers_thread_start(ToolThread *thread);
void buffers_thread_end(ToolThread *thread);
void buffers_flush(ToolThread *thread);
void buffers_fork_child(ToolThread *thread);
const struct MuninnBuffer *buffer_numbered(u32 number);

// ----------------------------------------------------------------- functions

extern ToolFunction *plugin_functions;
extern u32 plugin_function_count;
// Tool.alias: all rows that match a function are called (chain.c).
const ToolFunction *chain_join(const ToolFunction *known, const ToolFunction *other);

// ------------------------------------------------------------------ the tool

typedef struct PluginEvent {
    union {
        MuninnBlockFn *block;
        MuninnThreadFn *thread;
        MuninnEndFn *end;
        MuninnSyscallFn *syscall;
        MuninnSignalFn *signal;
        MuninnMapFn *map;
        MuninnUnmapFn *unmap;
        MuninnCommandFn *command;
        MuninnRequestFn *request;
        void (*any)(void);
    } fn;
    void *data;
} PluginEvent;

// The hooks of the tool that is loaded, which events.c fills as they are asked for.
extern Tool plugin_tool;
extern const MuninnTool *plugin_description;
extern bool plugin_has_started; // muninn_tool_start() has returned
// The calling thread is in a callback that the engine makes under its lock: of a block, of a
// mapping.
bool plugin_holds_engine_lock(void);
// Ends the run where the function is called in such a callback.
void plugin_needs_outside(const ToolThread *thread, const char *function);
// Ends the run with a line: a function was called where it may not be.
void plugin_needs_start(const char *function);
// Tool.crashed
bool plugin_crashed(int sig, u64 host_pc, u64 address);
// The end of a process blocks all signals: faults of callbacks shall be told nevertheless.
void plugin_unblock_crashes(void);
_Noreturn void plugin_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
