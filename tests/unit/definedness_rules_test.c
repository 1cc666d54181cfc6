// SPDX-License-Identifier: MIT
//
// What the truth test cannot run natively: stack, strings, branches, gathers; events, and
// that what was reported counts as defined; and that no bytes make a step that crashes.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "engine/aspace/aspace.h"
#include "tools/memcheck/definedness/step.h"
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow/shadow.h"
#include "unit.h"

enum { ROOM = 64 * KiB };
#define CLIENT 0x31000000ull
#define MIDDLE (CLIENT + ROOM / 2)

// The registers before an instruction, and their V bits.
static struct World {
    Definedness d;
    u64 gpr[16];
    u64 eflags;
    _Alignas(64) u8 vector[32][64];
    _Alignas(8) u8 step[DEFINEDNESS_STEP_BYTES];
} w;

// As the engine's own handler does for reads of client memory.
static void on_fault(int signal, siginfo_t *info, void *context)
{
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    u64 fixup = guest_access_fixup((u64)*rip);
    (void)info;
    if (!fixup)
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    else
        *rip = (greg_t)fixup;
}

static void reset(void)
{
    static bool ready;
    if (!ready) {
        decode_init();
        sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO},
                  NULL);
        u8 *shadow = (u8 *)PAGE_DOWN((u64)shadow_of(CLIENT)); // it begins within a page
        CHECK(mmap((void *)CLIENT, ROOM, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)CLIENT);
        CHECK(mmap(shadow, ROOM + PAGE_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == shadow);
        shadow_open_pages = mmap(NULL, CLIENT_END / PAGE_SIZE / 8, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(shadow_open_pages != MAP_FAILED);
        for (u64 page = CLIENT / PAGE_SIZE; page < (CLIENT + ROOM) / PAGE_SIZE; page++)
            shadow_open_pages[page / 64] |= 1ull << page % 64;
        ready = true;
    }
    memset(&w, 0, sizeof(w));
    memset((void *)CLIENT, 0, ROOM);
    memset(shadow_of(CLIENT), 0, ROOM);
    for (u32 i = 0; i < 16; i++)
        w.gpr[i] = MIDDLE;
}

static void find_set(void)
{
    static const u8 zeros[64];
    w.d.set = w.d.flags ? MEMBER_FLAGS : 0;
    for (u32 i = 0; i < 16; i++)
        w.d.set |= w.d.gpr[i] ? MEMBER_GPR(i) : 0;
    for (u32 i = 0; i < 32; i++)
        w.d.set |= memcmp(w.d.vector[i], zeros, 64) ? MEMBER_VECTOR(i) : 0;
    for (u32 i = 0; i < 8; i++)
        w.d.set |= w.d.mask[i] ? MEMBER_MASK(i) : 0;
}

static u32 run_at(const u8 *bytes, u32 len, GuestAddr address)
{
    Insn insn;
    u8 padded[16] = {0};
    memcpy(padded, bytes, len);
    CHECK_EQ(decode_insn(0x400000, padded, 15, &insn), DECODE_OK);
    CHECK_EQ(insn.len, len);
    DefinednessStep *step = (DefinednessStep *)w.step;
    definedness_prepare(&insn, step);
    find_set();
    DefinednessAccess access = definedness_access(step);
    DefinednessValues values = {
        .gpr = w.gpr,
        .eflags = w.eflags,
        .vector = (const u8(*)[64])w.vector,
        .address = address,
        .memory = access.size ? (const u8 *)address : NULL,
        .memory_v = access.size ? shadow_of(address) : NULL,
    };
    u32 events = definedness_run(step, &w.d, &values);
    MemberSet before = w.d.set;
    find_set();
    CHECK(before == w.d.set); // D2, exactly
    return events;
}

#define RUN(...) run_at((const u8[]){__VA_ARGS__}, sizeof((const u8[]){__VA_ARGS__}), MIDDLE)

static u64 shadow_word(GuestAddr at)
{
    return *(u64 *)shadow_of(at);
}

static void set_shadow(GuestAddr at, u64 v)
{
    *(u64 *)shadow_of(at) = v;
}

// ----------------------------------------------------------------------- stack

TEST(push_and_pop_carry_v_bits_through_the_stack)
{
    reset();
    w.d.gpr[RAX] = 0xf0;
    CHECK_EQ(RUN(0x50), 0); // push rax
    CHECK_EQ(shadow_word(MIDDLE - 8), 0xf0);
    w.gpr[RSP] = MIDDLE - 8;
    CHECK_EQ(RUN(0x5b), 0); // pop rbx
    CHECK_EQ(w.d.gpr[RBX], 0xf0);
    CHECK_EQ(shadow_word(MIDDLE - 8), -1); // what is popped is gone
    CHECK_EQ(RUN(0x6a, 1), 0);             // push 1
    CHECK_EQ(shadow_word(MIDDLE - 16), 0);
}

