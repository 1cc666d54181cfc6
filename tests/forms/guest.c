// SPDX-License-Identifier: MIT
//
// Runs each instruction in every form of block (code.h) from the same states, with the same bits of
// its inputs undefined, and holds the V bits that memcheck keeps of what it leaves behind
//   to each other: all forms must agree, and must report as many errors;
//   to the truth: a bit that changes when undefined input bits do is undefined.
// Where few bits are undefined all their values are tried.
//
// guest FILE [seed=N] [share=N] [hot=N] [only=NAME] [probe=FILE]
//   share=N   one in N of the instructions, chosen by the seed
//   hot=N     each form runs so often before it is asked, so that memcheck makes another block of it
//   probe     without a tool: writes the instructions that this processor has to FILE
// A line for each kind of difference; the last line counts.
#include "code.h"

#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "muninn/client.h"

enum { FEW_BITS = 3, WAYS_MAX = 1 << FEW_BITS, MANY_WAYS = 3, TOLD_MAX = 40, BITS_MAX = 8192 };

static const u32 forms[] = {
    FORM_SPLIT_BEFORE | FORM_SPLIT_AFTER, // what the others are compared with
    0,
    FORM_FLAGS_DEAD,
    FORM_SAHF,
    FORM_SAHF | FORM_FLAGS_DEAD,
    FORM_SPLIT_BEFORE,
    FORM_SPLIT_BEFORE | FORM_FLAGS_DEAD,
    FORM_SPLIT_AFTER | FORM_SAHF,
    FORM_STACK,
    FORM_STACK | FORM_FLAGS_DEAD,
    FORM_STACK | FORM_SPLIT_BEFORE | FORM_SPLIT_AFTER,
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

extern const FormInsn sequences_begin[], sequences_end[];

typedef struct Outcome {
    State after, v;
    u32 errors;
} Outcome;

typedef struct Options {
    u64 seed;
    u32 share, hot;
    const char *only, *probe;
} Options;

static Options options = {.seed = 1, .share = 1};
static u64 seed;
static u32 told, runs, cases_run, faulted;
static State before, v_before;
static Outcome first[WAYS_MAX], outcome;

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

// ---------------------------------------------------------------------- states

// A part of the state.
typedef struct Region {
    u32 offset, size;
} Region;

enum { REGIONS_MAX = 64 };

// The parts that an instruction has to do with.
static u32 regions_of(const FormInsn *insn, Region *ret)
{
    u32 n = 0;
    bool is_index = insn->is_bit_string && insn->modrm_at; // of bits that may be elsewhere
    for (u32 i = 0; i < 16; i++) {
        if (insn->members & MEMBER_GPR(i) && !is_index)
            ret[n++] = (Region){(u32)offsetof(State, gpr) + 8 * i, 8};
    }
    for (u32 i = 0; i < 8; i++) {
        if (insn->members & MEMBER_MASK(i))
            ret[n++] = (Region){(u32)offsetof(State, mask) + 8 * i, 8};
    }
    for (u32 i = 0; i < 32; i++) {
        if (insn->members & MEMBER_VECTOR(i))
            ret[n++] = (Region){(u32)offsetof(State, vector) + 64 * i, code_has_avx512 ? 64 : 32};
    }
    if (insn->members & MEMBER_FLAGS)
        ret[n++] = (Region){offsetof(State, flags), 2};
    for (u32 i = 0; i < 8 && insn->members & MEMBER_X87; i++)
        ret[n++] = (Region){(u32)offsetof(State, fx) + 32 + 16 * i, 10};
    ret[n++] = (Region){offsetof(State, memory) + MEMORY_BEFORE, 64};
    return n;
}

static u64 random_value(void)
{
    switch (random_below(8)) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return random_u64() & 0xff;
    case 3: return 1ull << random_below(64);
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

static void random_state(const FormInsn *insn)
{
    memset(&before, 0, sizeof(before));
    for (u32 i = 0; i < 16; i++)
        before.gpr[i] = insn->is_bit_string ? random_u64() & 0x3f : random_value();
    before.flags = 0x202 | (random_u64() & FLAGS_STATUS);
    for (u32 i = 0; i < 8; i++)
        before.mask[i] = random_u64();
    random_bytes(before.memory, sizeof(before.memory));
    random_bytes(before.vector[0], sizeof(before.vector));
    // The control word masks all exceptions, six registers are full; mxcsr masks, too.
    before.fx[0] = 0x7f, before.fx[1] = 3, before.fx[4] = 0x3f;
    before.fx[24] = 0x80, before.fx[25] = 0x1f;
    for (u32 i = 0; i < 8; i++) {
        u16 exponent = (u16)((random_below(2) << 15) | (0x3fff - 20 + random_below(40)));
        random_bytes(before.fx + 32 + 16 * i, 8);
        before.fx[32 + 16 * i + 7] |= 0x80;
        memcpy(before.fx + 32 + 16 * i + 8, &exponent, 2);
    }
}

static void derive_half_flags(State *s, bool is_v)
{
    u64 low = s->flags & 0xd5, of = s->flags >> 11 & 1;
    s->half_flags = low << 8 | of | (is_v ? 0 : 0x200);
}

// ---------------------------------------------------------------- undefined bits

typedef struct Bit {
    u32 byte;
    u8 mask;
} Bit;

static Bit bits[BITS_MAX];

static void add_bit(u32 byte, u32 bit, u32 *n)
{
    bool is_flag = byte >= offsetof(State, flags) && byte < offsetof(State, mask);
    u32 flag = is_flag ? 1u << ((byte - (u32)offsetof(State, flags)) * 8 + bit) : FLAGS_STATUS;
    u8 *v = (u8 *)&v_before + byte, mask = (u8)(1u << bit);
    if (*n == BITS_MAX || *v & mask || !(flag & FLAGS_STATUS))
        return;
    *v |= mask;
    bits[(*n)++] = (Bit){byte, mask};
}

static u32 choose_bits(const FormInsn *insn, bool few)
{
    Region regions[REGIONS_MAX];
    u32 n = 0, count = regions_of(insn, regions);
    memset(&v_before, 0, sizeof(v_before));
    for (u32 i = 0; few && i < 2 * FEW_BITS && n < FEW_BITS; i++) {
        const Region *region = &regions[random_below(count)];
        bool low = random_below(2) && region->size > 8;
        add_bit(region->offset + random_below(low ? 8 : region->size), random_below(8), &n);
    }
    for (u32 i = 0; i < count && !few; i++) {
        u32 how = random_below(4), from = random_below(regions[i].size);
        u32 size = 1u << random_below(5);
        for (u32 k = 0; k < regions[i].size && how; k++) {
            u8 which = how == 2 ? (u8)random_u64() : 0xff;
            for (u32 bit = 0; bit < 8 && (how == 3 || (k >= from && k < from + size)); bit++) {
                if (which >> bit & 1)
                    add_bit(regions[i].offset + k, bit, &n);
            }
        }
    }
    return n;
}

static void set_bits(u32 n, u32 way, bool few)
{
    u64 word = 0;
    for (u32 i = 0; i < n; i++) {
        if (i % 64 == 0)
            word = few ? way : way == 0 ? 0 : way == 1 ? ~0ull : random_u64();
        u8 *at = (u8 *)&before + bits[i].byte;
        *at = (u8)(word >> i % 64 & 1 ? *at | bits[i].mask : *at & ~bits[i].mask);
    }
}

// -------------------------------------------------------------------- running

#define IN ((State *)STATE_IN)
#define OUT ((State *)STATE_OUT)

// A part of a state that is kept apart from the registers.
#define WORDS_BYTES offsetof(State, memory)

static void put_part(const State *values, const State *v, size_t offset, size_t size)
{
    u8 *to = (u8 *)IN + offset;
    memcpy(to, (const u8 *)values + offset, size);
    (void)MUNINN_SET_VBITS(to, (const u8 *)v + offset, size);
}

static void get_part(State *from, Outcome *o, size_t offset, size_t size)
{
    u8 *at = (u8 *)from + offset;
    (void)MUNINN_GET_VBITS(at, (u8 *)&o->v + offset, size);
    (void)MUNINN_MAKE_MEM_DEFINED(at, size);
    memcpy((u8 *)&o->after + offset, at, size);
}

static void put_state(const FormInsn *insn)
{
    derive_half_flags(&before, false);
    derive_half_flags(&v_before, true);
    put_part(&before, &v_before, 0, WORDS_BYTES);
    put_part(&before, &v_before, offsetof(State, memory), MEMORY_BYTES);
    if (insn->members & MEMBER_X87)
        put_part(&before, &v_before, offsetof(State, fx), FX_BYTES);
    for (u32 i = 0; i < 32; i++) {
        if (insn->members & MEMBER_VECTOR(i))
            put_part(&before, &v_before, offsetof(State, vector) + 64 * i, 64);
    }
    memset(OUT, 0, offsetof(State, fx));
}

static void get_state(const FormInsn *insn, u32 form, Outcome *ret)
{
    get_part(OUT, ret, 0, WORDS_BYTES);
    get_part(form & FORM_STACK ? OUT : IN, ret, offsetof(State, memory), MEMORY_BYTES);
    if (insn->members & MEMBER_X87)
        get_part(OUT, ret, offsetof(State, fx), FX_BYTES);
    for (u32 i = 0; i < 32; i++) {
        if (insn->members & MEMBER_VECTOR(i))
            get_part(OUT, ret, offsetof(State, vector) + 64 * i, 64);
    }
}

static void run_once(const FormInsn *insn, u32 form, const u8 *code, Outcome *ret)
{
    put_state(insn);
    u32 errors = MUNINN_COUNT_ERRORS;
    ((void (*)(void))code)();
    ret->errors = MUNINN_COUNT_ERRORS - errors;
    get_state(insn, form, ret);
    runs++;
}

// -------------------------------------------------------------------- judging

static const char *region_name(u32 byte, u32 *ret_at)
{
    static const struct {
        size_t from;
        const char *name;
    } parts[] = {{offsetof(State, vector), "vector"}, {offsetof(State, fx), "x87"},
                 {offsetof(State, memory), "memory"}, {offsetof(State, mask), "mask"},
                 {offsetof(State, flags), "flags"},   {0, "gpr"}};
    u32 i = 0;
    while (byte < parts[i].from)
        i++;
    *ret_at = byte - (u32)parts[i].from;
    return parts[i].name;
}

static void tell(const FormInsn *insn, u32 form, const char *what, u32 byte, u32 is, u32 other)
{
    u32 at;
    const char *name = region_name(byte, &at);
    if (told++ >= TOLD_MAX)
        return;
    printf("%s [", insn->name);
    for (u32 i = 0; i < insn->len; i++)
        printf("%02x", insn->bytes[i]);
    printf("] form %u: %s: %s byte %u: %02x, %02x\n", form, what, name, at, is, other);
}

// The bytes of a state that a form says something of.
static bool is_compared(const FormInsn *insn, u32 form, u32 byte)
{
    u32 memory = byte - (u32)offsetof(State, memory);
    if (byte >= offsetof(State, fx) + 416 && byte < offsetof(State, vector))
        return false; // nobody's
    if (byte >= offsetof(State, fx) && byte < offsetof(State, vector))
        return insn->members & MEMBER_X87;
    if (byte >= offsetof(State, flags) && byte < offsetof(State, mask))
        return !(form & FORM_FLAGS_DEAD);
    if (byte >= offsetof(State, mask) + 64 && byte < offsetof(State, memory))
        return false;
    return !(form & FORM_STACK) || memory >= MEMORY_BYTES || memory >= MEMORY_BEFORE;
}

static bool compare(const FormInsn *insn, u32 form, const Outcome *wanted, const Outcome *got)
{
    const u8 *a = (const u8 *)&wanted->v, *b = (const u8 *)&got->v;
    if (wanted->errors != got->errors) {
        tell(insn, form, "errors", 0, wanted->errors, got->errors);
        return false;
    }
    if (!memcmp(a, b, sizeof(State)))
        return true;
    for (u32 i = 0; i < sizeof(State); i++) {
        u8 open = i - offsetof(State, flags) < 8
                      ? (u8)(~(u64)FLAGS_STATUS >> 8 * (i - offsetof(State, flags)))
                      : 0;
        if ((a[i] ^ b[i]) & (u8)~open && is_compared(insn, form, i)) {
            tell(insn, form, "V bits differ from those of the first form", i, a[i], b[i]);
            return false;
        }
    }
    return true;
}

// Whether all that changes is called undefined, by each of the ways.
static bool judge(const FormInsn *insn, const Outcome *outcomes, u32 ways)
{
    static State changed;
    u64 open = ~(u64)FLAGS_STATUS | insn->flags_open;
    for (u32 i = 0; i < sizeof(State); i++) {
        ((u8 *)&changed)[i] = 0;
        for (u32 way = 1; way < ways; way++)
            ((u8 *)&changed)[i] |=
                ((const u8 *)&outcomes[0].after)[i] ^ ((const u8 *)&outcomes[way].after)[i];
    }
    changed.flags &= ~open;
    memset(changed.fx, 0, sizeof(changed.fx));
    for (u32 way = 0; way < ways; way++) {
        const u8 *v = (const u8 *)&outcomes[way].v, *c = (const u8 *)&changed;
        for (u32 i = 0; i < sizeof(State) && !outcomes[way].errors; i++) {
            if (c[i] & ~v[i]) {
                tell(insn, 0, "changes and is called defined", i, v[i], c[i]);
                return false;
            }
        }
    }
    return true;
}

static bool try_forms(const FormInsn *insn, u8 *const *code, bool few)
{
    random_state(insn);
    u32 n = choose_bits(insn, few), ways = few ? 1u << n : MANY_WAYS;
    bool good = true;
    u64 values = seed;
    for (u32 f = 0; f < FORMS && good; f++) {
        if (!code[f])
            continue;
        seed = values;
        set_bits(n, 0, few);
        for (u32 i = 0; i < options.hot && f; i++)
            run_once(insn, forms[f], code[f], &outcome);
        for (u32 way = 0; way < ways && good; way++) {
            Outcome *to = f ? &outcome : &first[way];
            set_bits(n, way, few);
            run_once(insn, forms[f], code[f], to);
            good = f == 0 || compare(insn, forms[f], &first[way], to);
        }
    }
    return good && (!insn->is_judged || judge(insn, first, ways));
}

// ------------------------------------------------------------------- the programs

static sigjmp_buf back;

static void on_signal(int signal)
{
    siglongjmp(back, signal);
}

static void catch_faults(void)
{
    static const int faults[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
    for (u32 i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        signal(faults[i], on_signal);
}

static u8 *code_end = (u8 *)CODE_AT;

static void run_insn(const FormInsn *insn)
{
    enum { TRIALS = 3, PAGE = 4096 };
    u8 *code[FORMS] = {NULL};
    // On pages of its own: the writing of code would throw away what is translated of others.
    code_end = (u8 *)(((uintptr_t)code_end + PAGE - 1) & ~(PAGE - 1ull));
    for (u32 f = 0; f < FORMS; f++) {
        if (forms[f] & FORM_STACK && !insn->modrm_at)
            continue;
        if (forms[f] & FORM_SAHF && !(insn->members & MEMBER_FLAGS))
            continue;
        code[f] = code_end;
        code_end = (u8 *)(((uintptr_t)code_make(code_end, insn, forms[f]) + 63) & ~63ull);
    }
    memset(first, 0, sizeof(first));
    memset(&outcome, 0, sizeof(outcome));
    volatile bool good = true;
    if (sigsetjmp(back, 1)) { // a division, say
        __asm__ volatile("cld\n\tfninit" : : : "memory");
        faulted++;
        return;
    }
    for (u32 i = 0; i < TRIALS && good; i++)
        good = try_forms(insn, code, i % 2 == 0);
    cases_run++;
}


// Whether the processor has the instruction, and it runs without a fault.
static bool probe_insn(const FormInsn *insn)
{
    seed = 0x1234567;
    (void)code_make((u8 *)CODE_AT, insn, 0);
    for (u32 i = 0; i < 4; i++) {
        random_state(insn);
        memset(&v_before, 0, sizeof(v_before));
        if (sigsetjmp(back, 1)) {
            __asm__ volatile("cld\n\tfninit" : : : "memory");
            return false;
        }
        run_once(insn, 0, (const u8 *)CODE_AT, &outcome);
    }
    return true;
}

static void map_at(u64 address, size_t size, int prot)
{
    if (mmap((void *)address, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0) != (void *)address) {
        perror("mmap");
        exit(2);
    }
}

static void init(void)
{
    u32 a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    // AVX-512 F, BW and VL, by what the machine keeps of the registers.
    u32 low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    code_has_avx512 = (b >> 16 & 1) && (b >> 30 & 1) && (b >> 31 & 1) && (low & 0xe6) == 0xe6;
    map_at(STATE_IN, 0x30000, PROT_READ | PROT_WRITE);
    State *zero = (State *)STATE_ZERO;
    zero->flags = 0x202;
    zero->fx[0] = 0x7f, zero->fx[1] = 3, zero->fx[24] = 0x80, zero->fx[25] = 0x1f;
}

static void parse(char **argv)
{
    for (char **arg = argv; *arg; arg++) {
        char *value = strchr(*arg, '=');
        if (!value)
            continue;
        value++;
        if (!strncmp(*arg, "seed=", 5))
            options.seed = strtoull(value, NULL, 0);
        else if (!strncmp(*arg, "share=", 6))
            options.share = (u32)atoi(value);
        else if (!strncmp(*arg, "hot=", 4))
            options.hot = (u32)atoi(value);
        else if (!strncmp(*arg, "only=", 5))
            options.only = value;
        else if (!strncmp(*arg, "probe=", 6))
            options.probe = value;
    }
}

static FormInsn *read_insns(const char *path, u32 *ret_count)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    fseek(file, 0, SEEK_END);
    u32 given = (u32)((size_t)ftell(file) / sizeof(FormInsn));
    u32 own = (u32)(sequences_end - sequences_begin);
    FormInsn *insns = malloc((given + own) * sizeof(FormInsn));
    rewind(file);
    if (fread(insns, sizeof(FormInsn), given, file) != given)
        exit(2);
    if (!options.probe)
        memcpy(insns + given, sequences_begin, own * sizeof(FormInsn));
    fclose(file);
    *ret_count = given + (options.probe ? 0 : own);
    return insns;
}

static int probe(const FormInsn *insns, u32 count)
{
    FILE *to = fopen(options.probe, "wb");
    map_at(CODE_AT, CODE_BYTES_MAX, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (u32 i = 0; i < count; i++) {
        if (probe_insn(&insns[i]))
            fwrite(&insns[i], sizeof(FormInsn), 1, to);
    }
    return fclose(to) ? 2 : 0;
}

static bool is_chosen(const FormInsn *insn, bool is_sequence)
{
    if (options.only)
        return strstr(insn->name, options.only) != NULL;
    return is_sequence || random_below(options.share) == 0;
}

int main(int argc, char **argv)
{
    enum { CODE_ROOM = 512 << 20 };
    u32 count;
    if (argc < 2)
        return 2;
    parse(argv + 2);
    init();
    catch_faults();
    FormInsn *insns = read_insns(argv[1], &count);
    if (options.probe)
        return probe(insns, count);
    map_at(CODE_AT, CODE_ROOM, PROT_READ | PROT_WRITE | PROT_EXEC);
    u32 own = (u32)(sequences_end - sequences_begin);
    seed = options.seed * 0x9e3779b97f4a7c15ull | 1;
    for (u32 i = 0; i < count; i++) {
        u64 kept = seed;
        if (is_chosen(&insns[i], i + own >= count)) {
            run_insn(&insns[i]);
            if (options.only)
                seed = kept;
        }
        seed = kept;
        (void)random_u64();
    }
    printf("%u instructions, %u runs, %u that faulted, %u differences\n", cases_run, runs, faulted,
           told);
    return told ? 1 : 0;
}
