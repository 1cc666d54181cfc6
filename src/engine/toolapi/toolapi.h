// SPDX-License-Identifier: MIT
//
// What a tool is: a table of hooks, all optional, and a few primitives with
// which it inserts code into blocks. `none` has no hook at all.
//
// A tool sees a client thread as a ToolThread, a block that is being translated
// as a ToolBlock, and a guest instruction as a ToolInsn with its operands
// decoded on request. Hooks that run inside the cache (ToolCallFn) must be
// compiled for general registers only and call no libc: name the file *_hot.c.
//
// This folder only declares. Who needs the hooks stands above it and calls them; what inserts code
// is defined in translate/, and what answers questions in redirect/ and run/.
#ifndef MUNINN_ENGINE_TOOLAPI_TOOLAPI_H
#define MUNINN_ENGINE_TOOLAPI_TOOLAPI_H

#include "base/types.h"
#include "engine/decode/decode.h"
#include "engine/ctx/ctx.h"
#include "launch/options.h"

typedef struct ThreadCtx ToolThread;
typedef struct Builder ToolBlock;
typedef Insn ToolInsn;
typedef void ToolCallFn(ToolThread *thread, u64 arg, GuestAddr address);

typedef enum ToolNeeds {
    TOOL_NEEDS_FLAGS = 1,     // liveness of flags is computed, so tool_count() is cheap
    TOOL_NEEDS_CALLSTACK = 2, // the shadow call stack is kept, tool_context() works
    TOOL_NEEDS_MONITOR = 4,   // it makes findings (relay/relay.h)
    // Flags count as dead where only a signal handler could see them, and at calls and
    // returns, where the ABI has none: what the tool inserts before loads is cheap.
    TOOL_LOOSE_FLAGS = 8,
    TOOL_NEEDS_CALLTAGS = 16, // the cheaper stacks of calltags/calltags.h are kept
    TOOL_TELLS_DEATH = 32,    // it makes no findings, but a fatal signal is reported
} ToolNeeds;

typedef struct ToolSyscall {
    u64 nr;
    u64 args[6];
    i64 result; // valid in syscall_after
} ToolSyscall;

// ------------------------------------------------------ intercepting functions

// One call of an intercepted function, as the System V ABI passes integers.
typedef struct ToolCall {
    const struct ToolFunction *function;
    GuestAddr entry;          // the function
    GuestAddr named_at;       // its symbol: the entry, or the resolver of an indirect function
    GuestAddr return_address;
    // It returns to the object that the function is in: a compiler that sees both leaves out
    // arguments that the function does not use, and what is in their registers is anything.
    bool is_local;
    u64 args[6];        // a `before` handler may change them
    u64 result;         // rax, in an `after` handler, which may change it
    u64 state;          // 0 in `before`; what that leaves here, `after` finds
    bool run_original;  // a `replace` handler sets this to decline, and may change the arguments
    bool needs_full;    // a fast `replace` handler sets this, with nothing done: it is called
                        // again outside the cache, where thread->in_cache is 0
} ToolCall;

// A call of a lean function: its arguments are in thread->lean.args if it has returned, with
// thread->gpr[RAX], and in thread->gpr if it has not begun. Returns 0.
struct ToolFunction;
typedef u32 ToolLeanFn(ToolThread *thread, const struct ToolFunction *function,
                       GuestAddr return_address);
typedef u64 ToolReplaceFn(ToolThread *thread, ToolCall *call);
typedef void ToolWrapFn(ToolThread *thread, ToolCall *call);

typedef enum ToolFunctionFlags {
    // The handlers run inside the cache: they are compiled for general registers
    // only, call no libc, take no engine lock and never block (name the file *_hot.c).
    TOOL_FUNCTION_FAST = 1,
    // Also functions that their object does not export (static or hidden ones). In
    // a static program, whose linker has hidden parts of its libraries, always so.
    TOOL_FUNCTION_LOCAL = 2,
} ToolFunctionFlags;

// The call of a lean function that would be nothing new: the same size from the same place,
// with the same result; and the call of one without `after` that takes this result as its
// first argument. They alternate, and each adds one to `state`: odd is between the two.
// Every 64th is told nevertheless, and so is what comes while `site` is 0.
// `site` is the return address, below 4 GiB; `sp` the stack pointer there; `slot` the place of
// the caller's own return address, and `tag` its word (calltags/calltags.h).
typedef WireRepeat ToolRepeat;
#define TOOL_REPEAT_TOLD 0x7e // of `state`: told if none of these bits is set