TEST(flags_go_through_the_stack)
{
    reset();
    w.d.flags = ZF;
    CHECK_EQ(RUN(0x9c), 0); // pushfq
    CHECK_EQ(shadow_word(MIDDLE - 8), ZF);
    w.d.flags = 0;
    w.gpr[RSP] = MIDDLE - 8;
    CHECK_EQ(RUN(0x9d), 0); // popfq
    CHECK_EQ(w.d.flags, ZF);
}

TEST(call_stores_a_defined_address_and_ret_checks_it)
{
    reset();
    set_shadow(MIDDLE - 8, ~0ull);
    CHECK_EQ(RUN(0xe8, 0, 0, 0, 0), 0); // call
    CHECK_EQ(shadow_word(MIDDLE - 8), 0);
    CHECK_EQ(RUN(0xc3), 0); // ret
    set_shadow(MIDDLE, 1);
    CHECK_EQ(RUN(0xc3), EVENT_TARGET);
}

TEST(leave_loads_rbp_from_where_it_points)
{
    reset();
    w.gpr[RBP] = MIDDLE + 64;
    set_shadow(MIDDLE + 64, 0x7);
    CHECK_EQ(RUN(0xc9), 0);
    CHECK_EQ(w.d.gpr[RBP], 7);
}

// ---------------------------------------------------------------------- events

TEST(undefined_target_is_reported_once)
{
    reset();
    w.d.gpr[RAX] = 1;
    CHECK_EQ(RUN(0xff, 0xe0), EVENT_TARGET); // jmp rax
    CHECK_EQ(w.d.gpr[RAX], 0);
    CHECK_EQ(RUN(0xff, 0xe0), 0);
    set_shadow(MIDDLE, 1);
    CHECK_EQ(RUN(0xff, 0x10), EVENT_TARGET); // call [rax]
}

TEST(undefined_address_is_reported_once_for_loads_and_stores)
{
    reset();
    w.d.gpr[RBX] = 1;
    CHECK_EQ(RUN(0x8b, 0x03), EVENT_ADDRESS); // mov eax, [rbx]
    CHECK_EQ(w.d.gpr[RBX], 0);
    CHECK_EQ(RUN(0x8b, 0x03), 0);
    w.d.gpr[RCX] = 1;
    CHECK_EQ(RUN(0x89, 0x04, 0x8b), EVENT_ADDRESS); // mov [rbx + 4 * rcx], eax
    w.d.gpr[RCX] = 1;
    CHECK_EQ(RUN(0x8d, 0x04, 0x8b), 0); // lea eax, [rbx + 4 * rcx] is a sum
    CHECK_EQ(w.d.gpr[RAX] & 4, 4);
}

TEST(conditions_look_only_at_the_flags_they_test)
{
    reset();
    w.d.flags = CF;
    CHECK_EQ(RUN(0x74, 0), 0);               // jz
    CHECK_EQ(RUN(0x72, 0), EVENT_CONDITION); // jb
    CHECK_EQ(RUN(0x72, 0), 0);
    w.d.flags = SF;
    CHECK_EQ(RUN(0x7c, 0), EVENT_CONDITION); // jl
    w.d.flags = SF;
    w.eflags = ZF;
    CHECK_EQ(RUN(0x7e, 0), 0); // jle: equal, whatever the sign
    w.d.flags = ZF;
    w.eflags = CF;
    CHECK_EQ(RUN(0x76, 0), 0); // jbe: below, whatever ZF
    w.eflags = 0;
    CHECK_EQ(RUN(0x77, 0), EVENT_CONDITION); // ja
    w.d.gpr[RCX] = 1;
    CHECK_EQ(RUN(0xe3, 0), EVENT_CONDITION); // jrcxz
    CHECK_EQ(w.d.gpr[RCX], 0);
    w.d.gpr[RCX] = 1ull << 32;
    CHECK_EQ(RUN(0x67, 0xe3, 0), 0); // jecxz
}

TEST(conditional_moves_report_nothing)
{
    reset();
    w.d.flags = ZF;
    w.gpr[RAX] = 0xf0;
    w.gpr[RBX] = 0xff;
    CHECK_EQ(RUN(0x48, 0x0f, 0x44, 0xc3), 0); // cmovz rax, rbx
    CHECK_EQ(w.d.gpr[RAX], 0xf);
}

// ---------------------------------------------------------------------- idioms

