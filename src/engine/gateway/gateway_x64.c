// SPDX-License-Identifier: MIT
//
// The doors of the code cache, emitted once at start.
//
// They are emitted rather than written in assembly so that every displacement
// comes from offsetof(), and so that they lie within rel32 of all blocks. A
// signal handler decides by the interrupted pc what a thread was doing; the
// places it needs are kept in `gateway`.
#include <sys/mman.h>

#include "engine/cache/cache.h"
#include "engine/calltags/calltags.h"
#include "engine/emit/emit.h"
#include "engine/gateway/gateway_emit.h"
#include "engine/gateway/gateway_internal.h"
#include "engine/log/log.h"
#include "engine/toolapi/toolapi.h"
#include "engine/xstate/xstate.h"

Gateways gateway;

static const u8 callee_saved[] = {RBX, RBP, R12, R13, R14, R15};

static void emit_vector_state(Emitter *e, bool save)
{
    x64_mov_reg_fs(e, RCX, CTX(xsave));
    x64_mov_reg_imm(e, RAX, (u32)gateway.xsave_mask);
    x64_mov_reg_imm(e, RDX, (u32)(gateway.xsave_mask >> 32));
    if (save)
        x64_xsave64_mem(e, x64_at(RCX, 0));
    else
        x64_xrstor64_mem(e, x64_at(RCX, 0));
}

// The client's flags and registers, then the jump into the cache. Returns find r11 in its spill
// slot (translate.c).
static void emit_load_client(Emitter *e)
{
    x64_push_mem(e, x64_fs(CTX(flags)));
    x64_popfq(e);
    for (unsigned r = 0; r < GPR_COUNT; r++) {
        if (r != RSP)
            x64_mov_reg_fs(e, r, CTX_GPR(r));
    }
    x64_mov_fs_reg(e, CTX_SPILL(R11), R11);
    x64_mov_reg_fs(e, RSP, CTX_GPR(RSP));
    x64_jmp_mem(e, x64_fs(CTX(gateway.enter_target)));
}

// Every register to ctx, then the engine's stack and the flags.
static void emit_save_client(Emitter *e)
{
    for (unsigned r = 0; r < GPR_COUNT; r++)
        x64_mov_fs_reg(e, CTX_GPR(r), r);
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    x64_pushfq(e);
    x64_pop_reg(e, RAX);
    x64_mov_fs_reg(e, CTX(flags), RAX);
    x64_cld(e);
    x64_test_reg_imm(e, DWORD, RAX, FLAG_AC);
    emit_stop_alignment_checks(e);
}

static void emit_return_to_c(Emitter *e)
{
    x64_cld(e);
    x64_pop_reg(e, RAX); // alignment
    for (size_t i = ARRAY_LEN(callee_saved); i-- > 0;)
        x64_pop_reg(e, callee_saved[i]);
    x64_ret(e);
}

// void enter(CodePtr target)
static void emit_enter(Emitter *e)
{
    gateway.enter = (void (*)(CodePtr))e->pc;
    for (size_t i = 0; i < ARRAY_LEN(callee_saved); i++)
        x64_push_reg(e, callee_saved[i]);
    x64_push_reg(e, RAX); // alignment
    x64_mov_fs_reg(e, CTX(gateway.engine_rsp), RSP);
    x64_mov_fs_reg(e, CTX(gateway.enter_target), RDI);

    gateway.entering = e->pc;
    X64Jump requested = emit_if_requested(e);
    emit_vector_state(e, false);
    emit_load_client(e);
    gateway.entering_end = e->pc;

    x64_land(e, requested);
    gateway.abort_entering = e->pc;
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    x64_mov_fs_imm32(e, CTX(gateway.exit_reason), EXIT_RESUME);
    gateway.taken_out = e->pc;
    emit_return_to_c(e);
}

