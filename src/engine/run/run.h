// SPDX-License-Identifier: MIT
//
// The life of one client thread on the synthetic CPU: its context, the
// gateways between emitted code and C, and the loop that connects them.
//
// Glossary
//   cache    the code cache; emitted code runs in it with every general,
//            vector and flag register holding the client's own value
//   gateway  code emitted once at start that saves or loads the client's
//            registers and switches stacks: the only doors of the cache
//   boundary a point of the cache where the registers are exactly the client's
//            before some guest instruction, nothing spilled
//   exit     leaving the cache; a light exit keeps the vector state in the
//            registers (only general-register C runs), a full exit saves it
//
// What must stay true
//   R1  %fs is the engine's everywhere, so `thread_ctx` is reachable as
//       fs:[constant] from emitted code and from any signal handler.
//   R2  While a thread is outside the cache after a full exit, its whole client
//       state is in its ThreadCtx: gpr, pc, flags, xsave, client_fs, client_gs.
//       TF in flags is the client's own, never ours.
//   R3  The kernel's signal mask is the client's mask without the five
//       synchronous signals, except while `pending_signal` is set: then every
//       asynchronous signal is blocked until it has been delivered; and except
//       in system calls that may sleep, which nothing can fault in.
//   R4  A thread that holds the engine lock reads client memory only through
//       guest_read(), writes none, and never blocks on a client event.
#ifndef MUNINN_ENGINE_RUN_RUN_H
#define MUNINN_ENGINE_RUN_RUN_H

#include <signal.h>
#include <stddef.h>

#include "base/futex_lock.h"
#include "base/registers_x64.h"
#include "base/types.h"
#include "engine/callstack/callstack.h"
#include "wire/wire.h"

#define FLAG_TF 0x100u
#define FLAG_DF 0x400u
#define FLAG_AC 0x40000u

// Why a thread left the cache.
typedef enum ExitReason {
    EXIT_LINK,       // a direct exit whose target is not linked: exit_link names it
    EXIT_CALL,       // the same, and it is one of a `call` (landings/landings.h)
    EXIT_INDIRECT,   // an indirect branch that the lookup table did not know: pc
    EXIT_RETURN,     // a return that the return table did not know: pc
    EXIT_SYSCALL,    // pc is behind the `syscall` instruction
    EXIT_RESUME,     // somebody asked for it (signal, stop, code change): go on at pc
    EXIT_STALE,      // the block at pc found that its guest bytes have changed
    EXIT_EMULATE,    // an instruction at pc that C must emulate (iretq, int 0x80, mov fs, …)
    EXIT_REDIRECT,   // pc is the entry of a redirected or wrapped function
    EXIT_REQUEST,    // a client request at pc; exit_link is its RequestKind
    EXIT_VERSIONED,  // the version table did not know (pc, version); see VERSION_TABLE
    EXIT_REMAKE,     // blocks with the instruction at pc are to be made anew
    EXIT_REASON_COUNT
} ExitReason;

// The client's own trap flag: SIGTRAP after its next instruction. Hardware steps
// the thread through the gateway and the cache; the handler tells from this how
// far it has come. It runs blocks of one instruction (VERSION_STEPPED).
typedef enum ClientStep {
    CLIENT_STEP_NONE,
    CLIENT_STEP_ARMED,   // on its way into the cache
    CLIENT_STEP_RUNNING, // in the cache: the next boundary is behind the instruction
    CLIENT_STEP_DONE,    // the instruction has left the cache; C does the rest of it
} ClientStep;

// The client's view of a resource limit that the engine keeps for it (limits/limits.h).
typedef struct Limit {
    u64 soft, hard;
} Limit;
enum LimitKind { LIMIT_AS, LIMIT_DATA, LIMIT_KINDS };

enum { LEAN_SITES = 1024, LEAN_SLOTS = 2 };

// A signal that the kernel gave us and the client has not seen yet. There is
// at most one per thread (R3); the kernel queues the others.
typedef struct PendingSignal {
    siginfo_t info;
    u64 resume_mask; // the client's mask to restore when its handler returns
    bool synchronous; // a fault of the client's own instruction at ctx->pc
    u64 trapno, err, cr2; // as the kernel told us; the client's frame repeats them
} PendingSignal;

struct RedirectThread;
struct SeccompFilter;
struct RunLoop;
struct SignalActions;
struct ThreadRecord;

