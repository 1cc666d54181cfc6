// SPDX-License-Identifier: MIT
//
// The engine's descriptors: where they go, what they refuse, how they move, and the
// log behind them. Each test works in a child, for the registry is per process.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/descriptors/descriptors.h"
#include "engine/syscall/syscall.h"
#include "unit.h"

static int last_moved = -2;

static void note_moved(int fd)
{
    last_moved = fd;
}

// True when `body` returns true in a child.
static bool holds_in_child(bool (*body)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(body() ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

static bool set_limits(rlim_t count)
{
    struct rlimit limit = {count, count};
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static bool hide_keeps_limits(void)
{
    struct rlimit before, after;
    getrlimit(RLIMIT_NOFILE, &before);
    before.rlim_cur = before.rlim_cur < 64 ? before.rlim_cur : 64;
    setrlimit(RLIMIT_NOFILE, &before);
    int fd = descriptor_hide(1, note_moved);
    getrlimit(RLIMIT_NOFILE, &after);
    return fd > 2 && last_moved == fd && descriptor_is_hidden(fd) && !descriptor_is_hidden(1) &&
           fcntl(fd, F_GETFD) == FD_CLOEXEC && before.rlim_cur == after.rlim_cur &&
           before.rlim_max == after.rlim_max && descriptors_lowest == fd;
}

TEST(hiding_leaves_the_limits_as_they_were)
{
    CHECK(holds_in_child(hide_keeps_limits));
}

static bool drop_forgets(void)
{
    int fd = descriptor_hide(1, NULL);
    descriptor_drop(fd);
    return !descriptor_is_hidden(fd) && fcntl(fd, F_GETFD) == -1 && descriptors_lowest == INT32_MAX;
}

TEST(a_dropped_descriptor_is_closed_and_forgotten)
{
    CHECK(holds_in_child(drop_forgets));
}

static bool refuses(u64 nr, u64 a0, u64 a1, u64 a2)
{
    const u64 args[6] = {a0, a1, a2};
    return descriptors_refuse(nr, args);
}

static bool refuses_hidden_only(void)
{
    u64 fd = (u64)descriptor_hide(1, NULL);
    return refuses(SYS_read, fd, 0, 0) && refuses(SYS_close, fd, 0, 0) &&
           refuses(SYS_epoll_ctl, 0, 0, fd) && refuses(SYS_signalfd4, fd, 0, 0) &&
           refuses(NR_cachestat, fd, 0, 0) && refuses(SYS_open_by_handle_at, fd, 0, 0) &&
           refuses(NR_fchmodat2, fd, (u64) "relative", 0) &&
           !refuses(SYS_dup2, 1, fd, 0) && refuses(SYS_read, fd | 1ull << 32, 0, 0) &&
           !refuses(SYS_read, 1, fd, fd) && !refuses(SYS_getpid, fd, fd, fd) &&
           !refuses(5000, fd, fd, fd) && !refuses(SYS_read, (u64)-1, 0, 0);
}

TEST(only_descriptor_arguments_are_refused)
{
    CHECK(holds_in_child(refuses_hidden_only));
}

// As dispatch: repeats the call while room can be made.
static i64 client_dup(void)
{
    const u64 args[6] = {0};
    i64 result;
    do {
        result = dup(0);
        result = result < 0 ? -errno : result;
    } while (descriptors_settle(SYS_dup, args, &result));
    return result;
}

static bool tight_table_is_the_clients(void)
{
    closefrom(3);
    if (!set_limits(16))
        return false;
    int fd = descriptor_hide(1, note_moved);
    if (fd < 3)
        return false;
    for (i64 expected = 3; expected < 16; expected++)
        if (client_dup() != expected)
            return false;
    return client_dup() == -EMFILE && !descriptor_is_hidden(15);
}

TEST(a_client_with_sixteen_numbers_gets_all_of_them)
{
    CHECK(holds_in_child(tight_table_is_the_clients));
}

static bool numbers_run_through_ours(void)
{
    closefrom(3);
    int fd = descriptor_hide(1, note_moved);
    if (dup2(0, fd - 1) < 0)
        return true; // the limit is too low to get there
    const u64 args[6] = {0, F_DUPFD, (u64)fd - 1};
    i64 result = fcntl(0, F_DUPFD, fd - 1);
    return result == fd + 1 && !descriptors_settle(SYS_fcntl, args, &result) && result == fd &&
           fcntl(fd + 1, F_GETFD) == -1 && last_moved > fd && descriptor_is_hidden(last_moved) &&
           !descriptor_is_hidden(fd);
}

TEST(a_number_that_the_client_would_be_given_becomes_its_own)
{
    CHECK(holds_in_child(numbers_run_through_ours));
}

// ------------------------------------------------------------------------ log

static char directory[] = "/tmp/descriptors_testXXXXXX";
static int log_now = -2;

static void use_log(int fd)
{
    log_now = fd;
}

static bool file_has(const char *template, pid_t pid, const char *text)
{
    char path[128], content[64] = "";
    snprintf(path, sizeof path, template, pid);
    int fd = open(path, O_RDONLY);
    bool same = read(fd, content, sizeof content - 1) >= 0 && strcmp(content, text) == 0;
    close(fd);
    unlink(path);
    return same;
}

static bool log_survives_and_forks(void)
{
    Options options;
    options_init(&options);
    options.log_file = "log.%p"; // relative: the directory may change before the fork
    if (chdir(directory) || !descriptors_open_log(&options, use_log) || chdir("/"))
        return false;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        descriptors_fork_child();
        _exit(write(log_now, "child\n", 6) != 6);
    }
    waitpid(child, NULL, 0);
    char template[64];
    snprintf(template, sizeof template, "%s/log.%%d", directory);
    return descriptor_is_hidden(log_now) && write(log_now, "parent\n", 7) == 7 &&
           file_has(template, parent, "parent\n") && file_has(template, child, "child\n");
}

TEST(a_forked_child_has_its_own_log_file)
{
    CHECK(mkdtemp(directory) != NULL);
    CHECK(holds_in_child(log_survives_and_forks));
    rmdir(directory);
}

static bool log_outlives_stderr(void)
{
    Options options;
    int ends[2];
    char text[8] = "";
    options_init(&options);
    if (pipe(ends) || dup2(ends[1], 2) != 2 || !descriptors_open_log(&options, use_log))
        return false;
    close(2);
    close(ends[1]);
    return write(log_now, "x", 1) == 1 && read(ends[0], text, 1) == 1 && text[0] == 'x';
}

TEST(the_log_outlives_standard_error)
{
    CHECK(holds_in_child(log_outlives_stderr));
}

static bool log_without_stderr(void)
{
    Options options;
    options_init(&options);
    close(2);
    return descriptors_open_log(&options, use_log) && log_now == -1;
}

TEST(a_program_started_without_standard_error_runs_without_a_log)
{
    CHECK(holds_in_child(log_without_stderr));
}

static bool bad_log_is_refused(void)
{
    Options options;
    options_init(&options);
    dup2(open("/dev/null", O_WRONLY), 2);
    options.log_fd = 77;
    if (descriptors_open_log(&options, use_log))
        return false;
    options.log_file = "/nonexistent/log";
    return !descriptors_open_log(&options, use_log);
}

TEST(a_log_that_cannot_be_opened_is_refused)
{
    CHECK(holds_in_child(bad_log_is_refused));
}

static bool log_crosses_exec(void)
{
    Options options;
    options_init(&options);
    if (!descriptors_open_log(&options, use_log))
        return false;
    int fd = descriptors_log_across_exec(false);
    bool stays = fd == log_now && fcntl(fd, F_GETFD) == 0;
    descriptors_after_failed_exec();
    return stays && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

TEST(the_log_can_be_left_open_across_execve)
{
    CHECK(holds_in_child(log_crosses_exec));
}
