// SPDX-License-Identifier: MIT
//
// Holds the table of system calls against the kernel that runs this test: a call is made
// with buffers full of a pattern, and the bytes that changed are compared with the bytes
// that syscall_ranges() claims were written. Each call is made with two patterns, as a
// byte may be overwritten by the value it had.
//   T1 every byte that changed was claimed;
//   T2 every byte that was claimed had to be addressable before;
//   T3 every byte that was claimed changed with one pattern at least, except where the
//      test says that the kernel leaves holes.
// A call that this kernel or its sandbox refuses proves nothing and is noted.
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/syscall/tables.h"
#include "unit.h"

#define ARENA_SIZE 32768

static u8 arena[ARENA_SIZE] __attribute__((aligned(4096)));
static u8 snapshot[ARENA_SIZE];
static u8 offered[ARENA_SIZE], claimed[2][ARENA_SIZE], changed[2][ARENA_SIZE];
static i64 results[2];
static bool was_offered_earlier; // by another call: aio

#define A(offset) (&arena[offset])
#define AT_ARENA(type, offset) (*(type *)A(offset))

static bool read_self(GuestAddr address, void *dst, size_t len)
{
    struct iovec local = { dst, len }, remote = { (void *)address, len };
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)len;
}

static void mark(const SyscallRange *range, void *mask)
{
    u64 first = range->address - (u64)arena;
    for (u64 i = 0; i < range->size_bytes && first + i < ARENA_SIZE; i++)
        ((u8 *)mask)[first + i] = 1;
}

static i64 raw_syscall(const SyscallCall *c)
{
    register u64 r10 __asm__("r10") = c->args[3];
    register u64 r8 __asm__("r8") = c->args[4];
    register u64 r9 __asm__("r9") = c->args[5];
    u64 result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(c->nr), "D"(c->args[0]), "S"(c->args[1]), "d"(c->args[2]), "r"(r10),
                       "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return (i64)result;
}

static void truth_call(int run, u64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    SyscallCall call = { .nr = nr, .args = { a, b, c, d, e, f }, .read_guest = read_self };
    memset(claimed[run], 0, ARENA_SIZE);
    memset(changed[run], 0, ARENA_SIZE);
    if (!run)
        memset(offered, 0, ARENA_SIZE);
    syscall_ranges(&call, SYSCALL_BEFORE, mark, offered);
    memcpy(snapshot, arena, ARENA_SIZE);
    call.result = (u64)(results[run] = raw_syscall(&call));
    for (int i = 0; i < ARENA_SIZE; i++)
        changed[run][i] = arena[i] != snapshot[i];
    syscall_ranges(&call, SYSCALL_AFTER, mark, claimed[run]);
}

static void truth_judge(int line, bool has_holes)
{
    for (int i = 0; i < ARENA_SIZE; i++) {
        bool was_claimed = claimed[0][i] || claimed[1][i];
        for (int run = 0; run < 2; run++) {
            if (changed[run][i] && !claimed[run][i])
                unit_fail(__FILE__, line, "byte %d was written and not claimed", i);
        }
        if (was_claimed && !offered[i] && !was_offered_earlier)
            unit_fail(__FILE__, line, "byte %d was claimed and not offered", i);
        if (claimed[0][i] && claimed[1][i] && !changed[0][i] && !changed[1][i] && !has_holes)
            unit_fail(__FILE__, line, "byte %d was claimed and not written", i);
    }
}

static void truth_skip(int line)
{
    printf("# line %d: the kernel answered %s\n", line, strerror((int)-results[1]));
}

static bool kernel_refused(i64 result)
{
    return result == -ENOSYS || result == -EPERM || result == -EOPNOTSUPP || result == -EACCES ||
           result == -ENODEV || result == -ENOENT;
}

// Prepares by `setup`, calls, and judges. `wanted` is the errno to expect, 0 for success.
#define PICK(a, b, c, d, e, f, ...) (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), (u64)(f)
#define TRUTH_FULL(wanted, has_holes, setup, nr, ...) \
    do { \
        for (int run = 0; run < 2; run++) { \
            memset(arena, run ? 0x5a : 0xa5, ARENA_SIZE); \
            setup; \
            truth_call(run, nr, PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0)); \
        } \
        if (kernel_refused(results[1]) && !(wanted)) \
            truth_skip(__LINE__); \
        else if ((wanted) ? results[1] != -(wanted) : results[1] < 0) \
            FAIL("%s: the kernel answered %s", #nr, strerror((int)-results[1])); \
        truth_judge(__LINE__, has_holes); \
    } while (0)