// The usual case of a replaced function, which is called with its arguments where they are and
// keeps all registers: sparing the others is most of what an interception costs. TOOL_QUICK_NO: it
// is not the usual case, and nothing has happened, or nothing that matters to `replace`, which is
// called then. As fast handlers, and it sees thread_ctx.gpr[RSP].
#define TOOL_QUICK __attribute__((no_caller_saved_registers)) u64
#define TOOL_QUICK_NO (~0ull)
typedef TOOL_QUICK ToolQuickFn(u64 a, u64 b, u64 c, u64 d);
// The same, of a function that wants to know where it was entered, for a context.
typedef TOOL_QUICK ToolQuickAtFn(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry);

// A call of a lean function that returns to `site`, and is of these functions
// (ThreadCtx.lean.hook and lean.inner), may be put into the ring by emitted code
// (translate/lean_alloc_x64.c): they are those of glibc, which keep the size of a block in front
// of it. Its context is in lean.contexts if that of the caller is known. It may be that of the last
// time, if the stack pointer is `sp` again and the frame above the caller's the same; else
// Tool.lean_context() tells it.
typedef struct ToolSite {
    _Alignas(64) u32 site; // 0: none
    u32 hook, inner;  // the functions
    u32 unused;
    u64 up;           // bytes from the stack pointer there to the caller's return address
    u64 sp;
    u64 word;         // of the caller's return address: its tag and context
    u64 slot_above, word_above; // the return address above it
} ToolSite;
enum { TOOL_SITES = 512 }; // of a thread: those that have not driven each other out
static inline u32 tool_site_index(u32 site)
{
    return (site * 0x9e3779b1u) >> 23;
}

// A row of the table of functions to intercept, in every object in which they
// are found. Where rows match one address (aliases; memcpy and memmove are often
// one function) the upper row counts, unless Tool.alias says otherwise. For an
// indirect function (STT_GNU_IFUNC)
// what its resolver returns is intercepted.
//
// Either `replace` is set: it runs instead of the function, and its value is
// returned, others left in thread->gpr (rdx). If it declines, the function runs with the arguments
// left in the call, and the row's `before`, `after` and `left`, if any, around it. Or `before` and
// `after` are, or one of them: they run around the function. `after` does not
// run for a call that is left by longjmp or an exception: `left` does, once it is noticed, at the
// latest when the place of its return address is used again or the thread ends.
//
// Handlers that are not fast run outside the cache: they may use libc,
// guest_read() and guest_write(), and see all registers in thread->gpr.
typedef struct ToolFunction {
    const char *object; // pattern (* and ?) of its soname, or of its file name if it has
                        // no soname; NULL: any, the program included
    const char *name;   // symbol without version, or a pattern
    u32 flags;          // ToolFunctionFlags
    ToolReplaceFn *replace;
    ToolQuickFn *quick; // NULL, or of a fast `replace`: tried first (Tool.quick_ignores)
    ToolQuickAtFn *quick_at; // or this one
    ToolWrapFn *before, *after, *left;
    // Or the function is lean: for such as are called all the time. Of lean functions that
    // call each other only the outermost is told, when it has returned, with four arguments; one
    // that is told `lean_before` may be told twice, and not at all within others; nor, if the
    // tool sets thread->lean.told, the others that it calls with the same first argument. As fast
    // handlers. What thread->lean.repeat foresees is not told but counted there. With size_arg
    // only lean.size is known afterwards.
    ToolLeanFn *lean_before, *lean_after;
    u32 size_arg; // lean: 1 + the argument that is a size; 0: it never repeats
    u32 factor_arg; // lean, with size_arg: 1 + the argument that it is multiplied by, or 0
    u64 data;     // the tool's own
} ToolFunction;

// Runs the client's `function` with up to six integer arguments, on the client's
// stack below what is in use; for handlers that are not fast. Signals are
// delivered and interceptions happen meanwhile. Vector registers are left as the
// function leaves them, as by any call. False, and nothing has happened, when the
// client's stack can not be written. It does not come back when the function is
// left by longjmp; an exception can not pass it.
bool tool_call_client(ToolThread *thread, GuestAddr function, const u64 *args, unsigned count,
                      u64 *ret_result);

