// SPDX-License-Identifier: MIT
// BUILD -pthread
//
// io_uring with system calls alone: what requests read must be defined, and what they write is
// defined when the client sees their completion, whichever way the buffer was named. The kernel's
// completions come in memory, without a call. Where it forbids io_uring the cases say nothing.
#include "corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum { READ_MULTISHOT = 49, ENTRIES = 16 };

static struct Ring {
    int fd;
    struct io_uring_params p;
    u32 *sq_head, *sq_tail, *sq_flags, *sq_array, *cq_head, *cq_tail;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    u32 tail; // of the submission ring, as far as filled in
} ring;

// False: there is no io_uring here.
static bool ring_open(u32 flags)
{
    memset(&ring, 0, sizeof ring);
    ring.p.flags = flags;
    ring.p.sq_thread_idle = 1000;
    ring.fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &ring.p);
    if (ring.fd < 0)
        return false;
    CHECK(ring.p.features & IORING_FEAT_SINGLE_MMAP);
    size_t size = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
    size_t other = ring.p.sq_off.array + ring.p.sq_entries * sizeof(u32);
    u8 *both = (u8 *)mmap(NULL, size > other ? size : other, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    ring.sqes = (struct io_uring_sqe *)mmap(NULL, ENTRIES * sizeof *ring.sqes,
                                            PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                                            ring.fd, IORING_OFF_SQES);
    CHECK(both != MAP_FAILED && (void *)ring.sqes != MAP_FAILED);
    ring.sq_head = (u32 *)(both + ring.p.sq_off.head);
    ring.sq_tail = (u32 *)(both + ring.p.sq_off.tail);
    ring.sq_flags = (u32 *)(both + ring.p.sq_off.flags);
    ring.sq_array = (u32 *)(both + ring.p.sq_off.array);
    ring.cq_head = (u32 *)(both + ring.p.cq_off.head);
    ring.cq_tail = (u32 *)(both + ring.p.cq_off.tail);
    ring.cqes = (struct io_uring_cqe *)(both + ring.p.cq_off.cqes);
    return true;
}

static struct io_uring_sqe *request(u8 opcode, int fd, const void *addr, u32 len, u64 user_data)
{
    u32 index = ring.tail % ENTRIES;
    struct io_uring_sqe *s = &ring.sqes[index];
    memset(s, 0, sizeof *s);
    s->opcode = opcode, s->fd = fd, s->addr = (u64)addr, s->len = len, s->user_data = user_data;
    ring.sq_array[index] = index;
    ring.tail++;
    return s;
}

#define PUBLISH() __atomic_store_n(ring.sq_tail, ring.tail, __ATOMIC_RELEASE)
// On the line that a finding is expected on.
#define SUBMIT(count) \
    do { \
        PUBLISH(); \
        CHECK(syscall(SYS_io_uring_enter, ring.fd, (count), 0, 0, NULL, 0) == (count)); \
    } while (0)

struct Completion {
    int res;
    u32 flags;
};

// The next completion, which the kernel may post while we look and make no call at all.
static NOINLINE struct Completion completion(void)
{
    u32 head = *ring.cq_head;
    while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) == head)
        ;
    struct io_uring_cqe *done = &ring.cqes[head & (ring.p.cq_entries - 1)];
    struct Completion c = {done->res, done->flags};
    __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
    return c;
}

static int numbers(void) // a file of 4,096 bytes, none of which is 0
{
    int fd = (int)syscall(SYS_memfd_create, "numbers", 0);
    u8 text[4096];
    memset(text, 'n', sizeof text);
    CHECK(fd >= 0 && write(fd, text, sizeof text) == sizeof text);
    return fd;
}

static void pair(int ends[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
}

CASE(read_defines)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    u8 *p = block(64);
    request(IORING_OP_READ, numbers(), p, 32, 1);
    SUBMIT(1);
    CHECK(completion().res == 32);
    BRANCH(p[0]);
    BRANCH(p[31]);
    BRANCH(p[32]); // EXPECT memcheck uninit-branch origin=heap:-6
}

CASE(readv_defines_by_pieces)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    u8 *p = block(8), *q = block(8192);
    struct iovec *v = (struct iovec *)block(2 * sizeof *v);
    v[0].iov_base = p, v[0].iov_len = 8, v[1].iov_base = q, v[1].iov_len = 8192;
    request(IORING_OP_READV, numbers(), v, 2, 1);
    SUBMIT(1);
    free(v); // the kernel has its own copy
    CHECK(completion().res == 4096);
    BRANCH(p[7]);
    BRANCH(q[4087]);
    BRANCH(q[4088]); // EXPECT memcheck uninit-branch
}