#define TRUTH(setup, nr, ...) TRUTH_FULL(0, false, setup, nr, __VA_ARGS__)
#define TRUTH_HOLES(setup, nr, ...) TRUTH_FULL(0, true, setup, nr, __VA_ARGS__)
#define TRUTH_ERROR(wanted, setup, nr, ...) TRUTH_FULL(wanted, false, setup, nr, __VA_ARGS__)

// ---- Files -----------------------------------------------------------------

TEST(stat_calls_write_what_their_rows_claim)
{
    TRUTH((void)0, NR_stat, "/", A(0));
    TRUTH((void)0, NR_lstat, "/", A(0));
    TRUTH((void)0, NR_fstat, 0, A(0));
    TRUTH((void)0, NR_newfstatat, AT_FDCWD, "/", A(0), 0);
    TRUTH((void)0, NR_statx, AT_FDCWD, "/", 0, 0xfff, A(0));
    TRUTH((void)0, NR_statfs, "/", A(0));
    TRUTH((void)0, NR_fstatfs, 0, A(0));
    TRUTH_ERROR(ENOENT, (void)0, NR_stat, "/does/not/exist", A(0));
}

TEST(read_calls_write_what_their_rows_claim)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    TRUTH(lseek(fd, 0, SEEK_SET), NR_read, fd, A(0), 100);
    TRUTH((void)0, NR_pread64, fd, A(10), 1000, 0);
    TRUTH((AT_ARENA(struct iovec, 0) = (struct iovec){ A(100), 10 },
           AT_ARENA(struct iovec, 16) = (struct iovec){ A(200), 20 }, lseek(fd, 0, SEEK_SET)),
          NR_readv, fd, A(0), 2);
    TRUTH((AT_ARENA(struct iovec, 0) = (struct iovec){ A(100), 10 },
           AT_ARENA(struct iovec, 16) = (struct iovec){ A(200), 20 }),
          NR_preadv, fd, A(0), 2, 0, 0);
    TRUTH((AT_ARENA(struct iovec, 0) = (struct iovec){ A(100), 10 }), NR_preadv2, fd, A(0), 1, 0, 0,
          0);
    TRUTH_ERROR(EBADF, (void)0, NR_read, 999, A(0), 100);
    close(fd);
    int pair[2];
    CHECK(pipe(pair) == 0);
    TRUTH((AT_ARENA(struct iovec, 0) = (struct iovec){ A(100), 10 },
           AT_ARENA(struct iovec, 16) = (struct iovec){ A(200), 20 },
           (void)!write(pair[1], "0123456789abc", 13)),
          NR_readv, pair[0], A(0), 2); // ends inside the second buffer
    close(pair[0]);
    close(pair[1]);
}

TEST(process_vm_readv_writes_local_memory)
{
    TRUTH((AT_ARENA(struct iovec, 0) = (struct iovec){ A(100), 10 },
           AT_ARENA(struct iovec, 16) = (struct iovec){ (void *)"0123456789", 7 }),
          NR_process_vm_readv, getpid(), A(0), 1, A(16), 1, 0);
}

TEST(names_and_directory_entries_are_as_long_as_the_result)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    TRUTH((void)0, NR_getcwd, A(0), 4096);
    TRUTH((void)0, NR_readlink, "/proc/self/exe", A(0), 1000);
    TRUTH((void)0, NR_readlinkat, AT_FDCWD, "/proc/self/exe", A(0), 3);
    // Entries are padded to 8 bytes.
    TRUTH_HOLES(lseek(fd, 0, SEEK_SET), NR_getdents64, fd, A(0), 8192);
    TRUTH_HOLES(lseek(fd, 0, SEEK_SET), NR_getdents, fd, A(0), 8192);
    close(fd);
}

TEST(file_handles_tell_the_size_they_need)
{
    TRUTH(AT_ARENA(u32, 0) = 128, NR_name_to_handle_at, AT_FDCWD, "/proc", A(0), A(512), 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = 128, NR_name_to_handle_at, AT_FDCWD, "/", A(0), A(512), 0);
    TRUTH_FULL(EOVERFLOW, true, AT_ARENA(u32, 0) = 0, NR_name_to_handle_at, AT_FDCWD, "/", A(0),
               A(512), 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = 128, NR_name_to_handle_at, AT_FDCWD, "/", A(0), A(512), 1);
}

