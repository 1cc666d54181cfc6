// SPDX-License-Identifier: MIT
//
// V bits against truth. Every instruction that this CPU and the decoder know, found by going
// through the opcode space, is run with undefined input bits set one way and another: a
// bit of the outcome that changes must have been called undefined (D1). With few
// undefined bits all ways are tried, and then, where the rule is said to be exact, a bit
// called undefined must have changed.
#include "definedness_native.h"
#include "tools/memcheck/definedness/step.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"
#include "unit.h"

enum { FEW_BITS_MAX = 6, SAMPLES = 20, RDI_NUMBER = 7 };

typedef struct Bit { // of an input
    u8 *value, *v;
    u8 mask;
} Bit;

typedef struct RuleCount {
    u64 cases, undefined, excess;
    u32 forms;
} RuleCount;

static RuleCount counts[RULE_COUNT];
static u8 told[ZYDIS_MNEMONIC_MAX_VALUE + 1]; // failures, one of each is printed
static u8 seen[ZYDIS_MNEMONIC_MAX_VALUE + 1];
static u32 failures, trials_per_form = 5;
static u64 seed = 0x9e3779b97f4a7c15ull;

static u64 random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull;
}

static u32 random_below(u32 n)
{
    return (u32)((random_u64() >> 33) % n);
}

// The V bits of all that a NativeState has, in its shape.
typedef struct Case {
    Insn insn;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    _Alignas(8) u8 step_room[DEFINEDNESS_STEP_BYTES];
    NativeKind kind;
    NativeState before, after, v_before, v_after;
    u64 events;
} Case;

static DefinednessStep *step_of(Case *c)
{
    return (DefinednessStep *)c->step_room;
}

// ---------------------------------------------------------------------- states

static u64 random_value(void)
{
    switch (random_below(8)) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return random_u64() & 0xff;
    case 3: return 1ull << random_below(64);
    case 4: return random_u64() & random_u64() & random_u64();
    default: return random_u64();
    }
}

static void random_bytes(u8 *at, u32 size)
{
    for (u32 i = 0; i < size; i += 8) {
        u64 value = random_value();
        memcpy(at + i, &value, 8);
    }
}

static void random_state(NativeState *s)
{
    memset(s, 0, sizeof(*s));
    u64 common = random_value();
    for (u32 i = 0; i < 16; i++)
        s->gpr[i] = random_below(4) ? random_value() : common;
    s->flags = 0x202 | (random_u64() & FLAGS_STATUS);
    for (u32 i = 0; i < 8; i++)
        s->mask[i] = random_u64();
    random_bytes(s->vector[0], sizeof(s->vector));
    random_bytes(s->memory, sizeof(s->memory));
    if (random_below(3) == 0) {
        for (u32 i = 1; i < 32; i++)
            memcpy(s->vector[i], s->vector[0], 64);
        memcpy(s->memory + 64, s->vector[0], 64);
    }
    s->gpr[RDI_NUMBER] = NATIVE_POINTER;
    s->fx[0] = 0x7f; // the control word: all exceptions masked
    s->fx[1] = 3;
    s->fx[4] = 0xff; // no register is empty
    s->fx[24] = 0x80; // mxcsr
    s->fx[25] = 0x1f;
    for (u32 i = 0; i < 8; i++) {
        random_bytes(s->fx + 32 + 16 * i, 8);
        s->fx[32 + 16 * i + 8] = s->fx[32 + 16 * i + 9] = 0xff; // as MMX instructions leave it
    }
    if (!native_has_avx512) {
        for (u32 i = 0; i < 32; i++)
            memset(s->vector[i] + 32, 0, 32);
    }
}

// Six registers of the stack are full, so that a push finds room; its top is anywhere.
static void random_x87(NativeState *s)
{
    u32 top = random_below(8);
    s->fx[3] = (u8)(top << 3);
    s->fx[4] = 0;
    for (u32 i = 0; i < 6; i++) {
        u8 *at = s->fx + 32 + 16 * i;
        u16 exponent = (u16)((random_below(2) << 15) | (0x3fff - 20 + random_below(40)));
        random_bytes(at, 8);
        at[7] |= 0x80;
        memcpy(at + 8, &exponent, 2);
        s->fx[4] |= (u8)(1u << ((top + i) & 7));
    }
}

