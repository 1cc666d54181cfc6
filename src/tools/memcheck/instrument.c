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
#include "tools/memcheck/known.h"
#include "tools/memcheck/lookahead.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/often.h"
#include "tools/memcheck/steps.h"

enum { ACCESSES_MAX = 4, STATE_LEGACY_BYTES = 512, RED_ZONE = 128 };

// Under the engine lock, for the block that is being made.
static MemberSet current;  // members that may be undefined before the next instruction
static bool exact;         // a thread that gets here has just this set
static const ToolInsn *block_end; // behind its last instruction

// Of a clean block in which guards often fail (often.h): a member of `current` is undefined only if
// the thread's set has it, and code asks.
static bool mixed;
static MemberSet low;      // of these: vectors whose low 16 bytes alone may be undefined

// ---------------------------------------------------------------------- steps

static void emit_with_step(ToolBlock *block, const ToolStep *step, const ToolAccess *access)
{
    for (u32 left = step->gprs; left; left &= left - 1)
        tool_store_gpr(block, (unsigned)__builtin_ctz(left));
    for (u32 left = step->vectors; left; left &= left - 1)
        tool_store_vector(block, (unsigned)__builtin_ctz(left));
    stats_count(block, MEMCHECK_STAT_STEPS);
    if (access)
        tool_call_access(block, access, step->fn, step->arg);
    else
        tool_call(block, step->fn, step->arg);
}

static void emit_step(ToolBlock *block, const ToolInsn *insn, DefinednessStep *step,
                      const ToolAccess *access)
{
    const ToolStep call = step_of(insn, step, access);
    emit_with_step(block, &call, access);
}

// Bits of a register are set or cleared, as bit-fields are: that needs no step if nobody looks at
// the flags. The register stays in the set, even if no bit is left.
static bool mask_inline(ToolBlock *block, const DefinednessStep *step)
{
    unsigned gpr;
    u64 kept;
    if (!definedness_masks(step, &gpr, &kept) || !tool_flags_are_dead(block) ||
        !tool_flags_die(block))
        return false;
    tool_state_mask(block, (u32)offsetof(Definedness, gpr) + 8 * gpr, kept);
    return true;
}

// Whether all that the instruction writes of the set is overwritten, so that no step is needed
// to find out what becomes of it.
static bool can_forget(const ToolBlock *block, const DefinednessStep *step)
{
    return !(definedness_writes(step) & current & ~definedness_overwrites(step)) &&
           tool_flags_are_dead(block);
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
        tool_store_gpr(block, RBP);
        tool_call(block, access_leave_frame, 1);
        return true;
    case ZYDIS_MNEMONIC_POP:
        if (!lookahead_is_left_read(insn, block_end))
            tool_shadow_fill_stack(block, 0, 8, 0xff);
        return true;
    case ZYDIS_MNEMONIC_RET: {
        u32 zone = lookahead_left_zone(insn->pc);
        tool_shadow_fill_stack(block, -(i32)zone, zone + 8, 0xff);
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
        tool_store_gpr(block, RBP);
        tool_call(block, access_leave_frame, 3);
        return true;
    } else {
        return false; // a load of rsp: stack_loaded() tells
    }
    u64 size = (u64)(amount < 0 ? -amount : amount);
    if (amount < 0)
        return true; // it is undefined since it was left (K3)
    if (lookahead_is_left_read(insn, block_end))
        return true;
    if (size <= INLINE_BYTES_MAX && size % 8 == 0)
        tool_shadow_fill_stack(block, 0, (u32)size, 0xff);
    else
        tool_call(block, access_leave_frame, size << 1);
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
    u32 size = framed != calls ? lookahead_red_zone(function) : 0;
    i32 from = calls ? -RETURN_BYTES : 0;
    if (size && size <= INLINE_BYTES_MAX)
        tool_shadow_fill_stack(block, from - (i32)size, size, 0xff);
    else if (size)
        tool_call(block, access_enter_frame, (u64)(size - from) << 1);
}

// -------------------------------------------------------------------- accesses

// Where an operand lies by its constants alone.
typedef struct StackOperand {
    bool on_stack; // its base is rsp
    bool indexed;
    i64 disp;
} StackOperand;

