// SPDX-License-Identifier: MIT
//
// What is inserted into blocks. In a clean block: a guard before each load, a check or a
// mark for each store, marks where the stack grows and shrinks. In a dirty one, also a
// step before each instruction that touches a member of the set.
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"
#include "engine/aspace/aspace.h"
#include "engine/cache/cache.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/translate/ahead.h"
#include "tools/memcheck/translate/bitfields.h"
#include "tools/memcheck/translate/checks.h"
#include "tools/memcheck/translate/constants.h"
#include "tools/memcheck/translate/copies.h"
#include "tools/memcheck/translate/known.h"
#include "tools/memcheck/translate/lookahead.h"
#include "tools/memcheck/translate/mixed.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/steps.h"
#include "tools/memcheck/translate/swapped.h"
#include "tools/memcheck/translate/translate.h"

enum { ACCESSES_MAX = 4 };

// Under the engine lock, for the block that is being made.
static MemberSet current;  // members that may be undefined before the next instruction
static bool exact;         // a thread that gets here has just this set
static const ToolInsn *block_end; // behind its last instruction

static bool mixed;         // a clean block: see mixed.h for what may be undefined

// ---------------------------------------------------------------------- steps

static void emit_step(ToolBlock *block, const ToolInsn *insn, DefinednessStep *step,
                      const ToolAccess *access)
{
    u32 bytes;
    MemberSet forgotten = step_forgets(insn, step, current, 0, &bytes);
    ToolStep call = step_of(insn, step, access, bytes);
    if (insn->lowering == LOWER_JCC)
        swapped_step(block, insn, &call);
    step_emit(block, &call, access);
    current &= ~forgotten;
}

// Whether all that the instruction writes of the set is overwritten, so that no step is needed
// to find out what becomes of it.
static bool can_forget(const ToolBlock *block, const DefinednessStep *step)
{
    return !(definedness_writes(step) & current & ~definedness_overwrites(step)) &&
           tool_flags_are_dead(block);
}

static bool touches_current(const ToolInsn *insn)
{
    if (!current)
        return false;
    StepGist gist = step_gist(insn);
    return (gist.reads | gist.writes) & current;
}

static u32 state_of(unsigned member)
{
    return member < 16   ? (u32)offsetof(Definedness, gpr) + 8 * member
           : member < 32 ? (u32)offsetof(Definedness, flags)
                         : (u32)offsetof(Definedness, vector) + 64 * (member - 32);
}

static void emit_forget(ToolBlock *block, MemberSet members)
{
    for (MemberSet left = members; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        unsigned words = member < 32 ? 1 : 8;
        for (unsigned i = 0; i < words; i++)
            tool_state_store(block, state_of(member) + 8 * i, 0);
    }
    tool_state_and(block, ~members);
}

static void forget_overwritten(ToolBlock *block, MemberSet members)
{
    if (!members)
        return;
    emit_forget(block, members);
    current &= ~members;
}

// What only bits beyond a scalar's make undefined is the temporary of a copy, dead by now.
static void forget_copies(ToolBlock *block, MemberSet vectors)
{
    for (MemberSet left = vectors; left; left &= left - 1) {
        unsigned member = (unsigned)__builtin_ctzll(left);
        CodePtr site = tool_state_if(block, state_of(member) + 8);
        emit_forget(block, 1ull << member);
        tool_state_end_if(block, site);
    }
    exact = exact && !vectors;
}

// At calls and returns most registers hold nothing by the ABI. What they still carry would ride
// along through all that follows: it counts as defined.
static void forget_dead(ToolBlock *block, MemberSet dead, bool is_call)
{
    const MemberSet scalars = is_call ? 0xffull << 32 : MEMBER_VECTOR(0) | MEMBER_VECTOR(1);
    const MemberSet plain = 0xffff | MEMBER_FLAGS | MEMBERS_VECTOR;
    if (!dead)
        return;
    if (dead & ~plain || !tool_flags_are_dead(block)) {
        tool_call(block, access_call, !is_call);
        exact = false;
    } else {
        forget_copies(block, dead & scalars);
        forget_overwritten(block, dead & ~scalars);
    }
}

