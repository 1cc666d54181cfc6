// SPDX-License-Identifier: MIT
//
// Threads that sleep, each in another system call, for 1.5 seconds: until their timeout, or
// until the waker does what they wait for. While they are being asked what they do, results
// and times must be what they are when nobody asks. Prints a line for each that is wrong,
// and `done`. With an argument they sleep until standard input ends, and nothing is checked.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A sleep that begins anew with each question never ends; one that is only late is the machine's.
enum { DURATION_MS = 1500, HOLD_MS = 600000, EARLY_MS = 3, LATE_MS = 60000, BULK = 1 << 20 };

static int duration_ms = DURATION_MS;
static struct timespec duration;
static const struct timespec slack = {0, 300000000};
static int pipes[16][2]; // silent until the waker writes into them
static int pair[2], bulk_pair[2], waitall_pair[2], bulk_pipe[2];
static int sem_id, sem_quiet, msg_id;
static pid_t child;
static atomic_int handled;
static atomic_int begun; // threads that know when they began

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int failed(const char *name, const char *what, long result)
{
    printf("FAIL %s: %s (%ld, errno %d)\n", name, what, result, errno);
    return 1;
}

#define EXPECT(result, wanted, wanted_errno)                                                \
    do {                                                                                    \
        long got = (long)(result);                                                          \
        if (got != (long)(wanted) || (got == -1 && errno != (wanted_errno)))                \
            return failed(name, #result, got);                                              \
        return 0;                                                                           \
    } while (0)

// ------------------------------------------------------------ until the timeout

static int in_poll(const char *name)
{
    struct pollfd fd = {pipes[0][0], POLLIN, 0};
    EXPECT(poll(&fd, 1, duration_ms), 0, 0);
}

static int in_ppoll(const char *name)
{
    struct pollfd fd = {pipes[0][0], POLLIN, 0};
    sigset_t all;
    sigfillset(&all);
    EXPECT(ppoll(&fd, 1, &duration, &all), 0, 0);
}

static int in_select(const char *name)
{
    struct timeval left = {duration_ms / 1000, duration_ms % 1000 * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0][0], &set);
    EXPECT(syscall(SYS_select, pipes[0][0] + 1, &set, NULL, NULL, &left), 0, 0);
}

static int in_pselect(const char *name)
{
    fd_set set;
    sigset_t none;
    FD_ZERO(&set);
    FD_SET(pipes[0][0], &set);
    sigemptyset(&none);
    EXPECT(pselect(pipes[0][0] + 1, &set, NULL, NULL, &duration, &none), 0, 0);
}

static int in_epoll_wait(const char *name)
{
    struct epoll_event event;
    EXPECT(syscall(SYS_epoll_wait, epoll_create1(0), &event, 1, duration_ms), 0, 0);
}

static int in_epoll_pwait(const char *name)
{
    struct epoll_event event;
    sigset_t all;
    sigfillset(&all);
    EXPECT(epoll_pwait(epoll_create1(0), &event, 1, duration_ms, &all), 0, 0);
}

static int in_epoll_pwait2(const char *name)
{
    struct epoll_event event;
    long r = syscall(441, epoll_create1(0), &event, 1, &duration, NULL, 0);
    if (r == -1 && errno == ENOSYS) {
        nanosleep(&duration, NULL);
        return 0;
    }
    EXPECT(r, 0, 0);
}

static int in_nanosleep(const char *name)
{
    struct timespec left;
    EXPECT(nanosleep(&duration, &left), 0, 0);
}

static int in_nanosleep_without_rest(const char *name)
{
    EXPECT(syscall(SYS_nanosleep, &duration, NULL), 0, 0);
}

static int in_clock_nanosleep(const char *name)
{
    EXPECT(clock_nanosleep(CLOCK_REALTIME, 0, &duration, NULL), 0, 0);
}

static struct timespec point(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    now.tv_sec += duration_ms / 1000;
    now.tv_nsec += duration_ms % 1000 * 1000000;
    if (now.tv_nsec >= 1000000000) {
        now.tv_sec++;
        now.tv_nsec -= 1000000000;
    }
    return now;
}