// The common way out. Light C decides whether the thread can go straight back.
static void emit_leave(Emitter *e, GatewayLightFn *light)
{
    CodePtr leave = e->pc;
    emit_save_client(e);
    x64_mov_reg_address(e, RAX, EMIT_ENGINE_ADDRESS, (u64)(uintptr_t)light);
    x64_call_reg(e, RAX);
    x64_test_reg_reg(e, QWORD, RAX, RAX);
    X64Jump full = x64_branch(e, X64_E);
    x64_mov_fs_reg(e, CTX(gateway.enter_target), RAX);

    gateway.resuming = e->pc;
    X64Jump requested = emit_if_requested(e);
    emit_load_client(e);
    gateway.resuming_end = e->pc;

    x64_land(e, requested);
    gateway.abort_resuming = e->pc;
    x64_mov_reg_fs(e, RSP, CTX(gateway.engine_rsp));
    x64_mov_fs_imm32(e, CTX(gateway.exit_reason), EXIT_RESUME);
    x64_land(e, full);
    emit_vector_state(e, true);
    emit_return_to_c(e);

    for (unsigned reason = 0; reason < EXIT_REASON_COUNT; reason++) {
        gateway.leave[reason] = e->pc;
        x64_mov_fs_imm32(e, CTX(gateway.exit_reason), reason);
        x64_jmp_to(e, leave);
    }
}

// The status flags come back, and the registers that were spilled.
static void emit_end_of_search(Emitter *e)
{
    x64_mov_reg_fs(e, RAX, CTX(gateway.second_flags));
    x64_load_status(e);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
}

// Goes to the clean block at rcx if the second table has it, and leaves otherwise. rax and rcx are
// spilled.
static void emit_second_search(Emitter *e, ExitReason reason)
{
    x64_mov_fs_reg(e, CTX(pc), RCX);
    x64_mov_fs_reg(e, CTX_SPILL(RDX), RDX);
    x64_take_status(e);
    x64_mov_fs_reg(e, CTX(gateway.second_flags), RAX);
    x64_sub_mem_imm(e, DWORD, x64_fs(CTX(gateway.second_left)), 1);
    X64Jump enough = x64_branch(e, X64_S);
    // eax := second_index(rcx)
    x64_mov_reg_reg(e, DWORD, RAX, RCX);
    x64_shr_reg_imm(e, DWORD, RAX, SECOND_BITS);
    x64_xor_reg_reg(e, DWORD, RAX, RCX);
    x64_and_reg_imm(e, DWORD, RAX, (1 << SECOND_BITS) - 1);
    // rdx := the word of the table ; eax := the body that it names
    x64_mov_reg_mem(e, QWORD, RDX, x64_indexed(X64_NO_REG, RAX, 8, SECOND_TABLE));
    x64_mov_reg_reg(e, DWORD, RAX, RDX);
    x64_and_reg_imm(e, DWORD, RAX, (1 << SECOND_CODE_BITS) - 1);
    x64_or_reg_imm(e, DWORD, RAX, (i32)GATEWAY_START);
    // The rest of the word is the rest of the pc, plus 1.
    x64_shr_reg_imm(e, QWORD, RDX, SECOND_CODE_BITS);
    x64_shr_reg_imm(e, QWORD, RCX, 12);
    x64_add_reg_imm(e, QWORD, RCX, 1);
    x64_cmp_reg_reg(e, QWORD, RCX, RDX);
    X64Jump unknown = x64_branch(e, X64_NE);
    x64_mov_fs_reg(e, CTX(gateway.enter_target), RAX);
    emit_end_of_search(e);
    x64_jmp_mem(e, x64_fs(CTX(gateway.enter_target)));

    x64_land(e, enough);
    x64_land(e, unknown);
    emit_end_of_search(e);
    x64_jmp_to(e, gateway.leave[reason]);
}

