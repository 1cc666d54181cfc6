// SPDX-License-Identifier: MIT
//
// What syscall_ranges() says of particular calls, as a script of lines: one line for
// each range, "IN write(buf) 5", in the order of the arguments. The name is the one
// Memcheck prints, the number the length.
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/syscall/tables.h"
#include "unit.h"

// Reads this process as a stranger would: bad addresses are refused, never touched.
static bool read_self(GuestAddr address, void *dst, size_t len)
{
    struct iovec local = { dst, len }, remote = { (void *)address, len };
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

static char script[16384];
static GuestAddr last_address;

static void record(const SyscallRange *range, void *arg)
{
    (void)arg;
    char name[128];
    size_t n = strlen(script);
    snprintf(script + n, sizeof(script) - n, "%s %s %llu\n", range->dir == RANGE_IN ? "IN" : "OUT",
             syscall_range_text(range, name, sizeof(name)),
             (unsigned long long)range->size_bytes);
    last_address = range->address;
}

static SyscallCall call;

static const char *before(u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    call = (SyscallCall){ .nr = nr, .args = { a, b, c, d, e, f }, .read_guest = read_self };
    script[0] = 0;
    syscall_ranges(&call, SYSCALL_BEFORE, record, NULL);
    return script;
}

static const char *after(i64 result)
{
    call.result = (u64)result;
    script[0] = 0;
    syscall_ranges(&call, SYSCALL_AFTER, record, NULL);
    return script;
}

// Missing arguments are 0; pointers become integers.
#define PICK(a, b, c, d, e, f, ...) (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), (u64)(f)
#define BEFORE(nr, ...) before(nr, PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0))

static char buf[8192];

// ---- Reading and writing ---------------------------------------------------

TEST(read_may_write_all_and_has_written_its_result)
{
    CHECK_STR(BEFORE(NR_read, 0, buf, 100), "OUT read(buf) 100\n");
    CHECK_STR(after(7), "OUT read(buf) 7\n");
    CHECK_STR(after(0), "");
    CHECK_STR(after(-EAGAIN), "");
}

TEST(write_reads_its_buffer_and_writes_nothing)
{
    CHECK_STR(BEFORE(NR_write, 1, buf, 5), "IN write(buf) 5\n");
    CHECK_STR(after(5), "");
}

TEST(a_result_never_exceeds_what_was_offered)
{
    BEFORE(NR_recvfrom, 3, buf, 10, 0, 0, 0);
    CHECK_STR(after(4000), "OUT socketcall.recvfrom(buf) 10\n"); // MSG_TRUNC
    BEFORE(NR_getxattr, "/", "user.x", buf, 0);
    CHECK_STR(after(20), "");
}

TEST(writev_reads_the_vector_and_each_buffer)
{
    struct iovec v[2] = { { buf, 3 }, { buf + 8, 4 } };
    CHECK_STR(BEFORE(NR_writev, 1, v, 2),
              "IN writev(vector) 16\nIN writev(vector[...]) 3\n"
              "IN writev(vector) 16\nIN writev(vector[...]) 4\n");
}

TEST(readv_spreads_its_result_over_the_buffers)
{
    struct iovec v[3] = { { buf, 3 }, { buf + 8, 4 }, { buf + 16, 9 } };
    BEFORE(NR_readv, 0, v, 3);
    CHECK_STR(after(5), "OUT readv(vector[...]) 3\nOUT readv(vector[...]) 2\n");
}

TEST(preadv_numbers_its_buffers)
{
    struct iovec v[2] = { { buf, 3 }, { buf + 8, 4 } };
    BEFORE(NR_preadv, 0, v, 2, 0);
    CHECK_STR(after(7), "OUT preadv(vector[0]) 3\nOUT preadv(vector[1]) 4\n");
}

TEST(process_vm_readv_checks_remote_vectors_but_not_remote_memory)
{
    struct iovec local = { buf, 3 }, remote = { (void *)16, 3 };
    CHECK_STR(BEFORE(NR_process_vm_readv, 1, &local, 1, &remote, 1),
              "IN process_vm_readv(lvec) 16\nOUT process_vm_readv(lvec[...]) 3\n"
              "IN process_vm_readv(rvec) 16\n");
}

// ---- Paths and strings -----------------------------------------------------

TEST(open_reads_its_name_and_needs_a_mode_only_to_create)
{
    CHECK_STR(BEFORE(NR_open, "/tmp/x", O_RDONLY), "IN open(filename) 7\n");
    CHECK(!syscall_arg_is_used(&call, syscall_resolve(&call), 2));
    BEFORE(NR_open, "/tmp/x", O_WRONLY | O_CREAT, 0644);
    CHECK(syscall_arg_is_used(&call, syscall_resolve(&call), 2));
}

TEST(a_string_that_runs_into_unmapped_memory_ends_with_its_first_byte)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'x', 4096);
    munmap(pages + 4096, 4096);
    CHECK_STR(BEFORE(NR_chdir, pages + 4000), "IN chdir(path) 97\n");
    munmap(pages, 4096);
}

