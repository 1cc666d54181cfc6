// SPDX-License-Identifier: MIT
//
// A block under construction; private to translate/.
#ifndef MUNINN_ENGINE_TRANSLATE_BUILDER_H
#define MUNINN_ENGINE_TRANSLATE_BUILDER_H

#include "engine/cache/cache.h"
#include "engine/decode/decode.h"
#include "engine/emit/emit.h"
#include "engine/toolapi/toolapi.h"

#define BLOCK_INSNS_MAX 64
#define BLOCK_CODE_ROOM (24 * KiB)
#define BLOCK_CODE_ROOM_GUARDED (64 * KiB) // for tools that guard accesses
#define INSN_ROOM 1024 // no lowering, tool code included, emits more
#define BLOCK_RUNS_MAX 16
#define BLOCK_EXITS_MAX (BLOCK_INSNS_MAX + 2)
#define EXIT_STUB_BYTES 29
#define LINK_STUB_BYTES 17 // of the stub of an exit that can be linked
#define CALL_STUB_BYTES (LINK_STUB_BYTES + 5)
#define EXIT_STUBS_ROOM (BLOCK_EXITS_MAX * EXIT_STUB_BYTES)
#define INSN_MARKS 20 // no lowering makes more, tool code included but for insertions
#define BLOCK_MARKS_MAX (BLOCK_INSNS_MAX * 12)
#define INSN_GUARDS_MAX 40 // three accesses of 64 bytes; 128 bytes that are copied to others
#define BLOCK_GUARDS_MAX (BLOCK_INSNS_MAX * 2)
#define GUARD_STUB_ROOM 320
#define GUARD_STUBS_ROOM (BLOCK_GUARDS_MAX * GUARD_STUB_ROOM)

// What the thread does when a guard's branch is taken.
typedef enum GuardKind {
    GUARD_FAIL,  // go on in the version that begins with the instruction's step (VERSION_FIRST)
    GUARD_LEAVE, // go on in the version of the thread's state
    GUARD_STEP,  // call the step, then go on at `back`
    GUARD_STORE, // as GUARD_STEP, but through the store gateway if there is one
} GuardKind;

typedef struct GuardAction {
    GuardKind kind;
    bool is_early; // the branch is also taken if the test faults
    ToolStep step;
    const InsnAccess *access; // the step gets the address of this access, or 0 if NULL
} GuardAction;

typedef struct Guard {
    X64Jump branch;
    u16 spilled;    // registers that the stub loads again
    GuardKind kind;
    bool has_access;
    const Insn *insn;
    InsnAccess access;
    ToolStep step;
    CodePtr back;
} Guard;

typedef struct Builder {
    Emitter e;
    Block *block;
    CodeMark marks[BLOCK_MARKS_MAX]; // the block's marks so far
    unsigned mark_count;
    Insn insns[BLOCK_INSNS_MAX];
    // A copy of the bytes of each instruction: other threads may overwrite the client's code while
    // the block is made.
    u8 taken[BLOCK_INSNS_MAX][32];
    unsigned insn_count;
    struct {
        GuestAddr start, end;
    } runs[BLOCK_RUNS_MAX]; // contiguous guest bytes that the block was made from
    unsigned run_count;
    GuestAddr next_pc;     // where the guest goes on if the last instruction falls through
    const Insn *insn;      // the instruction being lowered
    const Insn *whole_to;  // there is no boundary up to this instruction: tool_keep_whole()
    u16 spilled;           // registers that are in ctx->translate.spill at e.pc
    u16 held;              // registers spilled over several instructions that do not use them
    bool fallthrough;      // the last instruction lowered falls through to next_pc
    CodePtr landing;       // the landing of the block's call, if it has one (block->landing)
    bool may_fall;         // another block fits directly behind this one
    bool has_fs_base;      // the code is right only for the present base of fs (fs_base.c)
    bool changes_version;  // the code has called C, which may have changed the thread's state
    u8 flags_live[BLOCK_INSNS_MAX]; // arithmetic flags live before each instruction, as FlagBits
    Guard guards[BLOCK_GUARDS_MAX];
    unsigned guard_count;
} Builder;

// The code from here on belongs to b->insn, with b->spilled spilled.
void builder_mark(Builder *b, bool boundary);
void builder_mark_nowhere(Builder *b);

// builder_spill(): mov fs:[spill r], r, and a mark that says that r is spilled.
// builder_unspill(): the opposite.
void builder_spill(Builder *b, unsigned reg);
void builder_unspill(Builder *b, unsigned reg);
void builder_forget_spill(Builder *b, unsigned reg); // the instruction has overwritten `reg`

// A link site that leads to the guest address `target`.
void builder_exit(Builder *b, X64Branch branch, GuestAddr target);

// Lowers b->insn.
void lower_insn(Builder *b);
void lower_call(Builder *b, const Insn *insn);
void lower_call_indirect(Builder *b, const Insn *insn);
void lower_jmp_indirect(Builder *b, const Insn *insn);
void lower_ret(Builder *b, const Insn *insn);
// push return_address: the guest address, since the client may read it. `counts` is true if the
// push counts as a call for call stacks and tags.
void emit_push_return(Builder *b, GuestAddr return_address, u32 landing, bool counts);
// Leaves the cache by an exit that is never linked; the client goes on at pc.
void emit_leave_at(Builder *b, GuestAddr pc, ExitReason reason);