// A return that has no landing: the target is in r11, whose own value is spilled, and at [rsp - 8].
// The entry of the table finds the whole target at [rsp - 8]. The tag is there to be written: the
// block has read the word above it, or popped what stands beside it.
static void emit_return_by_table(Emitter *e)
{
    enum { INDEX_BITS = (LOOKUP_ENTRIES - 1) << RETURN_SHIFT };
    _Static_assert(sizeof(CodeRef) == 1 << RETURN_SHIFT, "what is left of a pc is a place in it");
    gateway.return_by_table = e->pc;
    if (tool->needs & TOOL_NEEDS_CALLTAGS) {
        x64_mov_mem_imm(e, QWORD, x64_gs(x64_at(RSP, CALLTAGS_DISP - 8)),
                        tool->shadow_offset ? -1 : 0);
    }
    x64_and_reg_imm(e, DWORD, R11, INDEX_BITS);
    x64_mov_reg_mem(e, DWORD, R11, x64_at(R11, RETURN_TABLE));
    x64_jmp_reg(e, R11);
}

// An indirect branch whose table entry is empty or belongs to another target: rcx is the
// target, rax and rcx of the client are spilled, or r11 and rcx. And the same for returns.
static void emit_misses(Emitter *e)
{
    gateway.lookup_miss = e->pc;
    if (tool->needs & TOOL_LOOSE_FLAGS) {
        x64_mov_reg_fs(e, R11, CTX_SPILL(R11));
        x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    }
    emit_second_search(e, EXIT_INDIRECT);
    gateway.return_miss = e->pc;
    if (tool->needs & TOOL_LOOSE_FLAGS) { // it is r11 that is spilled (translate.c)
        x64_mov_reg_fs(e, R11, CTX_SPILL(R11));
        x64_mov_fs_reg(e, CTX_SPILL(RCX), RCX);
    }
    gateway.far_return_miss = e->pc;
    x64_mov_reg_mem(e, QWORD, RCX, x64_at(RSP, -8));
    x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    emit_second_search(e, EXIT_RETURN);
}

// rcx := rdx * factor, and no flag changes; rax is lost.
static void emit_multiply(Emitter *e, CodePtr factor)
{
    x64_mulx_reg_reg_mem(e, QWORD, RAX, RCX, x64_absolute((i32)(uintptr_t)factor));
}

// rcx := the key of the thread's state. rax and rcx are spilled, and rdx here.
static void emit_state_key(Emitter *e, CodePtr factor)
{
    x64_mov_fs_reg(e, CTX_SPILL(RDX), RDX);
    x64_mov_reg_fs(e, RDX, CTX(tool.state));
    emit_multiply(e, factor);
}

// The way from block to block where the version is known only as it runs. No flag is
// touched: they may be live. A signal that comes here lets the thread step on to a boundary.
//   guard:    mov dword fs:[guard_failed], 1 ; spills ; rcx := key ; mov rax, FIRST_KEY
//             lea rcx, [rcx + rax] ; jmp find
//   exit:     spills ; rcx := key
//   find:     mov rax, fs:[pc] ; lea rdx, [rcx + rax] ; rcx := rdx * factor
//             mov edx, 64 - BITS ; shrx rax, rcx, rdx ; restore rdx ; jmp [rax*8 + table]
//   indirect: mov fs:[pc], rcx ; rcx := key ; jmp find
static void emit_version_lookup(Emitter *e)
{
    bool can = __builtin_cpu_supports("bmi2");
    emit_align_word(e);
    CodePtr factor = e->pc;
    emit_u64(e, VERSION_FACTOR);
    gateway.version_guard = e->pc;
    x64_mov_fs_imm32(e, CTX(gateway.guard_failed), 1);
    if (!can)
        x64_jmp_to(e, gateway.leave[EXIT_VERSIONED]);
    x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    x64_mov_fs_reg(e, CTX_SPILL(RCX), RCX);
    emit_state_key(e, factor);
    x64_mov_reg_imm(e, RAX, VERSION_FIRST_KEY);
    x64_lea_reg_mem(e, QWORD, RCX, x64_sum(RCX, RAX));
    X64Jump find = x64_branch(e, X64_JMP);

    gateway.version_exit = e->pc;
    if (!can)
        x64_jmp_to(e, gateway.leave[EXIT_VERSIONED]);
    x64_mov_fs_reg(e, CTX_SPILL(RAX), RAX);
    x64_mov_fs_reg(e, CTX_SPILL(RCX), RCX);
    emit_state_key(e, factor);
    X64Jump find_too = x64_branch(e, X64_JMP);

    gateway.version_indirect = e->pc;
    x64_mov_fs_reg(e, CTX(pc), RCX);
    X64Jump miss = {0};
    if (!can)
        miss = x64_branch(e, X64_JMP);
    emit_state_key(e, factor);
    x64_land(e, find);
    x64_land(e, find_too);
    x64_mov_reg_fs(e, RAX, CTX(pc));
    x64_lea_reg_mem(e, QWORD, RDX, x64_sum(RCX, RAX));
    emit_multiply(e, factor);
    x64_mov_reg_imm(e, RDX, 64 - VERSION_BITS);
    x64_shrx_reg_reg_reg(e, QWORD, RAX, RCX, RDX);
    x64_mov_reg_fs(e, RDX, CTX_SPILL(RDX));
    x64_jmp_mem(e, x64_indexed(X64_NO_REG, RAX, 8, VERSION_TABLE));

    gateway.version_miss = e->pc;
    if (!can)
        x64_land(e, miss);
    x64_mov_reg_fs(e, RCX, CTX_SPILL(RCX));
    x64_mov_reg_fs(e, RAX, CTX_SPILL(RAX));
    x64_jmp_to(e, gateway.leave[EXIT_VERSIONED]);
}

