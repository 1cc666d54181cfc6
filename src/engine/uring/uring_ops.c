// SPDX-License-Identifier: MIT
//
// From a request to the system call that it stands for.
#include "engine/uring/uring_internal.h"

#define NO_CALL 0xffff

typedef enum Member {
    NOTHING, FD, OFF, ADDR, LEN, FLAGS, FILE_INDEX, ADDRLEN, ADDR3, MEMBERS,
} Member;

static const struct { u8 at, size; } members[MEMBERS] = {
    [FD] = {4, 4}, [OFF] = {8, 8}, [ADDR] = {16, 8}, [LEN] = {24, 4}, [FLAGS] = {28, 4},
    [FILE_INDEX] = {44, 4}, [ADDRLEN] = {44, 2}, [ADDR3] = {48, 8},
};

typedef struct Op {
    const char *name;
    u16 nr;
    u8 from[SYSCALL_ARGS]; // Member
} Op;

static const Op ops[] = {
#define OP(opcode, name, nr, ...) [opcode] = {"io_uring." name, nr, {__VA_ARGS__}},
#include "engine/uring/uring_ops.def"
#undef OP
};

static const Op *op_of(const Sqe *sqe)
{
    return sqe->opcode < ARRAY_LEN(ops) ? &ops[sqe->opcode] : NULL;
}

static u64 value_of(const Sqe *sqe, u8 member)
{
    u64 value = 0;
    __builtin_memcpy(&value, (const u8 *)sqe + members[member].at, members[member].size);
    return value;
}

bool ops_call(const Sqe *sqe, SyscallCall *ret_call)
{
    const Op *op = op_of(sqe);
    if (!op || op->nr == NO_CALL)
        return false;
    *ret_call = (SyscallCall){.nr = op->nr, .speaks_as = op->name};
    for (unsigned i = 0; i < SYSCALL_ARGS; i++)
        ret_call->args[i] = value_of(sqe, op->from[i]);
    return true;
}

static void member(const Sqe *sqe, GuestAddr address, u8 at, u8 size, const char *name,
                   SyscallRangeFn fn, void *arg)
{
    const Op *op = op_of(sqe);
    SyscallPath path = {NULL, name, INDEX_NONE, 0};
    SyscallRange range = {
        .address = address + at,
        .size_bytes = size,
        .dir = RANGE_IN,
        .kind = ARG_IN,
        .call_name = op ? op->name : "io_uring.sqe",
        .path = &path,
    };
    fn(&range, arg);
}

// user_data is a cookie that nobody looks at. An opcode without a call is looked at as far as all
// requests are alike.
void ops_members(const Sqe *sqe, GuestAddr address, const SyscallCall *call, SyscallRangeFn fn,
                 void *arg)
{
    const Op *op = op_of(sqe);
    bool chosen = sqe->flags & SQE_BUFFER_SELECT;
    member(sqe, address, 0, 1, "opcode", fn, arg);
    member(sqe, address, 1, 1, "flags", fn, arg);
    member(sqe, address, 2, 2, "ioprio", fn, arg);
    if (!call) {
        member(sqe, address, 4, 4, "fd", fn, arg);
        return;
    }
    const SyscallRow *row = syscall_resolve(call);
    for (unsigned i = 0; row && i < SYSCALL_ARGS; i++) {
        u8 from = op->from[i];
        if (from == NOTHING || row->args[i].kind <= ARG_UNUSED ||
            !syscall_arg_is_used(call, row, i) || (chosen && from == ADDR))
            continue;
        u8 size = (u8)min_u64(members[from].size, syscall_kind_bytes(row->args[i].kind));
        member(sqe, address, members[from].at, size, row->args[i].name, fn, arg);
    }
    if (chosen)
        member(sqe, address, 40, 2, "buf_group", fn, arg);
}
