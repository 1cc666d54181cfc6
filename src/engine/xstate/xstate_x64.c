// SPDX-License-Identifier: MIT
//
// Extended processor state in the standard XSAVE format: its size and parts,
// and its three shapes: ThreadCtx.xsave, the kernel's signal frames (trusted)
// and the client's signal frames (not trusted: XRSTOR raises #GP on bad
// headers, and in our gateway that would be our crash, not the client's).
#include <cpuid.h>
#include <string.h>

#include "base/assert.h"
#include "base/pkru_x64.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/xstate/xstate.h"

#define LEGACY_BYTES 512
#define HEADER_BYTES 64
#define MIN_BYTES (LEGACY_BYTES + HEADER_BYTES)

#define FEATURE_X87 (1ull << 0)
#define FEATURE_SSE (1ull << 1)
#define FEATURE_TILE_DATA (1ull << 18)

#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u

#define X87_CONTROL_INIT 0x37f
#define MXCSR_INIT 0x1f80
// Everything but key 0 inaccessible: what Linux gives new processes and handlers.

#define ARCH_GET_XCOMP_PERM 0x1022

typedef struct LegacyArea {
    u16 x87_control;
    u8 x87_environment[22];
    u32 mxcsr;
    u32 mxcsr_mask;
    u8 x87_registers[128];
    u8 xmm[256];
    u8 reserved[48];
    // The kernel's own note in the bytes that hardware leaves to software.
    u32 magic1;
    u32 extended_size; // xstate_size and the trailing MAGIC2
    u64 features;
    u32 xstate_size;
    u32 padding[7];
} LegacyArea;
_Static_assert(sizeof(LegacyArea) == LEGACY_BYTES, "the FXSAVE layout");

typedef struct Header {
    u64 present;   // XSTATE_BV
    u64 compacted; // XCOMP_BV
    u64 reserved[6];
} Header;
_Static_assert(sizeof(Header) == HEADER_BYTES, "the XSAVE header");

typedef struct Component {
    u32 offset, size;
} Component;

static struct {
    u64 features; // XCR0
    u64 size;
    u32 mxcsr_mask;
    Component component[64];
} cpu;

static LegacyArea *legacy_of(u8 *area)
{
    return (LegacyArea *)area;
}

static Header *header_of(u8 *area)
{
    return (Header *)(area + LEGACY_BYTES);
}

static u64 end_of_features(u64 features)
{
    u64 end = MIN_BYTES;

    for (unsigned i = 2; i < 64; i++) {
        if (features >> i & 1)
            end = max_u64(end, (u64)cpu.component[i].offset + cpu.component[i].size);
    }
    return end;
}

static void read_mxcsr_mask(void)
{
    u8 area[LEGACY_BYTES] __attribute__((aligned(16))) = { 0 };

    __asm__ volatile("fxsave64 %0" : "+m"(area));
    cpu.mxcsr_mask = legacy_of(area)->mxcsr_mask;
    if (cpu.mxcsr_mask == 0)
        cpu.mxcsr_mask = 0xffbf; // the oldest processors write no mask
}

void xstate_init(void)
{
    u32 eax, ebx, ecx, edx;

    pkru_init();
    read_mxcsr_mask();
    cpu.features = FEATURE_X87 | FEATURE_SSE;
    cpu.size = MIN_BYTES;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
        return;

    u32 low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    cpu.features = (u64)high << 32 | low;
    for (unsigned i = 2; i < 63; i++) {
        if (!(cpu.features >> i & 1))
            continue;
        __cpuid_count(0xd, i, eax, ebx, ecx, edx);
        cpu.component[i] = (Component){ .offset = ebx, .size = eax };
    }
    cpu.size = end_of_features(cpu.features);
    ASSERT(cpu.size + XSTATE_MAGIC2_BYTES <= XSTATE_MAX_BYTES);
}

u64 xstate_size(void)
{
    return cpu.size;
}

u64 xstate_mask(void)
{
    return cpu.features;
}

// Tile data joins the frames only once the process has asked for it.
u64 xstate_frame_features(void)
{
    u64 permitted = 0;

    if (!(cpu.features & FEATURE_TILE_DATA))
        return cpu.features;
    if (raw_syscall2(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, (u64)&permitted) == 0 &&
        (permitted & FEATURE_TILE_DATA))
        return cpu.features;
    return cpu.features & ~FEATURE_TILE_DATA;
}

u64 xstate_frame_size(void)
{
    return end_of_features(xstate_frame_features());
}

void xstate_reset(u8 *area)
{
    memset(area, 0, cpu.size);
    legacy_of(area)->x87_control = X87_CONTROL_INIT;
    legacy_of(area)->mxcsr = MXCSR_INIT; // XRSTOR loads it even when SSE is absent
    if (cpu.features & XSTATE_PKRU) {
        u32 pkru = PKRU_INIT;
        memcpy(area + cpu.component[9].offset, &pkru, sizeof(pkru));
        header_of(area)->present |= XSTATE_PKRU;
    }
}

