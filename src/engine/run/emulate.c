// SPDX-License-Identifier: MIT
//
// Far transfers, traps, loads of fs/gs selectors and branches that truncate rip:
// rare in 64-bit code, and impossible to copy, because they would leave the
// cache or take the engine's segment bases away.
//
// A function here either changes ctx as the whole instruction does, or leaves it
// alone and raises the signal that the hardware would.
#include "engine/run/emulate.h"

#include <sys/syscall.h>

#include "base/pages.h"
#include "base/pkru_x64.h"
#include "engine/aspace/aspace.h"
#include "engine/decode/decode.h"
#include "engine/emit/emit.h"
#include "engine/gateway/gateway.h"
#include "engine/log/log.h"
#include "engine/signal/signal.h"
#include "engine/translate/translate.h"

// The selectors of a 64-bit process, and the others that Linux lets it load.
enum { USER_CS = 0x33, USER_SS = 0x2b, USER32_CS = 0x23, CPU_NUMBER_SEGMENT = 0x7b };

enum { TRAP_DEBUG = 1, TRAP_BREAKPOINT = 3, TRAP_OVERFLOW = 4, TRAP_PROTECTION = 13 };

enum { ERR_PRESENT = 1, ERR_WRITE = 2, ERR_USER = 4 };

typedef struct Emulation {
    ThreadCtx *ctx;
    Insn insn;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    GuestAddr next; // the instruction behind this one
} Emulation;

// ------------------------------------------------------------------- faults

// False when another signal goes first; the instruction will be met again.
static bool raise_trap(ThreadCtx *ctx, int sig, int code, GuestAddr address, u64 trapno, u64 err)
{
    signal_raise_synchronous(ctx, sig, code, address);
    if (!ctx->signal.pending.synchronous)
        return false;
    ctx->signal.pending.trapno = trapno;
    ctx->signal.pending.err = err;
    return true;
}

static void protection_fault(ThreadCtx *ctx, u64 err)
{
    raise_trap(ctx, SIGSEGV, SI_KERNEL, 0, TRAP_PROTECTION, err);
}

static void illegal_instruction(ThreadCtx *ctx)
{
    signal_raise_synchronous(ctx, SIGILL, ILL_ILLOPN, ctx->pc);
}

// The first page of [addr, addr + len) that is in the way decides.
static void access_fault(ThreadCtx *ctx, GuestAddr addr, size_t len, bool write)
{
    if (addr >> 47) {
        protection_fault(ctx, 0);
        return;
    }
    GuestAddr fault = addr;
    u32 wanted = write ? 2 /* PROT_WRITE */ : 1 /* PROT_READ */;
    lock_acquire(&engine_lock);
    const Mapping *mapping = aspace_find(fault);
    if (mapping && (mapping->prot & wanted) && PAGE_DOWN(addr + len - 1) != PAGE_DOWN(addr)) {
        fault = PAGE_DOWN(addr + len - 1);
        mapping = aspace_find(fault);
    }
    bool mapped = mapping != NULL;
    bool present = mapped && mapping->prot != 0;
    lock_release(&engine_lock);
    signal_raise_synchronous(ctx, SIGSEGV, mapped ? SEGV_ACCERR : SEGV_MAPERR, fault);
    if (ctx->signal.pending.synchronous)
        ctx->signal.pending.err = ERR_USER | (write ? ERR_WRITE : 0) | (present ? ERR_PRESENT : 0);
}

// ------------------------------------------------------------------ operands

// Reads a little-endian number of 2, 4 or 8 bytes.
static bool load(ThreadCtx *ctx, GuestAddr addr, unsigned size, u64 *ret_value)
{
    *ret_value = 0;
    if (guest_read(addr, ret_value, size))
        return true;
    access_fault(ctx, addr, size, false);
    return false;
}

static bool store(ThreadCtx *ctx, GuestAddr addr, unsigned size, u64 value)
{
    if (guest_write(addr, &value, size))
        return true;
    access_fault(ctx, addr, size, true);
    return false;
}

static u64 register_value(const Emulation *em, ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE)
        return 0;
    if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
        return em->next;
    ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return em->ctx->gpr[full - ZYDIS_REGISTER_RAX];
}

static GuestAddr operand_address(const Emulation *em, const ZydisDecodedOperand *op)
{
    u64 addr = register_value(em, op->mem.base) + (u64)op->mem.disp.value;
    if (op->mem.index != ZYDIS_REGISTER_NONE)
        addr += register_value(em, op->mem.index) * op->mem.scale;
    if (em->z.address_width == 32)
        addr = (u32)addr;
    if (op->mem.segment == ZYDIS_REGISTER_FS)
        addr += em->ctx->client_fs;
    else if (op->mem.segment == ZYDIS_REGISTER_GS)
        addr += em->ctx->client_gs;
    return addr;
}

