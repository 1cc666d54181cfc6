// SPDX-License-Identifier: MIT
//
// Arguments of system calls that the kernel turns away before it looks at memory, those that may be
// NULL, and asynchronous calls of the old kind, whose results come with their completion.
#include "corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

// As the kernel sees them: all six, and each as a word.
#define raw(number, a, b, c, d, e, f) \
    syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static struct iovec *one_buffer(void)
{
    struct iovec *v = (struct iovec *)block(sizeof *v);
    v->iov_base = zeroed_block(4);
    v->iov_len = 4;
    return v;
}

CASE(vectors_with_a_negative_count)
{
    static const int reads[] = {SYS_readv, SYS_preadv, SYS_preadv2};
    static const int writes[] = {SYS_writev, SYS_pwritev, SYS_pwritev2};
    struct iovec *v = one_buffer();
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        CHECK(raw(reads[i], zero, v, -1, 0, 0, 0) == -1 && errno == EINVAL);
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        CHECK(raw(writes[i], null, v, -1, 0, 0, 0) == -1 && errno == EINVAL);
    CHECK(raw(SYS_writev, null, v, 1L << 31, 0, 0, 0) == -1 && errno == EINVAL);
}

CASE(vectors_that_are_too_long)
{
    struct iovec *v = one_buffer();
    int null = open("/dev/null", O_WRONLY);
    CHECK(writev(null, v, 1025) == -1 && errno == EINVAL);
    // EXPECT-VALGRIND memcheck syscall-param param=writev(vector) bad=unaddressable why=vectors
    // EXPECT-VALGRIND memcheck syscall-param param=writev(vector[...]) bad=unaddressable why=vectors
}

CASE(messages_with_too_long_a_vector)
{
    // NOT-VALGRIND vectors
    struct iovec *v = one_buffer();
    struct msghdr m;
    memset(&m, 0, sizeof m);
    m.msg_iov = v, m.msg_iovlen = 1025;
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(sendmsg(ends[0], &m, 0) == -1 && errno == EMSGSIZE);
}

CASE(a_vector_behind_its_end)
{
    struct iovec *v = one_buffer();
    writev(open("/dev/null", O_WRONLY), v, 2);
    // EXPECT memcheck syscall-param param=writev(vector) bad=unaddressable block=after:0 of=16
    // MAYBE memcheck syscall-param param=writev(vector[...]) bad=unaddressable
}

CASE(poll_passes_over_negative_descriptors)
{
    struct pollfd *p = (struct pollfd *)block(2 * sizeof *p);
    p[0].fd = -1, p[1].fd = -7;
    CHECK(poll(p, 2, 0) == 0);
    // EXPECT-VALGRIND memcheck syscall-param param=poll(ufds.events) bad=uninitialised why=poll-entries
    BRANCH(p[0].revents);
    BRANCH(p[1].revents);
}

CASE(poll_with_too_many_entries)
{
    // NOT-VALGRIND poll-entries
    struct pollfd *p = (struct pollfd *)block(sizeof *p);
    CHECK(raw(SYS_poll, p, 1 << 30, 0, 0, 0, 0) == -1 && errno == EINVAL);
}

CASE(option_of_no_socket)
{
    CHECK(raw(SYS_getsockopt, open("/dev/null", O_RDONLY), SOL_SOCKET, SO_TYPE, 0, 0, 0) == -1 &&
          errno == ENOTSOCK);
    CHECK(raw(SYS_getsockopt, -1, SOL_SOCKET, SO_TYPE, 0, 0, 0) == -1 && errno == EBADF);
}

CASE(option_of_a_socket_without_a_length)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    raw(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, 0, 0, 0);
    // EXPECT-MUNINN memcheck syscall-param param=socketcall.getsockopt(optlen) bad=unaddressable why=poll-entries
}