TEST(idioms_give_defined_results)
{
    reset();
    w.d.gpr[RAX] = ~0ull;
    CHECK_EQ(RUN(0x31, 0xc0), 0); // xor eax, eax
    CHECK_EQ(w.d.gpr[RAX] | w.d.flags, 0);
    w.d.gpr[RAX] = ~0ull;
    CHECK_EQ(RUN(0x48, 0x29, 0xc0), 0); // sub rax, rax
    CHECK_EQ(w.d.gpr[RAX] | w.d.flags, 0);
    w.d.gpr[RAX] = ~0ull;
    CHECK_EQ(RUN(0x48, 0x19, 0xc0), 0); // sbb rax, rax
    CHECK_EQ(w.d.gpr[RAX] | w.d.flags, 0);
    w.d.flags = CF;
    CHECK_EQ(RUN(0x19, 0xc0), 0); // sbb eax, eax
    CHECK_EQ(w.d.gpr[RAX], 0xffffffff);
    memset(w.d.vector[1], 0xff, 64);
    CHECK_EQ(RUN(0x66, 0x0f, 0xef, 0xc9), 0); // pxor xmm1, xmm1
    for (u32 i = 0; i < 64; i++)
        CHECK_EQ(w.d.vector[1][i], i < 16 ? 0 : 0xff);
    CHECK_EQ(RUN(0xc5, 0xf1, 0xef, 0xc9), 0); // vpxor xmm1, xmm1, xmm1
    CHECK_EQ(w.d.vector[1][40], 0);
    memset(w.d.vector[1], 0xff, 64);
    CHECK_EQ(RUN(0x66, 0x0f, 0x74, 0xc9), 0); // pcmpeqb xmm1, xmm1
    CHECK_EQ(w.d.vector[1][0], 0);
}

// Only the bits that were undefined are, one place further up.
TEST(a_number_added_to_itself_is_shifted)
{
    reset();
    w.gpr[RAX] = 0x12345678;
    w.d.gpr[RAX] = 0x80006fff;
    CHECK_EQ(RUN(0x44, 0x8d, 0x3c, 0x00), 0); // lea r15d, [rax + rax]
    CHECK_EQ(w.d.gpr[15], 0xdffe);
    CHECK_EQ(RUN(0x4c, 0x8d, 0x3c, 0x00), 0); // lea r15, [rax + rax]
    CHECK_EQ(w.d.gpr[15], 0x10000dffe);
    CHECK_EQ(RUN(0x01, 0xc0), 0); // add eax, eax
    CHECK_EQ(w.d.gpr[RAX], 0xdffe);
    CHECK_EQ(w.d.flags & (CF | OF | SF | ZF), CF | OF);
    w.d.gpr[RAX] = 0x40000008;
    CHECK_EQ(RUN(0x01, 0xc0), 0); // add eax, eax
    CHECK_EQ(w.d.gpr[RAX], 0x80000010);
    CHECK_EQ(w.d.flags & (CF | OF | SF | AF), OF | SF | AF);
    w.d.gpr[RAX] = 0;
    w.d.flags = CF;
    CHECK_EQ(RUN(0x48, 0x11, 0xc0), 0); // adc rax, rax
    CHECK_EQ(w.d.gpr[RAX], 1);
    memset(w.d.vector[1], 0, 64);
    w.d.vector[1][0] = w.d.vector[1][3] = 0x80;
    CHECK_EQ(RUN(0x66, 0x0f, 0xfe, 0xc9), 0); // paddd xmm1, xmm1
    CHECK_EQ(w.d.vector[1][0] | w.d.vector[1][3] | w.d.vector[1][4], 0);
    CHECK_EQ(w.d.vector[1][1], 1);
}

// ---------------------------------------------------------------------- strings

TEST(string_instructions_move_v_bits)
{
    reset();
    w.gpr[RSI] = MIDDLE;
    w.gpr[RDI] = MIDDLE + 64;
    set_shadow(MIDDLE, 0x123456789abcdef0);
    CHECK_EQ(RUN(0x48, 0xa5), 0); // movsq
    CHECK(shadow_word(MIDDLE + 64) == 0x123456789abcdef0);
    CHECK_EQ(RUN(0xa4), 0); // movsb
    CHECK_EQ(RUN(0xad), 0); // lodsd
    CHECK_EQ(w.d.gpr[RAX], 0x9abcdef0);
    w.d.gpr[RAX] = 0xff00;
    CHECK_EQ(RUN(0xaa), 0); // stosb
    CHECK((shadow_word(MIDDLE + 64) & 0xff) == 0);
    CHECK_EQ(RUN(0xa6), 0); // cmpsb
    CHECK(w.d.flags & ZF);
    w.d.gpr[RDI] = 1;
    CHECK_EQ(RUN(0xae), EVENT_ADDRESS); // scasb
    w.gpr[RBX] = MIDDLE;
    w.gpr[RAX] = 1;
    w.d.gpr[RAX] = 0;
    CHECK_EQ(RUN(0xd7), 0); // xlat
    CHECK_EQ(w.d.gpr[RAX], 0xde);
}