typedef struct ThreadCtx {
    // --- client state, complete while outside the cache (R2)
    u64 gpr[GPR_COUNT];
    GuestAddr pc;
    u64 flags;
    u64 client_fs; // the client's idea of %fs.base and %gs.base
    u64 client_gs;
    u64 engine_gs; // what %gs.base is in the cache, but within a few expansions that lend it
    u8 *xsave;      // vector and x87 state, standard XSAVE format, 64-byte aligned
    u64 xsave_size;

    // --- used by emitted code
    u64 spill[GPR_COUNT]; // client value of register r while an expansion uses r
    u64 vector_spill[2];  // of xmm0
    u64 engine_rsp;       // the engine's stack, valid while inside the cache
    u64 enter_target;     // where gateway_enter jumps
    u64 second_flags;     // in ah and al while a gateway searches the second table
    i32 second_left;      // what it may find there before C is to prefer the next one
    u32 exit_reason;      // ExitReason
    u32 exit_link;        // index of the exit taken, for EXIT_LINK
    u32 careful;          // the client may have set DF or AC: C must not be entered with them
    u32 guard_failed;     // the next block is entered because its first instruction's guard failed
    u32 pending_signal;   // `pending` holds a signal; emitted gateways test this word
    u32 stop_request;     // leave the cache at the next boundary; same test
    CallStack callstack;  // kept if callstack_wanted
    struct ContextCache *contexts; // of tool_context(), with calltags_wanted
    GuestAddr branch_pc;  // with it: the last indirect branch, and the last return that it missed
    u64 old_sp;           // rsp before an instruction that loads it
    u64 store_below;      // the tool's (Tool.store_map)
    u64 tool_slot[32];    // per-thread words for the tool's inline counters
    struct ThreadCtx *self; // linear address of this structure
    u64 call_fn, call_arg, call_address, call_return; // arguments of the tool-call gateway

    u64 redirect_count;   // activations of wrapped functions (redirect/redirect.h)
    u32 redirect_armed;   // enter the original of what is at pc; that block clears it
    struct RedirectThread *redirect; // NULL while nothing needs it
    // Lean functions (redirect/lean_hot.c). The outermost call that has not returned:
    u64 lean_sp;          // the stack pointer that it returns with, negated; 0: there is none
    u64 lean_size;        // of its size_arg and factor_arg
    u64 lean_args[4];
    u32 lean_hook;        // it, and the innermost that it has called
    u32 lean_inner;
    WireRepeat *lean_repeat; // never NULL if there are lean functions
    struct ToolSite *lean_sites; // likewise; by tool_site_index()
    struct CachedContext *lean_contexts; // of a ContextCache, by calltags_cache_index()
    // What a lean function without `after` was told last: its argument, which it, and where. What
    // it calls with the same argument is not told again.
    u64 lean_told;
    u64 lean_told_function, lean_told_sp;
    GuestAddr lean_slots[LEAN_SLOTS]; // frames that emitted code is naming
    GuestAddr lean_known[LEAN_SITES]; // return sites that are hooked

    // --- owned by the dispatcher
    struct RunLoop *loop; // the innermost one of this thread
    u64 in_cache;     // 1 while the thread may be executing emitted code
    u64 safe_epoch;   // cache epoch seen at the last safe point (cache/cache.h)
    u32 stepping;     // single-stepping to a boundary (signal/)
    u32 client_step;  // ClientStep
    u32 stress_steps; // --stress=signals: single steps left before the thread is taken out
    u32 stress_seed;
    u32 stress_taken; // how often that was begun

    // --- owned by signal/
    PendingSignal pending;
    u64 client_mask;         // the mask as the client sees it
    u64 deferred_signals;    // synchronous signals sent by kill() while the client blocks them
    siginfo_t deferred_info[6];
    u32 must_place;          // signals for the whole process wait for a thread to be found (S5)
    u32 lent_nr;             // the call for which the kernel holds blocked ones, while `lent_set`
    u64 lent_set;            // those that this call may take from the kernel's queue
    stack_t altstack;        // the client's sigaltstack
    struct SignalActions *actions; // shared as CLONE_SIGHAND says
    u64 wait_mask;           // the mask of a sigsuspend, ppoll, … while wait_mask_armed
    u32 wait_mask_armed;     // inside such a call, or its handler is about to run
    u64 step_rip;            // host pc of the last trap of a client that steps itself
    u32 step_over_pushf;     // the instruction being stepped pushes our TF
    GuestAddr retry_addr;    // last store retried because its page looked writable
    u32 retry_count;
    void *host_altstack;     // guard page, then the stack of our own handlers

    // --- owned by thread/
    i32 tid;
    u32 vfork_depth;  // >0: running on a suspended parent's context
    struct ThreadRecord *record;

    // --- owned by seccomp/
    struct SeccompFilter *seccomp; // the newest filter; atomic, others may set it (TSYNC)
    u32 seccomp_strict;            // only read, write, exit and sigreturn

    // --- owned by limits/: in a child of vfork that has set one
    Limit own_limits[LIMIT_KINDS];
    u32 has_own_limits;

    void *tool_thread; // the tool's own per-thread state
    // What of it blocks use. The first word is the state that versions are made for, 0: clean.
    _Alignas(64) u8 tool_state[2560];
    _Alignas(64) u8 tool_vectors[32][64]; // values of vector registers, where blocks store them

    // --- owned by relay/
    WireProducer wire;   // this thread's end of the wire; zero before its first record
    u32 number;          // of the thread, from 1: what a report calls it
    u32 errors_disabled; // >0: the client has asked for no reports
    u32 kicked;          // the monitor has a request; set by our handler (signal/sleep.c)
    u32 sleeps_in;       // while that is looked at: 1 + the number of the call interrupted
    u32 request_seen;    // the last request for every thread
    u32 answering;       // the request that is being answered, 0: the client's own

    // --- for the crash report: the last guest pcs dispatched
    GuestAddr recent_pc[16];
    u32 recent_next;

    // --- owned by thread/: where its stack begins, if clone3 was told; 0: unknown
    GuestAddr stack_lowest;
    // who may be taken for standing still (thread_stop_others())
    u32 is_stopped; // atomic
    u32 in_kernel;  // atomic: in a system call of the client's, which may sleep
    // --- owned by run/last_call.c
    u32 makes_last_call; // the client has ended, and a function of its runs once more

    // --- owned by redirect/: the function that the wrapper entered last wraps; 0: a replacement
    GuestAddr wrapped_original;

    // --- counters, summed by --stats
    u64 stat_dispatches;
    u64 stat_indirect_misses;
    u64 stat_syscalls;
    u64 stat_signals;
} ThreadCtx;

