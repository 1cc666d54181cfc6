// SPDX-License-Identifier: MIT
//
// What a row says of a call: which findings it must bring, and what it has written.
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "walker.h"

typedef struct Texts {
    char *text;
    size_t size;
} Texts;

// By the kernel: the copy is defined, whatever memcheck takes the memory for.
static bool read_self(GuestAddr address, void *dst, size_t len)
{
    struct iovec local = { dst, len }, remote = { (void *)address, len };
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

SyscallCall call_of(const Row *row, const Question *question)
{
    SyscallCall call = { .nr = row->nr, .read_guest = read_self };

    memcpy(call.args, question->args, sizeof(call.args));
    return call;
}

static void put(Texts *texts, const char *what, const char *how)
{
    char line[160];

    snprintf(line, sizeof(line), "Syscall param %s %s|", what, how);
    // The same finding in the same place is one finding.
    if (!strstr(texts->text, line) && strlen(texts->text) + strlen(line) < texts->size)
        strcat(texts->text, line);
}

static bool is_accessible(u64 address)
{
    Place place = place_of(address);
    return place != PLACE_HOLE && place != PLACE_NOACCESS;
}

// The first byte that is wrong decides.
static void promise_of_range(const SyscallRange *range, void *arg)
{
    char text[128];
    u64 left = range->size_bytes, step;

    for (u64 at = range->address; left; at += step, left -= step) {
        step = 0x1000 - at % 0x1000;
        step = step < left ? step : left;
        if (!is_accessible(at)) {
            put(arg, syscall_range_text(range, text, sizeof(text)),
                "points to unaddressable byte(s)");
            return;
        }
        if (range->dir == RANGE_IN && place_of(at) == PLACE_UNDEFINED) {
            put(arg, syscall_range_text(range, text, sizeof(text)),
                "points to uninitialised byte(s)");
            return;
        }
    }
}

void promises_put(SyscallCall *call, const Question *question, char *text, size_t size)
{
    Texts texts = { text, size };
    const SyscallRow *row = syscall_resolve(call);
    char name[128];

    text[0] = 0;
    for (u32 i = 0; i < SYSCALL_ARGS; i++)
        if ((i32)i == question->undefined && syscall_kind_bytes(row->args[i].kind) &&
            syscall_arg_is_used(call, row, i))
            put(&texts, syscall_arg_text(call->nr, row, i, name, sizeof(name)),
                "contains uninitialised byte(s)");
    syscall_ranges(call, SYSCALL_BEFORE, promise_of_range, &texts);
}

static void claim(const SyscallRange *range, void *arg)
{
    if (range->dir != RANGE_OUT)
        return;
    for (u64 i = 0; i < range->size_bytes; i++) {
        u8 *byte = claim_of(arg, range->address + i);
        if (!byte)
            break;
        *byte = 1;
    }
}

void claims_put(SyscallCall *call, u8 *claimed)
{
    memset(claimed, 0, CLAIMED_BYTES);
    syscall_ranges(call, SYSCALL_AFTER, claim, claimed);
}