TEST(repeated_strings_are_described)
{
    reset();
    DefinednessStep *step = (DefinednessStep *)w.step;
    RUN(0xf2, 0xae);
    DefinednessString s = definedness_string(step);
    CHECK(s.kind == STRING_SCAN && s.element == 1 && s.uses_di && !s.reads_si && !s.while_equal);
    RUN(0xf3, 0x48, 0xa5);
    s = definedness_string(step);
    CHECK(s.kind == STRING_MOVE && s.element == 8 && s.uses_di && s.reads_si);
    RUN(0xf2, 0x0f, 0x10, 0xc1); // movsd xmm0, xmm1
    CHECK_EQ(definedness_string(step).kind, STRING_NONE);
}

TEST(masked_stores_at_rdi_change_the_bytes_they_store)
{
    reset();
    memset(w.d.vector[0], 0xff, 16);
    w.vector[1][3] = 0x80;
    w.gpr[RDI] = MIDDLE;
    CHECK_EQ(RUN(0x66, 0x0f, 0xf7, 0xc1), 0); // maskmovdqu xmm0, xmm1
    CHECK_EQ(shadow_word(MIDDLE), 0xff000000);
}

TEST(gathers_take_v_bits_from_where_each_lane_comes_from)
{
    reset();
    u32 indices[4] = {0, 4, 8, 2};
    memcpy(w.vector[1], indices, 16);
    memset(w.vector[2], 0x80, 12);
    w.vector[2][11] = 0; // the third lane is not loaded
    w.vector[2][15] = 0x80;
    memset(w.d.vector[0], 0x11, 64);
    set_shadow(MIDDLE, 0x00000000000000ff);
    set_shadow(MIDDLE + 8, 0xaaaaaaaa);
    w.gpr[RAX] = MIDDLE;
    // vpgatherdd xmm0, [rax + 4 * xmm1], xmm2
    CHECK_EQ(RUN(0xc4, 0xe2, 0x69, 0x90, 0x04, 0x88), 0);
    u32 *v = (u32 *)w.d.vector[0];
    CHECK_EQ(v[0], 0xff);
    CHECK_EQ(v[1], 0);
    CHECK_EQ(v[2], 0x11111111);
    CHECK_EQ(v[3], 0xaaaaaaaa);
    CHECK_EQ(v[4], 0);
    w.d.vector[1][0] = 1;
    CHECK_EQ(RUN(0xc4, 0xe2, 0x69, 0x90, 0x04, 0x88), EVENT_ADDRESS);
}

TEST(system_calls_and_cpuid_leave_defined_registers)
{
    reset();
    w.d.gpr[RCX] = w.d.gpr[R11] = w.d.gpr[RAX] = 1;
    CHECK_EQ(RUN(0x0f, 0x05), 0);
    CHECK_EQ(w.d.gpr[RCX] | w.d.gpr[R11], 0);
    w.d.gpr[RDX] = 1;
    CHECK_EQ(RUN(0x0f, 0xa2), 0); // cpuid
    CHECK_EQ(w.d.gpr[RAX] | w.d.gpr[RDX], 0);
}

TEST(saved_state_brings_its_v_bits_back)
{
    reset();
    w.gpr[RAX] = 7;
    w.gpr[RDX] = 0;
    w.d.vector[3][2] = 5;
    w.d.vector[3][17] = 6;
    memset(shadow_of(MIDDLE), 0xff, 832);
    CHECK_EQ(RUN(0x0f, 0xc7, 0x23), 0); // xsavec [rbx]
    *(u64 *)(MIDDLE + 512) = 7;         // all components are there
    memset(w.d.vector, 0, sizeof(w.d.vector));
    w.d.vector[4][0] = 1;
    CHECK_EQ(RUN(0x0f, 0xae, 0x2b), 0); // xrstor [rbx]
    CHECK_EQ(w.d.vector[3][2], 5);
    CHECK_EQ(w.d.vector[3][17], 6);
    CHECK_EQ(w.d.vector[4][0], 0);
    *(u64 *)(MIDDLE + 512) = 2; // ymm3 is in its initial state
    CHECK_EQ(RUN(0x0f, 0xae, 0x2b), 0);
    CHECK_EQ(w.d.vector[3][2], 5);
    CHECK_EQ(w.d.vector[3][17], 0);
}

