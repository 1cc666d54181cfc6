// SPDX-License-Identifier: MIT
//
// The guest: runs the cases of a case file and prints one line for each, which
// must be the same natively and under the engine.
//
//   guest FILE [far] [reuse|smc] [async] [group=N] [from=A] [to=B] [dump] [flush]
//
// It has no libc, so that nothing but the cases differs from run to run: fs and gs
// bases are the cases' own, and a bare engine that knows ten system calls can run it.
// It is linked at a fixed low address and compiled without vector registers, hence
// the harness touches none of the state under test.
//
//   far      code at FAR_CODE instead of in the program's own .bss
//   reuse    place every case at one of a few addresses (mprotect between them)
//   smc      the same, in one RWX page that is simply overwritten
//   async    a timer signal arrives while the cases run and must leave no trace
//   group=N  print one hash for N cases
//   dump     print the whole state as well as its hash
//   flush    write each line at once, so that a crash of the engine names the case it is in
//   xmask=M  limit the state to these xsave components (for engines that lack some)
#include <asm/prctl.h>
#include <asm/sigcontext.h>
#include <asm/signal.h>
#include <asm/siginfo.h>
#include <asm/ucontext.h>
#include <asm/unistd.h>
#include <linux/mman.h>

#include "case.h"

#define CODE_BYTES (64 * MiB)
#define BATCH_BYTES (256 * KiB)
#define REUSE_SLOTS 16
#define XSTATE_MAX 8192
#define XSTATE_COMPONENTS 0xe7u // x87, SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM
#define XSTATE_LEGACY_BYTES 416
#define XSTATE_HEADER_AT 512

#define FLAG_DF 0x400u
#define FLAGS_STATUS 0x8d5u
#define FLAGS_ALWAYS 0x202u
#define FLAGS_HIDDEN (0x10000u | 0x100u) // RF and TF belong to the kernel's way of reporting

enum Placement { PLACE_FRESH, PLACE_REUSE, PLACE_SMC };

typedef struct Options {
    const char *file;
    bool far;
    bool dump;
    bool async;
    bool flush;
    enum Placement placement;
    u32 group;
    u32 from;
    u32 to;
} Options;

typedef struct Fault {
    int signo; // 0: the case ran to its end
    int code;
    u64 err;
    u64 trap;
    u64 addr;
    u64 rip;
    bool df; // the handler was entered with the direction flag set, which the ABI forbids
} Fault;

typedef struct Component {
    u32 at;
    u32 len_bytes;
} Component;

// What guest_x64.S loads and stores.
extern void run_case(void);
extern u8 exit_case[], exit_taken[], leave_case[];
extern void guest_restorer(void);
u64 start_gprs[16], end_gprs[16], start_flags, end_flags, harness_rsp, case_entry;
u32 xstate_mask = 7;
u8 took_branch;
_Alignas(64) u8 start_xstate[XSTATE_MAX];
_Alignas(64) u8 end_xstate[XSTATE_MAX];

static Options options = { .to = ~0u };
static Component components[8];
static _Alignas(4096) u8 low_code[CODE_BYTES];
static _Alignas(4096) u8 low_near[ARENA_END + PAGE_SIZE];
static _Alignas(4096) u8 edge_pages[2 * PAGE_SIZE];
static _Alignas(16) u8 alt_stack[64 * KiB];
static u64 pristine[ARENA_RW_BYTES / 8];
static u8 *code_base, *near_base;
static u8 *current_code;
static const Case *current;
static bool in_case;
static Fault fault;
static u64 resume_hash;
static u64 exit_slots[2]; // what the exits of far code jump through
static volatile u64 async_seen;
static char out[64 * KiB];
static size_t out_len;

void *memcpy(void *to, const void *from, size_t len_bytes);
void *memset(void *to, int byte, size_t len_bytes);

void *memcpy(void *to, const void *from, size_t len_bytes)
{
    void *d = to;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(len_bytes)::"memory");
    return to;
}

void *memset(void *to, int byte, size_t len_bytes)
{
    void *d = to;
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(len_bytes) : "a"(byte) : "memory");
    return to;
}

static i64 sys(i64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    i64 ret;
    register u64 r10 __asm__("r10") = d;
    register u64 r8 __asm__("r8") = e;
    register u64 r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}