// The low `size` bytes of an explicit register or memory operand.
static bool load_operand(const Emulation *em, unsigned i, unsigned size, u64 *ret_value)
{
    const ZydisDecodedOperand *op = &em->operands[i];
    if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return load(em->ctx, operand_address(em, op), size, ret_value);
    *ret_value = register_value(em, op->reg.value);
    if (size < 8)
        *ret_value &= (1ull << 8 * size) - 1;
    return true;
}

// --------------------------------------------------------------------- traps

// int n, int1 and int3. The vectors 3 and 4 are open to programs, 0x80 is the
// 32-bit system call, which a 64-bit program has no use for and we do not offer.
static void emulate_int(const Emulation *em, u8 vector)
{
    ThreadCtx *ctx = em->ctx;
    bool raised;
    switch (vector) {
    case TRAP_BREAKPOINT: raised = raise_trap(ctx, SIGTRAP, SI_KERNEL, 0, vector, 0); break;
    case TRAP_OVERFLOW: raised = raise_trap(ctx, SIGSEGV, SI_KERNEL, 0, vector, 0); break;
    case 0x80:
        log_note("int 0x80 at %lx: 32-bit system calls are not offered", ctx->pc);
        // fall through
    default: protection_fault(ctx, vector * 8u + 2u); return;
    }
    if (raised)
        ctx->pc = em->next;
}

// Unlike int 1, which is refused. In the cache it could be taken for a trap of the trap flag.
static void emulate_int1(const Emulation *em)
{
    if (raise_trap(em->ctx, SIGTRAP, TRAP_BRKPT, em->next, TRAP_DEBUG, 0))
        em->ctx->pc = em->next;
}

// ----------------------------------------------------------- far transfers

// Only 64-bit code of this very privilege can be reached.
static bool check_far_target(ThreadCtx *ctx, u64 selector, GuestAddr target)
{
    if ((u16)selector == USER32_CS)
        log_note("far transfer to 32-bit code at %lx: not offered", target);
    if ((u16)selector != USER_CS) {
        protection_fault(ctx, (u16)selector & ~3u);
        return false;
    }
    if (target >> 47) {
        protection_fault(ctx, 0);
        return false;
    }
    return true;
}

// What popf and iret may change in user mode, of a flags word of `size` bytes.
static void set_flags(ThreadCtx *ctx, u64 flags, unsigned size)
{
    u64 settable = 0x244dd5; // ID, AC, NT, OF, DF, TF, SF, ZF, AF, PF, CF
    if (size == 2)
        settable &= 0xffff;
    ctx->flags = (ctx->flags & ~settable) | (flags & settable);
}

// A popf that sets one of the flags that C must know of; emitted code does the others.
static void emulate_popf(const Emulation *em, unsigned size)
{
    ThreadCtx *ctx = em->ctx;
    u64 flags;
    if (!load(ctx, ctx->gpr[RSP], size, &flags))
        return;
    set_flags(ctx, flags, size);
    ctx->gpr[RSP] += size;
    ctx->pc = em->next;
}

// iret: rip, cs, rflags, rsp, ss, each of the operand size.
static void emulate_iret(const Emulation *em, unsigned size)
{
    ThreadCtx *ctx = em->ctx;
    u64 frame[5];
    for (unsigned i = 0; i < ARRAY_LEN(frame); i++) {
        if (!load(ctx, ctx->gpr[RSP] + i * size, size, &frame[i]))
            return;
    }
    if (!check_far_target(ctx, frame[1], frame[0]))
        return;
    if ((u16)frame[4] != USER_SS) {
        protection_fault(ctx, (u16)frame[4] & ~3u);
        return;
    }
    set_flags(ctx, frame[2], size);
    ctx->pc = frame[0];
    ctx->gpr[RSP] = frame[3];
}

// retf: offset and selector, each of the operand size, then imm16 more bytes.
static void emulate_far_return(const Emulation *em, unsigned size)
{
    ThreadCtx *ctx = em->ctx;
    u64 offset, selector;
    if (!load(ctx, ctx->gpr[RSP], size, &offset) ||
        !load(ctx, ctx->gpr[RSP] + size, size, &selector) ||
        !check_far_target(ctx, selector, offset))
        return;
    ctx->pc = offset;
    ctx->gpr[RSP] += 2 * size + em->insn.pop_bytes;
}

