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
// This folder only declares. The folders above it call the hooks. The functions that insert code
// are defined in translate/, those that answer questions in redirect/ and run/.
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
    TOOL_NEEDS_MONITOR = 4,   // the tool makes findings (relay/relay.h)
    // Flags count as dead where only a signal handler could see them, and at calls and
    // returns, where the ABI has none: what the tool inserts before loads is cheap.
    TOOL_LOOSE_FLAGS = 8,
    TOOL_NEEDS_CALLTAGS = 16, // the cheaper stacks of calltags/calltags.h are kept
    TOOL_TELLS_DEATH = 32,    // the tool makes no findings, but a fatal signal is reported
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
    // The caller is in the same object as the function. A compiler that sees both may leave out
    // arguments that the function does not use; their registers then hold anything.
    bool is_local;
    u64 args[6];        // a `before` handler may change them
    u64 result;         // rax, in an `after` handler, which may change it
    u64 state;          // 0 in `before`; `after` finds the value that `before` leaves here
    bool run_original;  // a `replace` handler sets this to decline, and may change the arguments
    bool needs_full;    // a hot `replace` handler that has done nothing sets this: it is called
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

// Two calls that a thread repeats: that of a lean function with the same size, from the same place,
// with the same result; and that of a lean function without `after` whose first argument is this
// result. The two alternate, and each adds one to `state`, which is odd between them.
// Such calls are counted and not reported, but for every 64th, and for all while `site` is 0.
// `site` is the return address, below 4 GiB; `sp` is the stack pointer there; `slot` is the place
// of the caller's own return address, and `tag` is the word of its tag (calltags/calltags.h).
typedef WireRepeat ToolRepeat;
#define TOOL_REPEAT_TOLD 0x7e // bits of `state`: the call is reported if none of them is set

// The fast form of a replaced function. It is called with the arguments where they are, and keeps
// all registers, since saving them is most of what an interception costs. It obeys the rules of hot
// handlers, and sees thread_ctx.gpr[RSP]. The result TOOL_QUICK_NO says that this is no case for
// the fast form: it has done nothing, or nothing that `replace`, which is called then, would not do
// again.
#define TOOL_QUICK __attribute__((no_caller_saved_registers)) u64
#define TOOL_QUICK_NO (~0ull)
typedef TOOL_QUICK ToolQuickFn(u64 a, u64 b, u64 c, u64 d);
// The same for a function that needs the address of its entry, to find the context of the call.
typedef TOOL_QUICK ToolQuickAtFn(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, GuestAddr entry);

// A place from which lean functions are called that allocate. Emitted code
// (translate/lean_alloc_x64.c) may put the event of a call into the ring if the call returns to
// `site` and the functions called are `hook` and `inner` (ThreadCtx.lean.hook and lean.inner):
// these are functions of glibc, which keep the size of a block in front of it. The call's context
// is in lean.contexts if the caller's context is known. The caller's context is that of the last
// call if the stack pointer is `sp` again and the frame above the caller's is the same; else
// Tool.lean_context() finds it.
typedef struct ToolSite {
    _Alignas(64) u32 site; // 0: none
    u32 hook, inner;  // the functions
    u32 unused;
    u64 up;           // bytes from the stack pointer there to the caller's return address
    u64 sp;
    u64 word;         // of the caller's return address: its tag and context
    u64 slot_above, word_above; // the return address above it
} ToolSite;
enum { TOOL_SITES = 512 }; // slots of a thread; a new site replaces the one in its slot
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
// If `replace` is set, it runs instead of the function, and its value is returned; further results
// can be left in thread->gpr (rdx). If it declines, the function runs with the arguments that
// `replace` left in the call, and the row's `before`, `after` and `left`, if set, run around it.
// If `replace` is not set, `before` or `after` or both are, and run around the function. `after`
// does not run for a call that is left by longjmp or an exception. For such a call `left` runs when
// the engine notices it: at the latest when the place of the return address is used again, or when
// the thread ends.
//
// Handlers that are not hot (TOOL_FUNCTION_FAST) run outside the cache: they may use libc,
// guest_read() and guest_write(), and see all registers in thread->gpr.
typedef struct ToolFunction {
    const char *object; // pattern (* and ?) of its soname, or of its file name if it has
                        // no soname; NULL: any, the program included
    const char *name;   // symbol without version, or a pattern
    u32 flags;          // ToolFunctionFlags
    ToolReplaceFn *replace;
    ToolQuickFn *quick; // the fast form of a hot `replace`, or NULL (Tool.quick_ignores)
    ToolQuickAtFn *quick_at; // a fast form that gets the entry, or NULL; not both
    ToolWrapFn *before, *after, *left;
    // If one of these is set, the function is lean: for functions that are called all the time. The
    // handlers obey the rules of hot handlers.
    // lean_after: if lean functions call each other, only the outermost call is reported, when it
    // has returned, with four arguments. With size_arg only lean.size is known then.
    // lean_before: the call is reported when it begins. It may be reported twice. A call within
    // another lean function is not reported, nor, if the tool sets thread->lean.told, one with the
    // same first argument within this function.
    // Calls that thread->lean.repeat foresees are counted there and not reported.
    ToolLeanFn *lean_before, *lean_after;
    u32 size_arg; // lean: 1 + the argument that is a size; 0: it never repeats
    u32 factor_arg; // lean, with size_arg: 1 + the argument that it is multiplied by, or 0
    u64 data;     // the tool's own
} ToolFunction;