// From Tool.exiting: the same of a function without arguments, after the client has ended. Nothing
// outside of the process may notice it, and it is given up when it waits for another thread, or
// runs for seconds while left(), what it still has to do, gets no less (run/last_call.h). False: it
// was given up, or not begun.
bool tool_call_client_last(ToolThread *thread, GuestAddr function, u64 (*left)(void));

// Where a row of the tool's table has been found last; 0: nowhere.
GuestAddr tool_function_address(const ToolFunction *function);

// An allocator of the program's is left alone, because it cannot be replaced whole: it uses again
// what was freed, and the tool is not told.
bool tool_leaves_allocator(void);

enum { TOOL_INSERTIONS_MAX = 32, TOOL_INSERTION_BYTES = 320, TOOL_INSERTION_MARKS = 12 };

struct CodePlace;

typedef struct Tool {
    const char *name;
    const char *summary;
    // The first line of its reports, and the same under the name valgrind; NULL: its name.
    const char *title, *title_as_valgrind;
    u32 needs; // ToolNeeds bits
    u32 gives; // WireToolGives bits: what the monitor makes of it
    // Kinds and parts of findings that wire/findings.def does not have: their numbers are
    // KIND_COUNT and PART_COUNT plus the index. The monitor learns of them as it connects.
    const KindDescription *kinds;
    u32 kind_count;
    const PartDescription *parts;
    u32 part_count;
    // With TOOL_NEEDS_CALLTAGS: 0, or the distance to the tool's own shadow, where the tags are
    // kept; see calltags/calltags.h.
    u64 shadow_offset;
    // Stores whose shadow is not 0 (tool_shadow_guard_store()). Where store_map, which has a
    // bit for each byte at store_map + address / 8, has none of theirs, and they are not between
    // thread->store_below and the red zone, the shadow becomes 0. Else store_slow() is called with
    // the size, and always if this is not possible in a few instructions.
    u64 store_map;
    ToolCallFn *store_slow;

    // --- life
    void (*prepare)(const Options *options); // before anything of the client's is mapped
    void (*start)(void);  // before the client's first instruction
    // The process is about to end by the client's own will: its functions can still be run. All
    // other threads stand still.
    void (*exiting)(ToolThread *thread);
    void (*finish)(void); // the process ends; other threads may still be running
    // A fault in the process's own code, at host_pc; the process is going to end. True: the tool
    // has said what it was, and it is no bug of the engine's.
    bool (*crashed)(int sig, u64 host_pc, u64 address);
    void (*stats)(void);  // then, with --stats: its own counters, as stats.def's are printed
    void (*thread_start)(ToolThread *thread);
    void (*thread_end)(ToolThread *thread);
    // --stress=validate: walks the tool's tables, and panics at the first that contradicts another.
    // The thread is at a safe point; `is_alone` tells whether no other is there that could change
    // something meanwhile.
    void (*validate)(ToolThread *thread, bool is_alone);
    // The process, a fork's child, has a monitor now; it has one thread, and was without before.
    void (*connected)(void);
    // Around a fork, while other threads run on: the tool takes its locks, so that nothing that
    // they protect is half changed in the child; and releases them, or sets them free there. The
    // engine's locks are held.
    void (*fork_soon)(ToolThread *thread); // before the engine's lock is taken: it may wait
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(ToolThread *thread); // in the child, which has this thread only

    // --- functions of the client to replace or wrap
    const ToolFunction *functions;
    u32 function_count;
    u32 allocation_count; // the first so many of them allocate and free (--soname-synonyms)
    // Two rows match one address: what to do there. `known` may be what this has answered before.
    // It may answer a row that is in no table. NULL: the upper row counts.
    const ToolFunction *(*alias)(const ToolFunction *known, const ToolFunction *other);
    // The context of an allocation that returns to `pc`, with thread->gpr[RSP]; as a lean function.
    // 0: it is not known, or the event must take the way through C for another reason.
    u32 (*lean_context)(ToolThread *thread, GuestAddr pc);

    // --- translation: called with the engine lock held
    u32 dirty_insns_max; // of a block in a version other than 0; 0: as in others
    // Before the first instruction of a block is lowered; all its instructions are known.
    void (*block)(ToolBlock *block, const ToolInsn *insns, unsigned count);
    // Before each instruction: code inserted here runs before it.
    void (*insn)(ToolBlock *block, const ToolInsn *insn);
    // How much `insn` and `insn_done` are going to insert there, in units of TOOL_INSERTION_BYTES
    // and of TOOL_INSERTION_MARKS; NULL: little. At most TOOL_INSERTIONS_MAX.
    u32 (*insertions)(ToolBlock *block, const ToolInsn *insn);
    // Behind each that may be followed by another one in line: code inserted here runs when it has
    // been executed, and, of a branch, was not taken.
    void (*insn_done)(ToolBlock *block, const ToolInsn *insn);
    // The block ends before this instruction, for want of room: code inserted here runs at its end.
    void (*cut)(ToolBlock *block, const ToolInsn *insn);
    // In a signal handler: the thread leaves a block in the middle, before the end of the
    // instruction at place->pc; at a boundary before code that was inserted before it.
    void (*left)(ToolThread *thread, const struct CodePlace *place);

    // The version that fits the state of the thread, which is about to enter a block;
    // general registers only. 0: the clean one. Others are given out by the tool, below
    // VERSION_FIRST, which a block whose first instruction's shadow guard has failed has
    // besides. NULL: there is only one.
    u32 (*version)(ToolThread *thread);
    // The state that a version is made for: what the first word of thread->tool.state is when
    // version() says so.
    u64 (*version_state)(u32 version);
    // Bits of the state that ToolFunction.quick need not know of, and leaves. Where others are
    // set it is not called.
    u64 quick_ignores;
    // The version of the blocks that the code being emitted leads to from here. False: that
    // is known only when it runs. NULL: 0.
    bool (*exit_version)(ToolBlock *block, u32 *ret_version);
    // A fault in a block. True: it was the tool's own doing, and the instruction
    // is to be tried again. May change the address that the client will be told.
    // *is_mapped tells whether there is anything at that address.
    bool (*fault)(ToolThread *thread, u64 *address, bool *is_mapped);

    // rsp was `old_sp` and has been loaded with another place; called from a block. `same`: as far
    // as the engine knows it is on the same stack (longjmp, the unwinder, a frame that is left by
    // a register other than rbp, or made larger). Else it is another stack, or further down.
    void (*stack_loaded)(ToolThread *thread, GuestAddr old_sp, bool same);

    // --- events, outside the cache
    void (*syscall_before)(ToolThread *thread, const ToolSyscall *call);
    void (*syscall_after)(ToolThread *thread, const ToolSyscall *call);
    // A call was not made at all, but has a result: in a function that is run as the last.
    void (*syscall_answered)(ToolThread *thread);
    // Memory of the client appears, or gets another protection; and is not what it
    // was. The engine lock is held; changes that the client makes before `start`
    // (the loader's) come too.
    void (*mapped)(GuestAddr start, GuestAddr end, u32 prot);
    void (*unmapped)(GuestAddr start, GuestAddr end);
    // Content of memory goes elsewhere (mremap), between mapped() of the new place and
    // unmapped() of the old one.
    void (*moved)(GuestAddr from, GuestAddr to, u64 size);
    // About to be delivered to a handler, of which the stack pointer is now; what it interrupts
    // had old_sp.
    void (*signal)(ToolThread *thread, int sig, GuestAddr old_sp);
    void (*signal_return)(ToolThread *thread, GuestAddr handler_sp); // and the handler has ended
    // tool_call_client() is about to run a function of the client's, with its return address in the
    // uppermost word of the stack; what it interrupts had old_sp. And it has returned to
    // `return_sp`; the general registers are what they were before.
    void (*client_call)(ToolThread *thread, GuestAddr old_sp);
    void (*client_return)(ToolThread *thread, GuestAddr return_sp);
    // An instruction of the client's has faulted; the signal has not been delivered.
    void (*client_fault)(ToolThread *thread, const siginfo_t *info);
    // The engine has written memory of the client's, on the kernel's behalf: a signal frame.
    void (*written)(ToolThread *thread, GuestAddr start, u64 size);
    // The same, where the client wanted the answer to a request of the core.
    void (*answered)(ToolThread *thread, GuestAddr start, u64 size);

    // --- a command of the user's, from `muninn ctl` or the client, at a safe point: answers
    // by relay_answer() (relay/relay.h). May change the text. False: it is unknown.
    bool (*command)(ToolThread *thread, char *command);
    const char *command_help; // a line for each, or NULL

    // --- a client request that is not the core's (request/requests.def): args[0] is its
    // number, *ret_result the default. False: the tool does not know it.
    bool (*request)(ToolThread *thread, const u64 args[6], u64 *ret_result);
    // An option has been changed while the program runs (launch/options_changeable.def).
    void (*option_changed)(const Options *options);
} Tool;

