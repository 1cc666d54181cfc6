// SPDX-License-Identifier: MIT
//
// What is remembered of instructions is what Zydis says of them: each is decoded twice, with
// other values behind the bytes that decide, and then afresh.
#include "engine/decode/shape.h"

#include "unit.h"

enum { PC = 0x400000 };

static u64 seed = 88172645463325252ull;
static u32 remembered, checked;

static u8 next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (u8)(seed >> 24);
}

static bool same_insn(const Insn *a, const Insn *b)
{
    size_t from = offsetof(Insn, mnemonic), to = offsetof(Insn, decided_by) + 1;
    return a->pc == b->pc && a->bytes == b->bytes && a->target == b->target &&
           a->flags == b->flags &&
           memcmp((const u8 *)a + from, (const u8 *)b + from, to - from) == 0;
}

static void check_operands(const Insn *known, const Insn *fresh)
{
    InsnAccess a[8], b[8];
    InsnForm room_a, room_b;
    unsigned count = insn_accesses(known, a, ARRAY_LEN(a));
    CHECK_EQ(count, insn_accesses(fresh, b, ARRAY_LEN(b)));
    CHECK(memcmp(a, b, count * sizeof(a[0])) == 0);
    CHECK(memcmp(insn_form(known, &room_a), insn_form(fresh, &room_b), sizeof(InsnForm)) == 0);
    CHECK_EQ(insn_disp(known), insn_disp(fresh));
    CHECK_EQ(insn_imm(known), insn_imm(fresh));
}

// `fixed` bytes of the 19 stay, the others are drawn for each time.
static void check(u8 *bytes, unsigned fixed)
{
    Insn known, fresh;
    for (unsigned time = 0; time < 2; time++) {
        for (unsigned i = fixed; i < DECODE_BYTES_MAX; i++)
            bytes[i] = next_random();
        decode_forget();
        DecodeResult result = decode_shared(PC, bytes, DECODE_BYTES_MAX, &known);
        CHECK_EQ(result, decode_insn(PC, bytes, DECODE_BYTES_MAX, &fresh));
        if (result != DECODE_OK)
            continue;
        CHECK(same_insn(&known, &fresh));
        CHECK(!fresh.shape);
        remembered += known.shape != NULL;
        checked++;
        if (known.shape)
            check_operands(&known, &fresh);
    }
}

static unsigned put_prefixes(u8 *bytes, unsigned which)
{
    static const struct {
        u8 count, bytes[3];
    } sets[] = {{0, {0}},          {1, {0x66}},       {1, {0xf2}},       {1, {0xf3}},
                {1, {0x48}},       {1, {0x41}},       {2, {0x66, 0x4d}}, {2, {0xf3, 0x48}},
                {1, {0x67}},       {1, {0x64}},       {2, {0x65, 0x49}}, {2, {0xf0, 0x48}},
                {2, {0x48, 0x66}}, {2, {0x3e, 0xf2}}, {3, {0x2e, 0x67, 0x4f}}};
    memcpy(bytes, sets[which % ARRAY_LEN(sets)].bytes, sets[which % ARRAY_LEN(sets)].count);
    return sets[which % ARRAY_LEN(sets)].count;
}

TEST(every_opcode_is_remembered_as_it_is)
{
    static const struct {
        u8 count, bytes[2];
    } maps[] = {{0, {0}}, {1, {0x0f}}, {2, {0x0f, 0x38}}, {2, {0x0f, 0x3a}}};
    decode_init();
    for (unsigned i = 0; i < ARRAY_LEN(maps) * 65536; i++) {
        u8 bytes[DECODE_BYTES_MAX];
        for (unsigned k = 0; k < 2; k++) {
            unsigned n = put_prefixes(bytes, k ? next_random() : 0);
            memcpy(bytes + n, maps[i >> 16].bytes, maps[i >> 16].count);
            n += maps[i >> 16].count;
            bytes[n++] = (u8)(i >> 8);
            bytes[n++] = (u8)i;
            check(bytes, n);
        }
    }
    printf("# %u of %u remembered\n", remembered, checked);
    CHECK(remembered > checked / 4);
}

TEST(bytes_of_any_kind_are_remembered_as_they_are)
{
    decode_init();
    for (unsigned i = 0; i < 300000; i++) {
        u8 bytes[DECODE_BYTES_MAX];
        for (unsigned k = 0; k < 8; k++)
            bytes[k] = next_random();
        check(bytes, 3 + i % 6);
    }
}

// The end of the executable memory cuts an instruction off, known or not.
TEST(too_few_bytes_are_too_few)
{
    static const u8 mov[15] = {0x48, 0xc7, 0x84, 0x24, 8, 0, 0, 0, 1, 0, 0, 0, 0x90};
    Insn insn;
    decode_init();
    CHECK_EQ(decode_shared(PC, mov, sizeof(mov), &insn), DECODE_OK);
    CHECK_EQ(insn.len, 12);
    CHECK_EQ(decode_shared(PC, mov, 11, &insn), DECODE_TRUNCATED);
    CHECK_EQ(decode_shared(PC, mov, 12, &insn), DECODE_OK);
}

TEST(a_client_request_is_no_rotation)
{
    static const u8 bytes[DECODE_BYTES_MAX] = {0x48, 0xc1, 0xc7, 3,    0x48, 0xc1, 0xc7,
                                               13,   0x48, 0xc1, 0xc7, 61,   0x48, 0xc1,
                                               0xc7, 51,   0x48, 0x87, 0xdb};
    u8 rotation[DECODE_BYTES_MAX] = {0x48, 0xc1, 0xc7, 4};
    Insn insn;
    decode_init();
    CHECK_EQ(decode_shared(PC, rotation, sizeof(rotation), &insn), DECODE_OK);
    CHECK_EQ(decode_shared(PC, bytes, sizeof(bytes), &insn), DECODE_OK);
    CHECK_EQ(insn.lowering, LOWER_REQUEST);
}
