// SPDX-License-Identifier: MIT
// BUILD: -O1 -pthread
// STRESS: signals
// STRESS: tiny-blocks
//
// The signals of faults, when somebody sends them and the client blocks them, are signals like any
// other: they wait, are seen by sigpending, read by signalfd, taken by sigwaitinfo in any thread,
// survive exec, and disturb no call that sleeps.
#include "guest.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
static sigset_t set;

static void show_info(const char *how, int sig, const siginfo_t *info)
{
    say("%s: signal %d, code %d, value %d, from %s\n", how, sig, info->si_code,
        info->si_code == SI_QUEUE ? info->si_value.sival_int : 0,
        info->si_pid == getpid() ? "self" : info->si_pid == getppid() ? "parent" : "child");
}

static void show_pending(const char *when)
{
    sigset_t pending;
    CHECK(sigpending(&pending) == 0);
    say("%s:", when);
    for (int i = 0; i < 5; i++)
        if (sigismember(&pending, signals[i]))
            say(" %d", signals[i]);
    say("\n");
}

static void read_one(const char *how, int fd)
{
    struct signalfd_siginfo info;
    ssize_t n = read(fd, &info, sizeof info);
    if (n == sizeof info)
        say("%s: signal %u, code %d\n", how, info.ssi_signo, info.ssi_code);
    else
        say("%s: %s\n", how, n < 0 ? error_name(errno) : "short");
}

static void on_child(void (*act)(pid_t parent))
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        wait_until_asleep(parent);
        act(parent);
        _exit(0);
    }
    CHECK(child > 0);
}

static void reap(void)
{
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

static void kill_segv(pid_t parent) { kill(parent, SIGSEGV); }
static void queue_fpe(pid_t parent) { sigqueue(parent, SIGFPE, (union sigval){.sival_int = 42}); }
static void kill_all(pid_t parent)
{
    for (int i = 0; i < 5; i++)
        kill(parent, signals[i]);
}

static void test_signalfd(int fd)
{
    read_one("nothing sent", fd);
    for (int i = 0; i < 5; i++)
        raise(signals[i]);
    show_pending("raised");
    for (int i = 0; i < 6; i++)
        read_one("raised", fd);
    for (int i = 0; i < 5; i++)
        kill(getpid(), signals[i]);
    show_pending("killed");
    for (int i = 0; i < 6; i++)
        read_one("killed", fd);
    struct pollfd entry = {fd, POLLIN, 0};
    on_child(kill_segv);
    SHOW(poll(&entry, 1, 60000));
    read_one("polled", fd);
    SHOW(poll(&entry, 1, 0));
    int ep = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) == 0);
    on_child(queue_fpe);
    SHOW(epoll_wait(ep, &event, 1, 60000));
    read_one("epolled", fd);
    SHOW(epoll_wait(ep, &event, 1, 0));
    close(ep);
    reap();
}

static void test_wait(void)
{
    siginfo_t info;
    for (int i = 0; i < 5; i++)
        sigqueue(getpid(), signals[i], (union sigval){.sival_int = i});
    for (int i = 0; i < 5; i++) {
        int sig = sigwaitinfo(&set, &info);
        show_info("queued", sig, &info);
    }
    on_child(queue_fpe);
    int sig = sigwaitinfo(&set, &info);
    show_info("waited", sig, &info);
    struct timespec none = {0, 0};
    SHOW(sigtimedwait(&set, &info, &none));
    reap();
}

// Nothing that is blocked ends a sleep.
static void test_undisturbed(void)
{
    struct timespec t = {0, 100 * 1000 * 1000}, left;
    int64_t start = now_ns();
    on_child(kill_all);
    SHOW(nanosleep(&t, &left));
    say("slept long enough: %d\n", now_ns() - start >= 100 * 1000 * 1000);
    on_child(kill_all);
    SHOW(poll(NULL, 0, 100));
    reap();
    show_pending("after the sleeps");
    siginfo_t info;
    for (int i = 0; i < 5; i++)
        show_info("after the sleeps", sigwaitinfo(&set, &info), &info);
}

static int handled;
static void handler(int sig, siginfo_t *info, void *context)
{
    (void)context;
    show_info("handler", sig, info);
    handled++;
}

static void test_suspend(void)
{
    sigset_t open;
    sigfillset(&open);
    sigdelset(&open, SIGFPE);
    on_signal(SIGFPE, handler, 0);
    on_signal(SIGSEGV, handler, 0);
    kill(getpid(), SIGSEGV);
    on_child(queue_fpe);
    SHOW(sigsuspend(&open));
    show_pending("after sigsuspend");
    reap();
    block_signal(SIG_UNBLOCK, SIGSEGV);
    say("handled: %d\n", handled);
    block_signal(SIG_BLOCK, SIGSEGV);
}

// ---- threads

static pid_t reader_tid;

static void *read_in_thread(void *arg)
{
    __atomic_store_n(&reader_tid, gettid(), __ATOMIC_SEQ_CST);
    read_one("a thread reads", *(int *)arg);
    return NULL;
}

static void *wait_in_thread(void *arg)
{
    (void)arg;
    siginfo_t info;
    __atomic_store_n(&reader_tid, gettid(), __ATOMIC_SEQ_CST);
    int sig = sigwaitinfo(&set, &info);
    show_info("a thread waits", sig, &info);
    return NULL;
}

static void *open_in_thread(void *arg)
{
    (void)arg;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    __atomic_store_n(&reader_tid, gettid(), __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&handled, __ATOMIC_SEQ_CST))
        ;
    return NULL;
}

static void with_thread(void *(*body)(void *), void *arg, bool busy)
{
    pthread_t thread;
    reader_tid = 0;
    CHECK(pthread_create(&thread, NULL, body, arg) == 0);
    while (!__atomic_load_n(&reader_tid, __ATOMIC_SEQ_CST))
        usleep(1000);
    if (!busy)
        wait_until_asleep(reader_tid);
    kill(getpid(), SIGSEGV);
    pthread_join(thread, NULL);
}

static void test_threads(int fd)
{
    int blocking = signalfd(-1, &set, 0);
    with_thread(read_in_thread, &blocking, false);
    with_thread(wait_in_thread, NULL, false);
    handled = 0;
    with_thread(open_in_thread, NULL, true);
    say("handled in the open thread: %d\n", handled);
    // Sent to one thread, it is for no other.
    pthread_kill(pthread_self(), SIGBUS);
    show_pending("to this thread");
    read_one("by this thread", fd);
    close(blocking);
}

int main(int argc, char **argv)
{
    sigemptyset(&set);
    for (int i = 0; i < 5; i++)
        sigaddset(&set, signals[i]);
    if (argc > 1) {
        show_pending("after exec");
        return 0;
    }
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    CHECK(fd >= 0);
    test_signalfd(fd);
    test_wait();
    test_undisturbed();
    test_suspend();
    test_threads(fd);
    pid_t child = fork();
    if (child == 0) {
        show_pending("a child begins with");
        kill(getpid(), SIGILL);
        raise(SIGTRAP);
        execl("/proc/self/exe", argv[0], "again", NULL);
    }
    wait_and_show("child", child);
    return 0;
}
