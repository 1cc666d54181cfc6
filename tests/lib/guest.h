// SPDX-License-Identifier: MIT
//
// What guest programs share: unbuffered output that is safe in a signal handler and survives a
// crash, and checks that name themselves. Output must be the same on every run: print relations
// between addresses, pids and times, never the values.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(1, line, length) != length)
        _exit(99);
}

// Prints only when it does not hold; the harness refuses a native run that prints FAIL.
#define CHECK(condition) \
    ((condition) ? (void)0 : say("FAIL %s:%d: %s\n", __FILE_NAME__, __LINE__, #condition))

// Shows the result of a call as the world sees it: its value, or the error's name.
#define SHOW(call) \
    do { \
        errno = 0; \
        long show_value = (long)(call); \
        show_result(#call, show_value, errno); \
    } while (0)

__attribute__((unused)) static const char *error_name(int error)
{
    static const struct {
        int error;
        const char *name;
    } rows[] = {
        {EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"}, {EINTR, "EINTR"}, {EIO, "EIO"},
        {ENXIO, "ENXIO"}, {E2BIG, "E2BIG"}, {ENOEXEC, "ENOEXEC"}, {EBADF, "EBADF"},
        {ECHILD, "ECHILD"}, {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},
        {EFAULT, "EFAULT"}, {EBUSY, "EBUSY"}, {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"},
        {ENODEV, "ENODEV"}, {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"}, {EINVAL, "EINVAL"},
        {EMFILE, "EMFILE"}, {ENOTTY, "ENOTTY"}, {ETXTBSY, "ETXTBSY"}, {EFBIG, "EFBIG"},
        {ENOSPC, "ENOSPC"}, {ESPIPE, "ESPIPE"}, {EROFS, "EROFS"}, {EPIPE, "EPIPE"},
        {ERANGE, "ERANGE"}, {EDEADLK, "EDEADLK"}, {ENAMETOOLONG, "ENAMETOOLONG"},
        {ENOSYS, "ENOSYS"}, {ENOTEMPTY, "ENOTEMPTY"}, {ELOOP, "ELOOP"}, {ENOMSG, "ENOMSG"},
        {EIDRM, "EIDRM"}, {EOVERFLOW, "EOVERFLOW"}, {ENOTSOCK, "ENOTSOCK"},
        {EOPNOTSUPP, "EOPNOTSUPP"}, {ECONNREFUSED, "ECONNREFUSED"}, {ETIMEDOUT, "ETIMEDOUT"},
        {EOWNERDEAD, "EOWNERDEAD"}, {ENOTRECOVERABLE, "ENOTRECOVERABLE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].error == error)
            return rows[i].name;
    return strerror(error);
}

__attribute__((unused)) static void show_result(const char *what, long result, int error)
{
    if (result == -1)
        say("%s = -1 %s\n", what, error_name(error));
    else
        say("%s = %ld\n", what, result);
}

typedef void (*SignalHandler)(int, siginfo_t *, void *);

__attribute__((unused)) static void on_signal(int sig, SignalHandler handler, int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(sig, &action, NULL) == 0);
}

__attribute__((unused)) static void block_signal(int how, int sig)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, sig);
    CHECK(sigprocmask(how, &set, NULL) == 0);
}

__attribute__((unused)) static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((unused)) static void sleep_ms(int milliseconds)
{
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (nanosleep(&t, &t) == -1 && errno == EINTR)
        ;
}

// Says how a child ended: "exit 3", or "signal 11 core".
__attribute__((unused)) static void show_status(const char *who, int status)
{
    if (WIFEXITED(status))
        say("%s: exit %d\n", who, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        say("%s: signal %d%s\n", who, WTERMSIG(status), WCOREDUMP(status) ? " core" : "");
    else if (WIFSTOPPED(status))
        say("%s: stopped by %d\n", who, WSTOPSIG(status));
    else if (WIFCONTINUED(status))
        say("%s: continued\n", who);
}

__attribute__((unused)) static void wait_and_show(const char *who, pid_t pid)
{
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    show_status(who, status);
}

// The letter of what a process (or thread) does, as in /proc: 'S' sleeps, 'Z' is dead; '\0': gone.
__attribute__((unused)) static char state_of(pid_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return end ? end[2] : '?';
}

// Returns when the process (or thread) `pid` has been blocked in the kernel for some milliseconds.
__attribute__((unused)) static void wait_until_asleep(pid_t pid)
{
    char state;
    for (int seen = 0; seen < 5 && (state = state_of(pid)) != 0; sleep_ms(2))
        seen = state == 'S' ? seen + 1 : 0;
}

// Returns when the process, or the first of its threads, has ended, though perhaps not for all.
__attribute__((unused)) static void wait_until_dead(pid_t pid)
{
    for (char state; (state = state_of(pid)) != 0 && state != 'Z' && state != 'X';)
        sleep_ms(2);
}