// The lean function that was called last: by thread->lean.hook, or itself.
const ToolFunction *tool_lean_inner(const ToolThread *thread);

// The tool of this run; never NULL.
extern const Tool *tool;
// It counts instructions: all that the client executes stand in blocks, the jumps of PLTs too.
// Set before the first block is made.
extern bool tool_sees_all;

// Chooses by name, or loads it where that is a path; false if there is none of that name.
bool tool_select(const Options *options);

// ----------------------------------------------------------- inserting code

// The version of the block, without the bits of the engine's own; and whether `insn` is the
// first of it.
u32 tool_version(const ToolBlock *block);
bool tool_is_first(const ToolBlock *block, const ToolInsn *insn);
// The block goes when [start, end) is invalidated, as if it were made from what is there.
void tool_depends_on(ToolBlock *block, GuestAddr start, GuestAddr end);
// Blocks that have this instruction are made anew, since the tool knows more about it now: when the
// one that is being made is done.
void tool_make_anew(GuestAddr pc);
// mov fs:[gpr r], r: where a ToolCallFn finds the registers that a call preserves.
void tool_store_gpr(ToolBlock *block, unsigned reg);

// No signal handler runs between the current instruction and the end of `last`, of the same block,
// unless one of them faults.
void tool_keep_whole(ToolBlock *block, const ToolInsn *last);
// True: the block does not end for want of room before the current instruction and the next
// `insns - 1`, if they have at most `guards` guards.
bool tool_has_room(const ToolBlock *block, u32 insns, u32 guards);
// From Tool.block: the block ends before this instruction, which is not its first.
void tool_end_before(ToolBlock *block, const ToolInsn *insn);

