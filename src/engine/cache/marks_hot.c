// SPDX-License-Identifier: MIT
//
// Marks, packed: nearly all of them are two bytes instead of eight, and there are more of them
// than of anything else in the cache's tables.
//
//     byte 0   low 6 bits: bytes of host code since the last mark, or HOST_LONG
//              LONG: the rest stands in full; BOUNDARY
//     byte 1   low 4 bits: bytes of guest code since the last mark
//              high 4 bits: the one register that is spilled, or RSP, which never is: none
//              0xff as a whole: MARK_NOWHERE, and no guest code since
//     HOST_LONG: then two bytes of host_offset; LONG: then two of `spilled` and four of guest_delta
//
// General registers only: a guard that fails in a tool's function looks for its place.
#include "engine/cache/unit.h"

enum { HOST_LONG = 63, LONG = 64, BOUNDARY = 128, NOWHERE = 0xff };

static u8 *put(u8 *to, u64 value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *to++ = (u8)(value >> 8 * i);
    return to;
}

static u64 get(const u8 **from, unsigned bytes)
{
    u64 value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (u64)*(*from)++ << 8 * i;
    return value;
}

// Byte 1. False: it takes the long form.
static bool shorten(const CodeMark *mark, i32 guest_bytes, u8 *ret_byte)
{
    unsigned spilled = mark->spilled;
    if (spilled == MARK_NOWHERE && guest_bytes == 0) {
        *ret_byte = NOWHERE;
        return true;
    }
    if (guest_bytes < 0 || guest_bytes > 15 || spilled & (spilled - 1) || spilled == 1u << RSP)
        return false;
    unsigned reg = spilled ? (unsigned)__builtin_ctz(spilled) : RSP;
    *ret_byte = (u8)(reg << 4 | (unsigned)guest_bytes);
    return *ret_byte != NOWHERE;
}

u8 *marks_pack(const CodeMark *marks, size_t count, u8 *to)
{
    CodeMark last = {0};
    for (size_t i = 0; i < count; i++) {
        CodeMark mark = marks[i];
        u32 host_bytes = (u32)mark.host_offset - last.host_offset;
        u8 second = 0;
        if (mark.spilled == MARK_NOWHERE)
            mark.guest_delta = last.guest_delta; // it means nothing
        bool is_short = shorten(&mark, mark.guest_delta - last.guest_delta, &second);
        bool is_near = host_bytes < HOST_LONG;
        *to++ = (u8)((is_near ? host_bytes : HOST_LONG) | (is_short ? 0 : LONG) |
                     (mark.boundary ? BOUNDARY : 0));
        *to++ = second;
        if (!is_near)
            to = put(to, mark.host_offset, 2);
        if (!is_short) {
            to = put(to, mark.spilled, 2);
            to = put(to, (u32)mark.guest_delta, 4);
        }
        last = mark;
    }
    return to;
}

MarkReader marks_of(const Block *block)
{
    return (MarkReader){.at = units[block->unit].marks + block->marks, .left = block->mark_count};
}

bool marks_next(MarkReader *r)
{
    if (!r->left)
        return false;
    r->left--;
    u8 first = *r->at++, second = *r->at++;
    r->mark.boundary = (first & BOUNDARY) != 0;
    if ((first & HOST_LONG) == HOST_LONG)
        r->mark.host_offset = (u16)get(&r->at, 2);
    else
        r->mark.host_offset = (u16)(r->mark.host_offset + (first & HOST_LONG));
    if (first & LONG) {
        r->mark.spilled = (u16)get(&r->at, 2);
        r->mark.guest_delta = (i32)(u32)get(&r->at, 4);
    } else if (second == NOWHERE) {
        r->mark.spilled = MARK_NOWHERE;
    } else {
        r->mark.spilled = second >> 4 == RSP ? 0 : (u16)(1u << (second >> 4));
        r->mark.guest_delta += second & 15;
    }
    return true;
}