static void out_flush(void)
{
    size_t done = 0;
    while (done < out_len) {
        i64 n = sys(__NR_write, 1, (u64)(out + done), out_len - done, 0, 0, 0);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    out_len = 0;
}

static void out_char(char c)
{
    if (out_len == sizeof(out))
        out_flush();
    out[out_len++] = c;
}

static void out_text(const char *text)
{
    while (*text)
        out_char(*text++);
}

static void out_hex(u64 x, int digits)
{
    for (int i = digits - 1; i >= 0; i--)
        out_char("0123456789abcdef"[(x >> (4 * i)) & 15]);
}

static void out_number(u64 x)
{
    if (x >= 10)
        out_number(x / 10);
    out_char((char)('0' + x % 10));
}

static _Noreturn void quit(int status)
{
    out_flush();
    for (;;)
        sys(__NR_exit_group, (u64)status, 0, 0, 0, 0, 0);
}

static _Noreturn void die(const char *what, u64 value)
{
    out_text("guest: ");
    out_text(what);
    out_text(" (");
    out_hex(value, 16);
    out_text(")\n");
    quit(2);
}

static u64 mix(u64 hash, u64 value)
{
    hash = (hash ^ value) * 0x9fb21c651e98df25ull;
    return hash ^ (hash >> 29);
}

// --- the state a case starts from ---

static const u64 interesting_words[16] = {
    0, 1, ~0ull, 1ull << 63, ~0ull >> 1, 0x80000000, 0x7fffffff, 0xffffffff,
    0x8000, 0x7fff, 0x80, 0x7f, 0xff, 63, 31, 0x0101010101010101,
};

// Doubles and pairs of floats: zeros, ones, infinities, NaNs, denormals, integers near limits.
static const u64 interesting_floats[16] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff8000000000000,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 0x7ff0000000000001,
    0x000fffffffffffff, 0x41dfffffffc00000, 0x43e0000000000000, 0x3f8000003fc00000,
    0x7f800000ff800000, 0x7fc0000000000001, 0x40490fdbc2c80000, 0x4f00000000800000,
};

static u64 interesting_word(u64 *rng)
{
    u64 r = rng_next(rng);
    switch (r & 7) {
    case 0:
        return interesting_words[(r >> 8) & 15];
    case 1:
        return (u64)(i64)(i8)(r >> 8);
    case 2:
        return r >> 32;
    default:
        return r ^ (r << 17);
    }
}

static u64 interesting_float(u64 *rng)
{
    u64 r = rng_next(rng);
    return (r & 1) ? r : interesting_floats[(r >> 8) & 15];
}

static void put(u8 *at, const void *value, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        at[i] = ((const u8 *)value)[i];
}

// x87 registers: any mantissa, but mostly an exponent and an integer bit that make a number.
static void fill_x87(u64 *rng, const Case *c)
{
    u64 r = rng_next(rng);
    u16 control = 0x037f;
    u16 status = (u16)((r >> 16) & 0x7800); // TOP and C3
    u8 tags = (r & 3) ? 0xff : (u8)(r >> 8);
    if (!(c->traits & CASE_FP_INIT) && (r & 4))
        control = (u16)(0x007f | ((r >> 32) & 0x0f00));
    if (c->traits & CASE_FP_TRAPS)
        control &= (u16)~((r >> 48) & 0x3f);
    put(start_xstate, &control, 2);
    put(start_xstate + 2, &status, 2);
    start_xstate[4] = tags;
    for (int i = 0; i < 8; i++) {
        u64 mantissa = rng_next(rng);
        u64 s = rng_next(rng);
        u16 exponent = (u16)(s >> 16);
        if (s & 3) {
            mantissa |= 1ull << 63;
            exponent = (u16)((exponent & 0x8000) | (0x3fff - 40 + (s >> 40) % 80));
        }
        put(start_xstate + 32 + 16 * i, &mantissa, 8);
        put(start_xstate + 40 + 16 * i, &exponent, 2);
    }
}

static void fill_xstate(u64 *rng, const Case *c)
{
    memset(start_xstate, 0, XSTATE_HEADER_AT + 64);
    fill_x87(rng, c);
    u64 r = rng_next(rng);
    u32 mxcsr = 0x1f80;
    if (!(c->traits & CASE_FP_INIT) && (r & 1))
        mxcsr |= (u32)(r >> 8) & 0xe040;
    if (c->traits & CASE_FP_TRAPS)
        mxcsr &= ~((u32)(r >> 32) & 0x1f80);
    put(start_xstate + 24, &mxcsr, 4);
    u64 *xmm = (u64 *)(start_xstate + 160);
    for (int i = 0; i < 32; i++)
        xmm[i] = interesting_float(rng);
    for (int i = 2; i < 8; i++) {
        if (!(xstate_mask >> i & 1))
            continue;
        u64 *words = (u64 *)(start_xstate + components[i].at);
        for (u32 w = 0; w < components[i].len_bytes / 8; w++)
            words[w] = interesting_float(rng);
    }
    u64 present = xstate_mask;
    put(start_xstate + XSTATE_HEADER_AT, &present, 8);
}