TEST(offsets_are_written_back)
{
    int in = memfd_create("in", 0), out = memfd_create("out", 0), pair[2];
    CHECK(pipe(pair) == 0 && ftruncate(in, 10000) == 0);
    TRUTH_HOLES(AT_ARENA(u64, 0) = 0, NR_sendfile, out, in, A(0), 100);
    TRUTH_HOLES((AT_ARENA(u64, 0) = 0, AT_ARENA(u64, 8) = 5), NR_copy_file_range, in, A(0), out,
                A(8), 100, 0);
    TRUTH_HOLES(AT_ARENA(u64, 0) = 0, NR_splice, in, A(0), pair[1], 0, 100, 0);
    close(in), close(out), close(pair[0]), close(pair[1]);
}

TEST(extended_attributes_are_as_long_as_the_result)
{
    int fd = memfd_create("attributes", 0);
    if (syscall(NR_fsetxattr, fd, "user.x", "hello", 5, 0) == 0) {
        TRUTH((void)0, NR_fgetxattr, fd, "user.x", A(0), 100);
        TRUTH((void)0, NR_fgetxattr, fd, "user.x", A(0), 0);
        TRUTH((void)0, NR_flistxattr, fd, A(0), 100);
    }
    close(fd);
}

TEST(file_attributes_fill_the_size_given)
{
    TRUTH_HOLES((void)0, NR_file_getattr, AT_FDCWD, "/", A(0), 24, 0);
    TRUTH_HOLES((void)0, NR_file_getattr, AT_FDCWD, "/", A(0), 64, 0);
}

TEST(pipes_and_locks_are_written_as_claimed)
{
    int fd = memfd_create("lock", 0);
    TRUTH((void)0, NR_pipe, A(0));
    TRUTH((void)0, NR_pipe2, A(0), O_CLOEXEC);
    TRUTH_HOLES(AT_ARENA(struct flock, 0) = (struct flock){ .l_type = F_RDLCK }, NR_fcntl, fd,
                F_GETLK, A(0));
    TRUTH((void)0, NR_fcntl, fd, F_GETOWN_EX, A(0));
    TRUTH((void)0, NR_fcntl, fd, 1035, A(0)); // F_GET_RW_HINT
    TRUTH((void)0, NR_cachestat, fd, memset(A(100), 0, 16), A(0), 0);
    close(fd);
    for (int i = 3; i < 64; i++)
        close(i);
}

TEST(mounts_are_described_as_claimed)
{
    u8 x[256];
    CHECK(syscall(NR_statx, AT_FDCWD, "/", 0, 0x4000 /* STATX_MNT_ID_UNIQUE */, x) == 0);
    u64 id;
    memcpy(&id, x + 0x90, sizeof(id)); // stx_mnt_id
    u64 request[3] = { 24, id, 2 };     // STATMOUNT_MNT_BASIC
    TRUTH_HOLES(memcpy(A(4096), request, 24), NR_statmount, A(4096), A(0), 2048, 0);
    u64 list[3] = { 24, ~0ull, 0 }; // LSMT_ROOT
    TRUTH(memcpy(A(4096), list, 24), NR_listmount, A(4096), A(0), 4, 0);
}

// ---- Waiting ---------------------------------------------------------------

TEST(waiting_calls_write_only_what_became_ready)
{
    int pair[2];
    CHECK(pipe(pair) == 0 && write(pair[1], "x", 1) == 1);
    struct pollfd p[2] = { { pair[0], POLLIN, 0x5a5a }, { pair[1], POLLOUT, 0x5a5a } };
    struct timespec second = { 1, 0 };
    TRUTH((memcpy(A(0), p, sizeof(p)), AT_ARENA(u16, 6) = run ? 0x5a5a : 0xa5a5,
           AT_ARENA(u16, 14) = run ? 0x5a5a : 0xa5a5),
          NR_poll, A(0), 2, 0);
    TRUTH_HOLES((memcpy(A(0), p, sizeof(p)), memcpy(A(64), &second, 16)), NR_ppoll, A(0), 2, A(64),
                0, 8);
    // 64 descriptors, one word; the second one in the arena must stay as it is.
    TRUTH_HOLES((memset(A(0), 0, 8), A(0)[pair[0] / 8] = (u8)(1 << pair[0] % 8),
                 memcpy(A(64), &second, 16)),
                NR_select, pair[0] + 1, A(0), 0, 0, A(64));
    TRUTH_HOLES((memset(A(0), 0, 8), A(0)[pair[0] / 8] = (u8)(1 << pair[0] % 8),
                 memcpy(A(64), &second, 16)),
                NR_pselect6, pair[0] + 1, A(0), 0, 0, A(64), 0);
    int ep = epoll_create1(0);
    struct epoll_event event = { EPOLLIN, { .u64 = 0x1122334455667788 } };
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &event) == 0);
    TRUTH((void)0, NR_epoll_wait, ep, A(0), 10, 0);
    TRUTH((void)0, NR_epoll_pwait, ep, A(0), 10, 0, 0, 8);
    close(ep), close(pair[0]), close(pair[1]);
}

