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
#include "engine/log/log.h"
#include "engine/run/gateway.h"
#include "engine/run/gateway_emit.h"
#include "engine/toolapi/toolapi.h"
#include "engine/emit/emit.h"
#include "engine/signal/signal.h"

Gateways gateway;

static const u8 callee_saved[] = {RBX, RBP, R12, R13, R14, R15};

// mov rcx, fs:[xsave] ; mov eax/edx, mask ; xsave64/xrstor64 [rcx]
static void emit_vector_state(Emitter *e, bool save)
{
    emit_load_fs(e, RCX, CTX(xsave));
    emit_mov_imm(e, RAX, (u32)gateway.xsave_mask);
    emit_mov_imm(e, RDX, (u32)(gateway.xsave_mask >> 32));
    put_bytes(e, save ? (u8[]){0x48, 0x0f, 0xae, 0x21} : (u8[]){0x48, 0x0f, 0xae, 0x29}, 4);
}

// push fs:[flags] ; popfq ; every register from ctx ; mov fs:[spill r11], r11 (returns find it
// there, see translate.c) ; jmp fs:[enter_target]
static void emit_load_client(Emitter *e)
{
    put_bytes(e, (u8[]){0x64, 0xff, 0x34, 0x25}, 4);
    put_u32(e, (u32)CTX(flags));
    put_u8(e, 0x9d);
    for (unsigned r = 0; r < GPR_COUNT; r++) {
        if (r != RSP)
            emit_load_fs(e, r, CTX_GPR(r));
    }
    emit_store_fs(e, CTX_SPILL(R11), R11);
    emit_load_fs(e, RSP, CTX_GPR(RSP));
    emit_jmp_fs(e, CTX(enter_target));
}

// Every register to ctx, then the engine's stack and the flags.
static void emit_save_client(Emitter *e)
{
    for (unsigned r = 0; r < GPR_COUNT; r++)
        emit_store_fs(e, CTX_GPR(r), r);
    emit_load_fs(e, RSP, CTX(engine_rsp));
    put_u8(e, 0x9c); // pushfq
    emit_pop(e, RAX);
    emit_store_fs(e, CTX(flags), RAX);
    put_u8(e, 0xfc); // cld
    put_u8(e, 0xa9); // test eax, AC
    put_u32(e, FLAG_AC);
    emit_stop_alignment_checks(e);
}

static void emit_return_to_c(Emitter *e)
{
    put_u8(e, 0xfc); // cld
    emit_pop(e, RAX); // alignment
    for (size_t i = ARRAY_LEN(callee_saved); i-- > 0;)
        emit_pop(e, callee_saved[i]);
    put_u8(e, 0xc3);
}

// void enter(CodePtr target)
static void emit_enter(Emitter *e)
{
    gateway.enter = (void (*)(CodePtr))e->pc;
    for (size_t i = 0; i < ARRAY_LEN(callee_saved); i++)
        emit_push(e, callee_saved[i]);
    emit_push(e, RAX); // alignment
    emit_store_fs(e, CTX(engine_rsp), RSP);
    emit_store_fs(e, CTX(enter_target), RDI);

    gateway.entering = e->pc;
    CodePtr requested = emit_if_requested(e);
    emit_vector_state(e, false);
    emit_load_client(e);
    gateway.entering_end = e->pc;

    place_label(e, requested);
    gateway.abort_entering = e->pc;
    emit_load_fs(e, RSP, CTX(engine_rsp));
    emit_store_fs_imm32(e, CTX(exit_reason), EXIT_RESUME);
    gateway.taken_out = e->pc;
    emit_return_to_c(e);
}