extern __thread ThreadCtx thread_ctx;

// For emitted code: the displacement from fs of a field of the calling thread's ThreadCtx. It is
// the same in all threads, since thread_ctx is a thread-local variable of the executable.
extern i32 ctx_displacement;
#define CTX(field) (ctx_displacement + (i32)offsetof(ThreadCtx, field))
#define CTX_GPR(r) (CTX(gpr) + 8 * (i32)(r))
#define CTX_SPILL(r) (CTX(spill) + 8 * (i32)(r))

// The shadow call stack is kept: for a tool with TOOL_NEEDS_CALLSTACK, or for what the
// engine itself reports. Set before the first block is translated.
extern bool callstack_wanted;

// One lock for the shape of the client's address space and for translation.
// Held for microseconds; execution in the cache never takes it.
extern Lock engine_lock;

// Runs the client from ctx->pc for ever: the thread leaves through
// thread_exit()/process_exit() only.
_Noreturn void run_thread(ThreadCtx *ctx);

// Runs the client from ctx->pc until it returns to RUN_NOWHERE, an address that the caller
// has put at `slot` of its stack, and there is no signal to deliver. `old_sp` is the client's
// stack pointer before the call. If the client leaves the call in another way (longjmp), this does
// not return: the loop that it was called from goes on, and the frames between are dropped.
void run_until_return(ThreadCtx *ctx, GuestAddr slot, u64 old_sp);

// A thread with makes_last_call wants to make a system call. True: like any other; else this is the
// answer (last_call.h).
bool last_call_permits(u64 nr, const u64 args[6]);
i64 last_call_answer(u64 nr, const u64 args[6]);

// An address at which the client can have no code: where functions that the
// engine calls return to.
#define RUN_NOWHERE (GATEWAY_START + GATEWAY_SIZE - 1)

// --stress=signals: now and then a thread is single-stepped for some host
// instructions after it has entered the cache, and taken out wherever it is then.
extern bool stress_signals;
void stress_maybe_step(ThreadCtx *ctx); // before entering; light