static void on_alarm(int signal)
{
    (void)signal;
}

// And again: the first time the call may not have begun.
static void interrupt_soon(void)
{
    struct sigaction action = { .sa_handler = on_alarm };
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
    setitimer(ITIMER_REAL, &timer, NULL);
}

TEST(interrupted_calls_write_the_rest_of_the_time)
{
    struct timespec second = { 1, 0 };
    TRUTH_ERROR(EINTR, (memcpy(A(0), &second, 16), interrupt_soon()), NR_nanosleep, A(0), A(64));
    TRUTH_ERROR(EINTR, (memcpy(A(0), &second, 16), interrupt_soon()), NR_clock_nanosleep, 0, 0,
                A(0), A(64));
    TRUTH_FULL(EINTR, true, (memcpy(A(0), &second, 16), interrupt_soon()), NR_select, 0, 0, 0, 0,
               A(0));
    struct pollfd p = { -1, 0, 0x7777 };
    TRUTH_FULL(EINTR, true, (memcpy(A(0), &p, 8), interrupt_soon()), NR_poll, A(0), 1, 1000);
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
    TRUTH((memcpy(A(0), (u64[2]){ 0, 1000 }, 16)), NR_nanosleep, A(0), A(64));
}

TEST(waiting_for_children_writes_only_when_one_changed)
{
    // A child that ends at once: the second run waits for a second child.
    TRUTH((fork() ? 0 : (_exit(3), 0)), NR_wait4, -1, A(0), 0, A(64));
    TRUTH_HOLES((fork() ? 0 : (_exit(3), 0)), NR_waitid, P_ALL, 0, A(0), WEXITED, A(512));
    pid_t child = fork();
    if (!child) {
        pause();
        _exit(0);
    }
    TRUTH((void)0, NR_wait4, child, A(0), WNOHANG, A(64));
    TRUTH((void)0, NR_waitid, P_PID, child, A(0), WEXITED | WNOHANG, 0);
    TRUTH_ERROR(ECHILD, (void)0, NR_waitid, P_PID, getpid(), A(0), WEXITED, 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

// ---- Time, signals, limits -------------------------------------------------

TEST(clocks_and_timers_are_written_as_claimed)
{
    TRUTH((void)0, NR_gettimeofday, A(0), A(64));
    TRUTH((void)0, NR_time, A(0));
    TRUTH((void)0, NR_clock_gettime, 0, A(0));
    TRUTH((void)0, NR_clock_getres, 0, A(0));
    TRUTH((void)0, NR_times, A(0));
    TRUTH((void)0, NR_getitimer, 0, A(0));
    TRUTH(memset(A(64), 0, 32), NR_setitimer, 0, A(64), A(0));
    TRUTH_HOLES(memset(A(0), 0, 4), NR_adjtimex, A(0)); // ends in padding
    TRUTH((void)0, NR_timer_create, 0, 0, A(0));
    timer_t timer;
    CHECK(timer_create(0, NULL, &timer) == 0);
    TRUTH((void)0, NR_timer_gettime, timer, A(0));
    TRUTH(memset(A(64), 0, 32), NR_timer_settime, timer, 0, A(64), A(0));
    timer_delete(timer);
    int fd = timerfd_create(0, 0);
    TRUTH((void)0, NR_timerfd_gettime, fd, A(0));
    TRUTH(memset(A(64), 0, 32), NR_timerfd_settime, fd, 0, A(64), A(0));
    close(fd);
}

TEST(signal_state_is_written_as_claimed)
{
    TRUTH((void)0, NR_rt_sigaction, SIGUSR1, 0, A(0), 8);
    TRUTH((void)0, NR_rt_sigprocmask, 0, 0, A(0), 8);
    TRUTH((void)0, NR_rt_sigpending, A(0), 8);
    TRUTH((void)0, NR_sigaltstack, 0, A(0));
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    TRUTH((memcpy(A(512), &set, 8), raise(SIGUSR1)), NR_rt_sigtimedwait, A(512), A(0), 0, 8);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

TEST(limits_and_identities_are_written_as_claimed)
{
    TRUTH((void)0, NR_uname, A(0));
    TRUTH((void)0, NR_sysinfo, A(0));
    TRUTH((void)0, NR_getrlimit, 7, A(0));
    TRUTH((void)0, NR_prlimit64, 0, 7, 0, A(0));
    TRUTH((void)0, NR_getrusage, 0, A(0));
    TRUTH((void)0, NR_getresuid, A(0), A(8), A(16));
    TRUTH((void)0, NR_getresgid, A(0), A(8), A(16));
    TRUTH((void)0, NR_getgroups, 64, A(0));
    TRUTH((void)0, NR_getgroups, 0, A(0));
    // The header is only read when its version is known.
    TRUTH_HOLES(memcpy(A(0), (u32[2]){ 0x20080522, 0 }, 8), NR_capget, A(0), A(64));
    TRUTH_FULL(EINVAL, true, memcpy(A(0), (u32[2]){ 1, 0 }, 8), NR_capget, A(0), A(64));
    TRUTH((void)0, NR_sched_getparam, 0, A(0));
    TRUTH((void)0, NR_sched_rr_get_interval, 0, A(0));
    TRUTH((void)0, NR_sched_getaffinity, 0, 128, A(0));
    TRUTH((void)0, NR_sched_getattr, 0, A(0), 56, 0);
    TRUTH((void)0, NR_sched_getattr, 0, A(0), 256, 0);
    TRUTH((void)0, NR_getcpu, A(0), A(8), 0);
    TRUTH_HOLES((void)0, NR_getrandom, A(0), 4000, 0); // chance may write what was there
    TRUTH((void)0, NR_get_robust_list, 0, A(0), A(8));
}

TEST(memory_calls_write_a_byte_a_page_or_a_bit_a_node)
{
    TRUTH((void)0, NR_mincore, A(0), 3 * 4096 + 0, A(20000));
    TRUTH((void)0, NR_mincore, A(0), 3 * 4096 + 1, A(20000));
    TRUTH((void)0, NR_get_mempolicy, A(0), 0, 0, 0, 0);
    TRUTH((void)0, NR_get_mempolicy, A(0), A(64), 1025, 0, 0);
    TRUTH(AT_ARENA(void *, 0) = arena, NR_move_pages, 0, 1, A(0), 0, A(64), 0);
}

TEST(prctl_writes_by_operation)
{
    TRUTH((void)0, NR_prctl, PR_GET_NAME, A(0));
    TRUTH((void)0, NR_prctl, PR_GET_PDEATHSIG, A(0));
    TRUTH((void)0, NR_prctl, PR_GET_TSC, A(0));
    TRUTH((void)0, NR_prctl, PR_GET_CHILD_SUBREAPER, A(0));
    TRUTH((void)0, NR_prctl, 0x41555856, A(0), 4096, 0, 0); // PR_GET_AUXV
    TRUTH((void)0, NR_arch_prctl, 0x1003, A(0));
    TRUTH((void)0, NR_arch_prctl, 0x1021, A(0));
    TRUTH((void)0, NR_arch_prctl, 0x1022, A(0));
    TRUTH((void)0, NR_seccomp, 3, 0, A(0));
    TRUTH_HOLES(AT_ARENA(u32, 4096) = 4096, NR_lsm_list_modules, A(0), A(4096), 0);
}

// ---- Sockets ---------------------------------------------------------------

static struct sockaddr_un abstract_name(const char *name)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    strcpy(a.sun_path + 1, name);
    return a;
}

TEST(addresses_stay_inside_the_length_given)
{
    struct sockaddr_un a = abstract_name("muninn-syscall-truth");
    socklen_t len = (socklen_t)(3 + strlen(a.sun_path + 1));
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(server, (void *)&a, len) == 0 && listen(server, 5) == 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = 110, NR_getsockname, server, A(64), A(0));
    TRUTH_HOLES(AT_ARENA(u32, 0) = 5, NR_getsockname, server, A(64), A(0)); // truncated
    CHECK(connect(client, (void *)&a, len) == 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = 110, NR_getpeername, client, A(64), A(0));
    int other = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(other, (void *)&a, len) == 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = 110, NR_accept, server, A(64), A(0));
    TRUTH((void)0, NR_socketpair, AF_UNIX, SOCK_STREAM, 0, A(0));
    close(server), close(client), close(other);
}

