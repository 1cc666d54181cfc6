// SPDX-License-Identifier: MIT
//
// The options of `muninn minmem`, and its two processes. The worker does everything. The guard
// waits for it and ends what it may have left; so that there is something to end by, both are
// the reapers of all processes below them.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspect/minmem/minmem.h"
#include "inspect/minmem/trial.h"

enum { EXIT_REFUSED = 1, RUNS_DEFAULT = 3, RUNS_MAX = 1000 };

static const char usage[] =
    "usage: muninn minmem [options] -- PROGRAM [ARGUMENT...]\n"
    "\n"
    "Finds the smallest memory limit with which the program still succeeds, by running it\n"
    "again and again: it must be able to run many times.\n"
    "\n"
    "    --limit=KIND        cgroup, as (RLIMIT_AS), data (RLIMIT_DATA), rss (watched),\n"
    "                        or auto: cgroup if one can be made, else data [auto]\n"
    "    --runs=N            runs without a limit, and at the border [3]\n"
    "    --timeout=SECONDS   a run that takes longer has failed [10 times the unlimited one]\n"
    "    --precision=SIZE    of the answer, 64K or 1M for instance [half a percent]\n"
    "    --same-output       success needs the same standard output, too\n"
    "    --check=COMMAND     success needs this shell command to succeed on that output\n"
    "    --cgroup=DIRECTORY  where to make the cgroup\n"
    "    --profile=yes|no    one run under massif, for the stacks behind the peaks [yes]\n"
    "    --json              the answer as JSON\n";

// --------------------------------------------------------------------- options

static const char *option_value(const char *word, const char *name)
{
    size_t length = strlen(name);

    return strncmp(word, name, length) == 0 ? word + length : NULL;
}

static bool parse_size(const char *text, u64 *ret_bytes)
{
    static const char letters[] = "KMGT";
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno || !(value > 0) || value > 1e12)
        return false;
    const char *letter = *end ? strchr(letters, *end & ~0x20) : NULL;
    if (letter)
        end++;
    if (letter && strcmp(end, "iB") == 0)
        end += 2;
    u64 unit = letter ? 1ull << (10 * (letter - letters + 1)) : 1;
    *ret_bytes = (u64)(value * (double)unit);
    return *end == '\0' && *ret_bytes > 0 && *ret_bytes < 1ull << 60;
}

static bool parse_seconds(const char *text, u64 *ret_ms)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || (*end && strcmp(end, "s") != 0) || !(value > 0) || value > 1e9)
        return false;
    *ret_ms = max_u64((u64)(value * 1000), 1);
    return true;
}

static bool parse_limit(const char *text, LimitKind *ret_kind)
{
    for (int kind = 0; kind < LIMIT_KINDS; kind++) {
        if (strcmp(text, limit_kinds[kind].name) == 0) {
            *ret_kind = (LimitKind)kind;
            return true;
        }
    }
    return false;
}

static bool parse_runs(const char *text, u32 *ret_runs)
{
    char *end;
    unsigned long runs = strtoul(text, &end, 10);

    if (end == text || *end || runs < 1 || runs > RUNS_MAX)
        return false;
    *ret_runs = (u32)runs;
    return true;
}

static bool parse_option(const char *word, Options *options)
{
    const char *value;

    if ((value = option_value(word, "--limit=")))
        return parse_limit(value, &options->limit);
    if ((value = option_value(word, "--runs=")))
        return parse_runs(value, &options->runs);
    if ((value = option_value(word, "--timeout=")))
        return parse_seconds(value, &options->timeout_ms);
    if ((value = option_value(word, "--precision=")))
        return parse_size(value, &options->precision_bytes);
    if ((value = option_value(word, "--check=")))
        return *(options->check = value) != '\0';
    if ((value = option_value(word, "--cgroup=")))
        return *(options->cgroup = value) != '\0';
    if ((value = option_value(word, "--profile="))) {
        options->profile = strcmp(value, "yes") == 0;
        return options->profile || strcmp(value, "no") == 0;
    }
    if (strcmp(word, "--same-output") == 0)
        return options->same_output = true;
    if (strcmp(word, "--json") == 0)
        return options->json = true;
    return false;
}

// Returns -1 to go on, else the status to exit with.
static int parse_words(int argc, char **argv, Options *options)
{
    int i = 0;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (!parse_option(argv[i], options)) {
            fprintf(stderr, "muninn minmem: %s is not an option of it, or not in its range\n%s",
                    argv[i], usage);
            return EXIT_REFUSED;
        }
    }
    if (i >= argc) {
        fputs(usage, stderr);
        return EXIT_REFUSED;
    }
    options->command = argv + i;
    options->command_count = argc - i;
    return -1;
}

