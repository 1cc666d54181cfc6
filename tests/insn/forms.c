// SPDX-License-Identifier: MIT
//
// Walks the opcode maps with the decoder as oracle. Nothing here knows an instruction: a byte
// string that decodes is one, and two are the same form when the decoder gives them the same
// mnemonic and operands of the same kinds. What the walk cannot know (that a random number must
// not be used as an address, that rdtsc differs each time) is the generators' and deny.def's.
#include "forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SLOTS (1u << 16)

typedef struct FormList {
    Form *items;
    u32 count;
    u32 room;
    u64 seen[KEY_SLOTS]; // open addressing over keys, 0 = empty
} FormList;

static const struct {
    ZydisMnemonic mnemonic;
    const char *reason;
} denied[] = {
#define DENY(name, why) { ZYDIS_MNEMONIC_##name, why },
#include "deny.def"
#undef DENY
};

static ZydisDecoder decoder;
static bool decoder_ready;

bool insn_decode(const u8 *bytes, u32 len_bytes, Insn *ret_insn)
{
    if (!decoder_ready) {
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        decoder_ready = true;
    }
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len_bytes, &ret_insn->info,
                                             ret_insn->ops)))
        return false;
    ret_insn->len_bytes = ret_insn->info.length;
    memmove(ret_insn->bytes, bytes, ret_insn->len_bytes);
    return true;
}

u32 insn_defined_flags(const Insn *insn)
{
    const u32 status = 0xcd5; // CF PF AF ZF SF DF OF
    return status & ~(insn->info.cpu_flags ? insn->info.cpu_flags->undefined : 0);
}

bool insn_is_branch(const Insn *insn)
{
    if (insn->info.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
        return true;
    switch (insn->info.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_INTERRUPT:
        return true;
    default:
        return false;
    }
}

static bool writes_segment(const Insn *insn)
{
    for (u32 i = 0; i < insn->info.operand_count; i++) {
        const ZydisDecodedOperand *op = &insn->ops[i];
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
            ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_SEGMENT)
            return true;
    }
    return false;
}

static bool is_denied(const Insn *insn)
{
    for (u32 i = 0; i < ARRAY_LEN(denied); i++)
        if (denied[i].mnemonic == insn->info.mnemonic)
            return true;
    return insn_is_branch(insn) || writes_segment(insn);
}

static u64 mix_key(u64 key, u64 value)
{
    return mix64(key * 31 + value + 1);
}

// Two instructions with one key have the same operation on operands of the same kind.
static u64 form_key(const Insn *insn)
{
    const ZydisDecodedInstruction *d = &insn->info;
    u64 key = mix_key(d->mnemonic, d->encoding);
    key = mix_key(key, d->opcode_map);
    key = mix_key(key, d->opcode);
    key = mix_key(key, d->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
                                        ZYDIS_ATTRIB_HAS_REPNE));
    key = mix_key(key, d->avx.vector_length);
    key = mix_key(key, d->avx.mask.mode);
    key = mix_key(key, d->avx.broadcast.mode);
    key = mix_key(key, d->avx.rounding.mode != 0);
    key = mix_key(key, d->avx.has_sae);
    for (u32 i = 0; i < d->operand_count; i++) {
        const ZydisDecodedOperand *op = &insn->ops[i];
        key = mix_key(key, op->type);
        key = mix_key(key, op->encoding);
        key = mix_key(key, op->size);
        key = mix_key(key, op->element_type);
        key = mix_key(key, op->element_count);
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
            key = mix_key(key, op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT
                                   ? ZydisRegisterGetClass(op->reg.value)
                                   : op->reg.value);
    }
    return key | 1;
}

// Everything that varies between the instances of a form.
typedef struct Fields {
    u8 prefixes[8];
    u8 n_prefixes;
    u8 reg; // 5 bits
    u8 rm;  // 5 bits; for a memory operand the base
    u8 mod;
    bool sib;
    u8 index; // 5 bits
    u8 scale;
    u8 vvvv; // 5 bits
    u8 mask_reg;
    bool rex; // a REX prefix even if all its bits are 0
    u8 tail[16]; // displacement and immediate
} Fields;