// Runs the client's `function` with up to six integer arguments, on the client's
// stack below the part in use; for handlers that are not hot. Signals are
// delivered and interceptions happen meanwhile. Vector registers are left as the
// function leaves them, as by any call. False, and nothing has happened, when the
// client's stack can not be written. It does not come back when the function is
// left by longjmp; an exception can not pass it.
bool tool_call_client(ToolThread *thread, GuestAddr function, const u64 *args, unsigned count,
                      u64 *ret_result);

// For Tool.exiting: runs a function without arguments after the client has ended. Nobody outside of
// the process can notice the call. The call is given up when it waits for another thread, or runs
// for seconds while left(), the amount of work that it still has to do, does not shrink
// (run/last_call.h). False: the call was given up, or not begun.
bool tool_call_client_last(ToolThread *thread, GuestAddr function, u64 (*left)(void));

// The address at which a row of the tool's table was found last; 0: it was not found.
GuestAddr tool_function_address(const ToolFunction *function);

// True if the engine leaves an allocator of the program's alone, because it cannot replace all of
// its functions. Such an allocator reuses freed memory, and the tool is not told of that.
bool tool_leaves_allocator(void);

enum { TOOL_INSERTIONS_MAX = 32, TOOL_INSERTION_BYTES = 320, TOOL_INSERTION_MARKS = 12 };

struct CodePlace;

