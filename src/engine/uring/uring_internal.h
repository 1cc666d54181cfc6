// SPDX-License-Identifier: MIT
//
// What the files of uring/ share. All of it is under the lock, but what says otherwise.
#ifndef MUNINN_ENGINE_URING_URING_INTERNAL_H
#define MUNINN_ENGINE_URING_URING_INTERNAL_H

#include "base/futex_lock.h"
#include "engine/uring/uring.h"

enum { RINGS_MAX = 1024, SQE_BYTES = 64, CQE_BYTES = 16, VECTOR_KEPT = 8, BUFFER_IDS = 65536 };

// As linux/io_uring.h numbers them; the build machine's may be older.
enum {
    SETUP_SQPOLL = 1 << 1, SETUP_SQE128 = 1 << 10, SETUP_CQE32 = 1 << 11, SETUP_NO_MMAP = 1 << 14,
    SETUP_NO_SQARRAY = 1 << 16, SETUP_CQE_MIXED = 1 << 18,
    FEATURE_SINGLE_MMAP = 1,
    ENTER_REGISTERED_RING = 1 << 4,
    SQE_BUFFER_SELECT = 1 << 5, SQE_CQE_SKIP = 1 << 6,
    CQE_BUFFER = 1 << 0, CQE_MORE = 1 << 1, CQE_NOTIF = 1 << 3, CQE_32 = 1 << 15,
    REGISTER_RING_FDS = 20, REGISTER_PBUF_RING = 22, UNREGISTER_PBUF_RING = 23,
    PBUF_MMAP = 1, PBUF_INC = 2,
    OP_PROVIDE_BUFFERS = 31,
};
#define OFFSET_CQ_RING 0x8000000ull
#define OFFSET_SQES 0x10000000ull
#define OFFSET_PBUF_RING 0x80000000ull // | group << 16

typedef struct Sqe {
    u8 opcode, flags;
    u16 ioprio;
    i32 fd;
    u64 off, addr; // off is also addr2
    u32 len, op_flags;
    u64 user_data;
    u16 group, personality;
    u32 file_index; // also the length of an address, in its lower half
    u64 addr3, pad;
} Sqe;

// The kernel's struct io_uring_params.
typedef struct UringParams {
    u32 sq_entries, cq_entries, flags, thread_cpu, thread_idle, features, wq_fd, resv[3];
    struct { u32 head, tail, mask, entries, flags, dropped, array, resv; u64 user_addr; } sq;
    struct { u32 head, tail, mask, entries, overflow, cqes, flags, resv; u64 user_addr; } cq;
} UringParams;

typedef struct Ring {
    bool is_used;
    i32 fd;          // -1: closed, or only registered
    i32 registered;  // its number among the descriptors of `registered_by`, or -1
    i32 registered_by;
    UringParams p;
    GuestAddr sq, cq, sqes; // where the client has mapped them; 0: not yet
    u32 sq_seen, cq_seen;   // up to here we have looked
} Ring;

extern Lock uring_lock;
extern Ring uring_rings[RINGS_MAX];
extern u32 uring_ring_count; // one past the last that was ever used

// A request under way that writes.
typedef struct Pending {
    bool is_used;
    u8 flags; // of its request
    u16 ring, group;
    SyscallCall call;
    GuestAddr vector; // of iovecs, which the kernel has copied: the client may change them
    u32 vector_bytes;
    u8 kept[VECTOR_KEPT * 16];
    u8 *copy; // kept, or pages of its own
} Pending;

// --- uring_ops.c
// The call that a request stands for, with arguments; false: there is none, or it is unknown.
bool ops_call(const Sqe *sqe, SyscallCall *ret_call);
// Tells of the members of the request at `address` that the kernel looks at.
void ops_members(const Sqe *sqe, GuestAddr address, const SyscallCall *call, SyscallRangeFn fn,
                 void *arg);

// --- buffers.c: buffers that the client gives the kernel to choose from
void buffers_provide(u16 ring, const Sqe *sqe);
void buffers_register(u16 ring, GuestAddr registration);
void buffers_unregister(u16 ring, GuestAddr registration);
void buffers_mapped(u16 ring, u16 group, GuestAddr address);
// Looks at what the client has added to the rings of buffers.
void buffers_look(u16 ring);
// The kernel has put so many bytes into buffer `id` and those behind it.
void buffers_written(const Pending *p, u16 id, u64 bytes, SyscallRangeFn wrote, void *arg);
void buffers_forget(u16 ring);

#endif