TEST(execve_reads_name_arrays_and_strings)
{
    char *argv[] = { (char[]){ "ls" }, (char[]){ "-l" }, NULL };
    char *envp[] = { (char[]){ "A=1" }, NULL };
    CHECK_STR(BEFORE(NR_execve, "/bin/ls", argv, envp),
              "IN execve(filename) 8\n"
              "IN execve(argv) 24\nIN execve(argv[0]) 3\nIN execve(argv[i]) 3\n"
              "IN execve(envp) 16\nIN execve(envp[i]) 4\n");
}

TEST(statx_writes_its_buffer)
{
    CHECK_STR(BEFORE(NR_statx, AT_FDCWD, "x", 0, 0x7ff, buf),
              "IN statx(filename) 2\nOUT statx(buf) 256\n");
    CHECK_STR(after(0), "OUT statx(buf) 256\n");
    CHECK_STR(after(-ENOENT), "");
}

TEST(newfstatat_is_spoken_of_as_fstatat)
{
    CHECK_STR(BEFORE(NR_newfstatat, AT_FDCWD, "x", buf, 0),
              "IN fstatat(file_name) 2\nOUT fstatat(buf) 144\n");
}

TEST(readlink_getcwd_and_getdents_write_their_result)
{
    BEFORE(NR_readlink, "x", buf, 100);
    CHECK_STR(after(9), "OUT readlink(buf) 9\n");
    BEFORE(NR_getcwd, buf, 100);
    CHECK_STR(after(2), "OUT getcwd(buf) 2\n");
    BEFORE(NR_getdents64, 3, buf, 1000);
    CHECK_STR(after(48), "OUT getdents64(dirp) 48\n");
}

// ---- Hostile pointers ------------------------------------------------------

TEST(a_null_that_is_allowed_is_no_range_and_one_that_is_not_is)
{
    CHECK_STR(BEFORE(NR_wait4, -1, 0, 0, 0), "");
    CHECK_STR(BEFORE(NR_stat, "x", 0), "IN stat(file_name) 2\nOUT stat(buf) 144\n");
}

TEST(an_unreadable_vector_is_reported_and_not_followed)
{
    CHECK_STR(BEFORE(NR_writev, 1, 16, 1000), "IN writev(vector) 16\n");
    CHECK_STR(BEFORE(NR_sendmsg, 1, ~0ull - 7, 0), "IN sendmsg(msg) 8\n");
}

TEST(absurd_lengths_stay_inside_the_address_space)
{
    BEFORE(NR_write, 1, buf, ~0ull);
    BEFORE(NR_write, 1, ~0ull, 100);
    CHECK_STR(script, "IN write(buf) 1\n");
    CHECK_STR(BEFORE(NR_poll, buf, -1, 0), "");
    CHECK_STR(BEFORE(NR_sendto, 1, buf, 0, 0, buf, 0xffffffff), "");
}

// ---- Sockets ---------------------------------------------------------------

TEST(connect_reads_a_unix_address_up_to_its_nul)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/x" };
    CHECK_STR(BEFORE(NR_connect, 3, &a, sizeof(a)),
              "IN socketcall.connect(serv_addr.sa_family) 2\n"
              "IN socketcall.connect(serv_addr.sun_path) 3\n");
}

