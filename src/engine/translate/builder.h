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
#define LINK_STUB_BYTES 17 // of one that is to be linked
#define CALL_STUB_BYTES (LINK_STUB_BYTES + 5)
#define EXIT_STUBS_ROOM (BLOCK_EXITS_MAX * EXIT_STUB_BYTES)
#define INSN_MARKS 20 // no lowering, tool code that is no insertion included, makes more
#define BLOCK_MARKS_MAX (BLOCK_INSNS_MAX * 12)
#define INSN_GUARDS_MAX 40 // three accesses of 64 bytes; 128 bytes that are copied to others
#define BLOCK_GUARDS_MAX (BLOCK_INSNS_MAX * 2)
#define GUARD_STUB_ROOM 320
#define GUARD_STUBS_ROOM (BLOCK_GUARDS_MAX * GUARD_STUB_ROOM)

// What is done where a guard's branch is taken.
typedef enum GuardKind {
    GUARD_FAIL,  // go on in the version that begins with the instruction's step
    GUARD_LEAVE, // or in that of the state
    GUARD_STEP,  // call, and go on at `back`
    GUARD_STORE, // the same, by a gateway of its own where there is one
} GuardKind;

typedef struct GuardAction {
    GuardKind kind;
    bool is_early; // taken as well if the test faults
    ToolStep step;
    const InsnAccess *access; // whose address the step gets, or NULL
} GuardAction;

typedef struct Guard {
    X64Jump branch;
    u16 spilled;    // to be loaded again in the stub
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
    CodeMark marks[BLOCK_MARKS_MAX]; // of the block, as they are made
    unsigned mark_count;
    Insn insns[BLOCK_INSNS_MAX];
    // The bytes of each as they were: other threads may store to the client's meanwhile.
    u8 taken[BLOCK_INSNS_MAX][32];
    unsigned insn_count;
    struct {
        GuestAddr start, end;
    } runs[BLOCK_RUNS_MAX]; // contiguous guest bytes that the block was made from
    unsigned run_count;
    GuestAddr next_pc;     // where the guest goes on if the last instruction falls through
    const Insn *insn;      // being lowered
    const Insn *whole_to;  // no boundary up to this one: tool_keep_whole()
    u16 spilled;           // registers that are in ctx->translate.spill at e.pc
    u16 held;              // likewise, over several instructions that do not use them
    bool fallthrough;      // the last instruction lowered falls through to next_pc
    CodePtr landing;       // of the block's call, where it has one (block->landing)
    bool may_fall;         // there is room for another block behind it
    bool has_fs_base;      // it holds while fs has the base that it has now (fs_base.c)
    bool changes_version;  // C has run that may have made the state another one
    u8 flags_live[BLOCK_INSNS_MAX]; // arithmetic flags live before each instruction, as FlagBits
    Guard guards[BLOCK_GUARDS_MAX];
    unsigned guard_count;
} Builder;

// The code from here on belongs to b->insn, with b->spilled spilled.
void builder_mark(Builder *b, bool boundary);
void builder_mark_nowhere(Builder *b);

// mov fs:[spill r], r, and the mark that says so; and back.
void builder_spill(Builder *b, unsigned reg);
void builder_unspill(Builder *b, unsigned reg);
void builder_forget_spill(Builder *b, unsigned reg); // the instruction has overwritten it

// A link site that leads to the guest address `target`.
void builder_exit(Builder *b, X64Branch branch, GuestAddr target);

// Lowers b->insn.
void lower_insn(Builder *b);
void lower_call(Builder *b, const Insn *insn);
void lower_call_indirect(Builder *b, const Insn *insn);
void lower_jmp_indirect(Builder *b, const Insn *insn);
void lower_ret(Builder *b, const Insn *insn);
// push return_address; the client's stack must hold the guest's address. `counts`: as a call.
void emit_push_return(Builder *b, GuestAddr return_address, u32 landing, bool counts);
// Leaves the cache for good, to go on at pc.
void emit_leave_at(Builder *b, GuestAddr pc, ExitReason reason);

// Copies `insn` with its memory operand rewritten as it must be; operand_x64.c.
void lower_copy(Builder *b, const Insn *insn);