// Where the `lane_bytes` at `at` of vector `number` live: four places make a zmm register.
static u8 *vector_byte(u32 number, u32 at)
{
    if (number >= 16)
        return (xstate_mask >> 7 & 1) ? start_xstate + components[7].at + (number - 16) * 64 + at
                                      : NULL;
    if (at < 16)
        return start_xstate + 160 + number * 16 + at;
    if (at < 32)
        return (xstate_mask >> 2 & 1) ? start_xstate + components[2].at + number * 16 + at - 16
                                      : NULL;
    return (xstate_mask >> 6 & 1) ? start_xstate + components[6].at + number * 32 + at - 32 : NULL;
}

static void set_vector_small(const CaseSet *s, u64 *rng)
{
    for (u32 at = 0; at < 64; at += s->lane_bytes) {
        u8 *lane = vector_byte(s->index, at);
        u64 value = rng_next(rng) & 63;
        if (lane)
            put(lane, &value, s->lane_bytes);
    }
}

static u64 base_address(enum CaseBase base)
{
    switch (base) {
    case BASE_DATA:
        return DATA_ARENA;
    case BASE_NEAR:
        return (u64)near_base;
    case BASE_CODE:
        return (u64)current_code;
    default:
        return 0;
    }
}

static void apply_set(const CaseSet *s, u64 *rng)
{
    u64 value = base_address(s->base) + (u64)s->value;
    if (s->divisor > 1)
        value /= s->divisor;
    switch (s->kind) {
    case SET_GPR:
        start_gprs[s->index] = value;
        break;
    case SET_FLAGS:
        start_flags = (start_flags & ~(u64)FLAGS_STATUS) | (value & FLAGS_STATUS);
        break;
    case SET_DATA:
        ((u64 *)DATA_ARENA)[s->index] = value;
        break;
    case SET_NEAR:
        ((u64 *)near_base)[s->index] = value;
        break;
    case SET_VEC_SMALL:
        set_vector_small(s, rng);
        break;
    default:
        break;
    }
}

static void prepare_state(const Case *c)
{
    u64 rng = c->seed;
    for (int i = 0; i < 16; i++)
        start_gprs[i] = interesting_word(&rng);
    u64 r = rng_next(&rng);
    start_flags = FLAGS_ALWAYS | (r & FLAGS_STATUS);
    if (!(c->traits & CASE_NO_DF) && !(r >> 61))
        start_flags |= FLAG_DF;
    fill_xstate(&rng, c);
    start_gprs[4] = DATA_ARENA + STACK_AT;
    for (int i = 0; i < c->n_sets; i++)
        apply_set(case_sets(c) + i, &rng);
}

// --- placing code ---

static void write_exit(u8 *at, bool taken)
{
    if (options.far) {
        u32 slot = (u32)(u64)&exit_slots[taken];
        u8 jump[EXIT_BYTES] = { 0xff, 0x24, 0x25, 0, 0, 0, 0, 0xcc }; // jmp *[abs32]
        put(jump + 3, &slot, 4);
        put(at, jump, EXIT_BYTES);
        return;
    }
    u8 jump[EXIT_BYTES] = { 0xe9, 0, 0, 0, 0, 0xcc, 0xcc, 0xcc };
    i32 rel = (i32)((taken ? exit_taken : exit_case) - (at + 5));
    put(jump + 1, &rel, 4);
    put(at, jump, EXIT_BYTES);
}

static void place_code(const Case *c, u8 *at)
{
    current_code = at;
    put(at, case_code(c), c->code_bytes);
    for (int i = 0; i < c->n_fixes; i++) {
        const CaseFix *f = case_fixes(c) + i;
        u64 value = base_address(f->base) + (u64)f->value;
        switch (f->kind) {
        case FIX_REL32:
            value -= (u64)at + f->end;
            put(at + f->at, &value, 4);
            break;
        case FIX_ABS32:
            put(at + f->at, &value, 4);
            break;
        case FIX_ABS64:
            put(at + f->at, &value, 8);
            break;
        default:
            write_exit(at + f->at, f->kind == FIX_EXIT_TAKEN);
        }
    }
}