TEST(socket_options_stay_inside_the_length_given)
{
    int s = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_UNIX, SOCK_STREAM, 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = 64, NR_getsockopt, s, SOL_SOCKET, SO_RCVBUF, A(64), A(0));
    TRUTH_HOLES(AT_ARENA(u32, 0) = 2, NR_getsockopt, s, SOL_SOCKET, SO_RCVBUF, A(64), A(0));
    TRUTH_HOLES(AT_ARENA(u32, 0) = 64, NR_getsockopt, s, SOL_SOCKET, SO_LINGER, A(64), A(0));
    TRUTH_HOLES(AT_ARENA(u32, 0) = 500, NR_getsockopt, s, IPPROTO_TCP, 11, A(64), A(0)); // TCP_INFO
    TRUTH_HOLES(AT_ARENA(u32, 0) = 64, NR_getsockopt, s, IPPROTO_TCP, 13, A(64), A(0));
    TRUTH_HOLES(AT_ARENA(u32, 0) = 64, NR_getsockopt, u, SOL_SOCKET, SO_PEERCRED, A(64), A(0));
    close(s), close(u);
}

static void set_message(int offset, int iov, int data, unsigned len)
{
    AT_ARENA(struct iovec, iov) = (struct iovec){ A(data), len };
    AT_ARENA(struct msghdr, offset) = (struct msghdr){
        .msg_iov = (void *)A(iov), .msg_iovlen = 1,
        .msg_name = A(data + 1000), .msg_namelen = 20,
        .msg_control = A(data + 2000), .msg_controllen = 100,
    };
}

