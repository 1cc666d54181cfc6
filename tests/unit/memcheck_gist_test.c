// SPDX-License-Identifier: MIT
//
// What memcheck remembers of instructions by their shape is what their steps say: each is asked for
// twice, with other constants, and compared with a step of its own.
#include "tools/memcheck/translate/steps.h"

#include "unit.h"

enum { PC = 0x400000 };

static u64 seed = 88172645463325252ull;
static u32 checked;

static u8 next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (u8)(seed >> 24);
}

static void check_gist(const Insn *insn)
{
    _Alignas(8) u8 room[DEFINEDNESS_STEP_BYTES];
    DefinednessStep *step = (DefinednessStep *)room;
    StepGist gist = step_gist(insn);
    definedness_prepare(insn, step);
    CHECK_EQ(gist.reads, definedness_reads(step) | definedness_address(step));
    CHECK_EQ(gist.writes, definedness_writes(step));
    CHECK_EQ(gist.overwrites, step_overwrites(step, 0));
    CHECK_EQ(gist.overwrites_low, step_overwrites(step, MEMBERS_VECTOR));
    checked++;
}

// Of the 19 bytes all but the first `fixed` are drawn for each time.
static void check(u8 *bytes, unsigned fixed)
{
    Insn insn;
    for (unsigned time = 0; time < 2; time++) {
        for (unsigned i = fixed; i < DECODE_BYTES_MAX; i++)
            bytes[i] = next_random();
        decode_forget();
        if (decode_shared(PC, bytes, DECODE_BYTES_MAX, &insn) == DECODE_OK && insn.shape)
            check_gist(&insn);
    }
}

TEST(a_gist_is_that_of_every_instruction_of_its_shape)
{
    static const u8 prefixes[] = {0, 0x66, 0xf2, 0xf3, 0x48, 0x41, 0x67};
    static const struct {
        u8 count, bytes[2];
    } maps[] = {{0, {0}}, {1, {0x0f}}, {2, {0x0f, 0x38}}, {2, {0x0f, 0x3a}}};
    u8 bytes[DECODE_BYTES_MAX];
    decode_init();
    for (unsigned i = 0; i < ARRAY_LEN(maps) * 65536; i++) {
        unsigned n = 0, map = i >> 16;
        u8 prefix = prefixes[next_random() % ARRAY_LEN(prefixes)];
        if (prefix)
            bytes[n++] = prefix;
        memcpy(bytes + n, maps[map].bytes, maps[map].count);
        n += maps[map].count;
        bytes[n++] = (u8)(i >> 8);
        bytes[n++] = (u8)i;
        check(bytes, n);
    }
    printf("# %u checked\n", checked);
    CHECK(checked > 50000);
}

// Constants choose what these read.
TEST(a_gist_of_vectors_that_are_shuffled_looks_at_the_constant)
{
    static const u8 shuffles[][5] = {
        {0x66, 0x0f, 0xc6, 0xc1, 0}, // shufpd xmm0, xmm1
        {0x66, 0x0f, 0x73, 0xf8, 0}, // pslldq xmm0
        {0x66, 0x0f, 0x70, 0xc1, 0}, // pshufd xmm0, xmm1
    };
    u8 bytes[DECODE_BYTES_MAX] = {0};
    Insn insn;
    decode_init();
    for (unsigned i = 0; i < ARRAY_LEN(shuffles) * 256; i++) {
        memcpy(bytes, shuffles[i / 256], sizeof(shuffles[0]));
        bytes[4] = (u8)i;
        CHECK_EQ(decode_shared(PC, bytes, sizeof(bytes), &insn), DECODE_OK);
        check_gist(&insn);
    }
}