static void protect(u8 *at, size_t len_bytes, u64 prot)
{
    u64 from = PAGE_DOWN((u64)at), to = PAGE_UP((u64)at + len_bytes);
    i64 r = sys(__NR_mprotect, from, to - from, prot, 0, 0, 0);
    if (r)
        die("mprotect failed", (u64)-r);
}

// Only the first bytes of the instruction are executable: half of the time the rest
// exists on a page that may not be executed, half of the time there is nothing.
static u8 *place_at_edge(const Case *c)
{
    protect(edge_pages, sizeof(edge_pages), PROT_READ | PROT_WRITE);
    u8 *at = edge_pages + PAGE_SIZE - c->edge_bytes;
    place_code(c, at);
    protect(edge_pages, PAGE_SIZE, PROT_READ | PROT_EXEC);
    protect(edge_pages + PAGE_SIZE, PAGE_SIZE, c->id & 1 ? PROT_NONE : PROT_READ | PROT_WRITE);
    return at;
}

// --- what came of it ---

static void xstate_normalise(u8 *x)
{
    u64 present;
    put((u8 *)&present, x + XSTATE_HEADER_AT, 8);
    present &= xstate_mask;
    if (!(present & 1)) {
        memset(x + 32, 0, 128);
        memset(x, 0, 6);
        x[0] = 0x7f;
        x[1] = 0x03;
    }
    if (!(present & 2))
        memset(x + 160, 0, 256);
    for (int i = 2; i < 8; i++)
        if (!(present >> i & 1) && (xstate_mask >> i & 1))
            memset(x + components[i].at, 0, components[i].len_bytes);
    // The last x87 instruction and operand, and the reserved bytes beside them: an engine
    // that executes x87 code elsewhere cannot have the same instruction pointer.
    memset(x + 5, 0, 19);
    memset(x + 28, 0, 4);
    for (int i = 0; i < 8; i++)
        memset(x + 32 + 16 * i + 10, 0, 6);
}

static u64 hash_words(u64 hash, const u8 *at, u32 len_bytes)
{
    const u64 *words = (const u64 *)at;
    for (u32 i = 0; i < len_bytes / 8; i++)
        hash = mix(hash, words[i]);
    return hash;
}

static void dump_bytes(const char *name, int index, const u8 *at, int len_bytes)
{
    out_text("  ");
    out_text(name);
    if (index >= 0)
        out_number((u64)index);
    out_char('=');
    for (int i = len_bytes - 1; i >= 0; i--)
        out_hex(at[i], 2);
    out_char('\n');
}

static void dump_xstate(const u8 *x)
{
    dump_bytes("fcw", -1, x, 2);
    dump_bytes("fsw", -1, x + 2, 2);
    dump_bytes("ftw", -1, x + 4, 1);
    dump_bytes("mxcsr", -1, x + 24, 4);
    for (int i = 0; i < 8; i++)
        dump_bytes("st", i, x + 32 + 16 * i, 10);
    for (int i = 0; i < 16; i++) {
        dump_bytes("xmm", i, x + 160 + 16 * i, 16);
        if (xstate_mask >> 2 & 1)
            dump_bytes("ymm_hi", i, x + components[2].at + 16 * i, 16);
        if (xstate_mask >> 6 & 1)
            dump_bytes("zmm_hi", i, x + components[6].at + 32 * i, 32);
        if (xstate_mask >> 7 & 1)
            dump_bytes("zmm", 16 + i, x + components[7].at + 64 * i, 64);
    }
    for (int i = 0; i < 8 && (xstate_mask >> 5 & 1); i++)
        dump_bytes("k", i, x + components[5].at + 8 * i, 8);
}

static u64 hash_xstate(u64 hash, u8 *x)
{
    hash = hash_words(hash, x, XSTATE_LEGACY_BYTES);
    for (int i = 2; i < 8; i++)
        if (xstate_mask >> i & 1)
            hash = hash_words(hash, x + components[i].at, components[i].len_bytes);
    return hash;
}

static void ignore_bytes(const Case *c)
{
    for (int i = 0; i < c->n_ignores; i++) {
        const CaseIgnore *g = case_ignores(c) + i;
        if (g->at + g->len_bytes <= ARENA_RW_BYTES)
            memset((u8 *)base_address(g->base) + g->at, 0, g->len_bytes);
    }
}

