// SPDX-License-Identifier: MIT
//
// The monitor's loop: sleeps until there is something to read, notices the end
// of the client however it comes, and divides for the client's children.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/intake/run.h"

enum { WAIT_MIN_MS = 2, WAIT_MAX_MS = 200 }; // between looks at the rings

// ----------------------------------------------------------------- the parts

static const char *tool_title(const Options *options)
{
#define TITLE(name, title)                \
    if (strcmp(options->tool, name) == 0) \
        return title;
#include "monitor/intake/titles.def"
    return options->tool;
}

// False when one of the files is not what it should be: the run is refused.
static bool load_suppressions(Run *run)
{
    const char *error;
    for (u32 i = 0; i < run->options->suppressions.count; i++) {
        if (!suppress_load(run->suppressions, run->options->suppressions.items[i], &error)) {
            dprintf(INTAKE_LOG, "muninn: %s\n", error);
            return false;
        }
    }
    return true;
}

static void warn_of_symbols(void *opaque, const char *line)
{
    Run *run = opaque;
    if (run->report && run->options->verbosity > 0)
        report_line(run->report, line);
}

static bool run_open(Run *run)
{
    const Options *options = run->options;
    run->shared = wire_map(INTAKE_WIRE);
    if (!run->shared || run->shared->header.magic != WIRE_MAGIC)
        return false;
    run->consumer = wire_consumer_new(run->shared);
    run->life = INTAKE_LIFE;
    run->attach = INTAKE_ATTACH;
    run->pidfd = (int)syscall(SYS_pidfd_open, run->shared->header.pid, 0);
    run->info = (RunInfo){
        .log_is_open = options->log_file != NULL, // by the engine
        .pid = run->shared->header.pid,
        .tool = run->options->tool,
        .tool_title = tool_title(run->options),
        .program = run->options->exe,
        .argc = run->argc,
        .argv = (const char *const *)run->argv,
        .option_count = run->option_count,
        .options = (const char *const *)run->option_words,
        .muninn_exe = run->options->muninn_exe,
        .start_ms = (i64)(run->shared->header.start_ns / 1000000),
    };
    run->symbols = symbols_new(&(SymbolsConfig){
        .pid = run->info.pid,
        .extra_debuginfo_path = options->extra_debuginfo_path.count
                                    ? options->extra_debuginfo_path.items[0]
                                    : NULL,
        .debuginfod = options->enable_debuginfod,
        .allow_mismatched = options->allow_mismatched_debuginfo,
        .keep_debuginfo = options->keep_debuginfo,
        .read_inline_info = options->read_inline_info,
        .demangle = options->demangle,
        .warn = warn_of_symbols,
        .warn_opaque = run,
    });
    vec_init(&run->findings, sizeof(RunFinding *));
    run->asks = run->options->gen_suppressions == GEN_SUPPRESSIONS_YES;
    return run->consumer && run->symbols;
}

// ------------------------------------------------------------------- the end

static void finish(Run *run)
{
    i32 exit_code = -1;
    if (run->finished)
        return;
    if (run->report)
        exit_code = findings_close(run);
    run->finished = true;
    wire_finish(run->shared, exit_code);
}

// True when no producer lives any more: the client is gone, or is another program.
static bool client_is_gone(const Run *run)
{
    struct pollfd fds[] = {{run->pidfd, POLLIN, 0}, {run->life, 0, 0}};
    poll(fds, 2, 0);
    return (run->pidfd >= 0 && (fds[0].revents & POLLIN)) || (fds[1].revents & POLLHUP);
}

// ----------------------------------------------------------------- the twins

typedef struct Attachment {
    i32 pid;
    int fds[4]; // wire, life, attach, log
    int count;
} Attachment;

static bool receive(int socket, Attachment *ret_attachment)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec data = {&ret_attachment->pid, sizeof(ret_attachment->pid)};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(ret_attachment->pid))
        return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return false;
    ret_attachment->count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(ret_attachment->fds, CMSG_DATA(header), (size_t)ret_attachment->count * sizeof(int));
    return ret_attachment->count >= 3;
}

// In the twin: the parent's run is forgotten. Its symbols too, since their reader is
// the parent's child.
static void become_twin(Run *run, const Attachment *attachment)
{
    static const int places[] = {INTAKE_WIRE, INTAKE_LIFE, INTAKE_ATTACH, INTAKE_LOG};
    // The parent's report stays with the parent: what is written is on its way already.
    wire_consumer_free(run->consumer);
    wire_unmap(run->shared);
    close(run->pidfd);
    for (int i = 0; i < attachment->count; i++)
        dup2(attachment->fds[i], places[i]);
    close_range(INTAKE_FDS, ~0u, 0);
    *run = (Run){
        .options = run->options,
        .option_count = run->option_count,
        .option_words = run->option_words,
        .argc = run->argc,
        .argv = run->argv,
        .suppressions = run->suppressions,
    };
    for (size_t i = 0; i < suppress_count(run->suppressions); i++)
        suppress_reset(run->suppressions, i);
    if (!run_open(run))
        _exit(1);
}

// A child of the client wants a monitor: this process divides, and the twin, which is
// nobody's child either, serves it.
static bool divide(Run *run)
{
    Attachment attachment;
    if (!receive(run->attach, &attachment))
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        become_twin(run, &attachment);
        return true;
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    for (int i = 0; i < attachment.count; i++)
        close(attachment.fds[i]);
    return true;
}

// ------------------------------------------------------------------ the loop

static void empty_bell(int life)
{
    char bytes[64];
    while (recv(life, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

// One turn; false when there is nothing left to wait for.
static bool turn(Run *run, int *wait_ms)
{
    struct pollfd fds[] = {
        {run->finished ? -1 : run->life, POLLIN, 0},
        {run->attach, POLLIN, 0},
        {run->finished ? -1 : run->pidfd, POLLIN, 0},
    };
    if (poll(fds, ARRAY_LEN(fds), run->finished ? -1 : *wait_ms) < 0 && errno != EINTR)
        return false;
    if (fds[0].revents & POLLIN)
        empty_bell(run->life);
    if (!run->finished) {
        bool gone = client_is_gone(run);
        size_t count = wire_drain(run->consumer, gone, run_take, run);
        *wait_ms = count ? WAIT_MIN_MS : *wait_ms * 2 < WAIT_MAX_MS ? *wait_ms * 2 : WAIT_MAX_MS;
        if (run->ended || gone)
            finish(run);
    }
    if ((fds[1].revents & POLLIN) && divide(run))
        return true;
    return !(fds[1].revents & POLLHUP) || !run->finished;
}

int intake_serve(const Options *options, int option_count, char **option_words, int argc,
                 char **argv)
{
    Run run = {
        .options = options,
        .option_count = option_count,
        .option_words = option_words,
        .argc = argc,
        .argv = argv,
    };
    int wait_ms = WAIT_MIN_MS;

    signal(SIGPIPE, SIG_IGN);
    run.suppressions = suppress_new();
    if (!run_open(&run))
        return 1;
    if (!load_suppressions(&run)) {
        wire_set_ready(run.shared, READY_REFUSED);
        return 1;
    }
    wire_set_ready(run.shared, READY_YES);
    while (turn(&run, &wait_ms))
        ;
    return 0;
}