// ------------------------------------------------------- start, end and failure

struct Options;

// --trace-children: remembers the engine's own executable and hooks execve.
void follow_init(const struct Options *options);
void follow_thread_end(void); // gives back what the calling thread needed for that

// Installs the crash report for panics and for faults of engine code.
void crash_init(void);

// --stats: prints the counters; keeps those of a thread beyond its end.
void stats_init(void);
void stats_print(void);
void stats_thread_end(ThreadCtx *ctx);

// ---------------------------------------------------------------- gateways

// Everything emitted lives in [CACHE_START, CACHE_END) of aspace.h: first the
// gateways, then the lookup table of indirect branches, then blocks.
#define GATEWAY_START 0x60000000ull
#define GATEWAY_SIZE 0x4000ull

void gateway_init(void);

// For emitted jumps: where the cache is left for `reason`, and where an
// indirect branch goes whose target is not in the lookup table (rcx is the
// guest target; rcx of the client is in ctx->spill, and rax or, with TOOL_LOOSE_FLAGS, r11).
CodePtr gateway_leave(ExitReason reason);
CodePtr gateway_lookup_miss(void);
// A return that has no landing: the guest target is at [rsp - 8] and in r11, which is spilled.
CodePtr gateway_return_by_table(void);
// One that is not in the table: the guest target is at [rsp - 8], only rcx, or r11, is spilled.
CodePtr gateway_return_miss(void);
CodePtr gateway_far_return_miss(void);
// Tool.store_map: rax is the address and spilled, call_return where to go on, flags are dead.
// NULL: not for this size.
CodePtr gateway_store(u32 size);
// Where Tool.store_map stands, within 31 bits.
CodePtr gateway_store_map(void);

// Look ctx->pc and the thread's state (the first word of tool_state) up in the version table:
// after a guard has failed, at a
// direct exit, and for an indirect branch, whose target is rcx, with rax and rcx spilled.
CodePtr gateway_version_guard(void);
CodePtr gateway_version_exit(void);
CodePtr gateway_version_indirect(void);
CodePtr gateway_version_miss(void);

// Where emitted code calls call_fn(ctx, call_arg, call_address) and goes on at
// call_return with everything preserved.
CodePtr gateway_tool_call(void);
// For code with dead flags, which has spilled rax and put the address of one of these there.
typedef struct GatewayCall {
    u64 fn, arg, back;
    u64 brief; // a ToolBriefFn, for the brief call; others end before it
} GatewayCall;
CodePtr gateway_quick_call(void);
CodePtr gateway_brief_call(void);

// The components of the client's vector state that the gateways save and load.
u64 gateway_xsave_mask(void);

// The lowest-level system call on behalf of the client, for calls that may
// block or be interrupted. A signal that arrives before the kernel has begun,
// or for which the kernel asks to restart the call, makes this return
// GATEWAY_RESTART: deliver the signal with the client's pc at its `syscall`
// instruction and all its registers as before the call.
i64 gateway_syscall(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5);
#define GATEWAY_RESTART (-5000)

// Where in the gateways a host pc lies; signal/ decides by it what to do.
typedef enum GatewayPlace {
    GATEWAY_NOT,            // not in a gateway
    GATEWAY_ENTERING,       // about to enter the cache: set host rip to gateway_abort_pc()
    GATEWAY_RESUMING,       // same, returning from a light exit: also gateway_abort_pc()
    GATEWAY_SYSCALL_BEFORE, // at or before the `syscall`: set rip to gateway_restart_pc()
    GATEWAY_LEAVING,        // anything else in the gateways: C will see pending_signal soon
    GATEWAY_TOOL_CALL,      // the same; sets TF and `stepping` itself if a signal is pending
    GATEWAY_TOOL_RETURN,    // on the way back into a block: single-step on
    GATEWAY_LOOKUP,         // the same: from one block to the next through the version table
} GatewayPlace;

GatewayPlace gateway_place(u64 host_pc);
u64 gateway_abort_pc(GatewayPlace place);
u64 gateway_restart_pc(void);

// Host pc and stack at which a handler resumes a thread that it took out of the
// cache by itself: it has stored the client's complete state in ctx (R2), sets
// ctx->exit_reason, and returns to this pc with rsp = ctx->engine_rsp.
u64 gateway_taken_out_pc(void);

#endif