static void send_descriptor(int socket_fd)
{
    struct { struct cmsghdr head; int fd; int padding; } control = {
        { CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS }, 0, 0 };
    struct iovec v = { (void *)"message", 7 };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
                        .msg_controllen = sizeof(control) };
    sendmsg(socket_fd, &m, 0);
}

TEST(messages_are_written_piece_by_piece)
{
    struct sockaddr_un a = abstract_name("muninn-syscall-truth-datagram");
    socklen_t len = (socklen_t)(3 + strlen(a.sun_path + 1));
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    CHECK(bind(pair[0], (void *)&a, len) == 0);
    TRUTH_HOLES((AT_ARENA(u32, 0) = 20, send_descriptor(pair[0])), NR_recvfrom, pair[1], A(64), 100,
                0, A(512), A(0)); // a name longer than its buffer
    TRUTH_HOLES((set_message(0, 512, 1024, 100), send_descriptor(pair[0])), NR_recvmsg, pair[1],
                A(0), 0);
    TRUTH_HOLES((set_message(0, 512, 1024, 3), send_descriptor(pair[0])), NR_recvmsg, pair[1], A(0),
                0);
    TRUTH_HOLES((set_message(0, 512, 8192, 100), set_message(64, 600, 16384, 100),
                 send_descriptor(pair[0]), send_descriptor(pair[0])),
                NR_recvmmsg, pair[1], A(0), 2, MSG_DONTWAIT, 0);
    TRUTH_HOLES((set_message(0, 512, 8192, 100), AT_ARENA(struct msghdr, 0).msg_name = NULL,
                 AT_ARENA(struct msghdr, 0).msg_controllen = 0),
                NR_sendmmsg, pair[0], A(0), 1, MSG_DONTWAIT);
    for (int i = 3; i < 64; i++)
        close(i);
}

// ---- Inter-process communication -------------------------------------------

TEST(system_v_objects_are_described_as_claimed)
{
    int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 5, 0600);
    int segment = shmget(IPC_PRIVATE, 4096, 0600);
    struct { long type; char text[20]; } message = { 1, "hello" };
    if (queue >= 0) {
        TRUTH(msgsnd(queue, &message, 5, 0), NR_msgrcv, queue, A(0), 100, 0, 0);
        TRUTH((void)0, NR_msgctl, queue, IPC_STAT, A(0));
        TRUTH((void)0, NR_msgctl, queue, 3, A(0));
        msgctl(queue, IPC_RMID, NULL);
    }
    if (set >= 0) {
        TRUTH((void)0, NR_semctl, set, 0, 13 /* GETALL */, A(0));
        TRUTH((void)0, NR_semctl, set, 0, IPC_STAT, A(0));
        TRUTH((void)0, NR_semctl, set, 0, 3, A(0));
        semctl(set, 0, IPC_RMID);
    }
    if (segment >= 0) {
        TRUTH((void)0, NR_shmctl, segment, IPC_STAT, A(0));
        TRUTH((void)0, NR_shmctl, segment, 3, A(0));
        TRUTH((void)0, NR_shmctl, segment, 14, A(0));
        shmctl(segment, IPC_RMID, NULL);
    }
}