static StackOperand stack_operand(const ToolAccess *access)
{
    const InsnAddress *at = &access->address;
    return (StackOperand){at->base == RSP && !at->segment && !at->is_narrow && at->is_one,
                          at->index != INSN_NO_REG, at->disp};
}

static bool is_repeated(const ToolInsn *insn)
{
    InsnForm room;
    return insn_form(insn, &room)->is_repeated;
}

// xsave and its like.
static bool check_state(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    if (access->size_bytes != 0 && access->size_bytes < STATE_LEGACY_BYTES)
        return false;
    definedness_prepare(insn, step);
    if (!definedness_is_state(step))
        return false;
    const ToolStep call = step_calling(access_state, insn, step);
    emit_with_step(block, &call, access);
    known_nothing();
    return true;
}

// Masked moves, gathers and scatters.
static bool check_lanes(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    if (insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
        insn->mnemonic != ZYDIS_MNEMONIC_MASKMOVDQU)
        return false;
    definedness_prepare(insn, step);
    if (!definedness_has_lanes(step))
        return false;
    const ToolStep call = step_calling(access_lanes, insn, step);
    emit_with_step(block, &call, access);
    known_nothing();
    return true;
}

// The first words of a thread's control block, by the ABI: where it is, and the canary and the key
// with which functions protect what is on their stack. The client's libraries have made them.
static bool reads_control_block(const ToolAccess *access)
{
    enum { FS = 0x64, SELF = 0x10, CANARY = 0x28, KEY = 0x30 };
    const InsnAddress *at = &access->address;
    return at->segment == FS && at->base == INSN_NO_REG && at->index == INSN_NO_REG &&
           !access->writes && access->size_bytes == 8 &&
           (at->disp == 0 || at->disp == SELF || at->disp == CANARY || at->disp == KEY);
}

static u64 what_is_done(const ToolAccess *access)
{
    return access->size_bytes | (access->reads ? ACCESS_READS : 0) |
           (access->writes ? ACCESS_WRITES : 0);
}

// What lies below the stack pointer. True: also below the red zone.
static bool check_below(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    StackOperand stack = stack_operand(access);
    bool below = stack.on_stack && !stack.indexed && stack.disp < -RED_ZONE;
    if (stack.on_stack && stack.disp < 0 && stack.disp >= -RED_ZONE)
        lookahead_note_zone(insn->pc, (u32)(-stack.disp + 7) & ~7u);
    if (below)
        tool_call_access(block, access, access_below, what_is_done(access));
    return below;
}

static void check_access(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    if (check_lanes(block, insn, access) || check_state(block, insn, access))
        return;
    if (insn->mnemonic == ZYDIS_MNEMONIC_XLAT) {
        tool_call_access(block, access, access_table, 0);
        return;
    }
    u64 what = what_is_done(access);
    StackOperand stack = stack_operand(access);
    bool below = check_below(block, insn, access);
    if (!tool_shadow_can_check(block, access)) {
        tool_call_access(block, access, access_any, what);
        return;
    }
    if (known_defined(insn, access) || reads_control_block(access))
        return;
    if (access->reads && !memcheck_options->undef_value_errors) {
        u64 compared = step_loads_to_compare(insn, access) ? ACCESS_COMPARED : 0;
        tool_shadow_guard_step(block, access, &(ToolStep){access_load, what | compared, 0, 0, 0});
    } else if (access->reads) {
        tool_shadow_guard(block, access);
        known_add(insn, access);
    } else if (!below && stack.on_stack && !stack.indexed) {
        tool_shadow_clear(block, access);
        known_add(insn, access);
    } else {
        tool_shadow_guard_store(block, access);
    }
}

// Instructions that name memory and do not touch it.
static bool touches_nothing(const ToolInsn *insn)
{
    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_LEA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB: return true;
    default: return false;
    }
}

void instrument_block(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    current = version_set(tool_version(block));
    exact = current != ~0ull;
    mixed = tool_version(block) == 0;
    low = 0;
    block_end = insns + count;
    known_nothing();
}

bool instrument_exit_version(ToolBlock *block, u32 *ret_version)
{
    (void)block;
    *ret_version = mixed ? 0 : version_number(current);
    return mixed ? current == 0 : exact;
}