void xstate_keep_pkru(u8 *area)
{
    u32 pkru = pkru_read();
    if (!(cpu.features & XSTATE_PKRU))
        return;
    memcpy(area + cpu.component[9].offset, &pkru, sizeof(pkru));
    header_of(area)->present |= XSTATE_PKRU;
}

void xstate_put_pkru(const u8 *area)
{
    u32 pkru = 0; // the processor's initial state
    if (!(cpu.features & XSTATE_PKRU))
        return;
    if (((const Header *)(area + LEGACY_BYTES))->present & XSTATE_PKRU)
        memcpy(&pkru, area + cpu.component[9].offset, sizeof(pkru));
    pkru_write(pkru);
}

void xstate_from_host_frame(u8 *area, const u8 *fpregs)
{
    const LegacyArea *note = (const LegacyArea *)fpregs;

    if (note->magic1 == MAGIC1 && note->xstate_size >= MIN_BYTES) {
        memcpy(area, fpregs, min_u64(note->xstate_size, cpu.size));
        header_of(area)->present &= cpu.features;
        return;
    }
    memcpy(area, fpregs, LEGACY_BYTES);
    memset(area + LEGACY_BYTES, 0, cpu.size - LEGACY_BYTES);
    header_of(area)->present = FEATURE_X87 | FEATURE_SSE;
}

// The frame always claims x87 and SSE, so what the processor left out because
// it was in its initial state must be spelled out.
static void spell_out_legacy(u8 *frame)
{
    LegacyArea *legacy = legacy_of(frame);
    Header *header = header_of(frame);

    if (!(header->present & FEATURE_X87)) {
        legacy->x87_control = X87_CONTROL_INIT;
        memset(legacy->x87_environment, 0, sizeof(legacy->x87_environment));
        memset(legacy->x87_registers, 0, sizeof(legacy->x87_registers));
    }
    if (!(header->present & FEATURE_SSE))
        memset(legacy->xmm, 0, sizeof(legacy->xmm));
    header->present |= FEATURE_X87 | FEATURE_SSE;
}

void xstate_to_client_frame(u8 *frame, const u8 *area)
{
    u64 features = xstate_frame_features();
    u64 size = end_of_features(features);
    u32 magic2 = MAGIC2;

    memcpy(frame, area, size);
    header_of(frame)->present &= features;
    spell_out_legacy(frame);

    LegacyArea *legacy = legacy_of(frame);
    legacy->mxcsr_mask = cpu.mxcsr_mask;
    legacy->magic1 = MAGIC1;
    legacy->extended_size = (u32)size + XSTATE_MAGIC2_BYTES;
    legacy->features = features;
    legacy->xstate_size = (u32)size;
    memset(legacy->padding, 0, sizeof(legacy->padding));
    memcpy(frame + size, &magic2, sizeof(magic2));
}

// Like the kernel: a frame without a good note has only its FXSAVE part read.
static bool note_is_good(const LegacyArea *note, GuestAddr fpstate)
{
    u32 magic2;

    if (note->magic1 != MAGIC1 || note->xstate_size < MIN_BYTES ||
        note->xstate_size > xstate_frame_size() || note->xstate_size > note->extended_size)
        return false;
    return guest_read(fpstate + note->xstate_size, &magic2, sizeof(magic2)) && magic2 == MAGIC2;
}

static bool header_is_good(const Header *header)
{
    u64 reserved = 0;

    for (unsigned i = 0; i < ARRAY_LEN(header->reserved); i++)
        reserved |= header->reserved[i];
    return !(header->present & ~cpu.features) && header->compacted == 0 && reserved == 0;
}

// Only parts that were read completely.
static u64 features_within(u64 features, u64 size)
{
    for (unsigned i = 2; i < 64; i++) {
        if ((features >> i & 1) && (u64)cpu.component[i].offset + cpu.component[i].size > size)
            features &= ~(1ull << i);
    }
    return features;
}

static bool read_client_frame(u8 *area, GuestAddr fpstate)
{
    LegacyArea *legacy = legacy_of(area);
    Header *header = header_of(area);

    if (fpstate % 64 != 0 || !guest_read(fpstate, area, LEGACY_BYTES))
        return false;
    if (!note_is_good(legacy, fpstate)) {
        memset(header, 0, sizeof(*header));
        header->present = FEATURE_X87 | FEATURE_SSE;
    } else {
        u64 size = min_u64(legacy->xstate_size, cpu.size);
        u64 features = legacy->features & xstate_frame_features();
        if (!guest_read(fpstate + LEGACY_BYTES, area + LEGACY_BYTES, size - LEGACY_BYTES) ||
            !header_is_good(header))
            return false;
        header->present &= features_within(features, size);
    }
    return (legacy->mxcsr & ~cpu.mxcsr_mask) == 0;
}

bool xstate_from_client_frame(u8 *area, GuestAddr fpstate)
{
    if (fpstate == 0) {
        xstate_reset(area);
        return true;
    }
    if (read_client_frame(area, fpstate))
        return true;
    xstate_reset(area);
    return false;
}