// Copies `insn`; if its memory operand uses rip, fs or gs, rewrites that; operand_x64.c.
void lower_copy(Builder *b, const Insn *insn);

// Code that leaves by EXIT_STALE if the guest bytes [start, end) are not what
// they are now; selfcheck_x64.c.
void emit_self_check(Builder *b, GuestAddr start, GuestAddr end);

// Emits the prologue of a hooked block, if it is one (redirect/redirect.h). False: the block
// ends with it; intercept_x64.c.
bool intercept(Builder *b);
void emit_leave_to_c(Builder *b, u32 exit_link);
void emit_fast_call(Builder *b, u32 (*fn)(u32 hook), u32 hook);
// Prologues of lean functions and of their return sites; lean_x64.c.
struct RedirectSite;
void lean_entry(Builder *b, const struct RedirectSite *site);
void lean_before(Builder *b, const struct RedirectSite *site);
void lean_return(Builder *b, const struct RedirectSite *site);

// Fills b->flags_live; liveness.c.
void find_live_flags(Builder *b);
// Whether the last instruction that makes flags makes nothing else, and no instruction of the block
// reads them: a return may hand such flags to the caller, so the block should not end before it.
bool ends_with_idle_flags(const Builder *b);
// If a function that returns its result in flags was found in a region of code where none was
// known, retires the region's blocks: they may have lost the flags of such a return. Must not be
// called while a block is under construction. False: there is no new region.
bool drop_blocks_of_new_region(void);

// emit_access_address(): lea dst, [the address that b->insn accesses], segment base included;
// operand_x64.c. It needs the client's value of dst in dst. False if the access has no single
// address (VSIB).
bool access_is_push(const InsnAccess *access);
bool emit_access_address(Builder *b, unsigned dst, const InsnAccess *access);

// Adds the base of fs to *disp; fs_base.c. False: the base is not constant now, or the sum does not
// fit a displacement.
bool fs_base_add(Builder *b, i64 *disp);
// Rewrites the address to one without a segment. False: that is not possible.
bool flatten_address(Builder *b, InsnAddress *a);
// Stops using a constant if an instruction of the block sets the base. To be called when all
// instructions are known and no code has been emitted.
void fs_base_look(const Builder *b);

// Sets the hardware's gs from a base in ThreadCtx; operand_x64.c.
void emit_set_gs(Builder *b, i32 base_slot);

// The code of tool_call(); instrument_x64.c.
void emit_tool_call(Builder *b, void (*fn)(ThreadCtx *, u64, GuestAddr), u64 arg);

// Code that keeps the shadow call stack, for tools that ask for it; callstack_x64.c. The code of
// emit_callstack_push() follows the push of a call's return address and uses rax.
void emit_callstack_before_push(Builder *b, GuestAddr return_address, u32 landing, bool counts);
void emit_callstack_push(Builder *b, GuestAddr return_address, u32 landing);
// A whole return, with the search for its target. Spills rax, rcx and rdx.
void emit_callstack_return(Builder *b, u16 pop_bytes);
// Clears the call tag (calltags/calltags.h) of a return for which emit_callstack_return() is not
// used; emit_callstack_push() has set the tag.
void emit_calltag_clear(Builder *b, i32 disp);
// r11d := the number of the landing that the tag at [rsp] names. If that is no such tag, some
// number below LANDINGS_MAX.
void emit_load_landing(Builder *b);
// If b->insn gives frames a size that may differ (alloca, alignment), notes that its function is
// elastic.
void callstack_note_frame(const Builder *b);
// callstack_watches(): b->insn may take rsp to another frame or stack (longjmp, a coroutine), and
// somebody must know. Then the other two functions emit code before and behind it.
bool callstack_watches(const Builder *b);
void emit_callstack_before_load(Builder *b);
void emit_callstack_after_load(Builder *b);
void callstack_on_return_miss(ThreadCtx *ctx, u64 pc, GuestAddr slot);
// LOAD_RSP_ bits tell callstack_on_load_rsp() what follows in the same block.
enum { LOAD_RSP_CALLS = 1, LOAD_RSP_RETURNS = 2, LOAD_RSP_IN_FRAME = 4, LOAD_RSP_POPS = 8 };
void callstack_on_load_rsp(ThreadCtx *ctx, u64 how, GuestAddr address);

// Guards; guards_x64.c. builder_guard() emits the guard's branch, jne or jmp. builder_guards_end()
// makes the present place the one where the steps of all guards since `first` go on.
// emit_guard_stubs() emits the stubs of all guards of the block.
void builder_guard(Builder *b, X64Branch branch, const GuardAction *action);
void builder_guards_end(Builder *b, unsigned first);
void emit_guard_stubs(Builder *b);

// The search for an indirect target, which changes no flag: emit_lookup_spills() spills the
// registers that it needs, and emit_lookup() expects the guest target in rcx.
void emit_lookup_spills(Builder *b);
void emit_lookup(Builder *b);
// A return from a block of version 0 to a block of version 0; branches_x64.c.
void emit_return(Builder *b);
// A return to the block of the version that the thread's state asks for. Flags must be dead.
void emit_return_by_state(Builder *b);
#endif