CASE(programs_without_a_name)
{
    static char *none[] = {NULL}, *one[] = {"A=1", NULL};
    CHECK(raw(SYS_execve, "/nonexistent/x", none, one, 0, 0, 0) == -1);
    // EXPECT memcheck syscall-param param=execve(argv[0]) bad=unaddressable
    CHECK(raw(SYS_execveat, -1, "/nonexistent/x", none, one, 0, 0) == -1);
    // EXPECT memcheck syscall-param param=execveat(argv[0]) bad=unaddressable
    CHECK(raw(SYS_execve, "/nonexistent/x", 0, 0, 0, 0, 0) == -1);
    // EXPECT memcheck syscall-param param=execve(argv) bad=unaddressable
}

// How Rust's library asks for the call.
CASE(statx_asks_whether_it_is_there)
{
    CHECK(raw(SYS_statx, 0, 0, 0, STATX_BASIC_STATS, 0, 0) == -1 && errno == EFAULT);
    CHECK(raw(SYS_newfstatat, 0, 0, 0, 0, 0, 0) == -1 && errno == EFAULT);
    raw(SYS_statx, AT_FDCWD, "/", 0, STATX_BASIC_STATS, 0, 0);
    // EXPECT memcheck syscall-param param=statx(buf) bad=unaddressable
}

// ---- userfaultfd -------------------------------------------------------------

static int userfaults(void)
{
    int fd = (int)raw(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */, 0, 0, 0, 0, 0);
    struct uffdio_api *api = (struct uffdio_api *)block(sizeof *api);
    api->api = UFFD_API, api->features = 0;
    if (fd < 0 || ioctl(fd, UFFDIO_API, api) != 0)
        return -1; // not allowed here
    BRANCH(api->ioctls & 1);
    free(api);
    return fd;
}

