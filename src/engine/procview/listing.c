// SPDX-License-Identifier: MIT
//
// Directories that list descriptors. Ordinary directories are not asked about:
// only when a listing contains a name that is the number of a hidden descriptor is
// the directory looked at more closely.
#include <stddef.h>
#include <string.h>

#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/procview/procview_internal.h"

// Both forms of the kernel's entry start with inode, offset and length; the name
// follows the type, which the older form does not have there.
#define ENTRY_LENGTH_AT 16
#define ENTRY_NAME_AT 18
#define ENTRY64_NAME_AT 19
#define NUMBER_BYTES 11 // what an entry with the longest number holds of its name

typedef struct Entry {
    u64 length;
    char name[NUMBER_BYTES + 1];
} Entry;

static bool read_entry(u64 nr, GuestAddr at, u64 left, Entry *ret_entry)
{
    u64 name_at = nr == SYS_getdents64 ? ENTRY64_NAME_AT : ENTRY_NAME_AT;
    u8 bytes[ENTRY64_NAME_AT + NUMBER_BYTES];
    u64 size = min_u64(sizeof(bytes), left);
    u16 length;

    if (size <= name_at || !guest_read(at, bytes, size))
        return false;
    memcpy(&length, bytes + ENTRY_LENGTH_AT, sizeof(length));
    memset(ret_entry, 0, sizeof(*ret_entry));
    memcpy(ret_entry->name, bytes + name_at, min_u64(size - name_at, NUMBER_BYTES));
    ret_entry->length = length;
    return length > name_at && length <= left;
}

// Copies towards lower addresses.
static bool move_down(GuestAddr dst, GuestAddr src, u64 len)
{
    u8 chunk[1024];

    while (len > 0) {
        u64 part = min_u64(len, sizeof(chunk));
        if (!guest_read(src, chunk, part) || !guest_write(dst, chunk, part))
            return false;
        dst += part;
        src += part;
        len -= part;
    }
    return true;
}

i64 procview_filter_listing(u64 nr, int fd, GuestAddr buffer, i64 size)
{
    u64 at = 0, end = (u64)size;
    bool is_ours = false;
    Entry entry;

    while (at < end && read_entry(nr, buffer + at, end - at, &entry)) {
        if (!names_is_hidden_number(entry.name)) {
            at += entry.length;
            continue;
        }
        if (!is_ours && !names_is_descriptor_listing(fd))
            return size;
        is_ours = true;
        u64 next = at + entry.length;
        if (!move_down(buffer + at, buffer + next, end - next))
            return size;
        end -= entry.length;
    }
    return (i64)end;
}