static u32 top_of(const NativeState *s)
{
    return s->fx[3] >> 3 & 7;
}

// The top of the stack is where definedness_run() expects it.
static void load_top(u32 top)
{
    __asm__ volatile("fninit");
    for (u32 i = 0; i < top; i++)
        __asm__ volatile("fincstp");
}

static void to_definedness(const NativeState *v, u32 top, Definedness *d)
{
    memset(d, 0, sizeof(*d));
    memcpy(d->gpr, v->gpr, sizeof(d->gpr));
    memcpy(d->mask, v->mask, sizeof(d->mask));
    memcpy(d->vector, v->vector, sizeof(d->vector));
    d->flags = v->flags;
    for (u32 i = 0; i < 8; i++)
        memcpy(d->x87[(top + i) & 7], v->fx + 32 + 16 * i, 10);
    d->x87_environment = 0;
    d->set = ~0ull; // D2 allows more
}

static void from_definedness(const Definedness *d, u32 top, NativeState *v)
{
    memcpy(v->gpr, d->gpr, sizeof(d->gpr));
    memcpy(v->mask, d->mask, sizeof(d->mask));
    memcpy(v->vector, d->vector, sizeof(d->vector));
    v->flags = d->flags;
    for (u32 i = 0; i < 8; i++)
        memcpy(v->fx + 32 + 16 * i, d->x87[(top + i) & 7], 10);
    v->fx[2] = v->fx[3] = d->x87_environment ? 0xff : 0;
}

// D2, exact after a step for what it writes.
static bool set_is_right(const Definedness *d, const DefinednessStep *step)
{
    static const u8 zeros[64];
    for (u32 i = 0; i < 16; i++) {
        if ((definedness_writes(step) & MEMBER_GPR(i)) &&
            ((d->set & MEMBER_GPR(i)) != 0) != (d->gpr[i] != 0))
            return false;
    }
    for (u32 i = 0; i < 32; i++) {
        if ((definedness_writes(step) & MEMBER_VECTOR(i)) &&
            ((d->set & MEMBER_VECTOR(i)) != 0) != (memcmp(d->vector[i], zeros, 64) != 0))
            return false;
    }
    if ((definedness_writes(step) & MEMBER_FLAGS) &&
        ((d->set & MEMBER_FLAGS) != 0) != (d->flags != 0))
        return false;
    return true;
}

static bool propagate(Case *c)
{
    static Definedness d;
    u32 offset = (u32)(NATIVE_POINTER - NATIVE_ADDRESS);
    memcpy(NATIVE_STATE, &c->before, sizeof(c->before));
    c->v_after = c->v_before;
    to_definedness(&c->v_before, top_of(&c->before), &d);
    DefinednessAccess access = definedness_access(step_of(c));
    DefinednessValues values = {
        .gpr = c->before.gpr,
        .eflags = c->before.flags,
        .vector = (const u8(*)[64])c->before.vector,
        .address = NATIVE_POINTER,
        .memory = access.size ? (const u8 *)NATIVE_POINTER : NULL,
        .memory_v = access.size ? shadow_of(NATIVE_POINTER) : NULL,
    };
    memcpy(shadow_of(NATIVE_POINTER), (u8 *)&c->v_before + offset, 64);
    load_top(top_of(&c->before));
    native_load_masks(c->before.mask);
    c->events = definedness_run(step_of(c), &d, &values);
    __asm__ volatile("fninit");
    from_definedness(&d, top_of(&c->after), &c->v_after);
    memcpy((u8 *)&c->v_after + offset, shadow_of(NATIVE_POINTER), 64);
    return set_is_right(&d, step_of(c));
}

// ---------------------------------------------------------------- undefined bits

static bool is_x87(Case *c)
{
    return c->insn.bytes[c->insn.modrm_at ? c->insn.modrm_at - 1 : 0] >= 0xd8 &&
           step_of(c)->rule >= RULE_X87_CONSTANT;
}

typedef struct Region {
    u32 offset, size;
} Region;