static u8 *put_modrm(u8 *p, const Form *f, const Fields *v)
{
    *p++ = (u8)(v->mod << 6 | (v->reg & 7) << 3 | (v->sib ? 4 : v->rm & 7));
    if (v->sib)
        *p++ = (u8)(v->scale << 6 | (v->index & 7) << 3 | (v->rm & 7));
    memcpy(p, v->tail, 12);
    if (f->suffix)
        memset(p, f->suffix, 12); // 3DNow: the byte after the displacement is the opcode
    return p + 12;
}

static bool has_modrm_legacy(const Form *f)
{
    static const u8 none[256] = {
        [0x04] = 1, [0x05] = 1, [0x0c] = 1, [0x0d] = 1, [0x14] = 1, [0x15] = 1, [0x1c] = 1,
        [0x1d] = 1, [0x24] = 1, [0x25] = 1, [0x2c] = 1, [0x2d] = 1, [0x34] = 1, [0x35] = 1,
        [0x3c] = 1, [0x3d] = 1, [0x50 ... 0x5f] = 1, [0x68] = 1, [0x6a] = 1, [0x6c ... 0x7f] = 1,
        [0x90 ... 0xbf] = 1, [0xc2 ... 0xc3] = 1, [0xc8 ... 0xcf] = 1, [0xd7] = 1,
        [0xe0 ... 0xf5] = 1, [0xf8 ... 0xfd] = 1,
    };
    static const u8 none_0f[256] = {
        [0x05 ... 0x0b] = 1, [0x30 ... 0x37] = 1, [0x77] = 1, [0x80 ... 0x8f] = 1, [0xa0 ... 0xa2] = 1,
        [0xa8 ... 0xaa] = 1, [0xc8 ... 0xcf] = 1,
    };
    if (f->map == 0)
        return !none[f->opcode];
    return f->map != 1 || !none_0f[f->opcode];
}

static u32 encode_legacy(const Form *f, const Fields *v, u8 *out)
{
    static const u8 mandatory[6][2] = { { 0 },    { 0x66 },       { 0xf3 },
                                        { 0xf2 }, { 0x66, 0xf3 }, { 0x66, 0xf2 } };
    u8 *p = out;
    memcpy(p, v->prefixes, v->n_prefixes);
    p += v->n_prefixes;
    for (int i = 0; i < 2; i++)
        if (mandatory[f->pp][i])
            *p++ = mandatory[f->pp][i];
    u8 rex = (u8)(f->w << 3 | (v->reg >> 3 & 1) << 2 | (v->rm >> 3 & 1));
    if (v->sib)
        rex |= (u8)((v->index >> 3 & 1) << 1);
    if (rex || v->rex)
        *p++ = 0x40 | rex;
    if (f->map >= 1)
        *p++ = 0x0f;
    if (f->map >= 2)
        *p++ = f->map == 2 ? 0x38 : 0x3a;
    if (has_modrm_legacy(f)) {
        *p++ = f->opcode;
        return (u32)(put_modrm(p, f, v) - out);
    }
    *p++ = f->opcode;
    memcpy(p, v->tail, 12);
    return (u32)(p + 12 - out);
}

static u32 encode_vex(const Form *f, const Fields *v, u8 *out)
{
    u8 *p = out;
    memcpy(p, v->prefixes, v->n_prefixes);
    p += v->n_prefixes;
    u8 index_bit = v->sib ? v->index >> 3 & 1 : 0;
    u8 last = (u8)((~v->vvvv & 15) << 3 | f->l << 2 | f->pp);
    bool small = f->space == SPACE_VEX && f->map == 1 && !f->w && !index_bit && !(v->rm & 8);
    if (small && !v->rex) {
        *p++ = 0xc5;
        *p++ = (u8)((~v->reg >> 3 & 1) << 7 | last);
    } else {
        *p++ = f->space == SPACE_XOP ? 0x8f : 0xc4;
        *p++ = (u8)((~v->reg >> 3 & 1) << 7 | (!index_bit) << 6 | (~v->rm >> 3 & 1) << 5 | f->map);
        *p++ = (u8)(f->w << 7 | last);
    }
    *p++ = f->opcode;
    return (u32)(put_modrm(p, f, v) - out);
}