// Hashes what the case changed in an arena and puts the arena back as it was.
static u64 settle_arena(u64 hash, const char *name, u64 *arena)
{
    for (u32 i = 0; i < ARENA_RW_BYTES / 8; i++) {
        if (LIKELY(arena[i] == pristine[i]))
            continue;
        hash = mix(mix(hash, i), arena[i]);
        if (options.dump) {
            out_text("  ");
            out_text(name);
            out_hex(i * 8, 4);
            out_char('=');
            out_hex(arena[i], 16);
            out_char('\n');
        }
        arena[i] = pristine[i];
    }
    return hash;
}

static void print_outcome(const Case *c, u64 hash)
{
    out_number(c->id);
    if (fault.signo) {
        out_text(" sig ");
        out_number((u64)fault.signo);
        out_text(" code ");
        out_number((u64)fault.code);
        out_text(" trap ");
        out_number(fault.trap);
        out_text(" err ");
        out_hex(fault.err, 2);
        out_text(" addr ");
        out_hex(fault.addr, 1 + (fault.addr ? 15 : 0));
        out_text(" rip ");
        out_hex(fault.rip, 1 + (fault.rip > 15 ? 15 : 0));
        if (fault.df)
            out_text(" handler-entered-with-DF");
    } else {
        out_text(took_branch ? " taken" : " ok");
    }
    out_char(' ');
    out_hex(hash, 16);
    out_char('\n');
}