// ----------------------------------------------------------------------- stack

// `leave`, `mov rsp, rbp`, or `lea rsp, [rbp + disp]`: what is left ends so far above rbp.
static void leave_by_rbp(ToolBlock *block, const ToolInsn *insn, i64 above)
{
    if (lookahead_is_left_read(insn, block_end))
        return;
    tool_store_gpr(block, RBP);
    tool_call(block, stacks_leave_by_rbp, (u64)above);
}

// What is left when rsp goes up is undefined again, so that entering a frame costs nothing
// and a dangling pointer into a dead one is noticed (docs/design/stack-marks.md). What push
// and call store is marked by them.
static bool moves_stack(ToolBlock *block, const ToolInsn *insn)
{
    InsnForm room;
    const InsnForm *form;
    enum { INLINE_BYTES_MAX = 512 };
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE:
        leave_by_rbp(block, insn, 8);
        return true;
    case ZYDIS_MNEMONIC_POP:
        if (!lookahead_is_left_read(insn, block_end))
            tool_shadow_fill_stack(block, 0, 8, 0xff);
        return true;
    case ZYDIS_MNEMONIC_RET: {
        RedZone zone = lookahead_left_zone(insn->pc); // what is popped is marked with its tag
        if (zone.low > zone.high)
            tool_shadow_fill_stack(block, -(i32)zone.low, zone.low - zone.high, 0xff);
        return true;
    }
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_MOV: break;
    default: return false;
    }
    form = insn_form(insn, &room);
    if (form->dst != RSP)
        return false;
    i64 amount;
    if (form->has_imm && insn->mnemonic != ZYDIS_MNEMONIC_MOV) {
        amount = insn_imm(insn);
        if (insn->mnemonic == ZYDIS_MNEMONIC_SUB)
            amount = -amount;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && form->lea_base == RSP &&
               !form->lea_indexed) {
        amount = insn_disp(insn);
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_MOV && form->src == RBP) {
        leave_by_rbp(block, insn, 0);
        return true;
    } else if (insn->mnemonic == ZYDIS_MNEMONIC_LEA && form->lea_base == RBP &&
               !form->lea_indexed) {
        leave_by_rbp(block, insn, insn_disp(insn));
        return true;
    } else {
        return false; // a load of rsp: stack_loaded() tells
    }
    u64 size = (u64)(amount < 0 ? -amount : amount);
    if (amount < 0)
        return true; // it is undefined since it was left (K3)
    if (lookahead_is_left_read(insn, block_end))
        return true;
    u32 below = lookahead_left_zone(insn->pc).low; // its red zone
    if (below + size <= INLINE_BYTES_MAX && size % 8 == 0)
        tool_shadow_fill_stack(block, -(i32)below, below + (u32)size, 0xff);
    else
        tool_call(block, stacks_leave_frame, size);
    return true;
}

// A function that calls nothing may use what is below its stack pointer and never opens it: that is
// done before a direct call of it or, if it makes itself a frame, where it begins.
static void open_red_zone(ToolBlock *block, const ToolInsn *insn)
{
    enum { INLINE_BYTES_MAX = 256, RETURN_BYTES = 8, PUSH_RBP = 0x55 };
    static const u8 frame[] = {0x48, 0x89, 0xe5}; // mov rbp, rsp
    u8 bytes[1 + sizeof(frame)];
    bool calls = insn->lowering == LOWER_CALL;
    GuestAddr function = calls ? insn->target : insn->pc;
    if (!calls && (insn->len != 1 || insn->bytes[0] != PUSH_RBP))
        return;
    bool framed = guest_read(function, bytes, sizeof(bytes)) && bytes[0] == PUSH_RBP &&
                  memcmp(bytes + 1, frame, sizeof(frame)) == 0;
    u32 size = framed != calls ? lookahead_red_zone(function, framed).low : 0;
    if (framed && !calls)
        lookahead_note_frame(function);
    i32 from = calls ? -RETURN_BYTES : 0;
    if (size && size <= INLINE_BYTES_MAX)
        tool_shadow_fill_stack(block, from - (i32)size, size, 0xff);
    else if (size)
        tool_call(block, stacks_enter_frame, (u64)(size - from) << 1);
}