TEST(nops_keep_everything_and_have_no_access)
{
    reset();
    w.d.gpr[RAX] = 3;
    CHECK_EQ(RUN(0x0f, 0x1f, 0x00), 0); // nop [rax]
    CHECK_EQ(w.d.gpr[RAX], 3);
    CHECK_EQ(definedness_access((DefinednessStep *)w.step).size, 0);
}

// ----------------------------------------------------------------------- speed

static u64 now(void)
{
    u32 low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (u64)high << 32 | low;
}

TEST(common_steps_are_cheap)
{
    static const struct {
        const char *name;
        u8 bytes[5], len;
    } insns[] = {
        {"mov rax, rbx", {0x48, 0x89, 0xd8}, 3}, {"mov rax, [rbx]", {0x48, 0x8b, 0x03}, 3},
        {"mov [rbx], rax", {0x48, 0x89, 0x03}, 3}, {"add rax, rbx", {0x48, 0x01, 0xd8}, 3},
        {"test eax, eax", {0x85, 0xc0}, 2}, {"cmp rax, [rbx]", {0x48, 0x3b, 0x03}, 3},
        {"shl eax, 3", {0xc1, 0xe0, 3}, 3}, {"movups xmm0, [rbx]", {0x0f, 0x10, 0x03}, 3},
        {"paddd xmm0, xmm1", {0x66, 0x0f, 0xfe, 0xc1}, 4}, {"movss xmm0, xmm1",
        {0xf3, 0x0f, 0x10, 0xc1}, 4},
    };
    reset();
    for (u32 k = 0; k < ARRAY_LEN(insns); k++) {
        run_at(insns[k].bytes, insns[k].len, MIDDLE);
        w.d.gpr[RAX] = 0xff;
        w.d.set |= MEMBER_GPR(RAX);
        const DefinednessStep *step = (DefinednessStep *)w.step;
        DefinednessValues values = {.gpr = w.gpr, .vector = (const u8(*)[64])w.vector,
                                    .address = MIDDLE, .memory = (u8 *)MIDDLE,
                                    .memory_v = shadow_of(MIDDLE)};
        enum { TIMES = 20000 };
        u64 best = ~0ull;
        for (u32 round = 0; round < 5; round++) {
            u64 start = now();
            for (u32 i = 0; i < TIMES; i++)
                definedness_run(step, &w.d, &values);
            best = min_u64(best, now() - start);
        }
        printf("# %-20s %3llu cycles\n", insns[k].name, (unsigned long long)(best / TIMES));
        CHECK(best / TIMES < 5000); // only that it is no accident
    }
}

// ------------------------------------------------------------------------- fuzz

TEST(no_bytes_make_a_step_that_crashes)
{
    static u8 memory_v[1024];
    u64 seed = 88172645463325252ull;
    u32 steps = 0;
    reset();
    for (u32 i = 0; i < 400000; i++) {
        static const u8 starts[] = {0x0f, 0x66, 0xf3, 0xf2, 0xc4, 0xc5, 0x62, 0x48, 0xd9, 0xdb};
        u8 bytes[16];
        for (u32 k = 0; k < sizeof(bytes); k++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes[k] = (u8)(seed >> 24);
        }
        if (i & 3)
            bytes[0] = starts[i / 4 % ARRAY_LEN(starts)];
        Insn insn;
        if (decode_insn(0x400000, bytes, 15, &insn) != DECODE_OK)
            continue;
        DefinednessStep *step = (DefinednessStep *)w.step;
        definedness_prepare(&insn, step);
        bool evex = insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
                    insn.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
                    definedness_row(insn.mnemonic).rule == RULE_KORTEST;
        if (evex && !__builtin_cpu_supports("avx512bw"))
            continue;
        memset(w.d.gpr, i & 1 ? 0xff : 0, sizeof(w.d.gpr));
        memset(w.d.vector, i & 2 ? 0xff : 0, sizeof(w.d.vector));
        w.d.set = ~0ull;
        CHECK(definedness_access(step).size <= sizeof(memory_v));
        DefinednessValues values = {.gpr = w.gpr, .eflags = seed,
                                    .vector = (const u8(*)[64])w.vector, .address = MIDDLE,
                                    .memory = i & 4 ? (u8 *)MIDDLE : NULL,
                                    .memory_v = i & 8 ? memory_v : NULL};
        definedness_run(step, &w.d, &values);
        steps++;
    }
    printf("# %u steps\n", steps);
    CHECK(steps > 50000);
}