static u64 settle_case(const Case *c)
{
    static const char *const names[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                           "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };
    u64 hash = mix(mix(mix(c->id, resume_hash), took_branch), (u64)fault.signo);
    if (c->traits & CASE_ASTRAY) {
        memcpy((u8 *)DATA_ARENA, pristine, ARENA_RW_BYTES);
        fault.rip = 0;
        return hash;
    }
    u64 flags = end_flags & c->flags_mask;
    for (int i = 0; i < 16; i++)
        hash = mix(hash, end_gprs[i]);
    hash = mix(hash, flags);
    xstate_normalise(end_xstate);
    hash = hash_xstate(hash, end_xstate);
    ignore_bytes(c);
    if (options.dump) {
        for (int i = 0; i < 16; i++)
            dump_bytes(names[i], -1, (u8 *)&end_gprs[i], 8);
        dump_bytes("flags", -1, (u8 *)&flags, 4);
        dump_xstate(end_xstate);
    }
    hash = settle_arena(hash, "data+", (u64 *)DATA_ARENA);
    if (c->traits & CASE_USES_NEAR)
        hash = settle_arena(hash, "near+", (u64 *)near_base);
    u64 how[] = { (u64)fault.code, fault.err, fault.trap, fault.addr, fault.rip, fault.df };
    for (u32 i = 0; i < ARRAY_LEN(how) && fault.signo; i++)
        hash = mix(hash, how[i]);
    return hash;
}

// --- signals ---

static const u8 gpr_of_context[16] = {
    // offsets, in words, of rax rcx rdx … in struct sigcontext_64
    offsetof(struct sigcontext_64, ax) / 8,  offsetof(struct sigcontext_64, cx) / 8,
    offsetof(struct sigcontext_64, dx) / 8,  offsetof(struct sigcontext_64, bx) / 8,
    offsetof(struct sigcontext_64, sp) / 8,  offsetof(struct sigcontext_64, bp) / 8,
    offsetof(struct sigcontext_64, si) / 8,  offsetof(struct sigcontext_64, di) / 8,
    offsetof(struct sigcontext_64, r8) / 8,  offsetof(struct sigcontext_64, r9) / 8,
    offsetof(struct sigcontext_64, r10) / 8, offsetof(struct sigcontext_64, r11) / 8,
    offsetof(struct sigcontext_64, r12) / 8, offsetof(struct sigcontext_64, r13) / 8,
    offsetof(struct sigcontext_64, r14) / 8, offsetof(struct sigcontext_64, r15) / 8,
};

static void save_context(const struct sigcontext_64 *m)
{
    for (int i = 0; i < 16; i++)
        end_gprs[i] = ((const u64 *)m)[gpr_of_context[i]];
    end_flags = m->flags & ~(u64)FLAGS_HIDDEN;
    const u8 *fp = (const u8 *)m->fpstate;
    u32 len_bytes = XSTATE_HEADER_AT;
    const struct _fpx_sw_bytes *sw = (const void *)(fp + 464);
    if (sw->magic1 == FP_XSTATE_MAGIC1)
        len_bytes = sw->xstate_size < XSTATE_MAX ? sw->xstate_size : XSTATE_MAX;
    memset(end_xstate, 0, XSTATE_MAX);
    memcpy(end_xstate, fp, len_bytes);
    if (len_bytes == XSTATE_HEADER_AT)
        end_xstate[XSTATE_HEADER_AT] = 3;
}

// A sequence may name faults it survives: note what was seen and go on where it says.
static bool resume(struct sigcontext_64 *m, const Fault *f)
{
    for (int i = 0; i < current->n_sets; i++) {
        const CaseSet *s = case_sets(current) + i;
        if (s->kind != SET_RESUME || f->rip != (u64)s->value >> 16)
            continue;
        u64 how[] = { (u64)f->signo, (u64)f->code, f->err, f->addr, f->rip, f->df };
        for (u32 k = 0; k < ARRAY_LEN(how); k++)
            resume_hash = mix(resume_hash, how[k]);
        for (int k = 0; k < 16; k++)
            resume_hash = mix(resume_hash, end_gprs[k]);
        resume_hash = mix(resume_hash, end_flags & current->flags_mask);
        m->ip = (u64)current_code + (s->value & 0xffff);
        return true;
    }
    return false;
}

static bool take_direction_flag(void)
{
    u64 flags;
    __asm__ volatile("pushfq; popq %0; cld" : "=r"(flags)::"memory");
    return flags & FLAG_DF;
}

static void on_fault(int signo, siginfo_t *info, struct ucontext *uc)
{
    bool df = take_direction_flag();
    struct sigcontext_64 *m = (struct sigcontext_64 *)&uc->uc_mcontext;
    if (!in_case)
        die("a signal outside of the cases, at", m->ip);
    Fault f = {
        .signo = signo,
        .code = info->si_code,
        .err = m->err,
        .trap = m->trapno,
        .addr = (u64)info->si_addr,
        .rip = m->ip - (u64)current_code,
        .df = df,
    };
    // An address in the code is as good as its distance from the case.
    if (f.addr - (u64)current_code < PAGE_SIZE)
        f.addr -= (u64)current_code;
    save_context(m);
    if (resume(m, &f))
        return;
    fault = f;
    m->ip = (u64)leave_case;
    m->sp = harness_rsp;
    m->flags = FLAGS_ALWAYS;
}

// A trap for each host instruction takes microseconds, and some cases are stepped through a whole
// gateway between two signals: where that takes longer than the interval, the interval grows until
// the case is through.
enum { ASYNC_US = 500, ASYNC_US_MAX = 100000, ASYNC_OF_CASE_MAX = 8 };
static u64 async_us, async_of_case;

static void start_timer(u64 us)
{
    u64 timer[4] = { 0, us, 0, us }; // interval and first expiry
    async_us = us;
    sys(__NR_setitimer, 0, (u64)timer, 0, 0, 0, 0);
}

static void on_async(int signo)
{
    async_seen += (u64)signo;
    if (++async_of_case % ASYNC_OF_CASE_MAX == 0 && async_us < ASYNC_US_MAX)
        start_timer(async_us * 2);
}

static void next_case_async(void)
{
    async_of_case = 0;
    if (options.async && async_us != ASYNC_US)
        start_timer(ASYNC_US);
}

typedef struct KernelSigaction {
    void *handler;
    u64 flags;
    void (*restorer)(void);
    u64 mask;
} KernelSigaction;

static void catch_signal(int signo, void *handler)
{
    KernelSigaction sa = {
        .handler = handler,
        .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER | SA_RESTART,
        .restorer = guest_restorer,
        .mask = 1ull << (SIGALRM - 1),
    };
    sys(__NR_rt_sigaction, (u64)signo, (u64)&sa, 0, 8, 0, 0);
}

static void setup_signals(void)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
    stack_t st = { .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) };
    sys(__NR_sigaltstack, (u64)&st, 0, 0, 0, 0, 0);
    for (u32 i = 0; i < ARRAY_LEN(faults); i++)
        catch_signal(faults[i], on_fault);
    if (!options.async)
        return;
    catch_signal(SIGALRM, on_async);
    start_timer(ASYNC_US);
}

// --- running ---

static void run_one(const Case *c, u8 *at)
{
    next_case_async();
    current = c;
    current_code = at;
    fault.signo = 0;
    took_branch = 0;
    resume_hash = 0;
    prepare_state(c);
    case_entry = (u64)at;
    in_case = true;
    run_case();
    in_case = false;
    end_flags &= ~(u64)FLAGS_HIDDEN;
    if (c->traits & CASE_MOVES_FS) {
        sys(__NR_arch_prctl, ARCH_SET_FS, DATA_ARENA + FS_AT, 0, 0, 0, 0);
        sys(__NR_arch_prctl, ARCH_SET_GS, DATA_ARENA + GS_AT, 0, 0, 0, 0);
    }
}

