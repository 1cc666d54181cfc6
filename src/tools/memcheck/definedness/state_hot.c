// SPDX-License-Identifier: MIT
//
// xsave, fxsave and their like: the V bits of vectors, masks and the x87 go to the shadow of where
// their values go, and come back from there; a lazily bound call saves its arguments so. What the
// processor leaves out because it is in its initial state counts as written, and is defined when it
// comes back. The header's own V bits are not looked at.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/definedness/step.h"

enum {
    X87_AT = 32, XMM_AT = 160, XMM_END = 416, FXSAVE_END = 464, HEADER_AT = 512, HEADER_END = 576,
    MXCSR_AT = 24, STATUS_AT = 2,
    X87_BIT = 0, SSE_BIT, AVX_BIT, MASK_BIT = 5, ZMM_BIT, HIGH_ZMM_BIT, COMPONENTS = 32,
};

#define HAS(set, bit) ((set) >> (bit) & 1)
#define COMPACT (1ull << 63)

// What cpuid says; filled by definedness_state_init().
static struct {
    u32 size, at; // at: in the format that leaves nothing out
    bool aligned; // to 64 bytes, in the one that does
} component[COMPONENTS];
static u64 enabled; // by the kernel: XCR0

void definedness_state_init(void)
{
    u32 low, high;
    if (enabled)
        return;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    for (u32 i = AVX_BIT; i < COMPONENTS; i++) {
        u32 size = 0xd, at, flags = i, unused;
        __asm__ volatile("cpuid" : "+a"(size), "=b"(at), "+c"(flags), "=d"(unused));
        if (!HAS(low, i))
            continue;
        component[i].size = size;
        component[i].at = at;
        component[i].aligned = flags & 2;
    }
    enabled = (u64)high << 32 | low;
}

static u32 compact_place(u64 layout, u32 wanted)
{
    u32 at = HEADER_END;
    for (u32 i = AVX_BIT; i <= wanted; i++) {
        if (!HAS(layout, i))
            continue;
        if (component[i].aligned)
            at = (at + 63) & ~63u;
        if (i < wanted)
            at += component[i].size;
    }
    return at;
}

// Which components are touched, and where they are.
typedef struct Image {
    u64 which;  // are asked for
    u64 filled; // have something in memory
    u64 layout; // COMPACT and what there is room for, or 0
} Image;

static Image image_of(const DefinednessStep *step, const u64 *gpr, GuestAddr address)
{
    const u64 legacy = 1 << X87_BIT | 1 << SSE_BIT;
    u64 header[2];
    if (!step->lane)
        return (Image){legacy, legacy, 0};
    u64 which = ((gpr[2] << 32) | (u32)gpr[0]) & enabled; // edx:eax
    if (step->rule == RULE_STATE_SAVE)
        return (Image){which, which, step->lane_to ? COMPACT | which : 0};
    if (!guest_read(address + HEADER_AT, header, sizeof(header)))
        return (Image){which, 0, 0};
    return (Image){which, which & header[0], header[1] & COMPACT ? header[1] & enabled : 0};
}

static u32 place_of(const Image *image, u32 bit)
{
    return image->layout ? compact_place(image->layout, bit) : component[bit].at;
}

bool definedness_is_state(const DefinednessStep *step)
{
    return step->rule == RULE_STATE_SAVE || step->rule == RULE_STATE_RESTORE;
}

bool definedness_state_saves(const DefinednessStep *step)
{
    return step->rule == RULE_STATE_SAVE;
}

u32 definedness_state_spans(const DefinednessStep *step, const u64 *gpr, GuestAddr address,
                            StateSpan ret[STATE_SPANS_MAX])
{
    Image image = image_of(step, gpr, address);
    u32 count = 0;
    if (!step->lane) {
        ret[count++] = (StateSpan){0, FXSAVE_END};
        return count;
    }
    if (HAS(image.filled, X87_BIT)) {
        ret[count++] = (StateSpan){0, MXCSR_AT};
        ret[count++] = (StateSpan){X87_AT, XMM_AT - X87_AT};
    }
    if (HAS(image.filled, SSE_BIT) || HAS(image.filled, AVX_BIT))
        ret[count++] = (StateSpan){MXCSR_AT, X87_AT - MXCSR_AT};
    if (HAS(image.filled, SSE_BIT))
        ret[count++] = (StateSpan){XMM_AT, XMM_END - XMM_AT};
    if (step->rule == RULE_STATE_SAVE)
        ret[count++] = (StateSpan){HEADER_AT, step->lane_to ? 16 : 8};
    for (u32 bit = AVX_BIT; bit < COMPONENTS && count < STATE_SPANS_MAX; bit++) {
        if (HAS(image.filled, bit) && component[bit].size)
            ret[count++] = (StateSpan){place_of(&image, bit), component[bit].size};
    }
    return count;
}