void instrument_block(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    current = version_set(tool_version(block));
    exact = current != ~0ull;
    mixed = tool_version(block) == 0;
    block_end = insns + count;
    mixed_begin(block_end);
    ahead_begin(block_end);
    copies_begin(insns, block_end);
    known_nothing();
    constants_begin();
    often_begin();
}

bool instrument_exit_version(ToolBlock *block, u32 *ret_version)
{
    (void)block;
    *ret_version = version_of_exit(block_end[-1].pc, mixed ? 0 : current);
    return mixed ? mixed_is_settled() : exact;
}

// `pop` in place of `add rsp, 8`, which is longer: compilers put it behind calls, into a register
// that calls do not preserve. What it finds is often undefined, and would ride along.
static bool only_discards(const ToolInsn *insn)
{
    InsnForm room;
    if (insn->mnemonic != ZYDIS_MNEMONIC_POP)
        return false;
    const InsnForm *form = insn_form(insn, &room);
    const u32 kept = 1u << RBX | 1u << RBP | 1u << RSP | 1u << R12 | 1u << R13 | 1u << R14 |
                     1u << R15; // by functions, for those that call them
    return form->dst < GPR_COUNT && form->writes_dst && !(kept >> form->dst & 1) &&
           !lookahead_is_read(insn->pc + insn->len, form->dst);
}

// An instruction that is being looked at.
typedef struct Insertion {
    ToolBlock *block;
    const ToolInsn *insn;
    DefinednessStep *step; // prepared where its registers are asked for
    ToolAccess accesses[ACCESSES_MAX];
    unsigned count;
    bool first;            // with the step of it the version begins
    bool is_call, leaves;  // a call; or a return
    bool overwrites;       // what is undefined, and reads nothing of that
    bool is_stepped;
} Insertion;

static void find_accesses(Insertion *at)
{
    const ToolInsn *insn = at->insn;
    at->count = tool_accesses(insn, at->accesses, ACCESSES_MAX);
    if (!touches_nothing(insn))
        return;
    if (memcheck_options->undef_value_errors)
        check_pointer(insn);
    // A prefetch of data that waits for its V bytes would be for nothing.
    if (at->count && insn->mnemonic != ZYDIS_MNEMONIC_LEA && insn->mnemonic != ZYDIS_MNEMONIC_NOP)
        tool_shadow_prefetch(at->block, &at->accesses[0]);
    at->count = 0;
}

static void forget_if_overwritten(Insertion *at)
{
    if (at->overwrites)
        forget_overwritten(at->block, definedness_writes(at->step) & current);
}

static void call_string(Insertion *at)
{
    definedness_prepare(at->insn, at->step);
    if (mixed)
        mixed_settle(at->block, at->insn, at->step);
    tool_call(at->block, access_string, step_kept(at->step));
    known_nothing();
}

// In a dirty block: the step of an instruction that has to do with what is undefined. True: there
// is nothing else to be done for it.
static bool take_step(Insertion *at)
{
    DefinednessStep *step = at->step;
    definedness_prepare(at->insn, step);
    MemberSet reads = definedness_reads(step), writes = definedness_writes(step);
    bool uses = at->first || (reads | definedness_address(step)) & current;
    at->overwrites = !uses && !at->leaves && can_forget(at->block, step);
    if (uses && !at->first && step_masks_inline(at->block, step)) {
        exact = false;
        return true;
    }
    if (!uses && (!(writes & current) || at->overwrites))
        return false;
    if (at->first && at->count &&
        step_is_possible(at->block, at->insn, step, at->accesses, at->count))
        often_count(at->block, at->insn->pc);
    emit_step(at->block, at->insn, step, at->count ? &at->accesses[0] : NULL);
    known_nothing();
    if (at->first || (reads & current) || at->count)
        current |= step_leaves(at->insn, step);
    exact = false;
    at->is_stepped = true; // a guard of what it has looked at would fail again, for ever
    return !at->leaves;
}