CASE(read_fixed_defines)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    u8 *p = (u8 *)aligned_alloc(4096, 4096);
    struct iovec v = {p, 4096};
    CHECK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &v, 1) == 0);
    request(IORING_OP_READ_FIXED, numbers(), p + 100, 50, 1);
    SUBMIT(1);
    CHECK(completion().res == 50);
    BRANCH(p[100]);
    BRANCH(p[149]);
    BRANCH(p[150]); // EXPECT memcheck uninit-branch
}

// The data comes after the submission, and the completion while no call is made.
static NOINLINE void arrives_later(u8 opcode, u32 setup)
{
    int ends[2];
    u8 *p = block(64);
    if (!ring_open(setup))
        return;
    pair(ends);
    request(opcode, ends[0], p, 64, 7);
    SUBMIT(1);
    CHECK(write(ends[1], "hello", 5) == 5);
    CHECK(completion().res == 5);
    BRANCH(p[0]);
    BRANCH(p[4]);
}

CASE(recv_defines)
{
    // NOT-VALGRIND io-uring
    arrives_later(IORING_OP_RECV, 0);
}

CASE(read_of_a_socket_defines)
{
    // NOT-VALGRIND io-uring
    arrives_later(IORING_OP_READ, 0);
}

CASE(recv_is_undefined_before_its_completion)
{
    // NOT-VALGRIND io-uring
    int ends[2];
    if (!ring_open(0))
        return;
    pair(ends);
    u8 *p = block(64);
    request(IORING_OP_RECV, ends[0], p, 64, 7);
    SUBMIT(1);
    BRANCH(p[0]); // EXPECT memcheck uninit-branch origin=heap:-3
    CHECK(write(ends[1], "hello", 5) == 5);
    CHECK(completion().res == 5);
    u8 copy[8];
    memcpy(copy, p, 5);
    BRANCH(copy[4]);
    BRANCH(p[5]); // EXPECT memcheck uninit-branch origin=heap:-9
}

CASE(recvmsg_defines)
{
    // NOT-VALGRIND io-uring
    int ends[2];
    if (!ring_open(0))
        return;
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    u8 *p = block(4), *q = block(16), *control = block(64);
    struct iovec v[2] = {{p, 4}, {q, 16}};
    struct msghdr m;
    memset(&m, 0, sizeof m);
    m.msg_iov = v, m.msg_iovlen = 2, m.msg_control = control, m.msg_controllen = 64;
    request(IORING_OP_RECVMSG, ends[0], &m, 1, 3);
    SUBMIT(1);
    v[0].iov_base = NULL; // the kernel has its own copy
    CHECK(write(ends[1], "0123456789", 10) == 10);
    CHECK(completion().res == 10);
    BRANCH(p[3]);
    BRANCH(q[5]);
    BRANCH(m.msg_flags);
    BRANCH(q[6]); // EXPECT memcheck uninit-branch
}

CASE(accept_and_names_and_files)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    struct sockaddr_in *a = (struct sockaddr_in *)block(sizeof *a), bound;
    socklen_t *length = (socklen_t *)block(sizeof *length), bound_length = sizeof bound;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    memset(&bound, 0, sizeof bound);
    bound.sin_family = AF_INET;
    bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(server, (struct sockaddr *)&bound, sizeof bound) == 0 && listen(server, 5) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&bound, &bound_length) == 0);
    *length = sizeof *a;
    request(IORING_OP_ACCEPT, server, a, 0, 1)->off = (u64)length;
    SUBMIT(1);
    CHECK(connect(client, (struct sockaddr *)&bound, sizeof bound) == 0);
    CHECK(completion().res >= 0);
    BRANCH(a->sin_port);
    BRANCH(a->sin_addr.s_addr);
    BRANCH(*length);
    struct statx *s = (struct statx *)block(sizeof *s);
    request(IORING_OP_STATX, AT_FDCWD, "/", STATX_BASIC_STATS, 2)->off = (u64)s;
    SUBMIT(1);
    CHECK(completion().res == 0);
    BRANCH(s->stx_mode);
}