// ----------------------------------------------------------- input and output

// Every run reads the same: a file from its beginning, a pipe from a copy. A terminal is nobody's
// to read again and again: -1, for /dev/null.
static int open_input(void)
{
    struct stat st;
    char bytes[16384];
    ssize_t n;

    if (fstat(STDIN_FILENO, &st) != 0 || S_ISCHR(st.st_mode) || S_ISDIR(st.st_mode))
        return -1;
    if (S_ISREG(st.st_mode))
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int fd = memfd_create("minmem input", MFD_CLOEXEC);
    while (fd >= 0 && (n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
        if (write(fd, bytes, (size_t)n) != n)
            break;
    }
    return fd;
}

// A file on disk, not in memory: pages of a memfd would be charged to the cgroup.
static int open_output(const Options *options)
{
    if (!options->check && !options->same_output)
        return -1;
    const char *directory = getenv("TMPDIR");
    int fd = open(directory && *directory ? directory : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC,
                  0600);
    return fd >= 0 ? fd : memfd_create("minmem output", MFD_CLOEXEC);
}

// ----------------------------------------------------------------- the processes

static int stopped_status(void)
{
    report_clear_progress();
    fprintf(stderr, "muninn minmem: stopped by signal %d\n", (int)run_stopped_by);
    return 128 + run_stopped_by;
}

static int work(Session *session)
{
    static SearchResult result;
    static Profile profile;
    Baseline baseline;

    bool is_done = measure_baseline(session, &baseline);
    if (is_done && session->options->profile)
        profile_run(session, &profile);
    is_done = is_done && !run_stopped_by && search_limit(session, &baseline, &result);
    if (run_stopped_by)
        return stopped_status();
    report_clear_progress();
    if (!is_done) {
        fprintf(stderr, "muninn minmem: %s\n", session->trouble);
        return EXIT_REFUSED;
    }
    report_print(session, &baseline, &profile, &result);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "muninn minmem: cannot write the answer: %s\n", strerror(errno));
    return EXIT_REFUSED;
}

static void block_signals(sigset_t *ret_before)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    for (int i = 0; i < 5; i++)
        sigaddset(&blocked, (int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
    signal(SIGCHLD, SIG_DFL); // ignored, it would reap behind our back
    sigprocmask(SIG_BLOCK, &blocked, ret_before);
}

// Waits for the worker, hands signals on to it, and cleans up behind it.
static int guard(const Session *session, pid_t worker)
{
    sigset_t waited;
    int status = 0;

    sigemptyset(&waited);
    for (int i = 0; i < 5; i++)
        sigaddset(&waited, (int[]){SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
    for (;;) {
        int got = sigwaitinfo(&waited, NULL);
        if (got > 0 && got != SIGCHLD)
            kill(worker, got);
        if (waitpid(worker, &status, WNOHANG) == worker)
            break;
    }
    leftover_end(0);
    if (session->group[0])
        group_remove(session->group);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "muninn minmem: its worker was killed by signal %d\n", WTERMSIG(status));
    return EXIT_REFUSED;
}

static bool choose_limit(Session *session)
{
    char why[256];
    LimitKind wanted = session->options->limit;

    session->limit = wanted;
    if (wanted != LIMIT_AUTO && wanted != LIMIT_CGROUP)
        return true;
    if (group_make(session, why, sizeof(why))) {
        session->limit = LIMIT_CGROUP;
        return true;
    }
    session->limit = LIMIT_DATA;
    fprintf(stderr, "muninn minmem: %s%s\n", why,
            wanted == LIMIT_AUTO ? "; RLIMIT_DATA is used instead" : "");
    return wanted == LIMIT_AUTO;
}

int minmem_main(int argc, char **argv)
{
    static Session session;
    static Options options = {.limit = LIMIT_AUTO, .runs = RUNS_DEFAULT, .profile = true};

    int status = parse_words(argc, argv, &options);
    if (status >= 0)
        return status;
    session.options = &options;
    session.timeout_ms = options.timeout_ms;
    session.input_fd = open_input();
    session.output_fd = open_output(&options);
    block_signals(&session.client_mask);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!choose_limit(&session))
        return EXIT_REFUSED;

    pid_t guard_pid = getpid(), worker = fork();
    if (worker < 0) {
        fprintf(stderr, "muninn minmem: fork: %s\n", strerror(errno));
        return EXIT_REFUSED;
    }
    if (worker > 0)
        return guard(&session, worker);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != guard_pid)
        _exit(EXIT_REFUSED);
    status = work(&session);
    if (getppid() != guard_pid && session.group[0]) // the guard is gone
        group_remove(session.group);
    return status;
}
