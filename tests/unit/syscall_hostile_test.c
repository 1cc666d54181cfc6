// SPDX-License-Identifier: MIT
//
// Random calls with random arguments and random memory behind them: whatever a client
// passes, the walk ends, reads only what it may, and reports ranges that exist.
#include <stdlib.h>

#include "engine/syscall/tables.h"
#include "unit.h"

#define MEMORY_BASE 0x10000000ull
#define MEMORY_SIZE 65536ull
#define ROUNDS 30000

static u8 memory[MEMORY_SIZE];
static u64 state = 88172645463325252ull;

static u64 next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static bool read_memory(GuestAddr address, void *dst, size_t len)
{
    if (address < MEMORY_BASE || len > MEMORY_SIZE || address - MEMORY_BASE > MEMORY_SIZE - len)
        return false;
    memcpy(dst, memory + (address - MEMORY_BASE), len);
    return true;
}

// Values that go wrong in different ways: small numbers, pointers, sizes near the limits.
static u64 nasty_value(void)
{
    static const u64 limits[] = { 0, 1, 4095, 0x7fffffff, 0x80000000, 0xffffffff,
                                  0x7fffffffffffffff, 0x8000000000000000, ~0ull, ~0ull - 7 };
    switch (next_random() % 6) {
    case 0:
        return limits[next_random() % ARRAY_LEN(limits)];
    case 1:
        return next_random();
    case 2:
        return next_random() % 70;
    default:
        return MEMORY_BASE + next_random() % (MEMORY_SIZE + 64);
    }
}

typedef struct Seen {
    u64 ranges;
    SyscallPhase phase;
} Seen;

static void check_range(const SyscallRange *range, void *arg)
{
    Seen *seen = arg;
    char text[64];
    seen->ranges++;
    CHECK(range->size_bytes != 0);
    CHECK(range->address + (range->size_bytes - 1) >= range->address);
    CHECK(seen->phase == SYSCALL_BEFORE || range->dir == RANGE_OUT);
    CHECK(range->arg < SYSCALL_ARGS);
    if (seen->ranges % 64 == 0)
        CHECK(strchr(syscall_range_text(range, text, sizeof(text)), '('));
}

static void fill_memory(void)
{
    for (u64 i = 0; i + 8 <= MEMORY_SIZE; i += 8) {
        u64 value = nasty_value();
        memcpy(memory + i, &value, sizeof(value));
    }
}

static void try_call(SyscallCall *call)
{
    Seen seen = { 0, SYSCALL_BEFORE };
    syscall_ranges(call, SYSCALL_BEFORE, check_range, &seen);
    call->result = nasty_value();
    seen.phase = SYSCALL_AFTER;
    syscall_ranges(call, SYSCALL_AFTER, check_range, &seen);
}

TEST(random_calls_with_random_memory_are_survived)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 500 == 0)
            fill_memory();
        SyscallCall call = { .nr = next_random() % (NR_LIMIT + 4), .read_guest = read_memory };
        for (int i = 0; i < SYSCALL_ARGS; i++)
            call.args[i] = nasty_value();
        try_call(&call);
    }
}

static const struct { u64 nr; const SyscallSub *sub; } multiplexers[] = {
    { NR_ioctl, &sub_ioctl }, { NR_fcntl, &sub_fcntl }, { NR_prctl, &sub_prctl },
    { NR_futex, &sub_futex }, { NR_keyctl, &sub_keyctl }, { NR_ptrace, &sub_ptrace },
    { NR_bpf, &sub_bpf }, { NR_io_uring_register, &sub_io_uring_register },
};

TEST(random_operations_of_multiplexers_are_survived)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 500 == 0)
            fill_memory();
        size_t which = next_random() % ARRAY_LEN(multiplexers);
        const SyscallSub *sub = multiplexers[which].sub;
        SyscallCall call = { .nr = multiplexers[which].nr, .read_guest = read_memory };
        for (int i = 0; i < SYSCALL_ARGS; i++)
            call.args[i] = nasty_value();
        call.args[sub->arg] = sub->rows[next_random() % sub->count].key;
        CHECK(syscall_resolve(&call) != syscall_row(call.nr));
        try_call(&call);
    }
}