// True: no instruction reads the flags that there are before the current one.
bool tool_flags_are_dead(const ToolBlock *block);
// The same before another instruction of the block.
bool tool_flags_are_dead_at(const ToolBlock *block, const ToolInsn *insn);
// The 64-bit word at `offset` of thread->tool.state becomes `value`; and the first word `value` of
// what it is, which changes flags.
void tool_state_store(ToolBlock *block, u32 offset, u64 value);
// What is inserted between the two runs only if the word is not 0. Flags must be dead.
CodePtr tool_state_if(ToolBlock *block, u32 offset);
void tool_state_end_if(ToolBlock *block, CodePtr site);
void tool_state_and(ToolBlock *block, u64 value);
// The word at `offset` keeps these of its bits; if it is 0 then, the first word becomes `value` of
// what it is. Changes flags.
void tool_state_mask(ToolBlock *block, u32 offset, u64 kept, u64 value);

// thread->tool.slot[slot] += amount
void tool_count(ToolBlock *block, unsigned slot, u32 amount);

// thread->tool.slot[slot] = min(it, rsp); where flags are dead, as before a call. If that
// lowers it, and rsp is below thread->tool.slot[slot + 1], calls fn(thread, arg, 0).
void tool_note_depth(ToolBlock *block, unsigned slot, ToolCallFn *fn, u64 arg);

typedef InsnAccess ToolAccess; // decode/decode.h

// Most of what a step is called for, without the price of a call: it calls nothing that has not
// this attribute, and finds neither the client's registers, but for rsp, nor its flags.
// call_return is still to be set. False: it has done nothing, fn is to be called.
typedef bool ToolBriefFn(ToolThread *thread, const GatewayCall *call, GuestAddr address)
    __attribute__((no_caller_saved_registers));

// What is called out of line, by a guard: fn(thread, arg, address).
typedef struct ToolStep {
    ToolCallFn *fn;
    u64 arg;
    ToolBriefFn *brief; // or NULL
    u32 gprs, vectors; // to be stored before, as by tool_store_gpr() and tool_store_vector()
    u32 counts;        // slots that count it
} ToolStep;

// Takes the step out of line if the first word of thread->tool.state has any bit of `mask`, and
// goes on where tool_guard_end() is called with the answer; its access may be NULL.
// tool_state_guard(): leaves the block before its instruction, for the version of the state.
unsigned tool_state_guard_step(ToolBlock *block, u64 mask, const ToolAccess *access,
                               const ToolStep *step);
void tool_guard_end(ToolBlock *block, unsigned first);
void tool_state_guard(ToolBlock *block, u64 mask);

