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

enum { ACCESSES_MAX = 4, STEP_POOL_BYTES = 1 << 20, STATE_LEGACY_BYTES = 512, RED_ZONE = 128,
       KEPT_SLOTS = 1 << 14, KEPT_TRIES = 4 };

// Under the engine lock, for the block that is being made.
static MemberSet current;  // members that may be undefined before the next instruction
static bool exact;         // a thread that gets here has just this set
static const ToolInsn *block_end; // behind its last instruction

// ---------------------------------------------------------------------- steps

// The one that was kept and is the same, or the place where the new one may be remembered.
static void **kept_alike(const void *what, size_t bytes)
{
    static void *kept[KEPT_SLOTS];
    u64 hash = bytes, word;
    for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
        memcpy(&word, (const u8 *)what + i, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    void **slot = NULL;
    for (unsigned i = 0; i < KEPT_TRIES; i++) {
        slot = &kept[(hash + i) % KEPT_SLOTS];
        if (!*slot || (*(u64 *)*slot == bytes && !memcmp((u64 *)*slot + 1, what, bytes)))
            break;
    }
    return slot;
}

// Steps live as long as the process: blocks name them by address. Most instructions are like
// another one somewhere, and share its step. Each has its size before it.
static void *keep(const void *what, size_t bytes)
{
    static u8 *pool;
    static u64 left;
    void **alike = kept_alike(what, bytes);
    if (*alike && *(u64 *)*alike == bytes && !memcmp((u64 *)*alike + 1, what, bytes))
        return (u64 *)*alike + 1;
    if (left < sizeof(u64) + bytes) {
        pool = pages_map(STEP_POOL_BYTES);
        ASSERT(pool);
        left = STEP_POOL_BYTES;
    }
    u64 *at = (u64 *)pool;
    *at = bytes;
    memcpy(at + 1, what, bytes);
    pool += sizeof(u64) + bytes;
    left -= sizeof(u64) + bytes;
    *alike = at;
    return at + 1;
}

static DefinednessStep *keep_step(const void *step)
{
    return keep(step, DEFINEDNESS_STEP_BYTES);
}

static bool loads_to_compare(const ToolInsn *insn, const ToolAccess *access)
{
    return access->reads && !access->writes && access->size_bytes >= 8 &&
           lookahead_is_compared(insn);
}

static void emit_with_step(ToolBlock *block, const ToolInsn *insn, const DefinednessStep *step,
                           const ToolAccess *access, ToolCallFn *fn)
{
    static const u8 preserved[] = {RBX, RBP, R12, R13, R14, R15};
    u32 used = insn_gprs_used(insn);
    for (size_t i = 0; i < ARRAY_LEN(preserved); i++) {
        if (used >> preserved[i] & 1)
            tool_store_gpr(block, preserved[i]);
    }
    for (u32 vectors = definedness_needs_vectors(step); vectors; vectors &= vectors - 1)
        tool_store_vector(block, (unsigned)__builtin_ctz(vectors));
    stats_count(block, MEMCHECK_STAT_STEPS);
    AccessMove move = {.step = keep_step(step)};
    u64 kept = (u64)move.step;
    if (fn == access_step && definedness_move(step, &move.move)) {
        kept = (u64)keep(&move, sizeof(move));
        fn = access_move(&move.move);
    }
    if (access)
        tool_call_access(block, access, fn, kept);
    else
        tool_call(block, fn, kept);
}

static void emit_step(ToolBlock *block, const ToolInsn *insn, DefinednessStep *step,
                      const ToolAccess *access)
{
    if (access && loads_to_compare(insn, access))
        definedness_set_compared(step);
    emit_with_step(block, insn, step, access, access_step);
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
    emit_with_step(block, insn, step, access, access_state);
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
    emit_with_step(block, insn, step, access, access_lanes);
    known_nothing();
    return true;
}

static void check_access(ToolBlock *block, const ToolInsn *insn, const ToolAccess *access)
{
    if (check_lanes(block, insn, access) || check_state(block, insn, access))
        return;
    if (insn->mnemonic == ZYDIS_MNEMONIC_XLAT) {
        tool_call_access(block, access, access_table, 0);
        return;
    }
    u64 what = access->size_bytes | (access->reads ? ACCESS_READS : 0) |
               (access->writes ? ACCESS_WRITES : 0);
    StackOperand stack = stack_operand(access);
    bool below = stack.on_stack && !stack.indexed && stack.disp < -RED_ZONE;
    if (stack.on_stack && stack.disp < 0 && stack.disp >= -RED_ZONE)
        lookahead_note_zone(insn->pc, (u32)(-stack.disp + 7) & ~7u);
    if (below)
        tool_call_access(block, access, access_below, what);
    if (!tool_shadow_can_check(block, access)) {
        tool_call_access(block, access, access_any, what);
        return;
    }
    if (known_defined(insn, access))
        return;
    if (access->reads && !memcheck_options->undef_value_errors) {
        tool_shadow_guard_call(block, access, access_load, what | (loads_to_compare(insn, access)
                                                                       ? ACCESS_COMPARED : 0));
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
    block_end = insns + count;
    current = version_set(tool_version(block));
    exact = current != ~0ull;
    known_nothing();
}

bool instrument_exit_version(ToolBlock *block, u32 *ret_version)
{
    (void)block;
    *ret_version = version_number(current);
    return exact;
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
        tool_call(block, access_string, (u64)keep_step(step));
        known_nothing();
        return;
    }
    bool is_call = insn->lowering == LOWER_CALL || insn->lowering == LOWER_CALL_INDIRECT;
    bool leaves = is_call || insn->lowering == LOWER_RET;
    bool overwrites = false;
    if (current || first) {
        definedness_prepare(insn, step);
        MemberSet reads = definedness_reads(step), writes = definedness_writes(step);
        bool uses = first || (reads | definedness_address(step)) & current;
        overwrites = !uses && !leaves && can_forget(block, step);
        if (uses && !first && mask_inline(block, step))
            return;
        if (uses || (writes & current && !overwrites)) {
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
    if (leaves)
        forget_dead(block, current & (is_call ? ACCESS_DEAD_AT_CALL : ACCESS_DEAD_AT_RETURN),
                    is_call);
    if (count && only_discards(insn))
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