TEST(posix_queues_deliver_as_claimed)
{
    struct { long flags, maxmsg, msgsize, curmsgs, reserved[4]; } attr = { 0, 4, 64, 0, { 0 } };
    int queue = (int)syscall(NR_mq_open, "muninn-truth", O_CREAT | O_RDWR, 0600, &attr);
    if (queue < 0)
        return;
    TRUTH(syscall(NR_mq_timedsend, queue, "hello", 5, 3, NULL), NR_mq_timedreceive, queue, A(0), 64,
          A(100), 0);
    TRUTH((void)0, NR_mq_getsetattr, queue, 0, A(0));
    syscall(NR_mq_unlink, "muninn-truth");
    close(queue);
}

TEST(keys_that_do_not_fit_are_not_written)
{
    long key = syscall(NR_add_key, "user", "muninn-truth", "payload", 7, -2 /* process keyring */);
    if (key < 0)
        return;
    TRUTH((void)0, NR_keyctl, 6, key, A(0), 200);
    TRUTH((void)0, NR_keyctl, 6, key, A(0), 4); // too short: the length alone comes back
    TRUTH((void)0, NR_keyctl, 11, key, A(0), 200);
    TRUTH((void)0, NR_keyctl, 11, key, A(0), 3);
    TRUTH((void)0, NR_keyctl, 17, key, A(0), 200);
    TRUTH_HOLES((void)0, NR_keyctl, 31, A(0), 2);
}

TEST(futexes_are_written_by_operation)
{
    TRUTH_HOLES(AT_ARENA(u32, 0) = 0, NR_futex, A(0), 6 /* FUTEX_LOCK_PI */, 0, 0);
    TRUTH_HOLES(AT_ARENA(u32, 0) = (u32)gettid(), NR_futex, A(0), 7 /* FUTEX_UNLOCK_PI */);
    TRUTH_HOLES((AT_ARENA(u32, 0) = 0, AT_ARENA(u32, 8) = 5), NR_futex, A(0),
                5 /* FUTEX_WAKE_OP */, 1, 1, A(8), 0x01000000 | 7 << 12);
}