static NOINLINE struct io_uring_sqe *chosen_by_the_kernel(u8 opcode, int fd)
{
    struct io_uring_sqe *s = request(opcode, fd, NULL, 0, 9);
    s->flags = IOSQE_BUFFER_SELECT;
    s->buf_group = 5;
    return s;
}

CASE(provided_buffers_define)
{
    // NOT-VALGRIND io-uring
    int ends[2];
    if (!ring_open(0))
        return;
    pair(ends);
    u8 *p = block(4 * 64);
    struct io_uring_sqe *s = request(IORING_OP_PROVIDE_BUFFERS, 4, p, 64, 1);
    s->off = 10, s->buf_group = 5;
    SUBMIT(1);
    CHECK(completion().res >= 0);
    chosen_by_the_kernel(IORING_OP_RECV, ends[0])->len = 64;
    SUBMIT(1);
    CHECK(write(ends[1], "hello", 5) == 5);
    struct Completion c = completion();
    CHECK(c.res == 5 && c.flags & IORING_CQE_F_BUFFER);
    u8 *got = p + ((c.flags >> IORING_CQE_BUFFER_SHIFT) - 10) * 64;
    BRANCH(got[4]);
    BRANCH(got[5]); // EXPECT memcheck uninit-branch
}

static struct io_uring_buf_ring *buffer_ring(u8 *buffers, u32 count, u32 size)
{
    struct io_uring_buf_ring *r = (struct io_uring_buf_ring *)mmap(
        NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring_buf_reg reg;
    memset(&reg, 0, sizeof reg);
    reg.ring_addr = (u64)r, reg.ring_entries = count, reg.bgid = 5;
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PBUF_RING, &reg, 1) != 0)
        return NULL;
    struct io_uring_buf *entries = (struct io_uring_buf *)r;
    for (u32 i = 0; i < count; i++) {
        entries[i].addr = (u64)(buffers + i * size);
        entries[i].len = size;
        entries[i].bid = (u16)(i + 20);
    }
    __atomic_store_n(&entries[0].resv, (u16)count, __ATOMIC_RELEASE);
    return r;
}

CASE(rings_of_buffers_define)
{
    // NOT-VALGRIND io-uring
    int ends[2];
    u8 *p = block(4 * 64);
    if (!ring_open(0) || !buffer_ring(p, 4, 64))
        return;
    pair(ends);
    struct io_uring_sqe *s = chosen_by_the_kernel(IORING_OP_RECV, ends[0]);
    s->ioprio = IORING_RECV_MULTISHOT;
    SUBMIT(1);
    for (int i = 0; i < 3; i++) {
        CHECK(write(ends[1], "hello", 5) == 5);
        struct Completion c = completion();
        if (c.res < 0)
            return; // no multishot here
        CHECK(c.res == 5 && c.flags & IORING_CQE_F_BUFFER && c.flags & IORING_CQE_F_MORE);
        u8 *got = p + ((c.flags >> IORING_CQE_BUFFER_SHIFT) - 20) * 64;
        BRANCH(got[0]);
        BRANCH(got[4]);
        if (i == 2)
            BRANCH(got[5]); // EXPECT memcheck uninit-branch
    }
}

CASE(multishot_reads_define)
{
    // NOT-VALGRIND io-uring
    int ends[2];
    u8 *p = block(4 * 64);
    if (!ring_open(0) || !buffer_ring(p, 4, 64))
        return;
    CHECK(pipe(ends) == 0);
    chosen_by_the_kernel(READ_MULTISHOT, ends[0]);
    SUBMIT(1);
    for (int i = 0; i < 2; i++) {
        CHECK(write(ends[1], "hello", 5) == 5);
        struct Completion c = completion();
        if (c.res < 0)
            return;
        BRANCH(p[((c.flags >> IORING_CQE_BUFFER_SHIFT) - 20) * 64 + 4]);
    }
}

CASE(multishot_accept)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    struct sockaddr_in bound;
    socklen_t length = sizeof bound;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    memset(&bound, 0, sizeof bound);
    bound.sin_family = AF_INET;
    CHECK(bind(server, (struct sockaddr *)&bound, sizeof bound) == 0 && listen(server, 5) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&bound, &length) == 0);
    request(IORING_OP_ACCEPT, server, NULL, 0, 1)->ioprio = IORING_ACCEPT_MULTISHOT;
    SUBMIT(1);
    for (int i = 0; i < 2; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(client, (struct sockaddr *)&bound, sizeof bound) == 0);
        struct Completion c = completion();
        CHECK(c.res >= 0);
        BRANCH(c.res);
    }
}