// A far pointer in memory: an offset of *size bytes, then the selector.
static bool load_far_pointer(const Emulation *em, unsigned operand, unsigned *size,
                             u64 *ret_offset, u64 *ret_selector)
{
    GuestAddr pointer = operand_address(em, &em->operands[operand]);
    if (decode_as_amd && *size == 8)
        *size = 4;
    return load(em->ctx, pointer, *size, ret_offset) &&
           load(em->ctx, pointer + *size, 2, ret_selector);
}

static void emulate_far_branch(const Emulation *em, unsigned size)
{
    ThreadCtx *ctx = em->ctx;
    u64 offset, selector;
    if (!load_far_pointer(em, 0, &size, &offset, &selector) ||
        !check_far_target(ctx, selector, offset))
        return;
    if (em->insn.mnemonic == ZYDIS_MNEMONIC_CALL) {
        u64 sp = ctx->gpr[RSP] - 2 * size;
        if (!store(ctx, sp + size, size, USER_CS) || !store(ctx, sp, size, em->next))
            return;
        ctx->gpr[RSP] = sp;
    }
    ctx->pc = offset;
}

// --------------------------------------------- near branches that truncate rip

static bool condition_holds(u64 flags, unsigned condition)
{
    bool cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1;
    bool of = flags >> 11 & 1;
    const bool holds[8] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};
    return holds[condition >> 1] != (condition & 1);
}

// loop, loope, loopne, jrcxz: counts down unless it is the last. rcx, or ecx with 67.
static bool count_says_jump(const Emulation *em)
{
    ThreadCtx *ctx = em->ctx;
    u64 width = em->z.address_width == 32 ? UINT32_MAX : UINT64_MAX;
    if (em->z.opcode == 0xe3)
        return (ctx->gpr[RCX] & width) == 0;
    ctx->gpr[RCX] = (ctx->gpr[RCX] - 1) & width;
    bool zf = ctx->flags >> 6 & 1;
    if (em->z.opcode == 0xe0)
        return ctx->gpr[RCX] && !zf;
    return ctx->gpr[RCX] && (zf || em->z.opcode == 0xe2);
}

static void emulate_branch16(const Emulation *em)
{
    ThreadCtx *ctx = em->ctx;
    u64 target = em->insn.target;
    switch (em->insn.mnemonic) {
    case ZYDIS_MNEMONIC_RET:
        if (!load(ctx, ctx->gpr[RSP], 2, &target))
            return;
        ctx->gpr[RSP] += 2u + em->insn.pop_bytes;
        break;
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL:
        if (em->z.opcode == 0xff && !load_operand(em, 0, 2, &target))
            return;
        if (em->insn.mnemonic == ZYDIS_MNEMONIC_JMP)
            break;
        if (!store(ctx, ctx->gpr[RSP] - 2, 2, em->next))
            return;
        ctx->gpr[RSP] -= 2;
        break;
    default:
        if (em->z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && em->z.opcode >= 0xe0
                ? !count_says_jump(em)
                : !condition_holds(ctx->flags, em->insn.condition)) {
            ctx->pc = em->next;
            return;
        }
        break;
    }
    ctx->pc = (u16)target;
}

// --------------------------------------------------------- segment registers

// mov, pop, lfs, lgs of fs and gs: every segment that can be loaded has base 0.
static bool load_selector(ThreadCtx *ctx, u64 selector, bool fs)
{
    switch (selector | 3) {
    case 3: case USER32_CS: case USER_SS: case USER_CS: case CPU_NUMBER_SEGMENT: break;
    default: protection_fault(ctx, (u16)selector & ~3u); return false;
    }
    if (fs)
        translate_set_fs(ctx, 0);
    else
        ctx->client_gs = 0;
    return true;
}

static void emulate_mov_selector(const Emulation *em)
{
    u64 selector;
    if (load_operand(em, 1, 2, &selector) &&
        load_selector(em->ctx, selector, em->z.raw.modrm.reg == 4))
        em->ctx->pc = em->next;
}

static void emulate_pop_selector(const Emulation *em)
{
    ThreadCtx *ctx = em->ctx;
    u64 selector;
    if (!load(ctx, ctx->gpr[RSP], 2, &selector) ||
        !load_selector(ctx, selector, em->z.opcode == 0xa1))
        return;
    ctx->gpr[RSP] += em->z.operand_width / 8u;
    ctx->pc = em->next;
}

static void emulate_load_segment(const Emulation *em)
{
    ThreadCtx *ctx = em->ctx;
    unsigned size = em->z.operand_width / 8u;
    u64 offset, selector;
    if (!load_far_pointer(em, 1, &size, &offset, &selector) ||
        !load_selector(ctx, selector, em->insn.mnemonic == ZYDIS_MNEMONIC_LFS))
        return;
    u64 *reg = &ctx->gpr[em->z.raw.modrm.reg | (unsigned)em->z.raw.rex.R << 3];
    *reg = size == 2 ? (*reg & ~0xffffull) | offset : offset;
    ctx->pc = em->next;
}