static u8 *registered(int fd, size_t size)
{
    u8 *area = (u8 *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register *r = (struct uffdio_register *)block(sizeof *r);
    r->range.start = (u64)area, r->range.len = size, r->mode = UFFDIO_REGISTER_MODE_MISSING;
    CHECK(ioctl(fd, UFFDIO_REGISTER, r) == 0);
    BRANCH(r->ioctls & 1);
    free(r);
    return area;
}

CASE(userfaultfd_fills_in_its_answers)
{
    // NOT-VALGRIND newer-calls
    int fd = userfaults();
    if (fd < 0)
        return;
    u8 *area = registered(fd, 4 * 4096), *page = (u8 *)aligned_alloc(4096, 4096);
    memset(page, 'x', 4096);
    struct uffdio_copy *copy = (struct uffdio_copy *)block(sizeof *copy);
    copy->dst = (u64)area, copy->src = (u64)page, copy->len = 4096, copy->mode = 0;
    CHECK(ioctl(fd, UFFDIO_COPY, copy) == 0);
    BRANCH(copy->copy == 4096);
    BRANCH(area[4095]);
    struct uffdio_zeropage *zero = (struct uffdio_zeropage *)block(sizeof *zero);
    zero->range.start = (u64)area + 4096, zero->range.len = 4096;
    ioctl(fd, UFFDIO_ZEROPAGE, zero);
    // EXPECT memcheck syscall-param param=ioctl(UFFDIO_ZEROPAGE->mode) bad=uninitialised origin=heap:-2
    struct uffdio_range *range = (struct uffdio_range *)block(sizeof *range);
    ioctl(fd, UFFDIO_WAKE, range);
    // EXPECT memcheck syscall-param param=ioctl(UFFDIO_WAKE) bad=uninitialised origin=heap:-1
    _exit(0);
}

// Nobody fills these pages; the search for leaks must not wait for it.
CASE(pages_that_a_userfaultfd_has_not_filled)
{
    // OPTIONS --leak-check=full
    // NOT-VALGRIND newer-calls
    int fd = userfaults();
    if (fd >= 0)
        registered(fd, 4 * 4096);
}

// ---- libaio, by hand ---------------------------------------------------------

static aio_context_t new_context(void)
{
    aio_context_t context = 0;
    CHECK(raw(SYS_io_setup, 8, &context, 0, 0, 0, 0) == 0);
    return context;
}

// As libaio does: the ring says whether there is anything to ask the kernel for.
static void look_at_ring(aio_context_t context)
{
    volatile u32 *ring = (volatile u32 *)context;
    CHECK(ring[4] == 0xa10a10a1);
    CHECK(ring[2] <= ring[1] && ring[3] <= ring[1]);
}

CASE(aio_reads_define_their_buffers)
{
    aio_context_t context = new_context();
    look_at_ring(context);
    u8 *p = block(64), *q = block(64);
    int fd = open("/proc/self/exe", O_RDONLY);
    struct iocb cb[2], *list[2] = {&cb[0], &cb[1]};
    memset(cb, 0, sizeof cb);
    cb[0].aio_lio_opcode = cb[1].aio_lio_opcode = IOCB_CMD_PREAD;
    cb[0].aio_fildes = cb[1].aio_fildes = (u32)fd;
    cb[0].aio_buf = (u64)p, cb[0].aio_nbytes = 64;
    cb[1].aio_buf = (u64)q, cb[1].aio_nbytes = 32;
    CHECK(raw(SYS_io_submit, context, 2, list, 0, 0, 0) == 2);
    struct io_event got[2];
    CHECK(raw(SYS_io_getevents, context, 2, 2, got, 0, 0) == 2);
    look_at_ring(context);
    BRANCH(p[63]);
    BRANCH(q[31]);
    BRANCH(q[32]); // EXPECT memcheck uninit-branch
    CHECK(raw(SYS_io_destroy, context, 0, 0, 0, 0, 0) == 0);
}

CASE(aio_ring_is_gone_when_destroyed)
{
    aio_context_t context = new_context();
    CHECK(raw(SYS_io_destroy, context, 0, 0, 0, 0, 0) == 0);
    CHECK(raw(SYS_io_destroy, context, 0, 0, 0, 0, 0) == -1 && errno == EINVAL);
    aio_context_t again = 1;
    CHECK(raw(SYS_io_setup, 8, &again, 0, 0, 0, 0) == -1 && errno == EINVAL);
    CHECK(raw(SYS_io_setup, 0, &context, 0, 0, 0, 0) == -1 && errno == EINVAL);
    READ4(context); // EXPECT memcheck invalid-read size=4
    // DIES SIGSEGV
}

CASE(aio_waits_with_a_mask_and_a_limit)
{
    // NOT-VALGRIND newer-calls
    aio_context_t context = new_context();
    struct io_event got[2];
    struct { const sigset_t *set; size_t size; } *mask = (void *)block(16);
    struct timespec *limit = (struct timespec *)block(sizeof *limit);
    sigset_t *set = (sigset_t *)block(sizeof *set);
    sigemptyset(set);
    mask->set = set, mask->size = 8, limit->tv_sec = 0, limit->tv_nsec = 1;
    CHECK(raw(SYS_io_pgetevents, context, 1, 2, got, limit, mask) == 0);
    CHECK(raw(SYS_io_pgetevents, context, 0, 2, got, 0, 0) == 0);
    struct timespec *undefined = (struct timespec *)block(sizeof *undefined);
    raw(SYS_io_pgetevents, context, 0, 2, got, undefined, 0);
    // EXPECT memcheck syscall-param param=io_pgetevents(timeout) bad=uninitialised origin=heap:-1
    mask->set = (sigset_t *)block(8);
    raw(SYS_io_pgetevents, context, 0, 2, got, 0, mask);
    // EXPECT memcheck syscall-param param=io_pgetevents(usig->ss) bad=uninitialised origin=heap:-1
    raw(SYS_io_pgetevents, context, 0, 2, got, 8, 8);
    // EXPECT memcheck syscall-param param=io_pgetevents(timeout) bad=unaddressable
    // EXPECT memcheck syscall-param param=io_pgetevents(usig) bad=unaddressable
}

CASE(aio_counts_that_are_refused)
{
    aio_context_t context = new_context();
    struct io_event got[2];
    CHECK(raw(SYS_io_submit, context, -1, 0, 0, 0, 0) == -1);
    // EXPECT-VALGRIND memcheck syscall-param param=io_submit(iocbpp) bad=unaddressable why=vectors
    CHECK(raw(SYS_io_getevents, context, 0, -1, got, 0, 0) == -1);
    // EXPECT-VALGRIND memcheck syscall-param param=io_getevents(events) bad=unaddressable why=vectors
}