static u32 encode_evex(const Form *f, const Fields *v, u8 *out)
{
    u8 *p = out;
    memcpy(p, v->prefixes, v->n_prefixes);
    p += v->n_prefixes;
    // X extends a register rm to 32, or an index to 16; V' extends vvvv, or a vector index.
    u8 x = f->is_mem ? (v->sib ? v->index >> 3 & 1 : 0) : v->rm >> 4 & 1;
    u8 v4 = v->vvvv >> 4 & 1;
    if (f->is_mem && v->sib && v->index >= 16)
        v4 = 1;
    *p++ = 0x62;
    *p++ = (u8)((~v->reg >> 3 & 1) << 7 | (!x) << 6 | (~v->rm >> 3 & 1) << 5 |
                (~v->reg >> 4 & 1) << 4 | f->map);
    *p++ = (u8)(f->w << 7 | (~v->vvvv & 15) << 3 | 4 | f->pp);
    *p++ = (u8)((f->evex_mask == 2) << 7 | f->l << 5 | f->evex_b << 4 | (!v4) << 3 |
                (f->evex_mask ? v->mask_reg : 0));
    *p++ = f->opcode;
    return (u32)(put_modrm(p, f, v) - out);
}

static u32 encode(const Form *f, const Fields *v, u8 *out)
{
    switch (f->space) {
    case SPACE_LEGACY:
        return encode_legacy(f, v, out);
    case SPACE_EVEX:
        return encode_evex(f, v, out);
    default:
        return encode_vex(f, v, out);
    }
}

static bool key_is_new(FormList *list, u64 key)
{
    u32 at = (u32)(key >> 20) % KEY_SLOTS;
    while (list->seen[at]) {
        if (list->seen[at] == key)
            return false;
        at = (at + 1) % KEY_SLOTS;
    }
    if (list->count >= KEY_SLOTS / 2) {
        fprintf(stderr, "forms: more than %u forms, enlarge KEY_SLOTS\n", KEY_SLOTS / 2);
        exit(2);
    }
    list->seen[at] = key;
    return true;
}

static bool try_form(FormList *list, Form f)
{
    u8 bytes[40] = { 0 };
    Insn insn;
    // Memory operands are found as [rax + rcx * 1], which gathers need and all others allow.
    Fields v = {
        .reg = f.reg,
        .rm = f.is_mem ? 0 : f.rm,
        .mod = f.is_mem ? 0 : 3,
        .sib = f.is_mem,
        .index = 1,
        .mask_reg = 1,
    };
    if (f.space != SPACE_LEGACY)
        v.vvvv = 2;
    u32 len = encode(&f, &v, bytes);
    bool valid = insn_decode(bytes, len, &insn);
    if (!valid && f.space != SPACE_LEGACY) {
        v.vvvv = 0; // unused vvvv must be 1111, i.e. register 0 here
        encode(&f, &v, bytes);
        valid = insn_decode(bytes, len, &insn);
    }
    if (!valid || is_denied(&insn))
        return valid;
    f.key = form_key(&insn);
    f.mnemonic = insn.info.mnemonic;
    f.isa = insn.info.meta.isa_set;
    if (!key_is_new(list, f.key))
        return true;
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->items = realloc(list->items, list->room * sizeof(Form));
    }
    list->items[list->count++] = f;
    return true;
}

// All operands and opcode extensions of one opcode.
static void walk_opcode(FormList *list, Form f)
{
    for (u8 reg = 0; reg < 8; reg++) {
        f.reg = reg;
        f.is_mem = true;
        try_form(list, f);
        f.is_mem = false;
        for (u8 rm = 0; rm < 8; rm++) {
            f.rm = rm;
            // Only x87 and 0f 01 choose the operation by rm.
            if (try_form(list, f) && f.space != SPACE_LEGACY)
                break;
            if (f.space != SPACE_LEGACY && rm >= 1)
                break;
        }
    }
}