// The common way out. Light C decides whether the thread can go straight back.
static void emit_leave(Emitter *e)
{
    CodePtr leave = e->pc;
    emit_save_client(e);
    emit_mov_imm(e, RAX, (u64)(uintptr_t)run_light);
    put_bytes(e, (u8[]){0xff, 0xd0}, 2);       // call rax
    put_bytes(e, (u8[]){0x48, 0x85, 0xc0}, 3); // test rax, rax
    CodePtr full = emit_forward(e, 0x0f84);
    emit_store_fs(e, CTX(enter_target), RAX);

    gateway.resuming = e->pc;
    CodePtr requested = emit_if_requested(e);
    emit_load_client(e);
    gateway.resuming_end = e->pc;

    place_label(e, requested);
    gateway.abort_resuming = e->pc;
    emit_load_fs(e, RSP, CTX(engine_rsp));
    emit_store_fs_imm32(e, CTX(exit_reason), EXIT_RESUME);
    place_label(e, full);
    emit_vector_state(e, true);
    emit_return_to_c(e);

    for (unsigned reason = 0; reason < EXIT_REASON_COUNT; reason++) {
        gateway.leave[reason] = e->pc;
        emit_store_fs_imm32(e, CTX(exit_reason), reason);
        emit_jmp(e, leave);
    }
}

// The status flags come back, and the registers that were spilled.
static void emit_end_of_search(Emitter *e)
{
    emit_load_fs(e, RAX, CTX(second_flags));
    put_bytes(e, (u8[]){0x04, 0x7f, 0x9e}, 3); // add al, 0x7f ; sahf
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
}

// Goes to the clean block at rcx if the second table has it, and leaves otherwise. rax and rcx are
// spilled.
//   mov fs:[pc], rcx ; spill rdx ; lahf ; seto al ; mov fs:[second_flags], rax
//   sub dword fs:[second_left], 1 ; js leave
//   eax := second_index(rcx) ; mov rdx, [rax*8 + table] ; eax := the body that it names
//   shr rdx, CODE_BITS ; shr rcx, 12 ; add rcx, 1 ; cmp rcx, rdx ; jne leave
//   mov fs:[enter_target], rax ; restore ; jmp fs:[enter_target]
static void emit_second_search(Emitter *e, ExitReason reason)
{
    emit_store_fs(e, CTX(pc), RCX);
    emit_store_fs(e, CTX_SPILL(RDX), RDX);
    put_bytes(e, (u8[]){0x9f, 0x0f, 0x90, 0xc0}, 4);
    emit_store_fs(e, CTX(second_flags), RAX);
    put_bytes(e, (u8[]){0x64, 0x83, 0x2c, 0x25}, 4);
    put_u32(e, (u32)CTX(second_left));
    put_u8(e, 1);
    CodePtr enough = emit_forward(e, 0x0f88);
    put_bytes(e, (u8[]){0x89, 0xc8, 0xc1, 0xe8, SECOND_BITS}, 5); // mov eax, ecx ; shr eax, BITS
    put_bytes(e, (u8[]){0x31, 0xc8, 0x25}, 3);                    // xor eax, ecx ; and eax, mask
    put_u32(e, (1u << SECOND_BITS) - 1);
    put_bytes(e, (u8[]){0x48, 0x8b, 0x14, 0xc5}, 4);              // mov rdx, [rax*8 + table]
    put_u32(e, (u32)SECOND_TABLE);
    put_bytes(e, (u8[]){0x89, 0xd0, 0x25}, 3);                    // mov eax, edx ; and eax, mask
    put_u32(e, (1u << SECOND_CODE_BITS) - 1);
    put_u8(e, 0x0d);                                              // or eax, GATEWAY_START
    put_u32(e, (u32)GATEWAY_START);
    put_bytes(e, (u8[]){0x48, 0xc1, 0xea, SECOND_CODE_BITS}, 4);  // shr rdx, CODE_BITS
    put_bytes(e, (u8[]){0x48, 0xc1, 0xe9, 12}, 4);                // shr rcx, 12
    put_bytes(e, (u8[]){0x48, 0x83, 0xc1, 1}, 4);                 // add rcx, 1
    put_bytes(e, (u8[]){0x48, 0x39, 0xd1}, 3);                    // cmp rcx, rdx
    CodePtr unknown = emit_forward(e, 0x0f85);
    emit_store_fs(e, CTX(enter_target), RAX);
    emit_end_of_search(e);
    emit_jmp_fs(e, CTX(enter_target));

    place_label(e, enough);
    place_label(e, unknown);
    emit_end_of_search(e);
    emit_jmp(e, gateway.leave[reason]);
}

