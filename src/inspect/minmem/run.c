// SPDX-License-Identifier: MIT
//
// One run of the program: a limit, its end, whether it did what it does without one.
//
// The worker blocks the signals that it waits for, so none is lost between two looks; the
// program gets the mask that the worker was started with.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/minmem/trial.h"

volatile sig_atomic_t run_stopped_by;

const LimitInfo limit_kinds[LIMIT_KINDS] = {
    [LIMIT_AUTO] = {"auto", "", "", ""},
    [LIMIT_CGROUP] = {"cgroup", "cgroup memory.max, no swap",
                      "the program and its children together, with their page cache", "together"},
    [LIMIT_AS] = {"as", "RLIMIT_AS: address space, also what is reserved and never touched",
                  "each process for itself, not their sum", "each"},
    [LIMIT_DATA] = {"data", "RLIMIT_DATA: private writable memory, without stacks",
                    "each process for itself, not their sum", "each"},
    [LIMIT_RSS] = {"rss", "resident memory, watched from outside: too much, and it is killed",
                   "the program and its children together", "together"},
};

const char *const verdict_names[VERDICTS] = {
    [VERDICT_SUCCESS] = "success", [VERDICT_STATUS] = "status",   [VERDICT_OOM] = "oom-kill",
    [VERDICT_OVER] = "over",       [VERDICT_TIMEOUT] = "timeout", [VERDICT_OUTPUT] = "output",
    [VERDICT_CHECK] = "check",     [VERDICT_STOPPED] = "stopped", [VERDICT_TROUBLE] = "trouble",
};

enum { LOOK_MS = 4, EXEC_FAILED = 127 };

static u64 clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

// ------------------------------------------------------------------ its beginning

static void limit_self(const Session *session, u64 limit_bytes)
{
    static const struct rlimit no_core = {0, 0};
    struct rlimit limit = {limit_bytes, limit_bytes};

    setrlimit(RLIMIT_CORE, &no_core); // failing is what these runs are for
    if (limit_bytes == UINT64_MAX)
        return;
    if (session->limit == LIMIT_AS)
        setrlimit(RLIMIT_AS, &limit);
    if (session->limit == LIMIT_DATA)
        setrlimit(RLIMIT_DATA, &limit);
}