typedef struct Tool {
    const char *name;
    const char *summary;
    // The first line of its reports, and the same under the name valgrind; NULL: its name.
    const char *title, *title_as_valgrind;
    u32 needs; // ToolNeeds bits
    u32 gives; // WireToolGives bits: what the tool sends to the monitor
    // Kinds and parts of findings that wire/findings.def does not have: their numbers are
    // KIND_COUNT and PART_COUNT plus the index. The monitor learns of them as it connects.
    const KindDescription *kinds;
    u32 kind_count;
    const PartDescription *parts;
    u32 part_count;
    // With TOOL_NEEDS_CALLTAGS: 0, or the distance to the tool's own shadow, where the tags are
    // kept; see calltags/calltags.h.
    u64 shadow_offset;
    // What happens at a store whose shadow is not 0 (tool_shadow_guard_store()). store_map has a
    // bit for each byte of memory, at store_map + address / 8. If no bit of the bytes stored is
    // set, and the store is not between thread->store_below and the red zone, emitted code sets the
    // shadow to 0. Else, or if that is not possible in a few instructions, store_slow() is called
    // with the size.
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
    u32 dirty_insns_max; // most instructions of a block of a version other than 0; 0: as in others
    // Before the first instruction of a block is lowered; all its instructions are known.
    void (*block)(ToolBlock *block, const ToolInsn *insns, unsigned count);
    // Before each instruction: code inserted here runs before it.
    void (*insn)(ToolBlock *block, const ToolInsn *insn);
    // How much `insn` and `insn_done` are going to insert there, in units of TOOL_INSERTION_BYTES
    // and of TOOL_INSERTION_MARKS; NULL: little. At most TOOL_INSERTIONS_MAX.
    u32 (*insertions)(ToolBlock *block, const ToolInsn *insn);
    // Behind each instruction that the next one of the block may follow: code inserted here runs
    // when the instruction has been executed and, if it is a branch, was not taken.
    void (*insn_done)(ToolBlock *block, const ToolInsn *insn);
    // The block ends before this instruction because it has no room for more. Code inserted here
    // runs at the end of the block.
    void (*cut)(ToolBlock *block, const ToolInsn *insn);
    // Called in a signal handler when the thread leaves a block in the middle. The instruction at
    // place->pc has not ended. If place is a boundary, code inserted before it has not run either.
    void (*left)(ToolThread *thread, const struct CodePlace *place);

    // Returns the version that fits the state of the thread, which is about to enter a block.
    // General registers only. 0 is the clean version; the tool gives out the other numbers, below
    // VERSION_FIRST. The engine adds VERSION_FIRST for a block that begins behind a failed shadow
    // guard of its first instruction. NULL: there is only version 0.
    u32 (*version)(ToolThread *thread);
    // The state that a version is made for: the value of the first word of thread->tool.state for
    // which version() returns that number.
    u64 (*version_state)(u32 version);
    // Bits of the state that do not matter to fast forms (ToolFunction.quick), which leave them as
    // they are. While any other bit is set, fast forms are not called.
    u64 quick_ignores;
    // Finds the version of the blocks to which the code being emitted leads from here. False: the
    // version is known only at run time. NULL: it is always 0.
    bool (*exit_version)(ToolBlock *block, u32 *ret_version);
    // An instruction of a block has faulted. True: the tool has caused the fault, and the
    // instruction is executed again. The tool may change the address that the client's handler
    // gets. *is_mapped tells whether memory is mapped at that address.
    bool (*fault)(ToolThread *thread, u64 *address, bool *is_mapped);

    // Called from a block when rsp has been loaded; before, it was `old_sp`. `same` is true if both
    // are on one stack, as far as the engine knows (longjmp, the unwinder, a frame that is left by
    // a register other than rbp, or made larger). Else rsp is on another stack, or further down.
    void (*stack_loaded)(ToolThread *thread, GuestAddr old_sp, bool same);

    // --- events, outside the cache
    void (*syscall_before)(ToolThread *thread, const ToolSyscall *call);
    void (*syscall_after)(ToolThread *thread, const ToolSyscall *call);
    // A system call of a function that runs after the client's end was not made, but has a result
    // (tool_call_client_last()).
    void (*syscall_answered)(ToolThread *thread);
    // mapped: memory of the client was mapped, or got another protection. unmapped: memory was
    // unmapped or replaced. The engine lock is held. Changes before `start` (the loader's) are
    // reported too.
    void (*mapped)(GuestAddr start, GuestAddr end, u32 prot);
    void (*unmapped)(GuestAddr start, GuestAddr end);
    // The content of memory moves (mremap). Called between mapped() of the new place and unmapped()
    // of the old one.
    void (*moved)(GuestAddr from, GuestAddr to, u64 size);
    // signal: a signal is about to be delivered to a handler. The thread's stack pointer is the
    // handler's already; the interrupted code had old_sp. signal_return: the handler has ended.
    void (*signal)(ToolThread *thread, int sig, GuestAddr old_sp);
    void (*signal_return)(ToolThread *thread, GuestAddr handler_sp);
    // client_call: tool_call_client() is about to run a function of the client's, whose return
    // address is the uppermost word of the stack; the interrupted code had old_sp. client_return:
    // the function has returned to `return_sp`; the general registers are what they were before.
    void (*client_call)(ToolThread *thread, GuestAddr old_sp);
    void (*client_return)(ToolThread *thread, GuestAddr return_sp);
    // An instruction of the client's has faulted, and the signal has not been delivered yet.
    void (*client_fault)(ToolThread *thread, const siginfo_t *info);
    // The engine has written memory of the client's in the kernel's place: a signal frame.
    void (*written)(ToolThread *thread, GuestAddr start, u64 size);
    // The engine has written the answer to a client request of its own into the client's memory.
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

// The lean function that was called last: the outermost one (thread->lean.hook), or the innermost
// that it has called.
const ToolFunction *tool_lean_inner(const ToolThread *thread);

// The tool of this run; never NULL.
extern const Tool *tool;
// True if the tool must see each instruction that the client executes: then blocks also contain the
// jumps of PLTs, which are otherwise left out. Set before the first block is made.
extern bool tool_sees_all;

// Chooses the tool by its name, or loads it if the name is a path. False: there is no such tool.
bool tool_select(const Options *options);

// ----------------------------------------------------------- inserting code

// The version of the block, without the engine's own bits; and whether `insn` is the block's first
// instruction.
u32 tool_version(const ToolBlock *block);
bool tool_is_first(const ToolBlock *block, const ToolInsn *insn);
// Makes the block depend on [start, end): it is retired when that range is invalidated, as if it
// were made from the bytes there.
void tool_depends_on(ToolBlock *block, GuestAddr start, GuestAddr end);
// Retires all blocks with the instruction at `pc`, so that they are made anew: the tool knows more
// about it now. Takes effect when the block under construction is done.
void tool_make_anew(GuestAddr pc);
// mov fs:[gpr r], r: where a ToolCallFn finds the registers that a call preserves.
void tool_store_gpr(ToolBlock *block, unsigned reg);

// No signal handler runs between the current instruction and the end of `last`, of the same block,
// unless one of them faults.
void tool_keep_whole(ToolBlock *block, const ToolInsn *last);
// Whether the block has room for the current instruction and the next `insns - 1`, with at most
// `guards` guards in all.
bool tool_has_room(const ToolBlock *block, u32 insns, u32 guards);
// From Tool.block: makes the block end before this instruction, which must not be its first.
void tool_end_before(ToolBlock *block, const ToolInsn *insn);

// Whether the flags before the current instruction are dead: no instruction reads them.
bool tool_flags_are_dead(const ToolBlock *block);
// The same before another instruction of the block.
bool tool_flags_are_dead_at(const ToolBlock *block, const ToolInsn *insn);
// tool_state_store(): the 64-bit word at `offset` of thread->tool.state := value. tool_state_and():
// the first word := itself AND value; changes flags.
void tool_state_store(ToolBlock *block, u32 offset, u64 value);
// Code inserted between tool_state_if() and tool_state_end_if() runs only if the word at `offset`
// is not 0. Flags must be dead.
CodePtr tool_state_if(ToolBlock *block, u32 offset);
void tool_state_end_if(ToolBlock *block, CodePtr site);
void tool_state_and(ToolBlock *block, u64 value);
// The word at `offset` := itself AND kept; if that is 0, the first word := itself AND value.
// Changes flags.
void tool_state_mask(ToolBlock *block, u32 offset, u64 kept, u64 value);

// thread->tool.slot[slot] += amount
void tool_count(ToolBlock *block, unsigned slot, u32 amount);

// Lowers thread->tool.slot[slot] to rsp if rsp is below it. If it was lowered and rsp is below
// thread->tool.slot[slot + 1] too, calls fn(thread, arg, 0). Flags must be dead, as before a call.
void tool_note_depth(ToolBlock *block, unsigned slot, ToolCallFn *fn, u64 arg);

typedef InsnAccess ToolAccess; // decode/decode.h

// The fast step: handles the frequent case of a step without the price of a full call. It may call
// only functions with the same attribute. Of the client's registers it sees rsp alone, and it sees
// no flags. It must set call_return. False: it has done nothing, and `fn` is called.
typedef bool ToolBriefFn(ToolThread *thread, const GatewayCall *call, GuestAddr address)
    __attribute__((no_caller_saved_registers));

// A function that a guard calls out of line: fn(thread, arg, address).
typedef struct ToolStep {
    ToolCallFn *fn;
    u64 arg;
    ToolBriefFn *brief; // its fast step, or NULL
    u32 gprs, vectors; // registers to store before, as tool_store_gpr() and tool_store_vector() do
    u32 counts;        // a bit for each slot that counts the calls
} ToolStep;

// tool_state_guard_step(): if the first word of thread->tool.state has any bit of `mask`, takes the
// step out of line and goes on behind the code that is there when tool_guard_end() is called with
// the number returned. `access` may be NULL.
// tool_state_guard(): in the same case, leaves the block before the current instruction, for the
// block of the version that fits the state.
unsigned tool_state_guard_step(ToolBlock *block, u64 mask, const ToolAccess *access,
                               const ToolStep *step);
void tool_guard_end(ToolBlock *block, unsigned first);
void tool_state_guard(ToolBlock *block, u64 mask);

// Calls fn(thread, arg, address). All registers and flags are preserved.
void tool_call(ToolBlock *block, ToolCallFn *fn, u64 arg);

// Finds the memory accesses of an instruction that have an address: explicit and
// implicit operands (stack, string instructions). Returns how many, at most max.
unsigned tool_accesses(const ToolInsn *insn, ToolAccess *ret_accesses, unsigned max);
// As tool_call(), before the current instruction makes the access: fn gets its effective address.
void tool_call_access(ToolBlock *block, const ToolAccess *access, ToolCallFn *fn, u64 arg);

// In a ToolCallFn that a block calls before an instruction: leaves the block, as if a
// guard had failed there.
void tool_fail_guard(ToolThread *thread);
// The same, and all blocks with the instruction are made anew.
void tool_remake(ToolThread *thread);

// ------------------------------------------------------------- shadow memory
// The base of %gs (thread->engine_gs) is TOOL_SHADOW_DISP below the shadow of address 0. So the
// shadow of an operand is the same operand with TOOL_SHADOW_DISP added to its displacement, through
// gs. The displacement is there because Zen renames memory by base register and displacement for
// rsp, and overlooks the segment: it would predict a guard of [rsp + 8] to read the value that was
// just stored there. Zen compares bits 2 to 9 of the displacement. Programs seldom use one with
// these bits, and its sum with the displacement of most operands still fits a byte.
#define TOOL_SHADOW_DISP (-116)

// Whether guards can check the access: it has one address, and a size of 1, 2, 4, 8, 10, 16, 32 or
// 64 bytes.
bool tool_shadow_can_check(const ToolBlock *block, const ToolAccess *access);
// Unless the shadow of the accessed bytes is zero, leaves the block before the current instruction,
// for the version of the block that begins there and has VERSION_FIRST.
void tool_shadow_guard(ToolBlock *block, const ToolAccess *access);
// The same, but only `bits` of the shadow must be zero. For accesses of up to 8 bytes; for 8-byte
// accesses the mask is sign-extended to 64 bits. Flags must be dead.
void tool_shadow_guard_bits(ToolBlock *block, const ToolAccess *access, u32 bits);
// The same for an access that a later instruction makes, or may make: if the shadow is not
// readable, the guard fails and does not fault. Flags must be dead.
void tool_shadow_guard_early(ToolBlock *block, const ToolAccess *access);
// Unless the shadow is zero, takes the step out of line and goes on behind the code that is there
// when tool_guard_end() is called with the number returned. That is behind the checks of the other
// accesses if the step makes those too.
unsigned tool_shadow_guard_step(ToolBlock *block, const ToolAccess *access, const ToolStep *step);
// The same once for several accesses of up to 32 words in all, each at a constant distance from a
// register, and for the bits `state` of the first word of thread->tool.state. The step gets the
// address of the first access. It is also taken if a shadow is not readable. Flags must be dead.
void tool_shadow_guards_step(ToolBlock *block, const ToolAccess *accesses, unsigned count,
                             u64 state, const ToolStep *step);
// A store: see Tool.store_map.
void tool_shadow_guard_store(ToolBlock *block, const ToolAccess *access);
// Sets the shadow of [rsp + disp, rsp + disp + size) to `value`; size is a multiple of 8.
void tool_shadow_fill_stack(ToolBlock *block, i32 disp, u32 size, u8 value);
// Prefetches the shadow of an operand.
void tool_shadow_prefetch(ToolBlock *block, const ToolAccess *access);
// Sets the shadow of an operand to zero.
void tool_shadow_clear(ToolBlock *block, const ToolAccess *access);

// Stores a vector register of the client's into thread->tool.vectors, in the full width that the
// processor has.
void tool_store_vector(ToolBlock *block, unsigned vector);

// ------------------------------------------------------------------ queries

// The id of the thread's calling context (callstack/callstack.h), with `pc` as the
// innermost frame: at a safe point, in a function hook, or in a ToolCallFn, where
// it is the pc of the instruction. 0 if no call stack is kept.
u32 tool_context(ToolThread *thread, GuestAddr pc);

// The pcs of a context, innermost first; the others are return addresses. Returns
// how many there are, which may exceed max.
size_t tool_context_frames(u32 context, GuestAddr *ret_frames, size_t max);

// Formats a line to the log (see log/log.h).
void tool_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

// For tools that keep counters per thread: calls fn for every live thread.
void tool_for_each_thread(void (*fn)(ToolThread *thread, void *arg), void *arg);

#endif