// The kernel takes the requests by itself.
CASE(sqpoll_defines)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(IORING_SETUP_SQPOLL))
        return;
    int fd = numbers();
    for (int i = 0; i < 3 * ENTRIES; i++) {
        u8 *p = block(64);
        request(IORING_OP_READ, fd, p, 32, 1);
        PUBLISH();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(ring.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
            CHECK(syscall(SYS_io_uring_enter, ring.fd, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0) >= 0);
        CHECK(completion().res == 32);
        BRANCH(p[31]);
        free(p);
    }
    u8 *q = block(64);
    request(IORING_OP_READ, fd, q, 32, 1);
    PUBLISH();
    CHECK(syscall(SYS_io_uring_enter, ring.fd, 1, 1,
                  IORING_ENTER_SQ_WAKEUP | IORING_ENTER_GETEVENTS, NULL, 0) >= 0);
    CHECK(completion().res == 32);
    BRANCH(q[31]);
    BRANCH(q[32]); // EXPECT memcheck uninit-branch
}

CASE(without_a_completion)
{
    // NOT-VALGRIND io-uring
    int ends[2];
    if (!ring_open(0))
        return;
    pair(ends);
    u8 *p = block(8), *q = block(8);
    CHECK(write(ends[1], "0123456789abcdef", 16) == 16);
    struct io_uring_sqe *s = request(IORING_OP_RECV, ends[0], p, 8, 1);
    s->flags = IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK;
    s->msg_flags = MSG_WAITALL;
    request(IORING_OP_RECV, ends[0], q, 8, 2);
    SUBMIT(2);
    CHECK(completion().res == 8);
    BRANCH(p[7]);
    BRANCH(q[7]);
}

CASE(failed_reads_define_nothing)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    u8 *p = block(8);
    request(IORING_OP_READ, -1, p, 8, 1);
    SUBMIT(1);
    CHECK(completion().res == -EBADF);
    BRANCH(p[0]); // EXPECT memcheck uninit-branch origin=heap:-4
}

CASE(undefined_bytes_that_are_submitted)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    int null = open("/dev/null", O_WRONLY);
    u8 *p = block(16), *q = zeroed_block(16);
    request(IORING_OP_WRITE, null, p, 16, 1);
    SUBMIT(1);
    // EXPECT memcheck syscall-param param=io_uring.write(buf) bad=uninitialised block=inside:0 of=16 origin=heap:-2
    request(IORING_OP_WRITE, null, q, 17, 1);
    SUBMIT(1);
    // EXPECT memcheck syscall-param param=io_uring.write(buf) bad=unaddressable block=after:0 of=16
    struct iovec *v = (struct iovec *)block(sizeof *v);
    v->iov_base = q;
    v->iov_len = 16;
    request(IORING_OP_WRITEV, null, v, 2, 1);
    SUBMIT(1);
    // EXPECT memcheck syscall-param param=io_uring.writev(vector) bad=unaddressable
    u8 *freed = freed_block(16);
    request(IORING_OP_READ, numbers(), freed, 16, 1);
    SUBMIT(1);
    // EXPECT memcheck syscall-param param=io_uring.read(buf) bad=unaddressable block=inside:0 of=16 state=freed
}

CASE(undefined_members_of_requests)
{
    // NOT-VALGRIND io-uring
    if (!ring_open(0))
        return;
    u8 *p = zeroed_block(16);
    u64 *undefined = (u64 *)block(8);
    request(IORING_OP_WRITE, open("/dev/null", O_WRONLY), p, 16, 1)->off = *undefined & 1;
    SUBMIT(1);
    // EXPECT memcheck syscall-param param=io_uring.write(offset) bad=uninitialised origin=heap:-2
    request(IORING_OP_NOP, 0, NULL, 0, 1)->user_data = *undefined; // nobody looks at it
    SUBMIT(1);
    struct timespec *t = (struct timespec *)block(16);
    t->tv_sec = 0;
    request(IORING_OP_TIMEOUT, 0, t, 1, 1);
    SUBMIT(1);
    // EXPECT memcheck syscall-param param=io_uring.timeout(tp) bad=uninitialised block=inside:8 of=16
}
