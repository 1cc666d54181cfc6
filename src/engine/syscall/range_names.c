// SPDX-License-Identifier: MIT
//
// What ranges and arguments of system calls are called in messages: write(buf),
// sendmsg(msg.msg_iov[i]).
#include <stdio.h>

#include "engine/syscall/tables.h"

typedef struct Text {
    char *buf;
    size_t size;
    size_t len;
} Text;

static void put(Text *t, const char *s)
{
    for (; *s && t->len + 1 < t->size; s++)
        t->buf[t->len++] = *s;
    if (t->size)
        t->buf[t->len] = 0;
}

static void put_path(Text *t, const SyscallPath *path)
{
    if (!path)
        return;
    bool has_ampersand = path->name[0] == '&';
    if (has_ampersand)
        put(t, "&");
    put_path(t, path->outer);
    put(t, path->name + has_ampersand);
    if (path->index_style == INDEX_DOTS)
        put(t, "[...]");
    if (path->index_style == INDEX_LETTER)
        put(t, "[i]");
    if (path->index_style == INDEX_NUMBER) {
        char index[16];
        snprintf(index, sizeof(index), "[%u]", path->index);
        put(t, index);
    }
}

const char *syscall_range_text(const SyscallRange *range, char *buf, size_t buf_size)
{
    Text t = { buf, buf_size, 0 };
    put(&t, range->call_name);
    put(&t, "(");
    put_path(&t, range->path);
    put(&t, ")");
    return buf;
}

const char *syscall_arg_text(u64 nr, const SyscallRow *row, unsigned arg, char *buf,
                             size_t buf_size)
{
    // An operation names a pointer for what it points to, ioctl(TCGETS); the register itself
    // goes by the name that the call gives it, ioctl(arg).
    const SyscallRow *top = syscall_row(nr);
    const SyscallArg *a = &row->args[arg];
    if (syscall_kind_is_pointer(a->kind) && top->args[arg].name)
        a = &top->args[arg];
    Text t = { buf, buf_size, 0 };
    put(&t, top->name);
    put(&t, "(");
    put(&t, a->name);
    put(&t, ")");
    return buf;
}