static u32 input_regions(Case *c, Region *ret)
{
    MemberSet set = definedness_reads(step_of(c)) | definedness_writes(step_of(c));
    u32 n = 0;
    set &= ~(definedness_address(step_of(c)) | MEMBER_GPR(RDI_NUMBER));
    if (step_of(c)->rule == RULE_BT && definedness_access(step_of(c)).size)
        set &= ~0xffffull; // an index beside memory is part of the address
    for (u32 i = 0; i < 16; i++) {
        if (set & MEMBER_GPR(i))
            ret[n++] = (Region){(u32)offsetof(NativeState, gpr) + 8 * i, 8};
    }
    for (u32 i = 0; i < 8; i++) {
        if (set & MEMBER_MASK(i))
            ret[n++] = (Region){(u32)offsetof(NativeState, mask) + 8 * i, 8};
    }
    for (u32 i = 0; i < 32; i++) {
        if (set & MEMBER_VECTOR(i))
            ret[n++] = (Region){(u32)offsetof(NativeState, vector) + 64 * i,
                                native_has_avx512 ? 64 : 32};
    }
    if (set & MEMBER_FLAGS)
        ret[n++] = (Region){offsetof(NativeState, flags), 2};
    if (set & MEMBER_X87) {
        for (u32 i = 0; i < 8; i++)
            ret[n++] = (Region){(u32)offsetof(NativeState, fx) + 32 + 16 * i,
                                is_x87(c) ? 10 : 8};
    }
    u32 size = definedness_access(step_of(c)).size;
    if (size)
        ret[n++] = (Region){(u32)(NATIVE_POINTER - NATIVE_ADDRESS), size > 64 ? 64 : size};
    return n;
}

static void add_bit(Case *c, u32 byte, u32 bit, Bit *bits, u32 *n, u32 max)
{
    u8 *v = (u8 *)&c->v_before + byte;
    u8 mask = (u8)(1u << bit);
    bool is_flag = byte >= offsetof(NativeState, flags) && byte < offsetof(NativeState, mask);
    u32 flag = is_flag ? 1u << ((byte - (u32)offsetof(NativeState, flags)) * 8 + bit) : 0;
    if (*n >= max || *v & mask || (is_flag && !(flag & FLAGS_STATUS)))
        return;
    *v |= mask;
    bits[(*n)++] = (Bit){(u8 *)&c->before + byte, v, mask};
}

enum { BITS_MAX = 4096 };

static u32 choose_bits(Case *c, Bit *bits, bool few)
{
    Region regions[64];
    u32 n = 0, count = input_regions(c, regions);
    memset(&c->v_before, 0, sizeof(c->v_before));
    if (count == 0)
        return 0;
    if (few) {
        u32 wanted = 1 + random_below(FEW_BITS_MAX);
        bool low = random_below(3) == 0;
        for (u32 i = 0; i < wanted * 2 && n < wanted; i++) {
            Region *region = &regions[random_below(count)];
            u32 byte = region->offset + random_below(low && region->size > 8 ? 8 : region->size);
            add_bit(c, byte, random_below(8), bits, &n, wanted);
        }
        return n;
    }
    for (u32 i = 0; i < count; i++) {
        u32 how = random_below(4);
        u32 from = random_below(regions[i].size), size = 1u << random_below(5);
        for (u32 k = 0; k < regions[i].size && how; k++) {
            bool inside = how == 3 || (k >= from && k < from + size);
            u8 which = how == 2 ? (u8)random_u64() : 0xff;
            for (u32 bit = 0; bit < 8 && inside; bit++) {
                if (which >> bit & 1)
                    add_bit(c, regions[i].offset + k, bit, bits, &n, BITS_MAX);
            }
        }
    }
    return n;
}

static void set_bits(const Bit *bits, u32 n, u64 pattern, bool exhaustive)
{
    u64 word = 0;
    for (u32 i = 0; i < n; i++) {
        if (i % 64 == 0)
            word = exhaustive ? pattern : pattern == 0 ? 0 : pattern == 1 ? ~0ull : random_u64();
        if (word >> (i % 64) & 1)
            *bits[i].value |= bits[i].mask;
        else
            *bits[i].value &= (u8)~bits[i].mask;
    }
}

// --------------------------------------------------------------------- judging

