// SPDX-License-Identifier: MIT
//
// Functions whose frames may differ in size between two visits of the same place: they take what
// they need (alloca, arrays of variable length) or align the stack. Where the next frame was the
// last time tells nothing there: if the frame is smaller now, a whole frame of another function
// may lie in between and be passed over.
//
// The instruction that gives it away is executed, and so translated, before any call from a frame
// larger than before. Its function is what .eh_frame_hdr says, which stripped files have, too;
// code without it is marked on both sides. Marks are bits for 16 bytes of code, which share them
// with those 16 MiB away: a mark too many costs a search for the frame, nothing else.
#include <elf.h>

#include "engine/aspace/aspace.h"
#include "engine/calltags/calltags.h"

enum {
    NEAR_CODE = 4096,            // on both sides of a place whose function is not known
    FUNCTION_MAX = 1 << 20,      // of one that is larger, so much around the place
    SEGMENTS_MAX = 64,
    FRAMES_VERSION = 1,
    ENCODED_U32 = 0x03,          // DW_EH_PE_udata4
    ENCODED_TABLE = 0x30 | 0x0b, // DW_EH_PE_datarel | DW_EH_PE_sdata4
};

u64 calltags_elastic[ELASTIC_WORDS];

typedef struct Frames {
    u8 version, pointer_encoding, count_encoding, table_encoding;
    i32 pointer;
    u32 count;
} Frames;

typedef struct Row {
    i32 function, description; // from the table's beginning
} Row;

// Where the file that `code` is a part of begins, if its parts are side by side; or 0.
static GuestAddr image_start(const Mapping *code)
{
    for (u32 i = 0; i < SEGMENTS_MAX && code && code->inode; i++) {
        if (code->offset == 0)
            return code->start;
        const Mapping *below = aspace_find(code->start - 1);
        bool is_same = below && below->inode == code->inode && below->dev == code->dev;
        code = is_same ? below : NULL;
    }
    return 0;
}

// Of the image there, or 0.
static GuestAddr find_frames(GuestAddr image)
{
    Elf64_Ehdr header;
    GuestAddr bias = 0, frames = 0;
    bool is_placed = false;
    if (!guest_read(image, &header, sizeof(header)) ||
        __builtin_memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    for (u32 i = 0; i < header.e_phnum && i < SEGMENTS_MAX; i++) {
        Elf64_Phdr segment;
        if (!guest_read(image + header.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
            return 0;
        if (segment.p_type == PT_LOAD && !is_placed) {
            bias = image - PAGE_DOWN(segment.p_vaddr);
            is_placed = true;
        }
        if (segment.p_type == PT_GNU_EH_FRAME)
            frames = segment.p_vaddr;
    }
    return is_placed && frames ? bias + frames : 0;
}

// The function around `pc` by the sorted table at `frames`. False: nobody can tell.
static bool find_function(GuestAddr frames, GuestAddr pc, GuestAddr *ret_start, GuestAddr *ret_end)
{
    Frames head;
    Row row;
    if (!guest_read(frames, &head, sizeof(head)) || head.version != FRAMES_VERSION ||
        head.count_encoding != ENCODED_U32 || head.table_encoding != ENCODED_TABLE)
        return false;
    u64 low = 0, high = head.count; // the last that is not above pc is in [low, high)
    GuestAddr start = 0, end = 0;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (!guest_read(frames + sizeof(head) + middle * sizeof(row), &row, sizeof(row)))
            return false;
        GuestAddr function = frames + (u64)(i64)row.function;
        if (function <= pc) {
            start = function;
            low = middle + 1;
        } else {
            end = function;
            high = middle;
        }
    }
    if (!start)
        return false;
    *ret_start = start;
    *ret_end = end ? end : pc + NEAR_CODE;
    return true;
}

void calltags_note_elastic(GuestAddr pc)
{
    if (calltags_is_elastic(pc))
        return;
    const Mapping *code = aspace_find(pc);
    GuestAddr image = code ? image_start(code) : 0, frames = image ? find_frames(image) : 0;
    GuestAddr start, end;
    if (!frames || !find_function(frames, pc, &start, &end)) {
        start = pc - min_u64(pc, NEAR_CODE);
        end = pc + NEAR_CODE;
    }
    start = max_u64(start, pc - min_u64(pc, FUNCTION_MAX));
    end = min_u64(end, pc + FUNCTION_MAX);
    for (GuestAddr at = start; at < end; at += ELASTIC_BYTES) {
        u64 bit = calltags_elastic_bit(at);
        __atomic_fetch_or(&calltags_elastic[bit / 64], 1ull << bit % 64, __ATOMIC_RELAXED);
    }
}