// ------------------------------------------------------------------ dispatch

// The decoder's LOWER_EMULATE for want of wrgsbase; see operand_x64.c.
static void refuse_segment(const Emulation *em)
{
    log_note("an operand through fs or gs at %lx needs a kernel that allows wrgsbase", em->ctx->pc);
    illegal_instruction(em->ctx);
}

static void emulate_branch(const Emulation *em, unsigned size)
{
    bool far = em->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    if (!far)
        emulate_branch16(em);
    else if (em->insn.mnemonic == ZYDIS_MNEMONIC_RET)
        emulate_far_return(em, size);
    else
        emulate_far_branch(em, size);
}

static void emulate_decoded(const Emulation *em)
{
    unsigned size = em->z.operand_width / 8u;
    if (em->insn.memory == MEMORY_SEGMENT_WHOLE) {
        refuse_segment(em);
        return;
    }
    switch (em->insn.mnemonic) {
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ: emulate_iret(em, size); break;
    case ZYDIS_MNEMONIC_POPF: emulate_popf(em, 2); break;
    case ZYDIS_MNEMONIC_POPFQ: emulate_popf(em, 8); break;
    case ZYDIS_MNEMONIC_MOV: emulate_mov_selector(em); break;
    case ZYDIS_MNEMONIC_POP: emulate_pop_selector(em); break;
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS: emulate_load_segment(em); break;
    case ZYDIS_MNEMONIC_SYSENTER: illegal_instruction(em->ctx); break;
    case ZYDIS_MNEMONIC_INT: emulate_int(em, (u8)em->z.raw.imm[0].value.u); break;
    case ZYDIS_MNEMONIC_INT1: emulate_int1(em); break;
    case ZYDIS_MNEMONIC_INT3: emulate_int(em, TRAP_BREAKPOINT); break;
    default: emulate_branch(em, size); break;
    }
}

// False: there is no instruction.
static bool decode_emulation(ThreadCtx *ctx, GuestAddr pc, u8 bytes[INSN_MAX], Emulation *ret_em)
{
    size_t got = INSN_MAX;
    u32 keys = pkru_open(); // what may be executed need not be readable
    while (got && !guest_read(pc, bytes, got))
        got--;
    pkru_write(keys);
    *ret_em = (Emulation){.ctx = ctx};
    if (!got || decode_insn(pc, bytes, got, &ret_em->insn) != DECODE_OK ||
        !decode_operands(&ret_em->insn, &ret_em->z, ret_em->operands))
        return false;
    ret_em->next = pc + ret_em->insn.len;
    return true;
}

void emulate_insn(ThreadCtx *ctx)
{
    u8 bytes[INSN_MAX];
    Emulation em;
    if (decode_emulation(ctx, ctx->pc, bytes, &em))
        emulate_decoded(&em);
    else
        illegal_instruction(ctx);
}

bool emulate_branch_operand(ThreadCtx *ctx, GuestAddr pc, Insn *ret_insn, u64 *ret_value)
{
    u8 bytes[INSN_MAX];
    Emulation em;
    if (!decode_emulation(ctx, pc, bytes, &em))
        return false;
    *ret_insn = em.insn;
    ret_insn->bytes = NULL;
    if (em.insn.lowering == LOWER_RET)
        return guest_read(ctx->gpr[RSP], ret_value, sizeof(*ret_value));
    if (em.insn.lowering != LOWER_JMP_INDIRECT && em.insn.lowering != LOWER_CALL_INDIRECT)
        return false;
    const ZydisDecodedOperand *op = &em.operands[0];
    if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return guest_read(operand_address(&em, op), ret_value, sizeof(*ret_value));
    *ret_value = register_value(&em, op->reg.value);
    return true;
}

bool emulate_vsyscall(ThreadCtx *ctx)
{
    static const struct {
        GuestAddr entry;
        u64 nr;
    } calls[] = {
        {0xffffffffff600000, SYS_gettimeofday},
        {0xffffffffff600400, SYS_time},
        {0xffffffffff600800, SYS_getcpu},
    };
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        GuestAddr caller;
        if (ctx->pc != calls[i].entry || !guest_read(ctx->gpr[RSP], &caller, sizeof(caller)))
            continue;
        ctx->gpr[RAX] = (u64)gateway_syscall(calls[i].nr, ctx->gpr[RDI], ctx->gpr[RSI], 0, 0, 0, 0);
        if ((i64)ctx->gpr[RAX] == GATEWAY_RESTART)
            return true;
        ctx->gpr[RSP] += sizeof(caller);
        ctx->pc = caller;
        return true;
    }
    return false;
}