static int in_clock_nanosleep_until(const char *name)
{
    struct timespec until = point(CLOCK_MONOTONIC);
    EXPECT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), 0, 0);
}

static int in_futex(const char *name)
{
    int word = 7;
    EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT, 7, &duration), -1, ETIMEDOUT);
}

static int in_futex_until(const char *name)
{
    int word = 7;
    struct timespec until = point(CLOCK_MONOTONIC);
    EXPECT(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 7, &until, NULL, 1), -1, ETIMEDOUT);
}

static int in_sigtimedwait(const char *name)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    EXPECT(sigtimedwait(&set, NULL, &duration), -1, EAGAIN);
}

static int in_sigtimedwait_for_all(const char *name)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    EXPECT(sigtimedwait(&all, NULL, &duration), -1, EAGAIN);
}

static int in_semtimedop(const char *name)
{
    struct sembuf down = {0, -1, 0};
    EXPECT(semtimedop(sem_quiet, &down, 1, &duration), -1, EAGAIN);
}

static int in_io_getevents(const char *name)
{
    aio_context_t context = 0;
    struct io_event event;
    struct timespec timeout = duration;
    if (syscall(SYS_io_setup, 1, &context) != 0)
        return nanosleep(&duration, NULL);
    EXPECT(syscall(SYS_io_getevents, context, 1, 1, &event, &timeout), 0, 0);
}

static int timed_socket(int option)
{
    struct timeval timeout = {duration_ms / 1000, duration_ms % 1000 * 1000};
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    setsockopt(ends[0], SOL_SOCKET, option, &timeout, sizeof timeout);
    return ends[0];
}

static int in_recv_with_timeout(const char *name)
{
    char byte;
    EXPECT(recv(timed_socket(SO_RCVTIMEO), &byte, 1, 0), -1, EAGAIN);
}

static int in_read_with_timeout(const char *name)
{
    char byte;
    EXPECT(read(timed_socket(SO_RCVTIMEO), &byte, 1), -1, EAGAIN);
}

static int in_send_with_timeout(const char *name)
{
    static char data[1 << 16];
    int fd = timed_socket(SO_SNDTIMEO);
    while (send(fd, data, sizeof data, MSG_DONTWAIT) > 0)
        ;
    while (send(fd, data, 1, MSG_DONTWAIT) > 0)
        ;
    EXPECT(send(fd, data, sizeof data, 0), -1, EAGAIN);
}

static int in_accept_with_timeout(const char *name)
{
    struct timeval timeout = {duration_ms / 1000, duration_ms % 1000 * 1000};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path + 1, 60, "muninn-sleepers-%d", getpid());
    bind(fd, (struct sockaddr *)&address, sizeof address);
    listen(fd, 1);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    EXPECT(accept(fd, NULL, NULL), -1, EAGAIN);
}

// ------------------------------------------------------------- until the waker

static int in_read(const char *name)
{
    char byte;
    EXPECT(read(pipes[1][0], &byte, 1), 1, 0);
}

static int in_read_all_blocked(const char *name)
{
    char byte;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    EXPECT(read(pipes[2][0], &byte, 1), 1, 0);
}

static int in_poll_for_ever(const char *name)
{
    struct pollfd fd = {pipes[3][0], POLLIN, 0};
    EXPECT(poll(&fd, 1, -1), 1, 0);
}

static int in_recvmmsg(const char *name)
{
    char data[8];
    struct iovec vector = {data, sizeof data};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};
    EXPECT(recvmmsg(pair[0], &message, 1, 0, NULL), 1, 0);
}

static int in_semop(const char *name)
{
    struct sembuf down = {0, -1, 0};
    EXPECT(syscall(SYS_semop, sem_id, &down, 1), 0, 0);
}

static int in_msgrcv(const char *name)
{
    struct { long type; char text[8]; } message;
    EXPECT(msgrcv(msg_id, &message, sizeof message.text, 0, 0), 4, 0);
}

static int in_wait(const char *name)
{
    EXPECT(waitpid(child, NULL, 0), child, 0);
}

