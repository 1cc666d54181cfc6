// SPDX-License-Identifier: MIT
//
// The table of shapes (shape.h), filled as they are met. Nothing here knows what an opcode means:
// only where the bytes end that decide, and that is compared with Zydis before a shape is kept.
#include "engine/decode/shape.h"

#include <string.h>

enum { SHAPES_MAX = INSN_SHAPES_MAX, SLOTS = 2 * SHAPES_MAX, KEY_BYTES = 8, INSN_BYTES_MAX = 15 };
_Static_assert(SLOTS == 1 << 15, "an index has 15 bits, a tag the other 13 of a hash");

// All under the engine lock.
static InsnShape shapes[SHAPES_MAX];
static u32 shape_count;
u32 decode_forgotten;

// By hash. Blocks are made with cold caches, and decoding waits for memory above all: a slot has
// the length, so that the processor goes on to the next instruction while it waits for the shape.
typedef struct Slot {
    u32 index : 15; // + 1; 0: free
    u32 len : 4;
    u32 tag : 13;   // of the key: others seldom have the same
} Slot;
static Slot slots[SLOTS];

// -------------------------------------------------------------------------- keys

#define BITS_OF(row, bits) [row] = 0x##bits

// One bit for each opcode, 16 in a row, the first of them lowest.
static const u16 prefixes[16] = {
    BITS_OF(2, 4040), BITS_OF(3, 4040), BITS_OF(6, 00f0), BITS_OF(15, 000d),
};
// VEX, EVEX and XOP, whose constants may name registers; moffs; what has no place in long mode.
static const u16 strangers[16] = {BITS_OF(6, 0004), BITS_OF(8, 8000), BITS_OF(10, 000f),
                                  BITS_OF(12, 0030)};
static const u16 has_modrm[16] = {
    BITS_OF(0, 0f0f),  BITS_OF(1, 0f0f),  BITS_OF(2, 0f0f), BITS_OF(3, 0f0f),
    BITS_OF(6, 0a08),  BITS_OF(8, ffff),  BITS_OF(12, 00c3), BITS_OF(13, ff0f),
    BITS_OF(15, c0c0),
};
// Behind 0f. 38 and 3a are escapes; 0f 0f has its opcode at the end; 20 to 23 have no SIB byte.
static const u16 strangers_0f[16] = {BITS_OF(0, 8000), BITS_OF(2, 000f)};
static const u16 has_modrm_0f[16] = {
    BITS_OF(0, 200f),  BITS_OF(1, ffff),  BITS_OF(2, ff00),  BITS_OF(4, ffff), BITS_OF(5, ffff),
    BITS_OF(6, ffff),  BITS_OF(7, ff7f),  BITS_OF(9, ffff),  BITS_OF(10, f838), BITS_OF(11, ffff),
    BITS_OF(12, 00ff), BITS_OF(13, ffff), BITS_OF(14, ffff), BITS_OF(15, ffff),
};

static bool is_in(const u16 set[16], u8 byte)
{
    return set[byte >> 4] >> (byte & 15) & 1;
}

// How many bytes decide what the instruction is; 0 if it is none for the table. Reads at most
// INSN_BYTES_MAX of them.
static unsigned key_length(const u8 *bytes)
{
    unsigned n = 0;
    while (is_in(prefixes, bytes[n])) {
        if (++n == KEY_BYTES / 2)
            return 0;
    }
    if ((bytes[n] & 0xf0) == 0x40)
        n++;
    u8 opcode = bytes[n++];
    bool modrm = is_in(has_modrm, opcode);
    if (opcode == 0x0f) {
        opcode = bytes[n++];
        bool escape = opcode == 0x38 || opcode == 0x3a;
        if (is_in(strangers_0f, opcode))
            return 0;
        n += escape;
        modrm = escape || is_in(has_modrm_0f, opcode);
    } else if (is_in(strangers, opcode) || is_in(prefixes, opcode) || (opcode & 0xf0) == 0x40) {
        return 0; // a prefix behind REX makes it void
    }
    if (modrm) {
        u8 byte = bytes[n++];
        n += (byte & 0xc0) != 0xc0 && (byte & 7) == 4; // SIB
    }
    return n <= KEY_BYTES ? n : 0;
}

static u64 key_of(const u8 *bytes, unsigned length)
{
    u64 key;
    memcpy(&key, bytes, sizeof(key));
    return length == KEY_BYTES ? key : key & ((1ull << 8 * length) - 1);
}

// ------------------------------------------------------------------------- table

// Its low 15 bits are where the search for a key begins, the others its tag.
static u32 hash(u64 key)
{
    return (u32)(key * 0x9e3779b97f4a7c15ull >> 36);
}

static u32 tag_of(u64 key)
{
    return hash(key) / SLOTS;
}

// No key is the beginning of another, so zeros behind it are no ambiguity.
static Slot *slot_of(u64 key)
{
    u32 tag = tag_of(key);
    for (u32 i = hash(key);; i++) {
        Slot *slot = &slots[i % SLOTS];
        if (slot->index == 0 || (slot->tag == tag && shapes[slot->index - 1].key == key))
            return slot;
    }
}