TEST(an_abstract_unix_address_is_read_whole)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "\0ab" };
    CHECK_STR(BEFORE(NR_bind, 3, &a, 5),
              "IN socketcall.bind(my_addr.sa_family) 2\nIN socketcall.bind(my_addr.sun_path) 3\n");
}

TEST(the_padding_of_an_internet_address_is_not_read)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    CHECK_STR(BEFORE(NR_sendto, 3, buf, 4, 0, &a, sizeof(a)),
              "IN socketcall.sendto(msg) 4\nIN socketcall.sendto(to.sa_family) 2\n"
              "IN socketcall.sendto(to.sin_port) 2\nIN socketcall.sendto(to.sin_addr) 4\n");
}

TEST(accept_writes_no_more_than_the_length_it_was_given)
{
    socklen_t len = 16;
    CHECK_STR(BEFORE(NR_accept, 3, buf, &len),
              "OUT socketcall.accept(addr) 16\nIN socketcall.accept(addrlen_in) 4\n");
    len = 110;
    CHECK_STR(after(5), "OUT socketcall.accept(addr) 16\nOUT socketcall.accept(addrlen_in) 4\n");
}

TEST(getsockopt_writes_what_the_kernel_says)
{
    socklen_t len = 64;
    BEFORE(NR_getsockopt, 3, SOL_SOCKET, SO_ERROR, buf, &len);
    len = 4;
    CHECK_STR(after(0), "OUT socketcall.getsockopt(optval) 4\n"
                        "OUT socketcall.getsockopt(optlen) 4\n");
}

TEST(attaching_a_filter_reads_the_program)
{
    struct { u16 len; void *filter; } program = { 3, buf };
    CHECK_STR(BEFORE(NR_setsockopt, 3, SOL_SOCKET, SO_ATTACH_FILTER, &program, 16),
              "IN setsockopt(SOL_SOCKET, SO_ATTACH_FILTER, &optval.len) 2\n"
              "IN setsockopt(SOL_SOCKET, SO_ATTACH_FILTER, &optval.filter) 8\n"
              "IN setsockopt(SOL_SOCKET, SO_ATTACH_FILTER, &optval.filter) 24\n");
}

TEST(sendmsg_reads_control_messages_without_their_padding)
{
    struct { struct cmsghdr head; int fd; int padding; } control = { { 20, 1, 1 }, 0, 0 };
    struct msghdr m = { .msg_control = &control, .msg_controllen = 24 };
    BEFORE(NR_sendmsg, 3, &m, 0);
    CHECK(strstr(script, "IN sendmsg(msg.msg_control) 20\n"));
}

TEST(recvmsg_writes_name_data_control_and_the_header)
{
    struct iovec v = { buf, 50 };
    struct msghdr m = { .msg_name = buf + 100, .msg_namelen = 16, .msg_iov = &v, .msg_iovlen = 1,
                        .msg_control = buf + 200, .msg_controllen = 64 };
    BEFORE(NR_recvmsg, 3, &m, 0);
    CHECK(strstr(script, "OUT recvmsg(msg.msg_name) 16\n"));
    CHECK(strstr(script, "OUT recvmsg(msg.msg_iov[0]) 50\n"));
    CHECK(strstr(script, "OUT recvmsg(msg.msg_control) 64\n"));
    CHECK(!strstr(script, "IN recvmsg(msg.msg_control)"));
    m.msg_namelen = 110; // longer than the buffer: the kernel truncated
    m.msg_controllen = 20;
    CHECK_STR(after(10), "OUT recvmsg(msg) 4\nOUT recvmsg(msg) 8\nOUT recvmsg(msg) 4\n"
                         "OUT recvmsg(msg.msg_name) 16\nOUT recvmsg(msg.msg_iov[0]) 10\n"
                         "OUT recvmsg(msg.msg_control) 20\n");
}

TEST(recvmmsg_writes_each_message_by_its_own_length)
{
    struct iovec v[2] = { { buf, 50 }, { buf + 100, 50 } };
    struct mmsghdr m[2] = { { { .msg_iov = &v[0], .msg_iovlen = 1 }, 0 },
                            { { .msg_iov = &v[1], .msg_iovlen = 1 }, 0 } };
    BEFORE(NR_recvmmsg, 3, m, 2, 0, 0);
    m[0].msg_len = 7;
    m[1].msg_len = 9;
    after(2);
    CHECK(strstr(script, "OUT recvmmsg(mmsg[0].msg_hdr.msg_iov[0]) 7\n"));
    CHECK(strstr(script, "OUT recvmmsg(mmsg[1].msg_hdr.msg_iov[0]) 9\n"));
    after(1);
    CHECK(!strstr(script, "mmsg[1]"));
}