// In a dirty block, which counts as undefined whatever may be: a load whose guard often fails.
static bool load_often(Insertion *at)
{
    if (at->count == 1 && bitfields_guard(at->block, at->insn, block_end, &at->accesses[0])) {
        forget_if_overwritten(at);
        return true;
    }
    definedness_prepare(at->insn, at->step);
    if (!step_is_possible(at->block, at->insn, at->step, at->accesses, at->count))
        return false;
    ToolStep call = step_of(at->insn, at->step, &at->accesses[0], 0);
    call.counts = stats_of_step(at->block, true);
    forget_if_overwritten(at);
    check_below(at->block, at->insn, &at->accesses[0]);
    unsigned first = tool_shadow_guard_step(at->block, &at->accesses[0], &call);
    // The step has done what is inserted from here on: a check of what the instruction stores would
    // make that defined again (`push [m]`).
    check_accesses(at->block, at->insn, at->accesses + 1, at->count - 1);
    tool_guard_end(at->block, first);
    known_nothing();
    current |= step_leaves(at->insn, at->step);
    exact = false;
    return true;
}

static bool insert_dirty(Insertion *at)
{
    if ((at->first || touches_current(at->insn)) && take_step(at))
        return true;
    bool loads = !at->first && !at->leaves && at->count && at->accesses[0].reads;
    if ((current || copies_is_within(at->insn)) && loads && often_fails(at->insn->pc) &&
        load_often(at))
        return true;
    if (at->leaves)
        forget_dead(at->block,
                    current & (at->is_call ? ACCESS_DEAD_AT_CALL : ACCESS_DEAD_AT_RETURN),
                    at->is_call);
    if (at->count && only_discards(at->insn))
        at->count = 0;
    return false;
}

static bool insert_mixed(Insertion *at)
{
    if (at->count && only_discards(at->insn))
        at->count = 0;
    if (mixed_insert(at->block, at->insn, at->accesses, at->count))
        return true;
    if (mixed_is_settled() && memcheck_options->undef_value_errors && !copies_is_within(at->insn))
        ahead_insert(at->block, at->insn);
    return false;
}

static void insert(ToolBlock *block, const ToolInsn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    Insertion at; // its accesses are as good as they are
    at.block = block;
    at.insn = insn;
    at.step = (DefinednessStep *)room;
    at.first = tool_version(block) & VERSION_FIRST && tool_is_first(block, insn);
    at.is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    at.leaves = at.is_call || insn->lowering == LOWER_RET;
    at.overwrites = at.is_stepped = false;
    find_accesses(&at);
    stats_insn(block, insn);
    if (memcheck_options->undef_value_errors)
        open_red_zone(block, insn);
    if (at.count && step_is_repeated(insn)) {
        call_string(&at);
        return;
    }
    if (!at.first && memcheck_options->undef_value_errors &&
        copies_insert(block, insn, mixed ? mixed_current() : &current))
        return;
    if (!(mixed ? insert_mixed(&at) : insert_dirty(&at))) {
        if (at.is_call && !at.is_stepped)
            check_loads(block, insn, at.accesses, at.count); // what is pushed gets a tag
        else if (!at.leaves && !at.is_stepped)
            check_accesses(block, insn, at.accesses, at.count);
        forget_if_overwritten(&at);
    }
    moves_stack(block, insn);
}

void instrument_insn(ToolBlock *block, const ToolInsn *insn)
{
    insert(block, insn);
    known_after(insn);
    constants_after(insn);
}