static void walk_legacy(FormList *list)
{
    for (u32 opcode = 0; opcode < 256; opcode++)
        for (u8 map = 0; map < 4; map++)
            for (u8 pp = 0; pp < 6; pp++)
                for (u8 w = 0; w < 2; w++) {
                    // Prefixes and escapes are not opcodes.
                    static const u8 not_first[] = { 0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x62, 0x64,
                                                    0x65, 0x66, 0x67, 0xc4, 0xc5, 0xf0, 0xf2,
                                                    0xf3 };
                    if (map == 0 && memchr(not_first, (int)opcode, sizeof(not_first)))
                        continue;
                    if (map == 0 && opcode >= 0x40 && opcode < 0x50)
                        continue;
                    if (map == 1 && (opcode == 0x38 || opcode == 0x3a || opcode == 0x0f))
                        continue;
                    walk_opcode(list, (Form){ .space = SPACE_LEGACY, .map = map, .pp = pp, .w = w,
                                              .opcode = (u8)opcode });
                }
    for (u32 suffix = 1; suffix < 256; suffix++)
        walk_opcode(list, (Form){ .space = SPACE_LEGACY, .map = 1, .opcode = 0x0f,
                                  .suffix = (u8)suffix });
}

static void walk_vex(FormList *list, FormSpace space, u8 first_map, u8 last_map)
{
    for (u8 map = first_map; map <= last_map; map++)
        for (u32 opcode = 0; opcode < 256; opcode++)
            for (u8 rest = 0; rest < 16; rest++)
                walk_opcode(list, (Form){ .space = space, .map = map, .opcode = (u8)opcode,
                                          .pp = rest & 3, .w = rest >> 2 & 1, .l = rest >> 3 });
}

static void walk_evex(FormList *list)
{
    static const u8 maps[] = { 1, 2, 3, 5, 6 };
    for (u32 m = 0; m < ARRAY_LEN(maps); m++)
        for (u32 opcode = 0; opcode < 256; opcode++)
            for (u32 rest = 0; rest < 4 * 2 * 4 * 2 * 3; rest++)
                walk_opcode(list, (Form){ .space = SPACE_EVEX, .map = maps[m],
                                          .opcode = (u8)opcode, .pp = rest & 3, .w = rest >> 2 & 1,
                                          .l = rest >> 3 & 3, .evex_b = rest >> 5 & 1,
                                          .evex_mask = (u8)(rest >> 6) });
}

static int by_isa(const void *a, const void *b)
{
    const Form *x = a, *y = b;
    if (x->isa != y->isa)
        return x->isa < y->isa ? -1 : 1;
    if (x->mnemonic != y->mnemonic)
        return x->mnemonic < y->mnemonic ? -1 : 1;
    return x->key < y->key ? -1 : 1;
}

Form *forms_enumerate(u32 *ret_count)
{
    static FormList list;
    walk_legacy(&list);
    walk_vex(&list, SPACE_VEX, 1, 3);
    walk_vex(&list, SPACE_XOP, 8, 10);
    walk_evex(&list);
    qsort(list.items, list.count, sizeof(Form), by_isa);
    *ret_count = list.count;
    return list.items;
}

static u8 pick_bit(u64 *rng, u32 allowed, u8 otherwise)
{
    if (!allowed)
        return otherwise;
    u32 n = rng_below(rng, (u32)__builtin_popcount(allowed));
    while (n--)
        allowed &= allowed - 1;
    return (u8)__builtin_ctz(allowed);
}

// The addressing mode: half of the time the corner cases of ModRM are as likely as the rest.
static void choose_memory(const Choice *c, Fields *v)
{
    u64 *rng = c->rng;
    static const u8 awkward[] = { 4, 5, 12, 13 };
    v->mod = (u8)rng_below(rng, 3);
    u8 any = (u8)(rng_one_in(rng, 3) ? awkward[rng_below(rng, 4)] : rng_below(rng, 16));
    v->rm = pick_bit(rng, c->bases, any);
    v->sib = (v->rm & 7) == 4 || rng_one_in(rng, 3);
    v->scale = (u8)rng_below(rng, 4);
    v->index = pick_bit(rng, c->indexes, (u8)rng_below(rng, 32));
    if (v->sib && c->plain && rng_one_in(rng, 2))
        v->index = 4; // none
    if (c->plain && v->mod == 0 && (v->rm & 7) == 5)
        v->mod = 1; // would be an absolute address or an index without a base
    i32 disp = (i32)rng_below(rng, 512) - 256;
    if (c->plain && rng_one_in(rng, 8)) { // rip-relative
        v->mod = 0;
        v->rm = 5;
        v->sib = false;
    } else if (c->plain && rng_one_in(rng, 10)) { // fs:[disp32]
        v->prefixes[v->n_prefixes++] = 0x64;
        v->mod = 0;
        v->rm = 5;
        v->sib = true;
        v->index = 4;
        disp = (i32)rng_below(rng, 0x200);
    }
    if (v->mod == 1)
        v->tail[0] = (u8)disp;
    else
        memcpy(v->tail, &disp, 4);
}