// What is compared: everything but what the processor's manual leaves open.
static void ignore_open(Case *c, NativeState *changed)
{
    u64 open = c->z.cpu_flags ? c->z.cpu_flags->undefined : 0;
    changed->flags &= FLAGS_STATUS & ~open;
    memset(changed->room, 0, sizeof(changed->room));
    // Of the status word the condition codes count, C1 aside; the rest is exceptions.
    bool x87 = is_x87(c);
    u8 codes = x87 ? changed->fx[3] & 0x45 : 0;
    memset(changed->fx, 0, 32);
    changed->fx[3] = codes;
    for (u32 i = 0; i < 8; i++) {
        bool empty = x87 && !(c->after.fx[4] >> ((top_of(&c->after) + i) & 7) & 1);
        memset(changed->fx + 32 + 16 * i, 0, empty ? 16 : 0);
        memset(changed->fx + 32 + 16 * i + (x87 ? 10 : 8), 0, x87 ? 6 : 8);
    }
    memset(changed->fx + 160, 0, sizeof(changed->fx) - 160);
    changed->host_sp = 0;
    changed->gpr[4] = 0;
}

static void describe(Case *c, const char *what, u32 byte, u8 got, u8 wanted)
{
    if (told[c->z.mnemonic]++)
        return;
    printf("# %s: rule %s, mnemonic %s, bytes", what, definedness_rule_name(step_of(c)->rule),
           ZydisMnemonicGetString(c->z.mnemonic));
    for (u32 i = 0; i < c->insn.len; i++)
        printf(" %02x", c->insn.bytes[i]);
    const char *where = byte >= offsetof(NativeState, vector) ? "vector"
                        : byte >= offsetof(NativeState, fx)     ? "fx"
                        : byte >= offsetof(NativeState, memory) ? "memory"
                        : byte >= offsetof(NativeState, mask)   ? "mask"
                        : byte >= offsetof(NativeState, flags)  ? "flags"
                                                                : "gpr";
    u32 base = byte >= offsetof(NativeState, vector) ? (u32)offsetof(NativeState, vector)
               : byte >= offsetof(NativeState, fx)     ? (u32)offsetof(NativeState, fx)
               : byte >= offsetof(NativeState, memory) ? (u32)offsetof(NativeState, memory)
               : byte >= offsetof(NativeState, mask)   ? (u32)offsetof(NativeState, mask)
               : byte >= offsetof(NativeState, flags)  ? (u32)offsetof(NativeState, flags)
                                                       : (u32)offsetof(NativeState, gpr);
    printf(": %s byte %u has V %02x, changed %02x\n", where, byte - base, got, wanted);
}

// Under a mask with undefined bits no rule is.
static bool is_exact(const DefinednessStep *step)
{
    return definedness_rule_is_exact(step->rule) && step->mask_mode == MASK_NONE;
}

static void judge(Case *c, const NativeState *changed, bool exhaustive)
{
    RuleCount *count = &counts[step_of(c)->rule];
    const u8 *now = (const u8 *)changed, *v = (const u8 *)&c->v_after;
    NativeState masked = c->v_after;
    ignore_open(c, &masked);
    v = (const u8 *)&masked;
    bool said = false, said_excess = false;
    count->cases++;
    for (u32 i = 0; i < native_size(c->kind); i++) {
        if (now[i] & ~v[i] && !said) {
            said = true;
            failures++;
            describe(c, "unsound", i, v[i], now[i]);
        }
        if (!exhaustive)
            continue;
        count->undefined += (u32)__builtin_popcount(v[i]);
        u8 excess = (u8)(v[i] & ~now[i]);
        count->excess += (u32)__builtin_popcount(excess);
        if (excess && is_exact(step_of(c)) && !said_excess) {
            said_excess = true;
            failures++;
            describe(c, "not exact", i, v[i], now[i]);
        }
    }
}

static void or_difference(NativeState *into, const NativeState *a, const NativeState *b, u32 size)
{
    u64 *to = (u64 *)into;
    const u64 *x = (const u64 *)a, *y = (const u64 *)b;
    for (u32 i = 0; i < size / 8; i++)
        to[i] |= x[i] ^ y[i];
}