static void run_and_print(const Case *c, u8 *at)
{
    static u64 group_hash;
    static u32 in_group;
    bool skipped = options.far && (c->traits & (CASE_LOW_ONLY | CASE_AT_EDGE));
    u64 hash = 0;
    if (!skipped) {
        if (options.dump) {
            out_text("case ");
            out_number(c->id);
            out_char('\n');
        }
        run_one(c, c->traits & CASE_AT_EDGE ? place_at_edge(c) : at);
        hash = settle_case(c);
    }
    if (!options.group) {
        if (!skipped)
            print_outcome(c, hash);
        if (options.flush)
            out_flush();
        return;
    }
    group_hash = mix(group_hash, hash);
    if (++in_group < options.group)
        return;
    out_number(c->id + 1 - in_group);
    out_text("..");
    out_number(c->id);
    out_char(' ');
    out_hex(group_hash, 16);
    out_char('\n');
    in_group = 0;
    group_hash = 0;
}

static u8 *slot_of(const Case *c, u32 slot_bytes)
{
    switch (options.placement) {
    case PLACE_REUSE:
        return code_base + (u64)(c->id % REUSE_SLOTS) * slot_bytes;
    case PLACE_SMC:
        return code_base;
    default:
        return code_base + (u64)(c->id % (u32)(CODE_BYTES / slot_bytes)) * slot_bytes;
    }
}

static u32 batch_cases(u32 slot_bytes)
{
    switch (options.placement) {
    case PLACE_REUSE:
        return REUSE_SLOTS;
    case PLACE_SMC:
        return 1;
    default:
        return (u32)(BATCH_BYTES / slot_bytes);
    }
}

static const Case *case_after(const Case *c)
{
    return (const Case *)((const u8 *)c + c->size_bytes);
}

// Writes the code of up to a batch of cases, makes it executable, then runs them.
static const Case *run_batch(const Case *first, const Case *end, u32 slot_bytes)
{
    u8 *from = NULL, *to = NULL;
    const Case *stop = first;
    u32 n = 0;
    for (u32 max = batch_cases(slot_bytes); stop < end && n < max; stop = case_after(stop), n++) {
        u8 *at = slot_of(stop, slot_bytes);
        if (from && at < from)
            break; // the region is used up: start again from its beginning
        from = from ? from : at;
        to = at + slot_bytes;
    }
    bool smc = options.placement == PLACE_SMC;
    if (!smc)
        protect(from, (size_t)(to - from), PROT_READ | PROT_WRITE);
    for (const Case *c = first; c < stop; c = case_after(c))
        if (!(c->traits & CASE_AT_EDGE))
            place_code(c, slot_of(c, slot_bytes));
    if (!smc)
        protect(from, (size_t)(to - from), PROT_READ | PROT_EXEC);
    for (const Case *c = first; c < stop; c = case_after(c))
        run_and_print(c, slot_of(c, slot_bytes));
    return stop;
}

// --- set-up ---