// A return that has no landing: the target is in r11, whose own value is spilled, and at [rsp - 8].
//     [mov qword gs:[rsp - 8 + CALLTAGS_DISP], nothing] ; and r11d, bits of the index
//     mov r11d, [r11 + RETURN_TABLE] ; jmp r11
// The entry of the table finds the whole target at [rsp - 8]. The tag is there to be written: the
// block has read the word above it, or popped what stands beside it.
static void emit_return_by_table(Emitter *e)
{
    enum { INDEX_BITS = (LOOKUP_ENTRIES - 1) << RETURN_SHIFT };
    _Static_assert(sizeof(CodeRef) == 1 << RETURN_SHIFT, "what is left of a pc is a place in it");
    gateway.return_by_table = e->pc;
    if (tool->needs & TOOL_NEEDS_CALLTAGS) {
        put_bytes(e, (u8[]){0x65, 0x48, 0xc7, 0x44, 0x24, (u8)(CALLTAGS_DISP - 8)}, 6);
        put_u32(e, tool->shadow_offset ? ~0u : 0);
    }
    put_bytes(e, (u8[]){0x41, 0x81, 0xe3}, 3);
    put_u32(e, INDEX_BITS);
    put_bytes(e, (u8[]){0x45, 0x8b, 0x9b}, 3);
    put_u32(e, (u32)RETURN_TABLE);
    put_bytes(e, (u8[]){0x41, 0xff, 0xe3}, 3);
}

// An indirect branch whose table entry is empty or belongs to another target: rcx is the
// target, rax and rcx of the client are spilled, or r11 and rcx. And the same for returns.
static void emit_misses(Emitter *e)
{
    gateway.lookup_miss = e->pc;
    if (tool->needs & TOOL_LOOSE_FLAGS) {
        emit_load_fs(e, R11, CTX_SPILL(R11));
        emit_store_fs(e, CTX_SPILL(RAX), RAX);
    }
    emit_second_search(e, EXIT_INDIRECT);
    gateway.return_miss = e->pc;
    if (tool->needs & TOOL_LOOSE_FLAGS) { // it is r11 that is spilled (translate.c)
        emit_load_fs(e, R11, CTX_SPILL(R11));
        emit_store_fs(e, CTX_SPILL(RCX), RCX);
    }
    gateway.far_return_miss = e->pc;
    emit_op_base(e, 0x8b, RCX, RSP, -8);
    emit_store_fs(e, CTX_SPILL(RAX), RAX);
    emit_second_search(e, EXIT_RETURN);
}

// mulx rax, rcx, [factor]: rcx := rdx * factor, and no flag changes.
static void emit_mulx(Emitter *e, u64 factor_at)
{
    put_bytes(e, (u8[]){0xc4, 0xe2, 0xf3, 0xf6, 0x04, 0x25}, 6);
    put_u32(e, (u32)factor_at);
}

