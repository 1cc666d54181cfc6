// SPDX-License-Identifier: MIT
//
// Where undefined values come from (docs/design/origins.md). Memory that was never
// written knows by itself: its heap block was allocated somewhere, its stack frame belongs to
// a function. Only values that travel carry an origin, and only dirty steps see them.
//
// An Origin is a word: what it is in the top bits, an address or a context in the lowest; of a
// stack frame also the distance from its CFA down to the byte, between them, 0 if it is too far.
//
// What must stay true
//   O1  An origin decides nothing but a line of a report: a lost or stale one is a
//       lesser report, never a wrong finding.
//   O2  A clean block does nothing for origins.
// All light: general registers only, no libc.
#ifndef MUNINN_TOOLS_MEMCHECK_ORIGINS_ORIGINS_H
#define MUNINN_TOOLS_MEMCHECK_ORIGINS_ORIGINS_H

#include "engine/relay/relay.h"
#include "tools/memcheck/definedness/definedness.h"

typedef u64 Origin;
typedef enum OriginKind {
    ORIGIN_NONE,
    ORIGIN_MEMORY, // address: what it is tells
    ORIGIN_CODE,   // pc in the function whose frame it was
    ORIGIN_EXACT,  // the same, and the pc is not a return address
    ORIGIN_HOST,   // the same, of the instruction at this place of the code cache
    ORIGIN_CLIENT, // context of a request
} OriginKind;

struct ThreadCtx;

// Of the undefined byte at an address.
Origin origins_of_memory(struct ThreadCtx *thread, GuestAddr address);

// Around definedness_run(): what the step reads is looked at before, what it has made after.
typedef struct OriginStep {
    MemberSet writes;
    Origin value, address; // of the first undefined input; of an undefined address
    GuestAddr memory;
    u32 memory_size; // 0: it does not write memory
    GuestAddr hidden; // up to 8 bytes that it writes without naming them
    u32 hidden_size;
} OriginStep;
void origins_before(struct ThreadCtx *thread, const DefinednessStep *step, GuestAddr address,
                    const u8 *memory_v, OriginStep *ret_step);
// With what it touches without naming it.
void origins_hidden(struct ThreadCtx *thread, const HiddenAccess *hidden, unsigned count,
                    OriginStep *step);
void origins_after(struct ThreadCtx *thread, const OriginStep *step, const u8 *memory_v);

// The same for a plain move, to memory and to a register; `address` 0: from a register.
void origins_stored(struct ThreadCtx *thread, GuestAddr address, u32 size, unsigned from);
void origins_moved(struct ThreadCtx *thread, unsigned to, GuestAddr address, u32 size,
                   unsigned from);

// Bytes were copied, undefined ones among them: the destination has the origin of the first.
void origins_copied(struct ThreadCtx *thread, GuestAddr to, GuestAddr from, u64 size);
// The heap gives or takes memory: what is remembered of it is void. Pieces of memory of which
// nothing was ever remembered need no more than a look.
enum {
    ORIGINS_GRAINS = 1 << 16,
    ORIGINS_GRAIN_BYTES = 64,
    ORIGINS_PIECES = 1 << 16,
    ORIGINS_PIECE_BYTES = 1 << 16,
};
extern u16 origins_turns[ORIGINS_GRAINS];
extern bool origins_noted[ORIGINS_PIECES];
static inline bool *origins_piece(GuestAddr address)
{
    return &origins_noted[address / ORIGINS_PIECE_BYTES % ORIGINS_PIECES];
}
static inline void origins_forget(GuestAddr start, u64 size)
{
    if (LIKELY(size <= ORIGINS_PIECE_BYTES && !*origins_piece(start) &&
               !*origins_piece(start + size)))
        return;
    u64 first = start / ORIGINS_GRAIN_BYTES, last = (start + size) / ORIGINS_GRAIN_BYTES;
    if (UNLIKELY(last - first >= ORIGINS_GRAINS))
        last = first + ORIGINS_GRAINS - 1;
    for (u64 grain = first; grain <= last; grain++)
        origins_turns[grain % ORIGINS_GRAINS]++; // threads may lose a turn (O1)
}
// A request made a range undefined.
void origins_made_by_client(GuestAddr start, u64 size, u32 context);

// The part of a finding that tells it: 0 or 1 parts.
u32 origins_part(Origin origin, RelayPart *ret_part);
// Of a register; ORIGIN_NONE: not known.
Origin origins_of_member(struct ThreadCtx *thread, unsigned member);

// The frame of the thread's own stack that an address lies in, counted from the innermost;
// the pc in it, and its CFA: what rsp was before the call. False: it is on no stack that this
// thread runs on.
bool origins_frame_place(struct ThreadCtx *thread, GuestAddr address, u32 *ret_number,
                         GuestAddr *ret_pc, bool *ret_is_return, GuestAddr *ret_cfa);

#endif