static int in_fcntl(const char *name)
{
    struct flock lock = {.l_type = F_WRLCK};
    char path[] = "/tmp/muninn-sleepers-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    pid_t holder = fork();
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fcntl(fd, F_SETLKW, &lock);
        if (write(pipes[4][1], "x", 1) != 1)
            _exit(1);
        nanosleep(&duration, NULL);
        _exit(0);
    }
    char byte;
    if (read(pipes[4][0], &byte, 1) != 1)
        return failed(name, "read", 0);
    long r = fcntl(fd, F_SETLKW, &lock);
    waitpid(holder, NULL, 0);
    EXPECT(r, 0, 0);
}

static int in_write(const char *name)
{
    static char data[BULK];
    EXPECT(write(bulk_pipe[1], data, sizeof data), BULK, 0);
}

static int in_send(const char *name)
{
    static char data[BULK];
    EXPECT(send(bulk_pair[1], data, sizeof data, 0), BULK, 0);
}

static int in_recv_all(const char *name)
{
    char data[100];
    EXPECT(recv(waitall_pair[0], data, sizeof data, MSG_WAITALL), 100, 0);
}

static int in_signalfd(const char *name)
{
    struct signalfd_siginfo info;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    int fd = signalfd(-1, &all, 0);
    long n = read(fd, &info, sizeof info);
    if (n != sizeof info || info.ssi_signo != SIGUSR1)
        return failed(name, "read(signalfd)", n == sizeof info ? (long)info.ssi_signo : n);
    return 0;
}

static int in_poll_of_signalfd(const char *name)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    struct pollfd fd = {signalfd(-1, &all, SFD_NONBLOCK), POLLIN, 0};
    EXPECT(poll(&fd, 1, duration_ms), 0, 0);
}

static int in_sigwait(const char *name)
{
    siginfo_t info;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    EXPECT(sigwaitinfo(&all, &info), SIGUSR1, 0);
}

// ------------------------------------------------------ until a handler has run

static int in_pause(const char *name)
{
    EXPECT(pause(), -1, EINTR);
}

static int in_sigsuspend(const char *name)
{
    sigset_t none;
    sigemptyset(&none);
    EXPECT(sigsuspend(&none), -1, EINTR);
}

static int in_read_interrupted(const char *name)
{
    char byte;
    EXPECT(read(pipes[5][0], &byte, 1), -1, EINTR);
}

static int in_poll_interrupted(const char *name)
{
    struct pollfd fd = {pipes[0][0], POLLIN, 0};
    EXPECT(poll(&fd, 1, HOLD_MS), -1, EINTR);
}

static int in_nanosleep_interrupted(const char *name)
{
    struct timespec long_time = {HOLD_MS / 1000, 0}, left = {0};
    long begin = now_ms();
    if (nanosleep(&long_time, &left) != -1 || errno != EINTR)
        return failed(name, "nanosleep", 0);
    long ms = left.tv_sec * 1000 + left.tv_nsec / 1000000, took = now_ms() - begin;
    bool is_right = ms <= HOLD_MS - duration_ms + EARLY_MS && ms >= HOLD_MS - took - EARLY_MS;
    return is_right ? 0 : failed(name, "what is left", ms);
}

// ---------------------------------------------------------------------- the whole

static void handler(int sig)
{
    (void)sig;
    handled++;
}

typedef struct Sleeper {
    const char *name;
    int (*fn)(const char *name);
    int wake_by_signal;
    pthread_t thread;
    int failed;
} Sleeper;

static Sleeper sleepers[] = {
#define S(fn) {#fn, fn, 0, 0, 0}
#define K(fn) {#fn, fn, SIGUSR1, 0, 0}
    S(in_poll), S(in_ppoll), S(in_select), S(in_pselect), S(in_epoll_wait), S(in_epoll_pwait),
    S(in_epoll_pwait2), S(in_nanosleep), S(in_nanosleep_without_rest), S(in_clock_nanosleep),
    S(in_clock_nanosleep_until), S(in_futex), S(in_futex_until), S(in_sigtimedwait),
    S(in_sigtimedwait_for_all), S(in_semtimedop), S(in_io_getevents), S(in_recv_with_timeout),
    S(in_read_with_timeout), S(in_send_with_timeout), S(in_accept_with_timeout), S(in_read),
    S(in_read_all_blocked), S(in_poll_for_ever), S(in_recvmmsg), S(in_semop), S(in_msgrcv),
    S(in_wait), S(in_fcntl), S(in_write), S(in_send), S(in_recv_all),
    S(in_poll_of_signalfd), K(in_signalfd), K(in_sigwait), K(in_pause), K(in_sigsuspend),
    K(in_read_interrupted), K(in_poll_interrupted), K(in_nanosleep_interrupted),
};
enum { COUNT = sizeof sleepers / sizeof *sleepers };