// What comes from the stack says nothing of where the stack is.
static bool keeps_rsp(const ToolInsn *insn)
{
    return insn->mnemonic == ZYDIS_MNEMONIC_POP || insn->mnemonic == ZYDIS_MNEMONIC_PUSH ||
           insn->mnemonic == ZYDIS_MNEMONIC_RET || insn->mnemonic == ZYDIS_MNEMONIC_CALL;
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

// -------------------------------------------------------------- mixed blocks

static void forget_if(ToolBlock *block, MemberSet members, const ToolStep *step)
{
    if (members)
        tool_guard_end(block, tool_state_guard_step(block, members, NULL, step));
}

// Before an instruction that the block may be left by, or that needs more than a step: a thread
// with anything undefined goes on in the version for that.
static void settle(ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step)
{
    bool is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    bool is_return = insn->lowering == LOWER_RET;
    MemberSet dead = is_call ? ACCESS_DEAD_AT_CALL : is_return ? ACCESS_DEAD_AT_RETURN : 0;
    MemberSet scalars = is_call ? 0xffull << 32 : MEMBER_VECTOR(0) | MEMBER_VECTOR(1);
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    if (reads & current)
        dead = 0;
    forget_if(block, current & dead, &(ToolStep){.fn = access_call, .arg = is_return});
    current &= ~dead | scalars;
    if (current && !is_call && !is_return) {
        MemberSet passed;
        dead = lookahead_dead(insn->pc, current, low, &passed);
        forget_if(block, dead, &(ToolStep){.fn = access_forget, .arg = dead});
        forget_if(block, passed, &(ToolStep){.fn = access_forget_copies, .arg = passed});
        current &= ~dead;
    }
    if (current)
        tool_state_guard(block, current);
    current = low = 0;
}

static bool can_step(const ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step,
                     const ToolAccess *accesses, unsigned count)
{
    bool can = insn->lowering == LOWER_COPY && !definedness_has_lanes(step) &&
               !definedness_is_state(step) && insn->mnemonic != ZYDIS_MNEMONIC_XLAT;
    for (unsigned i = 0; i < count; i++)
        can = can && tool_shadow_can_check(block, &accesses[i]);
    return can && !(count && is_repeated(insn));
}

// A branch needs the flags that are made before it: what is to be tested is tested before that.
static bool is_before_branch(const ToolBlock *block, const ToolInsn *insn)
{
    return insn + 1 < block_end && insn[1].lowering == LOWER_JCC && tool_flags_are_dead(block);
}

static void note_written(const DefinednessStep *step)
{
    DefinednessMove move;
    MemberSet writes = definedness_writes(step);
    low &= ~writes;
    if (definedness_move(step, &move) && move.to_member >= 32 && move.written <= 16)
        low |= writes & MEMBERS_VECTOR;
    current |= writes;
}

// True: all has been inserted that there is to know of the instruction's accesses and values.
static bool insert_mixed(ToolBlock *block, const ToolInsn *insn, const ToolAccess *accesses,
                         unsigned count)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    bool often = count && accesses[0].reads && often_fails(insn->pc);
    if (!current && !often)
        return false;
    if (insn->lowering == LOWER_JMP && insn + 1 < block_end)
        return true; // it is followed
    definedness_prepare(insn, step);
    if (!can_step(block, insn, step, accesses, count)) {
        settle(block, insn, step);
        return false;
    }
    MemberSet reads = definedness_reads(step) | definedness_address(step);
    MemberSet writes = definedness_writes(step), touched = (reads | writes) & current;
    if (!touched && !often) {
        if (is_before_branch(block, insn))
            settle(block, insn, step);
        return false;
    }
    if (!often && mask_inline(block, step))
        return true;
    if (!often && !(touched & ~step_overwrites(step, low))) {
        forget_if(block, touched, &(ToolStep){.fn = access_forget, .arg = touched});
        current &= ~touched;
        return false;
    }
    const ToolAccess *access = count ? &accesses[0] : NULL;
    ToolStep call = step_of(insn, step, access);
    call.counts = stats_of_step(false);
    unsigned asks = touched ? tool_state_guard_step(block, touched, access, &call) : 0;
    call.counts = stats_of_step(true);
    for (unsigned i = 0; i < count; i++) {
        if (!often || i > 0) {
            check_access(block, insn, &accesses[i]);
            continue;
        }
        check_below(block, insn, access);
        tool_shadow_guard_step(block, access, &call);
    }
    if (touched)
        tool_guard_end(block, asks);
    if (count)
        known_nothing();
    note_written(step);
    if (keeps_rsp(insn))
        current &= ~MEMBER_GPR(RSP);
    return true;
}