// ---- Waiting ---------------------------------------------------------------

TEST(poll_reads_fd_and_events_and_writes_revents)
{
    struct pollfd p[1] = { { 0, POLLIN, 0 } };
    CHECK_STR(BEFORE(NR_poll, p, 1, 0),
              "IN poll(ufds.fd) 4\nIN poll(ufds.events) 2\nOUT poll(ufds.revents) 2\n");
    CHECK_STR(after(0), "OUT poll(ufds.revents) 2\n");
    CHECK_EQ(last_address, (u64)&p[0].revents);
    CHECK_STR(after(-EINTR), "OUT poll(ufds.revents) 2\n");
    CHECK_STR(after(-EFAULT), "");
}

TEST(select_sets_are_as_long_as_the_words_that_hold_n_bits)
{
    CHECK_STR(BEFORE(NR_select, 65, buf, 0, 0, 0), "IN select(readfds) 16\n");
    CHECK_STR(BEFORE(NR_select, 64, buf, 0, 0, buf + 100),
              "IN select(readfds) 8\nIN select(timeout) 16\n");
    CHECK_STR(after(1), "OUT select(readfds) 8\nOUT select(timeout) 16\n");
    CHECK_STR(after(-EINTR), "OUT select(timeout) 16\n");
}

TEST(pselect6_reads_the_mask_behind_its_sixth_argument)
{
    u64 pack[2] = { (u64)buf, 8 };
    CHECK_STR(BEFORE(NR_pselect6, 0, 0, 0, 0, 0, pack),
              "IN pselect6(sig) 16\nIN pselect6(sig->ss) 8\n");
}

TEST(epoll_wait_writes_as_many_events_as_it_returns)
{
    CHECK_STR(BEFORE(NR_epoll_wait, 3, buf, 10, 0), "OUT epoll_wait(events) 120\n");
    CHECK_STR(after(2), "OUT epoll_wait(events) 24\n");
}

TEST(epoll_ctl_reads_an_event_unless_it_deletes)
{
    CHECK_STR(BEFORE(NR_epoll_ctl, 3, 1, 4, buf), "IN epoll_ctl(event) 4\n");
    CHECK_STR(BEFORE(NR_epoll_ctl, 3, 2, 4, buf), "");
}

TEST(nanosleep_writes_the_rest_only_when_interrupted)
{
    CHECK_STR(BEFORE(NR_nanosleep, buf, buf + 16),
              "IN nanosleep(req) 16\nOUT nanosleep(rem) 16\n");
    CHECK_STR(after(0), "");
    CHECK_STR(after(-EINTR), "OUT nanosleep(rem) 16\n");
    BEFORE(NR_clock_nanosleep, 0, 1 /* TIMER_ABSTIME */, buf, buf + 16);
    CHECK_STR(after(-EINTR), "");
}

TEST(wait4_writes_nothing_when_no_child_has_changed)
{
    BEFORE(NR_wait4, -1, buf, 1, buf + 8);
    CHECK_STR(after(0), "");
    CHECK_STR(after(77), "OUT wait4(status) 4\nOUT wait4(rusage) 144\n");
}

TEST(futex_operations_use_their_own_arguments)
{
    CHECK_STR(BEFORE(NR_futex, buf, 128 /* FUTEX_WAIT_PRIVATE */, 0, buf + 8),
              "IN futex(futex) 4\nIN futex(timeout) 16\n");
    CHECK_STR(BEFORE(NR_futex, 16, 129 /* FUTEX_WAKE_PRIVATE */, 1, 16, 16), "");
    CHECK_STR(BEFORE(NR_futex, buf, 5 /* FUTEX_WAKE_OP */, 1, 1, buf + 8), "IN futex(futex2) 4\n");
}

// ---- Signals, time, processes ----------------------------------------------