static void *sleep_in(void *arg)
{
    Sleeper *sleeper = arg;
    long begin = now_ms();
    begun++;
    sleeper->failed = sleeper->fn(sleeper->name);
    long took = now_ms() - begin;
    if (took < duration_ms - EARLY_MS || took > duration_ms + LATE_MS)
        sleeper->failed = failed(sleeper->name, "milliseconds", took);
    return NULL;
}

static void drain(int fd, long size)
{
    static char data[4096];
    while (size > 0) {
        long n = read(fd, data, sizeof data);
        if (n <= 0)
            exit(failed("drain", "read", n));
        size -= n;
    }
}

static void wake(void)
{
    struct { long type; char text[8]; } message = {1, "abc"};
    struct sembuf up = {0, 1, 0};
    char data[100] = "";

    for (int i = 1; i <= 3; i++)
        if (write(pipes[i][1], "x", 1) != 1)
            exit(1);
    send(pair[1], "x", 1, 0);
    semop(sem_id, &up, 1);
    msgsnd(msg_id, &message, 4, 0);
    drain(bulk_pipe[0], BULK);
    drain(bulk_pair[0], BULK);
    send(waitall_pair[1], data, 50, 0);
    for (int i = 0; i < COUNT; i++)
        if (sleepers[i].wake_by_signal)
            pthread_kill(sleepers[i].thread, sleepers[i].wake_by_signal);
}

static void remove_queues(void)
{
    semctl(sem_id, 0, IPC_RMID);
    semctl(sem_quiet, 0, IPC_RMID);
    msgctl(msg_id, IPC_RMID, NULL);
}

static void hold(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    remove_queues();
    _exit(0);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler};
    int bad = 0;

    (void)argv;
    duration_ms = argc > 1 ? HOLD_MS : DURATION_MS;
    duration = (struct timespec){duration_ms / 1000, duration_ms % 1000 * 1000000};

    sigaction(SIGUSR1, &action, NULL);
    for (size_t i = 0; i < sizeof pipes / sizeof *pipes; i++)
        if (pipe(pipes[i]) != 0)
            return 1;
    if (pipe(bulk_pipe) != 0)
        return 1;
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    socketpair(AF_UNIX, SOCK_STREAM, 0, bulk_pair);
    socketpair(AF_UNIX, SOCK_STREAM, 0, waitall_pair);
    send(waitall_pair[1], "0123456789012345678901234567890123456789012345678", 50, 0);
    sem_id = semget(IPC_PRIVATE, 1, 0600);
    sem_quiet = semget(IPC_PRIVATE, 1, 0600);
    msg_id = msgget(IPC_PRIVATE, 0600);
    if ((child = fork()) == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(pipes[6][0], &byte, 1) != 1)
            _exit(1);
        nanosleep(&duration, NULL);
        nanosleep(&slack, NULL);
        _exit(0);
    }
    for (int i = 0; i < COUNT; i++)
        pthread_create(&sleepers[i].thread, NULL, sleep_in, &sleepers[i]);
    while (begun < COUNT)
        usleep(1000);
    puts("ready");
    fflush(stdout);
    if (argc > 1)
        hold();
    nanosleep(&slack, NULL); // all of them sleep
    if (write(pipes[6][1], "x", 1) != 1)
        return 1;
    nanosleep(&duration, NULL);
    wake();
    for (int i = 0; i < COUNT; i++) {
        pthread_join(sleepers[i].thread, NULL);
        bad += sleepers[i].failed;
    }
    remove_queues();
    puts(bad ? "failed" : "done");
    return bad != 0;
}