// `from` NULL: zeros.
static void copy(u8 *to, const u8 *from, u32 bytes)
{
    for (u32 i = 0; i < bytes; i += 2)
        *(Any16 *)(to + i) = from ? *(const Any16 *)(from + i) : 0;
}

// ------------------------------------------------------------------ the vectors and masks

// A component's registers in a Definedness: `count` of them, `stride` bytes apart.
typedef struct Bank {
    u8 bit, count, bytes;
    u16 at, stride;
} Bank;

static const Bank banks[] = {
    {SSE_BIT, 16, 16, offsetof(Definedness, vector), 64},
    {AVX_BIT, 16, 16, offsetof(Definedness, vector) + 16, 64},
    {MASK_BIT, 8, 8, offsetof(Definedness, mask), 8},
    {ZMM_BIT, 16, 32, offsetof(Definedness, vector) + 32, 64},
    {HIGH_ZMM_BIT, 16, 64, offsetof(Definedness, vector) + 16 * 64, 64},
};

static void move_bank(Running *r, const Image *image, const Bank *bank)
{
    bool saves = r->step->rule == RULE_STATE_SAVE;
    u32 at = bank->bit == SSE_BIT ? XMM_AT : place_of(image, bank->bit);
    u8 *shadow = HAS(image->filled, bank->bit)
                     ? place_hidden(r->values->address + at, (u32)bank->count * bank->bytes) : NULL;
    for (u32 i = 0; i < bank->count; i++) {
        u8 *member = (u8 *)r->d + bank->at + i * bank->stride;
        u8 *saved = shadow ? shadow + i * bank->bytes : NULL;
        if (!saves)
            copy(member, saved, bank->bytes);
        else if (saved)
            copy(saved, member, bank->bytes);
    }
}

// ------------------------------------------------------------------ the x87 and mxcsr

enum { REGISTER_BYTES = 10, SLOT_BYTES = 16 };

static void save_x87(Running *r)
{
    u8 *shadow = place_hidden(r->values->address, XMM_AT);
    if (!shadow)
        return;
    for (u32 i = 0; i < MXCSR_AT; i++)
        shadow[i] = r->d->x87_environment ? 0xff : 0;
    for (u32 i = 0; i < 8; i++) {
        copy(shadow + X87_AT + SLOT_BYTES * i, NULL, SLOT_BYTES);
        copy(shadow + X87_AT + SLOT_BYTES * i, r->d->x87[(place_top() + i) & 7], REGISTER_BYTES);
    }
}

// The registers of the image are counted from its own top.
static void restore_x87(Running *r, bool is_filled)
{
    const u8 *shadow = is_filled ? place_hidden(r->values->address, XMM_AT) : NULL;
    u16 status = 0;
    if (shadow && !guest_read(r->values->address + STATUS_AT, &status, sizeof(status)))
        shadow = NULL;
    r->d->x87_environment = 0;
    for (u32 i = 0; i < MXCSR_AT && shadow; i++)
        r->d->x87_environment |= all_if(shadow[i] != 0);
    for (u32 i = 0; i < 8; i++)
        copy(r->d->x87[((status >> 11) + i) & 7], shadow ? shadow + X87_AT + SLOT_BYTES * i : NULL,
             REGISTER_BYTES);
}

static void move_mxcsr(Running *r, bool is_filled)
{
    u8 *shadow = is_filled ? place_hidden(r->values->address + MXCSR_AT, 8) : NULL;
    if (r->step->rule == RULE_STATE_RESTORE)
        r->d->mxcsr = shadow ? *(const Any32 *)shadow : 0;
    else if (shadow)
        *(Any64 *)shadow = (u32)r->d->mxcsr;
}

// What else is written: the header, and components that hold no member.
static void define_rest(const Running *r)
{
    StateSpan span[STATE_SPANS_MAX];
    u32 count = definedness_state_spans(r->step, r->values->gpr, r->values->address, span);
    for (u32 i = 0; i < count; i++) {
        u8 *shadow = place_hidden(r->values->address + span[i].at, span[i].size);
        if (shadow)
            copy(shadow, NULL, span[i].size);
    }
}

void family_state(Running *r)
{
    Image image = image_of(r->step, r->values->gpr, r->values->address);
    bool saves = r->step->rule == RULE_STATE_SAVE;
    if (saves)
        define_rest(r);
    if (HAS(image.which, SSE_BIT) || HAS(image.which, AVX_BIT))
        move_mxcsr(r, HAS(image.filled, SSE_BIT) || HAS(image.filled, AVX_BIT));
    if (HAS(image.which, X87_BIT) && saves)
        save_x87(r);
    else if (HAS(image.which, X87_BIT))
        restore_x87(r, HAS(image.filled, X87_BIT));
    for (u32 i = 0; i < ARRAY_LEN(banks); i++) {
        if (HAS(image.which, banks[i].bit))
            move_bank(r, &image, &banks[i]);
    }
}