// An index or an address among the values would leave the memory that is there.
static void tame(Case *c)
{
    bool bit_string = c->z.mnemonic == ZYDIS_MNEMONIC_BT || c->z.mnemonic == ZYDIS_MNEMONIC_BTS ||
                      c->z.mnemonic == ZYDIS_MNEMONIC_BTR || c->z.mnemonic == ZYDIS_MNEMONIC_BTC;
    for (u32 i = 0; i < 16 && bit_string; i++) {
        if (i != RDI_NUMBER)
            c->before.gpr[i] &= 0x3f;
    }
}

static bool try_once(Case *c, bool few)
{
    static Bit bits[BITS_MAX];
    static NativeState changed, first;
    random_state(&c->before);
    tame(c);
    if (is_x87(c))
        random_x87(&c->before);
    u32 n = choose_bits(c, bits, few);
    u32 ways = few ? 1u << n : SAMPLES;
    if (n == 0)
        return true;
    memset(&changed, 0, sizeof(changed));
    for (u32 i = 0; i < ways; i++) {
        set_bits(bits, n, i, few);
        if (!native_run(c->kind, &c->before, &c->after))
            return false;
        if (i == 0)
            memcpy(&first, &c->after, native_size(c->kind));
        // An argument that is too large for fsincos is not split.
        if (is_x87(c) && top_of(&c->after) != top_of(&first))
            return true;
        or_difference(&changed, &first, &c->after, native_size(c->kind));
    }
    ignore_open(c, &changed);
    // The values that are there when the step runs are any of the ways.
    if (!propagate(c) && failures++ < 60)
        describe(c, "set is wrong", 0, 0, 0);
    if (!c->events) // what was reported counts as defined
        judge(c, &changed, few);
    return true;
}

// --------------------------------------------------------------- finding instructions

static bool is_excluded(const ZydisDecodedInstruction *z)
{
    if (z->address_width != 64)
        return true;
    RuleRow row = definedness_row(z->mnemonic);
    if (row.rule == RULE_STATE_SAVE || row.rule == RULE_STATE_RESTORE)
        return true; // more memory than there is
    if (z->meta.category == ZYDIS_CATEGORY_X87_ALU)
        return row.rule < RULE_X87_CONSTANT;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_RDPRU:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
    case ZYDIS_MNEMONIC_STMXCSR:
    case ZYDIS_MNEMONIC_VSTMXCSR:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_CLZERO:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU:
    case ZYDIS_MNEMONIC_STD:
    case ZYDIS_MNEMONIC_STC:
    case ZYDIS_MNEMONIC_MOVDIR64B:
    case ZYDIS_MNEMONIC_XLAT:
    case ZYDIS_MNEMONIC_EMMS:
    case ZYDIS_MNEMONIC_FEMMS: return true;
    default: break;
    }
    switch (z->meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_STRINGOP:
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_RDWRFSGS:
    case ZYDIS_CATEGORY_GATHER:
    case ZYDIS_CATEGORY_SCATTER:
    case ZYDIS_CATEGORY_AVX2GATHER:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_CET:
    case ZYDIS_CATEGORY_PKU:
    case ZYDIS_CATEGORY_MISC: return z->mnemonic != ZYDIS_MNEMONIC_LEA;
    default: return z->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED;
    }
}

static bool touches_segments(const Case *c)
{
    for (u32 i = 0; i < c->z.operand_count; i++) {
        const ZydisDecodedOperand *op = &c->operands[i];
        if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
            continue;
        ZydisRegisterClass class = ZydisRegisterGetClass(op->reg.value);
        if (class == ZYDIS_REGCLASS_SEGMENT || class == ZYDIS_REGCLASS_CONTROL ||
            class == ZYDIS_REGCLASS_DEBUG || class == ZYDIS_REGCLASS_BOUND)
            return true;
    }
    return false;
}

// Of an explicit operand only [rdi] is in the memory that is there.
static bool reaches_elsewhere(const Case *c)
{
    for (u32 i = 0; i < c->z.operand_count; i++) {
        const ZydisDecodedOperand *op = &c->operands[i];
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            (op->mem.base != ZYDIS_REGISTER_RDI || op->mem.index != ZYDIS_REGISTER_NONE ||
             op->mem.disp.value != 0 || c->insn.segment))
            return true;
    }
    return false;
}