// Calls fn(thread, arg, address). All registers and flags are preserved.
void tool_call(ToolBlock *block, ToolCallFn *fn, u64 arg);

// As tool_call() before the current instruction accesses memory, with the
// effective address of that access.

// The memory accesses of an instruction that have an address: explicit and
// implicit operands (stack, string instructions). Returns how many, at most max.
unsigned tool_accesses(const ToolInsn *insn, ToolAccess *ret_accesses, unsigned max);
void tool_call_access(ToolBlock *block, const ToolAccess *access, ToolCallFn *fn, u64 arg);

// In a ToolCallFn that a block calls before an instruction: leaves the block, as if a
// guard had failed there.
void tool_fail_guard(ToolThread *thread);
// The same, and all blocks with the instruction are made anew.
void tool_remake(ToolThread *thread);

// ------------------------------------------------------------- shadow memory
// %gs is based TOOL_SHADOW_DISP below the shadow of address 0 (thread->engine_gs), so that the
// shadow of an operand is the same operand, that much further, through gs. The distance is there
// because Zen renames memory by base register and displacement, for rsp, and overlooks the
// segment: a guard of [rsp + 8] would be predicted to read what was just stored there. It looks
// at bits 2 to 9 of the displacement: this one is that of no usual place, and its sum with that
// of most operands still fits a byte.
#define TOOL_SHADOW_DISP (-116)

// True when the access can be checked by the two below: it has one address, and a size
// of 1, 2, 4, 8, 10, 16, 32 or 64 bytes.
bool tool_shadow_can_check(const ToolBlock *block, const ToolAccess *access);
// Leaves the block before its instruction for the version of it that begins there and has
// VERSION_FIRST, unless the shadow of what it accesses is zero.
void tool_shadow_guard(ToolBlock *block, const ToolAccess *access);
// The same unless these bits of it are zero; of 8 bytes: these with the sign extended. Where flags
// are dead, and of 8 bytes at most.
void tool_shadow_guard_bits(ToolBlock *block, const ToolAccess *access, u32 bits);
// The same of what is accessed further on, or might be: if there is nothing to read, that is a
// failure of the guard, and no fault. Where flags are dead.
void tool_shadow_guard_early(ToolBlock *block, const ToolAccess *access);
// Takes the step out of line unless that shadow is zero, and goes on where tool_guard_end() is
// called with the answer: behind the checks of the other accesses, if the step makes those, too.
unsigned tool_shadow_guard_step(ToolBlock *block, const ToolAccess *access, const ToolStep *step);
// The same once for several, of up to 32 words and each at a constant distance of a register, and
// for bits of the first word of thread->tool.state; the step gets the address of the first. If
// there is nothing to read the step is taken, too. Where flags are dead.
void tool_shadow_guards_step(ToolBlock *block, const ToolAccess *accesses, unsigned count,
                             u64 state, const ToolStep *step);
// A store: see Tool.store_map.
void tool_shadow_guard_store(ToolBlock *block, const ToolAccess *access);
// Sets the shadow of [rsp + disp, rsp + disp + size) to `value`; size is a multiple of 8.
void tool_shadow_fill_stack(ToolBlock *block, i32 disp, u32 size, u8 value);
// The shadow of an operand will be wanted soon.
void tool_shadow_prefetch(ToolBlock *block, const ToolAccess *access);
// The shadow of an operand becomes zero.
void tool_shadow_clear(ToolBlock *block, const ToolAccess *access);

// Stores a vector register of the client's, all that the machine has of it, into
// thread->tool.vectors.
void tool_store_vector(ToolBlock *block, unsigned vector);

// ------------------------------------------------------------------ queries

// The id of the thread's calling context (callstack/callstack.h), with `pc` as the
// innermost frame: at a safe point, in a function hook, or in a ToolCallFn, where
// it is the pc of the instruction. 0 unless callstack_wanted.
u32 tool_context(ToolThread *thread, GuestAddr pc);

// The pcs of a context, innermost first; the others are return addresses. Returns
// how many there are, which may exceed max.
size_t tool_context_frames(u32 context, GuestAddr *ret_frames, size_t max);

// Formats a line to the log (see log/log.h).
void tool_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

// For tools that keep counters per thread: calls fn for every live thread.
void tool_for_each_thread(void (*fn)(ToolThread *thread, void *arg), void *arg);

#endif