TEST(rt_sigaction_is_checked_member_by_member)
{
    u64 act[4] = { 0, 0, 0, 0 };
    CHECK_STR(BEFORE(NR_rt_sigaction, 10, act, buf, 8),
              "IN rt_sigaction(act->sa_handler) 8\nIN rt_sigaction(act->sa_mask) 8\n"
              "IN rt_sigaction(act->sa_flags) 8\nOUT rt_sigaction(oldact) 32\n");
}

TEST(timer_create_checks_the_members_that_the_notification_uses)
{
    struct sigevent event = { .sigev_notify = 4 /* SIGEV_THREAD_ID */ };
    BEFORE(NR_timer_create, 0, &event, buf);
    CHECK(strstr(script, "IN timer_create(evp.sigev_notify_thread_id) 4\n"));
    event.sigev_notify = SIGEV_SIGNAL;
    CHECK_STR(BEFORE(NR_timer_create, 0, &event, buf),
              "IN timer_create(evp.sigev_value) 8\nIN timer_create(evp.sigev_signo) 4\n"
              "IN timer_create(evp.sigev_notify) 4\nOUT timer_create(timerid) 4\n");
}

TEST(setitimer_names_members_with_an_ampersand)
{
    CHECK_STR(BEFORE(NR_setitimer, 0, buf, 0),
              "IN setitimer(&value->it_interval) 16\nIN setitimer(&value->it_value) 16\n");
}

TEST(adjtimex_reads_only_what_its_modes_set)
{
    u64 timex[26] = { 0 };
    CHECK_STR(BEFORE(NR_adjtimex, timex), "IN adjtimex(timex->modes) 4\nOUT adjtimex(timex) 208\n");
    timex[0] = 2; // ADJ_FREQUENCY
    BEFORE(NR_adjtimex, timex);
    CHECK(strstr(script, "IN adjtimex(timex->freq) 8\n"));
}

TEST(clone_writes_thread_ids_only_when_asked)
{
    CHECK_STR(BEFORE(NR_clone, 0x11, 0, 16, 16, 0), "");
    CHECK_STR(BEFORE(NR_clone, 0x00100011, 0, buf, 16, 0), "OUT clone(parent_tidptr) 4\n");
}

TEST(clone3_checks_the_members_inside_the_given_size)
{
    u64 args[11] = { 0x00100000, 0, 0, (u64)buf, 17 };
    BEFORE(NR_clone3, args, 64);
    CHECK(strstr(script, "OUT clone3(cl_args->parent_tid) 4\n"));
    CHECK(!strstr(script, "set_tid"));
    BEFORE(NR_clone3, args, 88);
    CHECK(strstr(script, "IN clone3(cl_args->set_tid_size) 8\n"));
}

TEST(openat2_reads_what_lies_behind_the_struct_it_knows)
{
    u64 how[5] = { 0 };
    BEFORE(NR_openat2, AT_FDCWD, "x", how, 24);
    CHECK(strstr(script, "IN openat2(how->resolve) 8\n") && !strstr(script, "openat2(how) "));
    BEFORE(NR_openat2, AT_FDCWD, "x", how, 40);
    CHECK(strstr(script, "IN openat2(how) 16\n"));
}

TEST(utimensat_ignores_seconds_beside_utime_now)
{
    u64 times[4] = { 1, 5, 1, 0x3fffffff };
    CHECK_STR(BEFORE(NR_utimensat, AT_FDCWD, 0, times, 0),
              "IN utimensat(times[0].tv_nsec) 8\nIN utimensat(times[0].tv_sec) 8\n"
              "IN utimensat(times[1].tv_nsec) 8\n");
}

// ---- Multiplexers ----------------------------------------------------------

TEST(ioctls_with_a_row_use_it)
{
    CHECK_STR(BEFORE(NR_ioctl, 0, 0x5401, buf), "OUT ioctl(TCGETS) 36\n");
    CHECK_STR(BEFORE(NR_ioctl, 0, 0x5403, buf), "IN ioctl(TCSET{S,SW,SF}) 36\n");
    CHECK_STR(BEFORE(NR_ioctl, 0, 0x40049409, 5), ""); // FICLONE takes a descriptor
    CHECK_STR(syscall_resolve(&call)->name, "FICLONE");
}