// i64 gateway_syscall(nr, a0 … a5)
static void emit_syscall(Emitter *e)
{
    gateway.syscall = (GatewaySyscallFn *)e->pc;
    static const u8 shuffle[][2] = {{RAX, RDI}, {RDI, RSI}, {RSI, RDX},
                                    {RDX, RCX}, {R10, R8},  {R8, R9}};
    for (size_t i = 0; i < ARRAY_LEN(shuffle); i++)
        x64_mov_reg_reg(e, QWORD, shuffle[i][0], shuffle[i][1]);
    x64_mov_reg_mem(e, QWORD, R9, x64_at(RSP, 8));

    gateway.syscall_begin = e->pc;
    X64Jump requested = emit_if_requested(e);
    gateway.syscall_insn = e->pc;
    x64_syscall(e);
    x64_ret(e);

    x64_land(e, requested);
    gateway.restart = e->pc;
    x64_mov_reg_imm(e, RAX, (u64)(i64)GATEWAY_RESTART);
    x64_ret(e);
}

// Whoever holds the engine lock may be waiting for this thread to leave the cache (C3).
static bool may_wait(const Lock *lock)
{
    return lock != &engine_lock || !thread_ctx.dispatch.in_cache;
}

void gateway_init(GatewayLightFn *light)
{
    lock_may_wait = may_wait;
    ctx_init();
    xstate_init();
    // PKRU stays the client's in the engine, too.
    gateway.xsave_mask = xstate_mask() & ~XSTATE_PKRU;

    void *at = mmap((void *)GATEWAY_START, GATEWAY_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (void *)GATEWAY_START)
        log_refuse("the addresses of the code cache are taken; muninn cannot run under muninn");
    Emitter e = {.pc = at, .end = (CodePtr)at + GATEWAY_SIZE};
    emit_enter(&e);
    emit_leave(&e, light);
    gateway.lookup = e.pc;
    emit_return_by_table(&e);
    emit_misses(&e);
    emit_version_lookup(&e);
    gateway.lookup_end = e.pc;
    emit_syscall(&e);
    gateway_emit_tools(&e);
    ASSERT(emit_room(&e) > 0);
    ASSERT(mprotect(at, GATEWAY_SIZE, PROT_READ | PROT_EXEC) == 0);
    cache_misses = (CacheMisses){gateway.lookup_miss, gateway.return_miss, gateway.version_miss};
}

void gateway_enter(CodePtr target)
{
    gateway.enter(target);
}

i64 gateway_syscall(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    __atomic_store_n(&thread_ctx.thread.in_kernel, 1, __ATOMIC_RELEASE);
    i64 result = gateway.syscall(nr, a0, a1, a2, a3, a4, a5);
    __atomic_store_n(&thread_ctx.thread.in_kernel, 0, __ATOMIC_RELEASE);
    return result;
}