// Sanitizers make all of it take minutes: a part shows them what they look for.
#ifdef __SANITIZE_ADDRESS__
enum { FORMS_SKIPPED = 40 };
#else
enum { FORMS_SKIPPED = 1 };
#endif

static void test_bytes(const u8 *bytes, u32 trials)
{
    static Case c;
    if (random_below(FORMS_SKIPPED))
        return;
    if (decode_insn(0x400000, bytes, 15, &c.insn) != DECODE_OK ||
        !decode_operands(&c.insn, &c.z, c.operands))
        return;
    if (is_excluded(&c.z) || touches_segments(&c) || reaches_elsewhere(&c) ||
        insn_gprs_used(&c.insn) & 1u << 4)
        return;
    definedness_prepare(&c.insn, step_of(&c));
    MemberSet all = definedness_reads(step_of(&c)) | definedness_writes(step_of(&c));
    c.kind = all & (MEMBERS_VECTOR | 0xffull << 20) || c.insn.encoding ? NATIVE_VECTOR
             : all & (MEMBER_X87 | MEMBER_MXCSR)                       ? NATIVE_X87
                                                                       : NATIVE_INTEGER;
    native_set_insn(c.kind, c.insn.bytes, c.insn.len);
    u32 done = 0;
    for (u32 i = 0; i < trials; i++) {
        bool ran = try_once(&c, i % 4 != 3);
        if (!ran && i > 3 && done == 0)
            return; // this CPU does not have it
        done += ran;
    }
    seen[c.z.mnemonic] |= done > 0;
    counts[step_of(&c)->rule].forms += done > 0;
}

static u8 modrm_of(u32 reg, bool memory)
{
    u32 rm = random_below(8);
    if (memory)
        return (u8)(reg << 3 | 7);
    return (u8)(0xc0 | reg << 3 | (rm == 4 ? 5 : rm));
}

static u32 put_tail(u8 *at, u32 n)
{
    for (u32 i = 0; n + i < 15; i++)
        at[n + i] = (u8)random_u64();
    return n;
}

static bool is_prefix(u32 op)
{
    return op == 0x0f || op == 0x26 || op == 0x2e || op == 0x36 || op == 0x3e ||
           (op >= 0x40 && op < 0x50) || op == 0x62 || (op >= 0x64 && op <= 0x67) ||
           op == 0xc4 || op == 0xc5 || op == 0xf0 || op == 0xf2 || op == 0xf3;
}

// The shadow of a page lies in two.
static void open_shadow(void)
{
    void *start = (void *)PAGE_DOWN((u64)shadow_of(NATIVE_ADDRESS));
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    CHECK(mmap(start, 64 * KiB + PAGE_SIZE, PROT_READ | PROT_WRITE,
               flags | MAP_FIXED_NOREPLACE, -1, 0) == start);
    shadow_open_pages = mmap(NULL, CLIENT_END / PAGE_SIZE / 8, PROT_READ | PROT_WRITE, flags, -1,
                             0);
    CHECK(shadow_open_pages != MAP_FAILED);
    for (u64 i = 0; i < 64 * KiB / PAGE_SIZE; i++) {
        u64 page = NATIVE_ADDRESS / PAGE_SIZE + i;
        shadow_open_pages[page / 64] |= 1ull << page % 64;
    }
}

TEST(legacy_instructions_call_defined_only_what_cannot_change)
{
    static const u8 prefixes[] = {0, 0x66, 0xf3, 0xf2};
    static const u8 rexes[] = {0, 0x40, 0x48, 0x45};
    failures = 0;
    decode_init();
    if (getenv("TRUTH_TRIALS"))
        trials_per_form = (u32)atoi(getenv("TRUTH_TRIALS"));
    CHECK(native_init());
    open_shadow();
    for (u32 map = 0; map < 4; map++) {
        for (u32 op = 0; op < 256; op++) {
            if (map == 0 && is_prefix(op))
                continue;
            for (u32 variant = 0; variant < 4 * 4 * 8 * 2; variant++) {
                u8 bytes[16];
                u32 n = 0;
                u8 rex = rexes[variant >> 2 & 3];
                if (prefixes[variant & 3])
                    bytes[n++] = prefixes[variant & 3];
                if (rex)
                    bytes[n++] = rex;
                if (map)
                    bytes[n++] = 0x0f;
                if (map > 1)
                    bytes[n++] = map == 2 ? 0x38 : 0x3a;
                bytes[n++] = (u8)op;
                bool memory = variant >> 7 & 1;
                if (memory && rex & 1)
                    bytes[n - 2 - (map > 0) - (map > 1)] &= 0xfe; // rdi is the pointer
                bytes[n++] = modrm_of(variant >> 4 & 7, memory);
                put_tail(bytes, n);
                test_bytes(bytes, trials_per_form);
            }
        }
    }
    CHECK_EQ(failures, 0);
}