TEST(ptrace_writes_by_request)
{
    pid_t child = fork();
    if (!child) {
        raw_syscall(&(SyscallCall){ .nr = NR_ptrace });
        raise(SIGSTOP);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    TRUTH((void)0, NR_ptrace, 2 /* PTRACE_PEEKDATA */, child, arena, A(0));
    TRUTH((void)0, NR_ptrace, 12 /* PTRACE_GETREGS */, child, 0, A(0));
    TRUTH_HOLES((void)0, NR_ptrace, 14 /* PTRACE_GETFPREGS */, child, 0, A(0));
    TRUTH((void)0, NR_ptrace, 0x4201 /* PTRACE_GETEVENTMSG */, child, 0, A(0));
    TRUTH((void)0, NR_ptrace, 0x4202 /* PTRACE_GETSIGINFO */, child, 0, A(0));
    TRUTH((void)0, NR_ptrace, 0x420a /* PTRACE_GETSIGMASK */, child, 8, A(0));
    TRUTH_HOLES((void)0, NR_ptrace, 0x420e /* PTRACE_GET_SYSCALL_INFO */, child, 88, A(0));
    TRUTH_HOLES((void)0, NR_ptrace, 0x420f /* PTRACE_GET_RSEQ_CONFIGURATION */, child, 24, A(0));
    TRUTH_HOLES((AT_ARENA(struct iovec, 0) = (struct iovec){ A(64), 4000 }), NR_ptrace,
                0x4204 /* PTRACE_GETREGSET */, child, 1, A(0));
    TRUTH_HOLES((AT_ARENA(struct iovec, 0) = (struct iovec){ A(64), 16 }), NR_ptrace,
                0x4204 /* PTRACE_GETREGSET */, child, 1, A(0));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

// ---- Devices ---------------------------------------------------------------

TEST(terminal_ioctls_have_the_kernels_sizes)
{
    int master, slave;
    if (openpty(&master, &slave, NULL, NULL, NULL) != 0)
        return;
    TRUTH((void)0, NR_ioctl, slave, 0x5401, A(0));     // TCGETS
    TRUTH((void)0, NR_ioctl, slave, 0x802c542a, A(0)); // TCGETS2
    TRUTH_HOLES((void)0, NR_ioctl, slave, 0x5405, A(0)); // TCGETA
    TRUTH((void)0, NR_ioctl, slave, TIOCGWINSZ, A(0));
    TRUTH((void)0, NR_ioctl, slave, TIOCGETD, A(0));
    TRUTH((void)0, NR_ioctl, slave, TIOCGSOFTCAR, A(0));
    TRUTH((void)0, NR_ioctl, slave, FIONREAD, A(0));
    TRUTH((void)0, NR_ioctl, slave, TIOCOUTQ, A(0));
    TRUTH((void)0, NR_ioctl, master, TIOCGPTN, A(0));
    TRUTH((void)0, NR_ioctl, slave, TIOCGEXCL, A(0));
    close(master), close(slave);
}

TEST(interface_ioctls_have_the_kernels_sizes)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    TRUTH_HOLES((AT_ARENA(int, 0) = 400, AT_ARENA(void *, 8) = A(1024)), NR_ioctl, s, 0x8912, A(0));
    TRUTH_HOLES(strcpy((char *)A(0), "lo"), NR_ioctl, s, 0x8913, A(0));
    TRUTH_HOLES(strcpy((char *)A(0), "lo"), NR_ioctl, s, 0x8921, A(0));
    TRUTH_HOLES(strcpy((char *)A(0), "lo"), NR_ioctl, s, 0x8927, A(0));
    TRUTH_HOLES(strcpy((char *)A(0), "lo"), NR_ioctl, s, 0x8933, A(0));
    TRUTH_HOLES(AT_ARENA(int, 16) = 1, NR_ioctl, s, 0x8910, A(0));
    close(s);
}

TEST(file_ioctls_have_the_kernels_sizes)
{
    int fd = open("/proc/self/exe", O_RDONLY), random = open("/dev/random", O_RDONLY);
    TRUTH((void)0, NR_ioctl, fd, 2, A(0));          // FIGETBSZ
    TRUTH((void)0, NR_ioctl, fd, 0x5460, A(0));     // FIOQSIZE
    TRUTH((void)0, NR_ioctl, fd, 0x80086601, A(0)); // FS_IOC_GETFLAGS
    TRUTH((void)0, NR_ioctl, fd, 0x801c581f, A(0)); // FS_IOC_FSGETXATTR
    TRUTH((void)0, NR_ioctl, random, 0x80045200, A(0));
    TRUTH_HOLES((memset(A(0), 0, 32), AT_ARENA(u64, 8) = ~0ull, AT_ARENA(u32, 24) = 4), NR_ioctl,
                fd, 0xc020660b, A(0)); // FS_IOC_FIEMAP
    close(fd), close(random);
}

// ---- Asynchronous input and output -----------------------------------------

TEST(aio_buffers_are_written_when_their_event_is_fetched)
{
    aio_context_t context = 0;
    int fd = open("/proc/self/exe", O_RDONLY);
    if (syscall(NR_io_setup, 8, &context) != 0)
        return;
    struct iocb request = { .aio_fildes = (u32)fd, .aio_lio_opcode = IOCB_CMD_PREAD,
                            .aio_buf = (u64)A(1024), .aio_nbytes = 100 };
    struct iocb *requests[1] = { &request };
    // The buffer was offered when the request was submitted, and may be full already.
    was_offered_earlier = true;
    TRUTH_HOLES(syscall(NR_io_submit, context, 1, requests), NR_io_getevents, context, 1, 1, A(0),
                0);
    was_offered_earlier = false;
    syscall(NR_io_destroy, context);
    close(fd);
}

TEST(io_uring_parameters_are_written_back)
{
    TRUTH_HOLES(memset(A(0), 0, 120), NR_io_uring_setup, 4, A(0));
    if (results[1] >= 0) {
        int ring = (int)results[1];
        TRUTH_HOLES(memset(A(512), 0, 16 + 8 * 64), NR_io_uring_register, ring, 8, A(512), 64);
        TRUTH_HOLES(memset(A(512), 0, 8), NR_io_uring_register, ring, 19, A(512), 2);
        close(ring);
    }
}
