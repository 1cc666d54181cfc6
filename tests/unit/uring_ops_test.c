// SPDX-License-Identifier: MIT
//
// The table of io_uring's requests: each stands for a call that has a row, and what its row takes
// from memory comes from the members of the request that the kernel takes it from.
#include "engine/uring/uring_internal.h"
#include "unit.h"

enum { OPCODES = 63, REQUEST = 0x10000000 };

static Sqe request(u8 opcode)
{
    return (Sqe){.opcode = opcode, .fd = 3, .off = 0x2000, .addr = 0x1000, .len = 16,
                 .addr3 = 0x3000};
}

typedef struct Seen {
    u64 bytes; // of the request, a bit each
    bool overlaps, has_name;
} Seen;

static void see(const SyscallRange *range, void *arg)
{
    Seen *seen = arg;
    char text[64];
    CHECK(range->address >= REQUEST && range->address + range->size_bytes <= REQUEST + SQE_BYTES);
    u64 bits = ((1ull << range->size_bytes) - 1) << (range->address - REQUEST);
    seen->overlaps |= (seen->bytes & bits) != 0;
    seen->bytes |= bits;
    seen->has_name &= strncmp(syscall_range_text(range, text, sizeof(text)), "io_uring.", 9) == 0;
}

TEST(every_request_with_a_call_has_a_row_with_enough_arguments)
{
    u32 with_call = 0;
    for (u32 opcode = 0; opcode < OPCODES; opcode++) {
        Sqe sqe = request((u8)opcode);
        SyscallCall call;
        if (!ops_call(&sqe, &call))
            continue;
        with_call++;
        CHECK(syscall_resolve(&call) != NULL);
        CHECK(strncmp(call.speaks_as, "io_uring.", 9) == 0);
    }
    CHECK(with_call > 40);
}

TEST(no_byte_of_a_request_is_two_arguments)
{
    for (u32 opcode = 0; opcode < 256; opcode++) {
        Sqe sqe = request((u8)opcode);
        SyscallCall call;
        Seen seen = {.has_name = true};
        bool has_call = ops_call(&sqe, &call);
        ops_members(&sqe, REQUEST, has_call ? &call : NULL, see, &seen);
        CHECK(!seen.overlaps && seen.has_name);
        CHECK((seen.bytes & 0xf) == 0xf);          // opcode, flags, ioprio
        CHECK((seen.bytes >> 32 & 0xff) == 0);     // user_data is a cookie
    }
}

TEST(a_buffer_that_the_kernel_chooses_has_no_address)
{
    Sqe sqe = request(27); // recv
    SyscallCall call;
    Seen seen = {.has_name = true};
    sqe.flags = SQE_BUFFER_SELECT;
    CHECK(ops_call(&sqe, &call));
    ops_members(&sqe, REQUEST, &call, see, &seen);
    CHECK((seen.bytes >> 16 & 0xff) == 0);
    CHECK((seen.bytes >> 40 & 3) == 3); // the group
}

TEST(an_unknown_request_has_no_call)
{
    Sqe sqe = request(200);
    SyscallCall call;
    CHECK(!ops_call(&sqe, &call));
}
