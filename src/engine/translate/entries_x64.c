// SPDX-License-Identifier: MIT
//
// The code in front of a block by which indirect branches arrive. They come through tables that
// hold a place and nothing else, so each entry checks that its block is the one that was meant
// (docs/design/indirect-lookup.md).
#include "engine/translate/entries_x64.h"

#include "base/probe.h"
#include "engine/ctx/ctx.h"
#include "engine/gateway/gateway.h"
#include "engine/toolapi/toolapi.h"
#include "engine/translate/translate.h"

bool entries_by_loop = true;

enum { PROBE_TURNS = 1024 }; // so that to take the time counts for nothing

static void try_loop(void)
{
    u64 turns = PROBE_TURNS;
    __asm__ volatile("1: loop 1b" : "+c"(turns));
}

static void try_branch(void)
{
    u64 turns = PROBE_TURNS;
    __asm__ volatile("1: dec %0 ; jnz 1b" : "+r"(turns) : : "cc");
}

// A turn of `loop` takes one cycle on Zen, as that of a decrement and a branch does, and several
// on Intel's processors, of which some are nearer to two than to six. No processor tells, so it is
// tried.
void entries_init(bool other)
{
    entries_by_loop = (2 * probe_ticks(try_loop) < 3 * probe_ticks(try_branch)) != other;
}

// lea rcx, [rcx - amount], by way of a scratch register where that is far.
static void emit_subtract(Emitter *e, u64 amount, unsigned scratch)
{
    if (fits_i32(-(i64)amount)) {
        x64_lea_reg_mem(e, QWORD, RCX, x64_at(RCX, (i32)-amount));
    } else {
        x64_mov_reg_imm(e, scratch, -amount);
        x64_lea_reg_mem(e, QWORD, RCX, x64_sum(RCX, scratch));
    }
}

// What rcx is when all is well (emit_unless_well()).
static u64 well(void)
{
    return entries_by_loop ? 1 : 0;
}

// Goes to `other` unless rcx is well(), and touches no flag. `loop` decrements rcx and jumps while
// it is not zero:
//     loop other
// It is not taken when all is well, so it needs no entry in the branch target buffer, which is what
// large programs run out of first: on Zen 4 a program of 4,000 return sites took 1.7 times as long
// with `jrcxz`, which is. Where `loop` is slow that is still better:
//     jrcxz well ; jmp other
//   well:
static void emit_unless_well(Emitter *e, CodePtr other)
{
    if (entries_by_loop) {
        x64_loop_to(e, other);
        return;
    }
    X64Jump well = x64_jrcxz(e);
    x64_jmp_short_to(e, other);
    x64_land(e, well);
}

// The entry from the lookup table: rcx holds the guest target, rcx and rax, or r11, of the
// client are spilled, and other targets may share the table entry.
//   other: lea rcx, [rcx + pc] ; jmp lookup_miss
//   entry: lea rcx, [rcx - pc + well] ; unless well, other
//          mov rcx, fs:[spill rcx] ; mov rax, fs:[spill rax] (r11)
static CodePtr emit_lookup_entry(Emitter *e, GuestAddr pc)
{
    unsigned scratch = tool->needs & TOOL_LOOSE_FLAGS ? R11 : RAX;
    CodePtr other = e->pc;
    emit_subtract(e, -pc, scratch);
    x64_jmp_to(e, gateway_lookup_miss());
    CodePtr entry = e->pc;
    emit_subtract(e, pc - well(), scratch);
    emit_unless_well(e, other);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_reg_fs(e, scratch, CTX_SPILL(scratch));
    return entry;
}

// The entry from the return table: the target was just popped, so it is still
// below rsp, and one spilled register is enough. Returns are the most frequent
// indirect branches.
//   other: jmp return_miss
//   entry: mov rcx, [rsp - 8] ; lea rcx, [rcx - pc + well] ; unless well, other
//          mov rcx, fs:[spill rcx]
//
// Where flags count as dead at returns, and pc is near:
//   entry: cmp qword [rsp - 8], pc ; jne return_miss ; mov r11, fs:[spill r11]
// Saved and loaded again at each branch, a register becomes a chain that everything waits
// for: this one is not that of the other branches.
static CodePtr emit_return_entry(Emitter *e, GuestAddr pc)
{
    if (tool->needs & TOOL_LOOSE_FLAGS && fits_i32((i64)pc)) {
        CodePtr entry = e->pc;
        x64_cmp_mem_imm(e, QWORD, x64_at(RSP, -8), (i32)pc);
        x64_branch_to(e, X64_NE, gateway_return_miss());
        x64_mov_reg_fs(e, R11, CTX_SPILL(R11));
        return entry;
    }
    bool far = !fits_i32(1 - (i64)pc);
    CodePtr other = e->pc;
    x64_jmp_to(e, gateway_far_return_miss());
    CodePtr entry = e->pc;
    if (tool->needs & TOOL_LOOSE_FLAGS) {
        x64_mov_reg_fs(e, R11, CTX_SPILL(R11));
        x64_mov_fs_reg(e, CTX_SPILL(RCX), RCX);
    }
    if (far)
        x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    x64_mov_reg_mem(e, QWORD, RCX, x64_at(RSP, -8));
    emit_subtract(e, pc - well(), RAX);
    if (far)
        x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    emit_unless_well(e, other);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    return entry;
}

// The entry from the version table: rcx is version_sum(), rax and rcx are spilled.
//   other: jmp version_miss
//   entry: lea rcx, [rcx - sum + well] ; unless well, other ; [mov dword fs:[guard_failed], 0]
//          mov rcx, fs:[spill rcx] ; mov rax, fs:[spill rax]
static CodePtr emit_version_entry(Emitter *e, const Block *block)
{
    CodePtr other = e->pc;
    x64_jmp_to(e, gateway_version_miss());
    CodePtr entry = e->pc;
    emit_subtract(e, version_sum(block->pc, block->state, block->version) - well(), RAX);
    emit_unless_well(e, other);
    if (block->version & VERSION_FIRST)
        x64_mov_fs_imm32(e, CTX(gateway.guard_failed), 0);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    return entry;
}

// The entry of calls that are one for the processor: its return address is no use to the client.
//     lea rsp, [rsp + 8]
static CodePtr emit_call_entry(Emitter *e)
{
    CodePtr entry = e->pc;
    x64_lea_reg_mem(e, QWORD, RSP, x64_at(RSP, 8));
    return entry;
}

void emit_entry(Emitter *e, Block *block, EntryKind kind)
{
    if (kind == ENTRY_LOOKUP)
        block->entry = code_ref(emit_lookup_entry(e, block->pc));
    else if (kind == ENTRY_RETURN)
        block->return_entry = code_ref(emit_return_entry(e, block->pc));
    else if (kind == ENTRY_CALL)
        block->call_entry = code_ref(emit_call_entry(e));
    else
        block->version_entry = code_ref(emit_version_entry(e, block));
}

bool translate_add_entry(Block *block, EntryKind kind)
{
    enum { ROOM = 96 };
    CodePtr at = cache_reserve_cold(block, ROOM);
    if (!at)
        return false;
    Emitter e = {.pc = at, .end = at + ROOM};
    emit_entry(&e, block, kind);
    x64_jmp_to(&e, code_at(block->body));
    return true;
}