// In the child. `report` tells the worker that the program could not be started.
static void become_program(const Session *session, u64 limit_bytes, int report)
{
    pid_t worker = getppid();
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != worker)
        _exit(EXEC_FAILED);
    dup2(session->input_fd >= 0 ? session->input_fd : nothing, STDIN_FILENO);
    dup2(session->output_fd >= 0 ? session->output_fd : nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    if (session->group[0] && !group_enter(session))
        goto failed;
    for (int s = 1; s < NSIG; s++) { // ours are handlers, which exec resets; ignored ones stay
        if (s == SIGINT || s == SIGTERM || s == SIGHUP || s == SIGQUIT || s == SIGCHLD)
            signal(s, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &session->client_mask, NULL);
    limit_self(session, limit_bytes);
    execvp(session->options->command[0], session->options->command);
failed:;
    int error = errno;
    if (write(report, &error, sizeof(error)) < 0)
        _exit(EXEC_FAILED);
    _exit(EXEC_FAILED);
}

// The pid, or -1 with session->trouble. *ret_error: why exec failed, 0: it did not.
static pid_t start(Session *session, u64 limit_bytes, int *ret_error)
{
    int report[2];

    *ret_error = 0;
    if (session->input_fd >= 0)
        lseek(session->input_fd, 0, SEEK_SET);
    if (session->output_fd >= 0 && (ftruncate(session->output_fd, 0) != 0 ||
                                    lseek(session->output_fd, 0, SEEK_SET) != 0))
        snprintf(session->trouble, sizeof(session->trouble), "cannot keep the output: %s",
                 strerror(errno));
    if (pipe2(report, O_CLOEXEC) != 0) {
        snprintf(session->trouble, sizeof(session->trouble), "pipe: %s", strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_program(session, limit_bytes, report[1]);
    close(report[1]);
    if (pid < 0)
        snprintf(session->trouble, sizeof(session->trouble), "fork: %s", strerror(errno));
    else if (read(report[0], ret_error, sizeof(*ret_error)) != sizeof(*ret_error))
        *ret_error = 0;
    close(report[0]);
    return pid;
}

// ------------------------------------------------------------------- its course

static u64 read_status_kib(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    return at ? strtoull(at + strlen(key), NULL, 10) * KiB : 0;
}

static void look_at(pid_t pid, RunResult *result)
{
    char path[32], text[4096];

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    result->as_bytes = max_u64(result->as_bytes, read_status_kib(text, "VmPeak:"));
    result->data_bytes = max_u64(result->data_bytes, read_status_kib(text, "VmData:"));
    result->stack_bytes = max_u64(result->stack_bytes, read_status_kib(text, "VmStk:"));
}

// True: the program has ended, and `result` says how.
static bool has_ended(pid_t pid, RunResult *result)
{
    struct rusage usage;
    int status;

    if (wait4(pid, &status, WNOHANG, &usage) != pid)
        return false;
    result->wait_status = status;
    result->rss_bytes = (u64)usage.ru_maxrss * KiB;
    return true;
}

// Until the program ends, its time is over, it is too large, or somebody wants us to stop.
static void follow(Session *session, pid_t pid, u64 limit_bytes, RunResult *result)
{
    static const struct timespec look = {0, LOOK_MS * 1000000};
    u64 start_ms = clock_ms();
    sigset_t waited;

    sigemptyset(&waited);
    sigaddset(&waited, SIGCHLD);
    for (int s = 0; s < 4; s++)
        sigaddset(&waited, (int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[s]);
    for (bool is_first = true;; is_first = false) {
        int got = is_first ? 0 : sigtimedwait(&waited, NULL, &look);
        result->elapsed_ms = clock_ms() - start_ms;
        if (got > 0 && got != SIGCHLD) {
            run_stopped_by = got;
            result->verdict = VERDICT_STOPPED;
            return;
        }
        if (has_ended(pid, result))
            return;
        look_at(pid, result);
        // Looking at all processes is dear: seldom, unless the limit depends on it.
        if (session->limit == LIMIT_RSS || result->elapsed_ms % 100 < LOOK_MS)
            result->tree_rss_bytes = max_u64(result->tree_rss_bytes, leftover_tree_rss(pid));
        if (session->limit == LIMIT_RSS && result->tree_rss_bytes > limit_bytes) {
            result->verdict = VERDICT_OVER;
            return;
        }
        if (session->timeout_ms && result->elapsed_ms >= session->timeout_ms) {
            result->verdict = VERDICT_TIMEOUT;
            return;
        }
    }
}

// ----------------------------------------------------------------------- its end

static u64 hash_output(int fd)
{
    u8 bytes[16384];
    u64 hash = 0xcbf29ce484222325ull; // FNV-1a
    ssize_t n;

    for (off_t at = 0; (n = pread(fd, bytes, sizeof(bytes), at)) > 0; at += n) {
        for (ssize_t i = 0; i < n; i++)
            hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    }
    return hash;
}

// The user's own test: its input is the program's output.
static bool passes_check(Session *session)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        lseek(session->output_fd, 0, SEEK_SET);
        dup2(session->output_fd, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        sigprocmask(SIG_SETMASK, &session->client_mask, NULL);
        execl("/bin/sh", "sh", "-c", session->options->check, (char *)NULL);
        _exit(EXEC_FAILED);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && status == 0;
}

static Verdict judge(Session *session, u64 limit_bytes, u64 oom_kills, const RunResult *result)
{
    const Options *options = session->options;

    if (session->group[0] && group_oom_kills(session) > oom_kills)
        return VERDICT_OOM;
    if (session->limit == LIMIT_RSS && result->rss_bytes > limit_bytes)
        return VERDICT_OVER; // it was over between two looks
    if (session->has_baseline && result->wait_status != session->wait_status)
        return VERDICT_STATUS;
    if (session->has_baseline && options->same_output &&
        result->output_hash != session->output_hash)
        return VERDICT_OUTPUT;
    if (options->check && !passes_check(session))
        return VERDICT_CHECK;
    return VERDICT_SUCCESS;
}

void run_once(Session *session, u64 limit_bytes, RunResult *ret_result)
{
    RunResult result = {.verdict = VERDICT_SUCCESS};
    int exec_error;
    u64 oom_kills = session->group[0] ? group_oom_kills(session) : 0;

    *ret_result = (RunResult){.verdict = VERDICT_TROUBLE};
    if (session->group[0] && !group_set_limit(session, limit_bytes)) {
        // The kernel refuses what cannot even hold what is left of the run before.
        snprintf(session->trouble, sizeof(session->trouble), "cannot set the cgroup's limit: %s",
                 strerror(errno));
        return;
    }
    session->run_count++;
    pid_t pid = start(session, limit_bytes, &exec_error);
    if (pid < 0)
        return;
    follow(session, pid, limit_bytes, &result);
    bool has_ended_itself = result.verdict == VERDICT_SUCCESS;
    if (has_ended_itself && session->before_cleanup)
        session->before_cleanup(session->cleanup_argument);
    u32 members = session->group[0] ? group_kill(session) : 0;
    kill(-pid, SIGKILL);
    u32 leftover = leftover_end(0);
    if (has_ended_itself)
        result.left_running = members > leftover ? members : leftover;
    if (session->group[0])
        result.group_bytes = group_peak(session);
    if (exec_error && limit_bytes == UINT64_MAX) {
        snprintf(session->trouble, sizeof(session->trouble), "cannot run %s: %s",
                 session->options->command[0], strerror(exec_error));
        return;
    }
    if (session->output_fd >= 0)
        result.output_hash = hash_output(session->output_fd);
    if (result.verdict == VERDICT_SUCCESS)
        result.verdict = judge(session, limit_bytes, oom_kills, &result);
    *ret_result = result;
}
