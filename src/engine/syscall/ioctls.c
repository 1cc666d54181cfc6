// SPDX-License-Identifier: MIT
//
// The sub-table of ioctl. Most numbers encode direction and size of what the third
// argument points to, and the row `generic` reads that code; ioctls.def has those
// that encode nothing, or something that is not true.
#include "engine/syscall/tables.h"

#define IOCTL_ROW(name, number, ...) \
    { number, { name, SYS_BLOCKS, { { "fd", ARG_FD }, { "request", ARG_INT }, { __VA_ARGS__ } } } },

// The argument is ignored.
#define IOCTL_NONE(name, number) \
    { number, { #name, SYS_BLOCKS, { { "fd", ARG_FD }, { "request", ARG_INT } } } },
// The argument is a number, a cookie or a descriptor.
#define IOCTL_VALUE(name, number) IOCTL_ROW(#name, number, "arg", ARG_LONG)
#define IOCTL_FD(name, number) IOCTL_ROW(#name, number, "arg", ARG_FD)
// The argument points to `size` bytes.
#define IOCTL_IN(name, number, size) \
    IOCTL_ROW(#name, number, #name, ARG_IN, .len = LEN_CONST(size))
#define IOCTL_OUT(name, number, size) \
    IOCTL_ROW(#name, number, #name, ARG_OUT, .len = LEN_CONST(size))
#define IOCTL_INOUT(name, number, size) \
    IOCTL_ROW(#name, number, #name, ARG_INOUT, .len = LEN_CONST(size))
// As IOCTL_IN; messages speak of a family of operations.
#define IOCTL_IN_AS(name, number, size, spoken) \
    IOCTL_ROW(#name, number, spoken, ARG_IN, .len = LEN_CONST(size))
// A struct with a layout.
#define IOCTL_TYPE(name, number, kind, bytes, layout) \
    IOCTL_ROW(#name, number, #name, kind, .len = LEN_CONST(bytes), .type = &(layout))
#define IOCTL_STRING(name, number) IOCTL_ROW(#name, number, #name, ARG_STR)
// A header of `header` bytes whose u32 at `at` counts items of `item` bytes behind it.
#define IOCTL_LIST(name, number, kind, at, item, header) \
    IOCTL_ROW(#name, number, #name, kind, .len = LEN_INSIDE_TIMES(at, item, header))

// userfaultfd: the kernel fills in what is left of these structs, whatever the number encodes.
#define AT(at, bytes) .offset = (at), .size = (bytes)
#define UFFD_TYPE(name, bytes, first_out, out_bytes, ...) \
    static const SyscallType type_uffd_##name = { \
        "uffdio_" #name, bytes, \
        .fields = (const SyscallArg[]) { __VA_ARGS__, \
            { "", ARG_LONG, AT(first_out, out_bytes), .dir = DIR_OUT }, { 0 } } };
#define UFFD_RANGE \
    { "->start", ARG_LONG, AT(0, 8), .dir = DIR_IN }, { "->len", ARG_LONG, AT(8, 8), .dir = DIR_IN }
#define UFFD_MODE(at) { "->mode", ARG_LONG, AT(at, 8), .dir = DIR_IN }

UFFD_TYPE(api, 24, 0, 24, { "->api", ARG_LONG, AT(0, 8), .dir = DIR_IN },
          { "->features", ARG_LONG, AT(8, 8), .dir = DIR_IN })
UFFD_TYPE(ranged, 32, 24, 8, UFFD_RANGE, UFFD_MODE(16))
UFFD_TYPE(copy, 40, 32, 8, { "->dst", ARG_LONG, AT(0, 8), .dir = DIR_IN },
          { "->src", ARG_LONG, AT(8, 8), .dir = DIR_IN },
          { "->len", ARG_LONG, AT(16, 8), .dir = DIR_IN }, UFFD_MODE(24))

static const SyscallSubRow ioctl_rows[] = {
#include "engine/syscall/ioctls.def"
};

const SyscallSub sub_ioctl = {
    "ioctl", .arg = 1, .mask = ~0u, .count = ARRAY_LEN(ioctl_rows), .rows = ioctl_rows,
    .other = &sub_ioctl_other,
};

// By the two bits of direction. Seen from the client "write" hands data to the driver.
static const SyscallSubRow ioctl_other_rows[] = {
    IOCTL_ROW("unknown", 0, "arg", ARG_LONG)
    IOCTL_ROW("unknown", 1, "generic", ARG_IN, .len = LEN_OF_IOCTL(1))
    IOCTL_ROW("unknown", 2, "generic", ARG_OUT, .len = LEN_OF_IOCTL(1))
    IOCTL_ROW("unknown", 3, "generic", ARG_INOUT, .len = LEN_OF_IOCTL(1))
};

const SyscallSub sub_ioctl_other = {
    "ioctl direction", .arg = 1, .shift = 30, .mask = 3, .count = ARRAY_LEN(ioctl_other_rows),
    .rows = ioctl_other_rows,
};
