// SPDX-License-Identifier: MIT
//
// A filter with a listener (SECCOMP_FILTER_FLAG_NEW_LISTENER) has to be in the kernel,
// which makes the listener's descriptor and asks it. Its place-holder is therefore the
// filter itself, behind a prologue that allows calls from the engine's own code. The
// client's calls are made by the gateway in the code cache, which is none of it.
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "base/raw_syscall.h"
#include "engine/aspace/aspace.h"
#include "engine/seccomp/seccomp_internal.h"

#define INSNS_PER_RANGE 6
#define MAPS_BYTES (1 * MiB)
#define IP_OFFSET offsetof(struct seccomp_data, instruction_pointer)

// Everything that the host may execute is the engine's: the client's code never is
// (aspace/). Of it, the code cache does not count, nor the kernel's own page.
static bool is_engine_code(const char *line, u64 *ret_start, u64 *ret_end)
{
    char *end;

    *ret_start = strtoull(line, &end, 16);
    if (*end != '-')
        return false;
    *ret_end = strtoull(end + 1, &end, 16);
    return end[0] == ' ' && end[3] == 'x' && *ret_start >= CACHE_END && !(*ret_start >> 63);
}

// if (start <= ip < end) return ALLOW; the upper halves of both ends are equal.
static u32 put_range(struct sock_filter *dst, u64 start, u64 end)
{
    const struct sock_filter code[INSNS_PER_RANGE] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IP_OFFSET + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (u32)(start >> 32), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, IP_OFFSET),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (u32)start, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (u32)(end - 1), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    memcpy(dst, code, sizeof(code));
    return INSNS_PER_RANGE;
}

static i64 read_maps(char *text)
{
    i64 fd = raw_syscall3(SYS_open, (u64) "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    u64 len = 0;
    i64 got = fd;

    while (got >= 0 && len < MAPS_BYTES - 1) {
        got = raw_syscall3(SYS_read, (u64)fd, (u64)text + len, MAPS_BYTES - 1 - len);
        if (got <= 0)
            break;
        len += (u64)got;
    }
    if (fd >= 0)
        raw_syscall1(SYS_close, (u64)fd);
    return got == 0 ? (i64)len : -1;
}

static u32 put_ranges(char *maps, struct sock_filter *dst)
{
    u32 count = 0;

    for (char *line = maps; line; line = strchr(line, '\n')) {
        u64 start, end;
        line += *line == '\n';
        if (!is_engine_code(line, &start, &end))
            continue;
        u64 border = end & ~0xffffffffull;
        u64 middle = start < border && border < end ? border : end;
        if (count + 2 * INSNS_PER_RANGE > LISTENER_PROLOGUE_MAX)
            return 0;
        count += put_range(dst + count, start, middle);
        if (middle < end)
            count += put_range(dst + count, middle, end);
    }
    return count;
}

u32 listener_program(const struct sock_filter *insns, u32 count, struct sock_filter *dst, u32 max)
{
    char *maps = pages_map(MAPS_BYTES);
    u32 prologue = 0;

    if (maps && read_maps(maps) > 0)
        prologue = put_ranges(maps, dst);
    if (maps)
        pages_unmap(maps, MAPS_BYTES);
    if (prologue == 0 || count > max - prologue)
        return 0;
    memcpy(dst + prologue, insns, count * sizeof(insns[0]));
    return prologue + count;
}