TEST(vex_instructions_call_defined_only_what_cannot_change)
{
    failures = 0;
    for (u32 map = 1; map <= 3; map++) {
        for (u32 op = 0; op < 256; op++) {
            for (u32 variant = 0; variant < 4 * 2 * 2 * 2 * 8; variant++) {
                u32 pp = variant & 3, w = variant >> 2 & 1, l = variant >> 3 & 1;
                u32 vvvv = variant >> 4 & 1 ? 0 : random_below(16);
                u8 bytes[16] = {0xc4, (u8)(0xe0 | map),
                                (u8)(w << 7 | (~vvvv & 15) << 3 | l << 2 | pp), (u8)op,
                                modrm_of(random_below(8), variant >> 5 & 1)};
                put_tail(bytes, 5);
                test_bytes(bytes, trials_per_form);
            }
        }
    }
    CHECK_EQ(failures, 0);
}

TEST(evex_instructions_call_defined_only_what_cannot_change)
{
    enum { MAP_MAX = 6 }; // 5 and 6 are those of half floats, 4 is none of EVEX before APX
    failures = 0;
    for (u32 map = 1; map <= MAP_MAX && native_has_avx512; map++) {
        for (u32 op = 0; op < 256; op++) {
            for (u32 variant = 0; variant < 4 * 2 * 3 * 2 * 6; variant++) {
                u32 pp = variant & 3, w = variant >> 2 & 1, memory = variant >> 3 & 1;
                u32 length = (variant >> 4) % 3, mask = (variant >> 4) / 3 % 3;
                u32 zero = mask == 2, broadcast = (variant >> 4) / 9 & memory;
                u32 vvvv = random_below(2) ? 0 : random_below(16);
                u8 bytes[16] = {
                    0x62, (u8)((random_below(8) == 0 ? 0xe0 : 0xf0) | map),
                    (u8)(w << 7 | (~vvvv & 15) << 3 | 4 | pp),
                    (u8)(zero << 7 | length << 5 | broadcast << 4 | 8 |
                         (mask ? 1 + random_below(7) : 0)),
                    (u8)op, modrm_of(random_below(8), memory)};
                put_tail(bytes, 6);
                test_bytes(bytes, trials_per_form);
            }
        }
    }
    CHECK_EQ(failures, 0);
}

TEST(every_row_of_the_table_was_met_or_is_known_not_to_be)
{
    u32 rows = 0, met = 0;
    for (u32 m = 0; m <= ZYDIS_MNEMONIC_MAX_VALUE; m++) {
        RuleRow row = definedness_row(m);
        rows += row.rule != RULE_COARSE;
        met += row.rule != RULE_COARSE && seen[m];
        if (getenv("TRUTH_VERBOSE") && row.rule != RULE_COARSE && !seen[m])
            printf("# not met: %s\n", ZydisMnemonicGetString(m));
    }
    u64 cases = 0;
    printf("# %-14s %8s %10s %12s %10s\n", "rule", "forms", "cases", "undefined", "excess");
    for (u32 i = 0; i < RULE_COUNT; i++) {
        RuleCount *count = &counts[i];
        cases += count->cases;
        if (count->cases)
            printf("# %-14s %8u %10llu %12llu %10llu\n", definedness_rule_name(i), count->forms,
                   (unsigned long long)count->cases, (unsigned long long)count->undefined,
                   (unsigned long long)count->excess);
    }
    printf("# %llu cases, %u of %u rows met on this CPU\n", (unsigned long long)cases, met, rows);
    CHECK(cases > 100000 / FORMS_SKIPPED);
}
