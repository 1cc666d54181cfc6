// SPDX-License-Identifier: MIT
// BUILD: -O2
//
// io_uring without a library: set-up, the mapped rings, nop, write, read, a linked pair and an
// error, each with its result in the completion queue. Where the kernel forbids it, so it says.
#include "guest.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static struct Ring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
} ring;

static bool set_up(void)
{
    struct io_uring_params p = {0};
    ring.fd = (int)syscall(SYS_io_uring_setup, 8, &p);
    if (ring.fd < 0) {
        say("no io_uring: %s\n", error_name(errno));
        return false;
    }
    size_t size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    int flags = MAP_SHARED | MAP_POPULATE, rw = PROT_READ | PROT_WRITE;
    char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, rw, flags, ring.fd,
                    IORING_OFF_SQ_RING);
    char *cq = p.features & IORING_FEAT_SINGLE_MMAP
                   ? mmap(NULL, size, rw, flags, ring.fd, IORING_OFF_SQ_RING)
                   : mmap(NULL, size, rw, flags, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), rw, flags, ring.fd,
                        IORING_OFF_SQES);
    CHECK(sq != MAP_FAILED && cq != MAP_FAILED && (void *)ring.entries != MAP_FAILED);
    ring.sq_tail = (unsigned *)(sq + p.sq_off.tail);
    ring.sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(sq + p.sq_off.array);
    ring.cq_head = (unsigned *)(cq + p.cq_off.head);
    ring.cq_tail = (unsigned *)(cq + p.cq_off.tail);
    ring.cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
    ring.completions = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
    say("entries %u %u\n", p.sq_entries, p.cq_entries);
    return true;
}

static void queue(struct io_uring_sqe entry)
{
    unsigned tail = *ring.sq_tail, index = tail & *ring.sq_mask;
    ring.entries[index] = entry;
    ring.sq_array[index] = index;
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void submit(int count)
{
    SHOW(syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0));
    while (*ring.cq_head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE)) {
        struct io_uring_cqe *done = &ring.completions[*ring.cq_head & *ring.cq_mask];
        say("completion %lu result %d\n", (unsigned long)done->user_data, done->res);
        __atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
    }
}

int main(void)
{
    if (!set_up())
        return 0;
    static char text[] = "through the ring", back[32];
    int fd = memfd_create("file", 0);
    queue((struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 1});
    submit(1);
    queue((struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = fd, .addr = (uint64_t)text,
                                .len = 16, .user_data = 2, .flags = IOSQE_IO_LINK});
    queue((struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = fd, .addr = (uint64_t)back,
                                .len = 31, .user_data = 3});
    submit(2);
    say("%s\n", back);
    queue((struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = 12345, .addr = (uint64_t)back,
                                .len = 31, .user_data = 4});
    submit(1);
    queue((struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = fd, .addr = 8, .len = 5,
                                .user_data = 5});
    submit(1);
    return 0;
}