static void choose_prefixes(const Choice *c, const Form *f, Fields *v)
{
    static const u8 redundant[] = { 0x26, 0x2e, 0x36, 0x3e };
    u64 *rng = c->rng;
    if (c->plain)
        return;
    if (f->is_mem && rng_one_in(rng, 6))
        v->prefixes[v->n_prefixes++] = rng_one_in(rng, 4) ? 0x65 : 0x64;
    else if (rng_one_in(rng, 8))
        v->prefixes[v->n_prefixes++] = redundant[rng_below(rng, 4)];
    if (rng_one_in(rng, 12))
        v->prefixes[v->n_prefixes++] = 0x67;
    if (f->space == SPACE_LEGACY && f->is_mem && rng_one_in(rng, 8))
        v->prefixes[v->n_prefixes++] = 0xf0;
    if (f->space == SPACE_LEGACY && rng_one_in(rng, 24))
        v->prefixes[v->n_prefixes++] = (u8)(rng_one_in(rng, 2) ? 0xf2 : 0x66);
    v->rex = rng_one_in(rng, 6);
}

static void choose_fields(const Form *f, const Choice *c, bool keep_operation, Fields *v)
{
    u64 *rng = c->rng;
    u8 wide = f->space == SPACE_EVEX ? 32 : 16;
    *v = (Fields){ .mod = 3 };
    for (u32 i = 0; i < sizeof(v->tail); i++)
        v->tail[i] = (u8)rng_next(rng);
    if (f->suffix)
        memset(v->tail, f->suffix, sizeof(v->tail));
    v->reg = keep_operation ? f->reg : (u8)rng_below(rng, wide);
    v->rm = keep_operation ? f->rm : (u8)rng_below(rng, wide);
    if (keep_operation) { // the low bits may choose the operation, REX bits never
        v->reg |= (u8)(rng_below(rng, 2) << 3);
        v->rm |= (u8)(rng_below(rng, 2) << 3);
    }
    v->vvvv = (u8)(rng_one_in(rng, 3) ? 0 : rng_below(rng, wide));
    v->mask_reg = (u8)(1 + rng_below(rng, 7));
    if (f->is_mem)
        choose_memory(c, v);
    choose_prefixes(c, f, v);
}

// Without REX a byte register 4..7 is ah..bh: all of them are operands like any other.
static bool gprs_allowed(const Insn *insn, u32 allowed)
{
    for (u32 i = 0; allowed && i < insn->info.operand_count; i++) {
        const ZydisDecodedOperand *op = &insn->ops[i];
        if (op->type != ZYDIS_OPERAND_TYPE_REGISTER ||
            !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            continue;
        ZydisRegister r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
                                                           op->reg.value);
        if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15 &&
            !(allowed >> (r - ZYDIS_REGISTER_RAX) & 1))
            return false;
    }
    return true;
}

bool form_instantiate(const Form *form, const Choice *choice, Insn *ret_insn)
{
    for (int attempt = 0; attempt < 60; attempt++) {
        Fields v;
        u8 bytes[48] = { 0 };
        choose_fields(form, choice, attempt >= 8, &v);
        u32 len = encode(form, &v, bytes);
        if (!insn_decode(bytes, len < INSN_MAX ? len : INSN_MAX, ret_insn))
            continue;
        if (form_key(ret_insn) != form->key)
            continue;
        if (gprs_allowed(ret_insn, choice->gprs_free))
            return true;
    }
    return false;
}