static void cpuid(u32 leaf, u32 sub, u32 *a, u32 *b, u32 *c, u32 *d)
{
    __asm__ volatile("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(*d) : "0"(leaf), "2"(sub));
}

static void setup_xstate(u32 allowed)
{
    u32 a, b, c, d;
    cpuid(1, 0, &a, &b, &c, &d);
    if (!(c >> 27 & 1))
        die("this CPU or kernel has no xsave", c);
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    xstate_mask = a & allowed & XSTATE_COMPONENTS;
    for (u32 i = 2; i < 8; i++) {
        cpuid(13, i, &a, &b, &c, &d);
        components[i] = (Component){ .at = b, .len_bytes = a };
        if ((xstate_mask >> i & 1) && a + b > XSTATE_MAX)
            die("xsave area too large", a + b);
    }
}

static void *map_fixed(u64 at, u64 len_bytes, u64 prot)
{
    i64 r = sys(__NR_mmap, at, len_bytes, prot,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (u64)-1, 0);
    if ((u64)r != at)
        die("cannot map the region at", at);
    return (void *)at;
}

static void setup_arena(u8 *arena)
{
    memcpy(arena, pristine, ARENA_RW_BYTES);
    memcpy(arena + ARENA_RO_AT, pristine, PAGE_SIZE);
    protect(arena + ARENA_NONE_AT, PAGE_SIZE, PROT_NONE);
    protect(arena + ARENA_RO_AT, PAGE_SIZE, PROT_READ);
}

static void setup_memory(void)
{
    u64 rng = 42;
    for (u32 i = 0; i < ARRAY_LEN(pristine); i++)
        pristine[i] = i & 1 ? interesting_word(&rng) : interesting_float(&rng);
    setup_arena(map_fixed(DATA_ARENA, ARENA_END, PROT_READ | PROT_WRITE));
    code_base = low_code;
    near_base = low_near;
    if (options.far) {
        code_base = map_fixed(FAR_CODE, CODE_BYTES, PROT_READ | PROT_WRITE);
        near_base = map_fixed(FAR_NEAR_ARENA, ARENA_END, PROT_READ | PROT_WRITE);
    }
    setup_arena(near_base);
    // In .bss a page follows the near arena; in the far layout nothing does.
    if (!options.far)
        protect(low_near + ARENA_END, PAGE_SIZE, PROT_NONE);
    if (options.placement == PLACE_SMC)
        protect(code_base, PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    exit_slots[0] = (u64)exit_case;
    exit_slots[1] = (u64)exit_taken;
    sys(__NR_arch_prctl, ARCH_SET_FS, DATA_ARENA + FS_AT, 0, 0, 0, 0);
    sys(__NR_arch_prctl, ARCH_SET_GS, DATA_ARENA + GS_AT, 0, 0, 0, 0);
}

static const CaseFile *open_cases(const char *path)
{
    i64 fd = sys(__NR_open, (u64)path, 0, 0, 0, 0, 0);
    if (fd < 0)
        die("cannot open the case file", (u64)-fd);
    i64 len_bytes = sys(__NR_lseek, (u64)fd, 0, 2, 0, 0, 0);
    i64 at = sys(__NR_mmap, 0, (u64)len_bytes, PROT_READ, MAP_PRIVATE, (u64)fd, 0);
    if (at < 0 && at > -4096)
        die("cannot map the case file", (u64)-at);
    const CaseFile *file = (const CaseFile *)at;
    if (len_bytes < (i64)sizeof(*file) || file->magic != CASE_MAGIC)
        die("not a case file", 0);
    return file;
}

static bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

// Parses `name=value`; hexadecimal with 0x.
static bool number_option(const char *arg, const char *name, u32 *ret_value)
{
    while (*name)
        if (*arg++ != *name++)
            return false;
    u64 base = 10, value = 0;
    if (arg[0] == '0' && arg[1] == 'x') {
        base = 16;
        arg += 2;
    }
    for (; *arg; arg++)
        value = value * base + (u64)(*arg <= '9' ? *arg - '0' : (*arg | 32) - 'a' + 10);
    *ret_value = (u32)value;
    return true;
}

static void parse_options(char **argv, u32 *ret_allowed)
{
    for (char **arg = argv; *arg; arg++) {
        if (same(*arg, "far"))
            options.far = true;
        else if (same(*arg, "reuse"))
            options.placement = PLACE_REUSE;
        else if (same(*arg, "smc"))
            options.placement = PLACE_SMC;
        else if (same(*arg, "async"))
            options.async = true;
        else if (same(*arg, "flush"))
            options.flush = true;
        else if (same(*arg, "dump"))
            options.dump = true;
        else if (!number_option(*arg, "group=", &options.group) &&
                 !number_option(*arg, "from=", &options.from) &&
                 !number_option(*arg, "to=", &options.to) &&
                 !number_option(*arg, "xmask=", ret_allowed))
            options.file = *arg;
    }
    if (!options.file)
        die("no case file named", 0);
}

_Noreturn void guest_main(u64 *stack);

_Noreturn void guest_main(u64 *stack)
{
    u32 allowed = XSTATE_COMPONENTS;
    parse_options((char **)(stack + 2), &allowed);
    const CaseFile *file = open_cases(options.file);
    setup_xstate(allowed);
    setup_memory();
    setup_signals();

    const Case *c = (const Case *)((const u8 *)(file + 1) + file->n_groups * CASE_NAME_MAX);
    u32 i = 0;
    for (; i < file->n_cases && c->id < options.from; i++)
        c = case_after(c);
    const Case *end = c;
    for (; i < file->n_cases && end->id <= options.to; i++)
        end = case_after(end);
    while (c < end)
        c = run_batch(c, end, file->slot_bytes);
    if (options.async && !async_seen && !options.dump) // single cases are too short for it
        die("no timer signal arrived", 0);
    quit(0);
}