// rcx := the key of the thread's state. rax and rcx are spilled, and rdx here.
static void emit_state_key(Emitter *e, u64 factor_at)
{
    emit_store_fs(e, CTX_SPILL(RDX), RDX);
    emit_load_fs(e, RDX, CTX(tool_state));
    emit_mulx(e, factor_at);
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
    u64 factor_at = (u64)e->pc;
    put_u64(e, VERSION_FACTOR);
    gateway.version_guard = e->pc;
    emit_store_fs_imm32(e, CTX(guard_failed), 1);
    if (!can)
        emit_jmp(e, gateway.leave[EXIT_VERSIONED]);
    emit_store_fs(e, CTX_SPILL(RAX), RAX);
    emit_store_fs(e, CTX_SPILL(RCX), RCX);
    emit_state_key(e, factor_at);
    emit_mov_imm(e, RAX, VERSION_FIRST_KEY);
    emit_lea_sum(e, RCX, RCX, RAX);
    CodePtr find = emit_forward(e, OP_JMP_REL32);

    gateway.version_exit = e->pc;
    if (!can)
        emit_jmp(e, gateway.leave[EXIT_VERSIONED]);
    emit_store_fs(e, CTX_SPILL(RAX), RAX);
    emit_store_fs(e, CTX_SPILL(RCX), RCX);
    emit_state_key(e, factor_at);
    CodePtr find_too = emit_forward(e, OP_JMP_REL32);

    gateway.version_indirect = e->pc;
    emit_store_fs(e, CTX(pc), RCX);
    CodePtr miss = can ? NULL : emit_forward(e, OP_JMP_REL32);
    emit_state_key(e, factor_at);
    place_label(e, find);
    place_label(e, find_too);
    emit_load_fs(e, RAX, CTX(pc));
    emit_lea_sum(e, RDX, RCX, RAX);
    emit_mulx(e, factor_at);
    emit_mov_imm(e, RDX, 64 - VERSION_BITS);
    put_bytes(e, (u8[]){0xc4, 0xe2, 0xeb, 0xf7, 0xc1}, 5); // shrx rax, rcx, rdx
    emit_load_fs(e, RDX, CTX_SPILL(RDX));
    put_bytes(e, (u8[]){0xff, 0x24, 0xc5}, 3);
    put_u32(e, (u32)VERSION_TABLE);

    gateway.version_miss = e->pc;
    if (miss)
        place_label(e, miss);
    emit_load_fs(e, RCX, CTX_SPILL(RCX));
    emit_load_fs(e, RAX, CTX_SPILL(RAX));
    emit_jmp(e, gateway.leave[EXIT_VERSIONED]);
}

// i64 gateway_syscall(nr, a0 … a5)
static void emit_syscall(Emitter *e)
{
    gateway.syscall = (GatewaySyscallFn *)e->pc;
    static const u8 shuffle[][2] = {{RAX, RDI}, {RDI, RSI}, {RSI, RDX},
                                    {RDX, RCX}, {R10, R8},  {R8, R9}};
    for (size_t i = 0; i < ARRAY_LEN(shuffle); i++)
        emit_mov_reg(e, shuffle[i][0], shuffle[i][1]);
    emit_op_base(e, 0x8b, R9, RSP, 8);

    gateway.syscall_begin = e->pc;
    CodePtr requested = emit_if_requested(e);
    gateway.syscall_insn = e->pc;
    put_bytes(e, (u8[]){0x0f, 0x05}, 2);
    put_u8(e, 0xc3);

    place_label(e, requested);
    gateway.restart = e->pc;
    put_bytes(e, (u8[]){0x48, 0xc7, 0xc0}, 3); // mov rax, imm32
    put_u32(e, (u32)GATEWAY_RESTART);
    put_u8(e, 0xc3);
}

// Whoever holds the engine lock may be waiting for this thread to leave the cache (C3).
static bool may_wait(const Lock *lock)
{
    return lock != &engine_lock || !thread_ctx.in_cache;
}

void gateway_init(void)
{
    lock_may_wait = may_wait;
    ctx_displacement = (i32)((char *)&thread_ctx - (char *)__builtin_thread_pointer());
    xstate_init();
    // PKRU stays the client's in the engine, too.
    gateway.xsave_mask = xstate_mask() & ~XSTATE_PKRU;

    void *at = mmap((void *)GATEWAY_START, GATEWAY_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (void *)GATEWAY_START)
        log_refuse("the addresses of the code cache are taken; muninn cannot run under muninn");
    Emitter e = {at, (CodePtr)at + GATEWAY_SIZE};
    emit_enter(&e);
    emit_leave(&e);
    gateway.lookup = e.pc;
    emit_return_by_table(&e);
    emit_misses(&e);
    emit_version_lookup(&e);
    gateway.lookup_end = e.pc;
    emit_syscall(&e);
    gateway_emit_tools(&e);
    ASSERT(emit_room(&e) > 0);
    ASSERT(mprotect(at, GATEWAY_SIZE, PROT_READ | PROT_EXEC) == 0);
}

i64 gateway_syscall(u64 nr, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5)
{
    __atomic_store_n(&thread_ctx.in_kernel, 1, __ATOMIC_RELEASE);
    i64 result = gateway.syscall(nr, a0, a1, a2, a3, a4, a5);
    __atomic_store_n(&thread_ctx.in_kernel, 0, __ATOMIC_RELEASE);
    return result;
}
