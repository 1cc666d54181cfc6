// SPDX-License-Identifier: MIT
//
// The table of system calls and how a row is found: by number, then, for calls that
// multiplex, by the value of an argument.
#include <stdio.h>

#include "engine/syscall/tables.h"

static const SyscallRow rows[NR_LIMIT] = {
#include "engine/syscall/syscalls.def"
};

const SyscallRow *syscall_row(u64 nr)
{
    return nr < NR_LIMIT && rows[nr].name ? &rows[nr] : NULL;
}

const char *syscall_name(u64 nr, char *buf, size_t buf_size)
{
    const SyscallRow *row = syscall_row(nr);
    if (row)
        return row->name;
    snprintf(buf, buf_size, "sys_%llu", (unsigned long long)nr);
    return buf;
}

// An ioctl's low half names driver and operation, its high half direction and size.
// With the halves swapped, the rows of one driver stand together.
u64 syscall_key_order(u64 key)
{
    u32 low = (u32)key;
    return (key & ~0xffffffffull) | (u32)(low << 16 | low >> 16);
}

const SyscallRow *syscall_sub_row(const SyscallSub *sub, u64 key)
{
    u64 wanted = syscall_key_order(key);
    u32 low = 0, high = sub->count;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (syscall_key_order(sub->rows[middle].key) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sub->count && sub->rows[low].key == key ? &sub->rows[low].row : NULL;
}

static u64 sub_key(const SyscallSub *sub, const SyscallCall *call)
{
    u64 value = call->args[sub->arg];
    if (sub->is_pair)
        return value << 32 | (u32)call->args[sub->arg + 1];
    return (u32)value >> sub->shift & sub->mask;
}

const SyscallRow *syscall_resolve(const SyscallCall *call)
{
    const SyscallRow *row = syscall_row(call->nr);
    for (const SyscallSub *sub = row ? row->sub : NULL; sub; sub = sub->other) {
        const SyscallRow *found = syscall_sub_row(sub, sub_key(sub, call));
        if (found)
            return found;
    }
    return row;
}