TEST(ioctls_without_a_row_are_read_by_their_number)
{
    CHECK_STR(BEFORE(NR_ioctl, 0, 0xc0101234, buf), "IN ioctl(generic) 16\n");
    CHECK_STR(after(0), "OUT ioctl(generic) 16\n");
    CHECK_STR(BEFORE(NR_ioctl, 0, 0x80181234, buf), "OUT ioctl(generic) 24\n");
    CHECK_STR(BEFORE(NR_ioctl, 0, 0x40081234, buf), "IN ioctl(generic) 8\n");
    CHECK_STR(BEFORE(NR_ioctl, 0, 0x1234, 16), "");
}

TEST(an_interface_list_is_as_long_as_it_was_before_the_call)
{
    struct { int len; int padding; void *buf; } conf = { 80, 0, buf };
    BEFORE(NR_ioctl, 3, 0x8912, &conf);
    CHECK(strstr(script, "OUT ioctl(SIOCGIFCONF.ifc_buf) 80\n"));
    conf.len = 40;
    after(0);
    CHECK(strstr(script, "OUT ioctl(SIOCGIFCONF.ifc_buf) 40\n"));
}

TEST(fcntl_follows_locks_and_takes_values)
{
    struct flock lock = { 0 };
    BEFORE(NR_fcntl, 3, F_SETLK, &lock);
    CHECK_STR(script, "IN fcntl(lock->l_type) 2\nIN fcntl(lock->l_whence) 2\n"
                      "IN fcntl(lock->l_start) 8\nIN fcntl(lock->l_len) 8\n");
    CHECK_STR(BEFORE(NR_fcntl, 3, F_SETFL, 16), "");
    CHECK_STR(BEFORE(NR_fcntl, 3, F_GETOWN_EX, buf), "OUT fcntl(F_GETOWN_EX) 8\n");
}

TEST(prctl_follows_names_and_results)
{
    CHECK_STR(BEFORE(NR_prctl, 15, "worker"), "IN prctl(set-name) 7\n");
    CHECK_STR(BEFORE(NR_prctl, 16, buf), "OUT prctl(get-name) 16\n");
    CHECK_STR(BEFORE(NR_prctl, 38, 1), "");
    CHECK_STR(BEFORE(NR_prctl, 99999, 16), "");
}

TEST(bpf_writes_the_verifier_log_also_when_it_fails)
{
    struct { u32 type, count; u64 insns, license; u32 level, size; u64 log; } attr = {
        1, 2, (u64)buf, (u64) "GPL", 1, 500, (u64)buf };
    BEFORE(NR_bpf, 5, &attr, sizeof(attr));
    CHECK(strstr(script, "IN bpf(attr->insns) 16\nIN bpf(attr->license) 4\n"));
    CHECK_STR(after(-EACCES), "OUT bpf(attr->log_buf) 500\n");
}

TEST(an_aio_read_is_complete_when_its_event_is_fetched)
{
    u64 iocb[8] = { 0, 0, 0, (u64)buf, 100 }; // IOCB_CMD_PREAD
    u64 *iocbs[1] = { iocb };
    BEFORE(NR_io_submit, 1, 1, iocbs);
    CHECK(strstr(script, "OUT io_submit(iocbpp->aio_buf) 100\n"));
    CHECK_STR(after(1), "");
    u64 event[4] = { 0, (u64)iocb, 42, 0 };
    CHECK_STR(BEFORE(NR_io_getevents, 1, 1, 1, event, 0),
              "OUT io_getevents(events) 32\n");
    after(1);
    CHECK(strstr(script, "OUT io_getevents(events.obj->aio_buf) 42\n"));
}

TEST(messages_name_registers_too)
{
    char text[64];
    BEFORE(NR_connect, 3, buf, 2);
    CHECK_STR(syscall_arg_text(NR_connect, syscall_resolve(&call), 0, text, sizeof(text)),
              "connect(sockfd)");
    BEFORE(NR_ioctl, 0, 0x5401, buf);
    CHECK_STR(syscall_arg_text(NR_ioctl, syscall_resolve(&call), 2, text, sizeof(text)),
              "ioctl(arg)");
}