// Code that leaves by EXIT_STALE if the guest bytes [start, end) are not what
// they are now; selfcheck_x64.c.
void emit_self_check(Builder *b, GuestAddr start, GuestAddr end);

// Emits the prologue of a hooked block, if it is one (redirect/redirect.h). False: the block
// ends with it; intercept_x64.c.
bool intercept(Builder *b);
void emit_leave_to_c(Builder *b, u32 exit_link);
void emit_fast_call(Builder *b, u32 (*fn)(u32 hook), u32 hook);
// Those of lean functions, and of return sites where there are such; lean_x64.c.
struct RedirectSite;
void lean_entry(Builder *b, const struct RedirectSite *site);
void lean_before(Builder *b, const struct RedirectSite *site);
void lean_return(Builder *b, const struct RedirectSite *site);

// Fills b->flags_live; liveness.c.
void find_live_flags(Builder *b);
// The last instructions make flags that a return may give to the caller: the block should not be
// cut there.
bool ends_with_idle_flags(const Builder *b);
// Blocks that were made before such a function was seen may hold the end of one. Not while
// another is being made. False: there is no new one.
bool drop_blocks_of_new_region(void);

// lea dst, [where b->insn accesses memory], segment base included; operand_x64.c.
// The client's value of dst is still in dst. False when there is no address (VSIB).
bool access_is_push(const InsnAccess *access);
bool emit_access_address(Builder *b, unsigned dst, const InsnAccess *access);

// The base of fs as a constant; fs_base.c. False: it is none, or too large.
bool fs_base_add(Builder *b, i64 *disp);
// The address without a segment, if that is possible.
bool flatten_address(Builder *b, InsnAddress *a);
// Once all instructions are known, before code is made of them.
void fs_base_look(const Builder *b);

// Sets the hardware's gs from a base in ThreadCtx; operand_x64.c.
void emit_set_gs(Builder *b, i32 base_slot);

// The code of tool_call(); instrument_x64.c.
void emit_tool_call(Builder *b, void (*fn)(ThreadCtx *, u64, GuestAddr), u64 arg);

// The shadow call stack, for tools that ask for it; callstack_x64.c.
// After a call's return address has been pushed. Uses rax.
void emit_callstack_before_push(Builder *b, GuestAddr return_address, u32 landing, bool counts);
void emit_callstack_push(Builder *b, GuestAddr return_address, u32 landing);
// A whole return with its search, rax, rcx and rdx spilled on the way.
void emit_callstack_return(Builder *b, u16 pop_bytes);
// Of the tags (calltags/calltags.h), which emit_callstack_push() sets: in any other return.
void emit_calltag_clear(Builder *b, i32 disp);
void emit_load_landing(Builder *b);
// Frames of whose function may differ in size, if it is one that tells so.
void callstack_note_frame(const Builder *b);
// Around an instruction that loads rsp from something that is no frame.
bool callstack_watches(const Builder *b);
void emit_callstack_before_load(Builder *b);
void emit_callstack_after_load(Builder *b);
void callstack_on_return_miss(ThreadCtx *ctx, u64 pc, GuestAddr slot);
// `how` tells what follows in the same block.
enum { LOAD_RSP_CALLS = 1, LOAD_RSP_RETURNS = 2, LOAD_RSP_IN_FRAME = 4, LOAD_RSP_POPS = 8 };
void callstack_on_load_rsp(ThreadCtx *ctx, u64 how, GuestAddr address);

// The branch of a guard, jne or jmp; where steps of those since `first` go on; and all stubs of the
// block; guards_x64.c.
void builder_guard(Builder *b, X64Branch branch, const GuardAction *action);
void builder_guards_end(Builder *b, unsigned first);
void emit_guard_stubs(Builder *b);

// The flag-free search for an indirect target: rcx holds the guest target, and what it needs was
// spilled before.
void emit_lookup_spills(Builder *b);
void emit_lookup(Builder *b);
// A return to where the version is 0, from a block whose version is; branches_x64.c.
void emit_return(Builder *b);
void emit_return_by_state(Builder *b); // or another version; the flags are dead
#endif