void decode_forget(void)
{
    if (LIKELY(shape_count < SHAPES_MAX))
        return;
    memset(slots, 0, sizeof(slots));
    shape_count = 0;
    decode_forgotten++;
}

static const InsnShape *remember(const Insn *insn, u64 key, unsigned key_bytes, Slot *slot)
{
    if (shape_count == SHAPES_MAX)
        return NULL;
    InsnShape *shape = &shapes[shape_count];
    if (!shape_make(insn, shape) || key_bytes + shape->value_bytes != insn->len)
        return NULL;
    shape->key = key;
    *slot = (Slot){.index = ++shape_count, .len = insn->len, .tag = tag_of(key)};
    return shape;
}

static i64 read_value(const u8 *at, unsigned size)
{
    i8 byte;
    i16 word;
    i32 dword;
    i64 qword;
    switch (size) {
    case 1: memcpy(&byte, at, 1); return byte;
    case 2: memcpy(&word, at, 2); return word;
    case 4: memcpy(&dword, at, 4); return dword;
    case 8: memcpy(&qword, at, 8); return qword;
    default: return 0;
    }
}

static void apply(const InsnShape *shape, GuestAddr pc, const u8 *bytes, Insn *ret_insn)
{
    ret_insn->pc = pc;
    ret_insn->bytes = bytes;
    ret_insn->target = 0;
    ret_insn->flags = shape->flags;
    ret_insn->shape = shape;
    memcpy(&ret_insn->mnemonic, shape->traits, sizeof(shape->traits));
    if (shape->target != TARGET_NONE) {
        i64 distance = shape->target == TARGET_BRANCH
                           ? read_value(bytes + shape->imm_at, shape->imm_size)
                           : read_value(bytes + shape->disp_at, shape->disp_size);
        u64 target = pc + shape->len + (u64)distance;
        ret_insn->target = shape->target == TARGET_RIP_NARROW ? (u32)target : target;
    }
    if (shape->pops)
        ret_insn->pop_bytes = (u16)read_value(bytes + shape->imm_at, shape->imm_size);
}

DecodeResult decode_shared(GuestAddr pc, const u8 *bytes, size_t max, Insn *ret_insn)
{
    unsigned key_bytes = max >= INSN_BYTES_MAX ? key_length(bytes) : 0;
    u64 key = key_bytes ? key_of(bytes, key_bytes) : 0;
    if (!key_bytes || decode_may_be_request(bytes))
        return decode_insn(pc, bytes, max, ret_insn);
    Slot *slot = slot_of(key);
    if (LIKELY(slot->index)) {
        const InsnShape *shape = &shapes[slot->index - 1];
        __builtin_prefetch(shape->accesses); // for tools
        apply(shape, pc, bytes, ret_insn);
        ret_insn->len = slot->len;
        return DECODE_OK;
    }
    DecodeResult result = decode_insn(pc, bytes, max, ret_insn);
    if (result == DECODE_OK)
        ret_insn->shape = remember(ret_insn, key, key_bytes, slot);
    return result;
}

// ----------------------------------------------------------------------- answers

unsigned insn_accesses(const Insn *insn, InsnAccess *ret_accesses, unsigned max)
{
    const InsnShape *shape = insn->shape;
    if (!shape)
        return operands_accesses(insn, ret_accesses, max);
    unsigned count = shape->access_count < max ? shape->access_count : max;
    for (unsigned i = 0; i < count; i++) {
        ret_accesses[i] = shape->accesses[i];
        if (shape->has_disp >> i & 1)
            ret_accesses[i].address.disp =
                insn_disp(insn) + insn_popped_bytes(insn->mnemonic, &ret_accesses[i]);
    }
    return count;
}

const InsnForm *insn_form(const Insn *insn, InsnForm *room)
{
    if (insn->shape)
        return &insn->shape->form;
    operands_form(insn, room);
    return room;
}

i64 insn_disp(const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (insn->shape)
        return read_value(insn->bytes + insn->shape->disp_at, insn->shape->disp_size);
    return decode_operands(insn, &z, operands) ? z.raw.disp.value : 0;
}

i64 insn_imm(const Insn *insn)
{
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (insn->shape)
        return read_value(insn->bytes + insn->shape->imm_at, insn->shape->imm_size);
    if (!decode_operands(insn, &z, operands))
        return 0;
    unsigned last = z.raw.imm[1].size ? 1 : 0;
    return read_value(insn->bytes + z.raw.imm[last].offset, z.raw.imm[last].size / 8u);
}

u32 insn_shape_number(const Insn *insn)
{
    return insn->shape ? (u32)(insn->shape - shapes) : INSN_SHAPES_MAX;
}

u32 insn_gprs_used(const Insn *insn)
{
    InsnForm room;
    return insn_form(insn, &room)->gprs_used;
}