// In a dirty block, which counts as undefined whatever may be.
static void step_often(ToolBlock *block, const ToolInsn *insn, DefinednessStep *step,
                       const ToolAccess *accesses, unsigned count, bool overwrites)
{
    ToolStep call = step_of(insn, step, &accesses[0]);
    call.counts = stats_of_step(true);
    if (overwrites)
        forget_overwritten(block, definedness_writes(step) & current);
    check_below(block, insn, &accesses[0]);
    tool_shadow_guard_step(block, &accesses[0], &call);
    for (unsigned i = 1; i < count; i++)
        check_access(block, insn, &accesses[i]);
    known_nothing();
    current |= definedness_writes(step) & ~(keeps_rsp(insn) ? MEMBER_GPR(RSP) : 0);
    exact = false;
}

static void insert(ToolBlock *block, const ToolInsn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    ToolAccess accesses[ACCESSES_MAX];
    unsigned count = tool_accesses(insn, accesses, ACCESSES_MAX);
    if (touches_nothing(insn)) {
        // A prefetch of data that waits for its V bytes would be for nothing.
        if (count && insn->mnemonic != ZYDIS_MNEMONIC_LEA && insn->mnemonic != ZYDIS_MNEMONIC_NOP)
            tool_shadow_prefetch(block, &accesses[0]);
        count = 0;
    }
    bool first = tool_version(block) & VERSION_FIRST && tool_is_first(block, insn);

    stats_insn(block, insn);
    if (memcheck_options->undef_value_errors)
        open_red_zone(block, insn);
    if (count && is_repeated(insn)) {
        definedness_prepare(insn, step);
        if (mixed)
            settle(block, insn, step);
        tool_call(block, access_string, step_kept(step));
        known_nothing();
        return;
    }
    bool is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    bool leaves = is_call || insn->lowering == LOWER_RET;
    bool overwrites = false;
    if (count && mixed && only_discards(insn))
        count = 0;
    if (mixed && insert_mixed(block, insn, accesses, count)) {
        moves_stack(block, insn);
        return;
    }
    if (!mixed && (current || first)) {
        definedness_prepare(insn, step);
        MemberSet reads = definedness_reads(step), writes = definedness_writes(step);
        bool uses = first || (reads | definedness_address(step)) & current;
        overwrites = !uses && !leaves && can_forget(block, step);
        if (uses && !first && mask_inline(block, step))
            return;
        if (uses || (writes & current && !overwrites)) {
            if (first && count && can_step(block, insn, step, accesses, count))
                often_count(block, insn->pc);
            emit_step(block, insn, step, count ? &accesses[0] : NULL);
            known_nothing();
            if (first || (reads & current) || count)
                current |= writes & ~(keeps_rsp(insn) ? MEMBER_GPR(RSP) : 0);
            exact = false;
            if (!leaves) {
                moves_stack(block, insn);
                return;
            }
        }
    }
    if (current && !mixed && !first && count && accesses[0].reads && !leaves &&
        often_fails(insn->pc) && can_step(block, insn, step, accesses, count)) {
        step_often(block, insn, step, accesses, count, overwrites);
        moves_stack(block, insn);
        return;
    }
    if (leaves && !mixed)
        forget_dead(block, current & (is_call ? ACCESS_DEAD_AT_CALL : ACCESS_DEAD_AT_RETURN),
                    is_call);
    if (count && !mixed && only_discards(insn))
        count = 0;
    for (unsigned i = 0; i < count && insn->lowering != LOWER_RET; i++) {
        if (!is_call || accesses[i].reads) // what is pushed gets a tag
            check_access(block, insn, &accesses[i]);
    }
    if (overwrites)
        forget_overwritten(block, definedness_writes(step) & current);
    moves_stack(block, insn);
}

void instrument_insn(ToolBlock *block, const ToolInsn *insn)
{
    insert(block, insn);
    known_after(insn);
}
