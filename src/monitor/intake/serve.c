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

// The client can scribble over what the engine has written (W3).
static void take_tool(Run *run)
{
    WireTool *tool = &run->tool;
    *tool = run->shared->header.tool;
    tool->name[sizeof(tool->name) - 1] = '\0';
    tool->title[sizeof(tool->title) - 1] = '\0';
    tool->title_as_valgrind[sizeof(tool->title_as_valgrind) - 1] = '\0';
}

// The run is refused if one of the files is not what it should be.
static bool load_suppressions(Run *run)
{
    const char *error;
    bool ok = run_load_suppressions(run, 0, &error);
    if (!ok)
        dprintf(INTAKE_LOG, "muninn: %s\n", error);
    return ok;
}

static void warn_of_symbols(void *opaque, const char *line)
{
    Run *run = opaque;
    if (run->report && run->options->verbosity > 0)
        report_line(run->report, line);
}

static void say_of_heap(void *opaque, const char *line)
{
    Run *run = opaque;
    if (run->report)
        report_note(run->report, line);
    else
        dprintf(INTAKE_LOG, "%s\n", line);
}

static void raise_alarm(void *opaque, const char *line)
{
    Run *run = opaque;
    wire_alarm(run->shared, line);
}

static void hear_heaps_alarm(void *opaque, const char *line)
{
    Run *run = opaque;
    run->output_failed = true;
    raise_alarm(run, line);
    if (!run->ended)
        commands_kick_all(run); // massif has no findings, whose verdicts threads wait for
}

// A twin goes on with a copy of what its parent's model has.
// False: there is no memory for the model.
static bool open_heap(Run *run)
{
    HeapConfig config = {
        .options = run->options,
        .tool = run->tool.name,
        .pid = run->info.pid,
        .os_pid = run->os_pid,
        .option_count = run->info.option_count,
        .option_words = run->info.options,
        .argc = run->info.argc,
        .argv = run->info.argv,
        .program = run->info.program,
        .symbols = run->symbols,
        .shared = run->shared,
        .say = say_of_heap,
        .alarm = hear_heaps_alarm,
        .say_arg = run,
    };
    if (run->heap)
        heap_divide(run->heap, &config);
    else if (run->tool.gives & TOOL_GIVES_HEAP)
        run->heap = heap_open(&config);
    else
        return true;
    return run->heap != NULL;
}

static bool run_open(Run *run)
{
    const Options *options = run->options;
    run->shared = wire_map(INTAKE_WIRE);
    if (!run->shared || run->shared->header.magic != WIRE_MAGIC)
        return false;
    take_tool(run);
    bool gives_heap = run->tool.gives & TOOL_GIVES_HEAP;
    run->consumer = wire_consumer_new(run->shared);
    run->life = INTAKE_LIFE;
    run->attach = INTAKE_ATTACH;
    if (run->os_pid == 0)
        run->os_pid = run->shared->header.pid; // the engine has forked us: one namespace
    run->pidfd = (int)syscall(SYS_pidfd_open, run->os_pid, 0);
    run->vocabulary = vocabulary_new();
    run->info = (RunInfo){
        .vocabulary = run->vocabulary,
        .log_is_open = options->log_file != NULL, // by the engine
        .pid = run->shared->header.pid,
        .tool = run->tool.name,
        .tool_title = options->as_valgrind ? run->tool.title_as_valgrind : run->tool.title,
        .program = run->options->exe,
        .argc = run->command->argc,
        .argv = run->command->argv,
        .option_count = run->command->option_count,
        .options = run->command->option_words,
        .muninn_exe = run->options->muninn_exe,
        .start_ms = (i64)(run->shared->header.start_ns / 1000000),
    };
    run->symbols = symbols_new(&(SymbolsConfig){
        .pid = run->os_pid,
        .extra_debuginfo_path = options->extra_debuginfo_path.count
                                    ? options->extra_debuginfo_path.items[0]
                                    : NULL,
        .debuginfod = options->enable_debuginfod,
        .allow_mismatched = options->allow_mismatched_debuginfo,
        // The heap's stacks get their names at the end, when libraries may have been unloaded.
        .keep_debuginfo = options->keep_debuginfo || gives_heap,
        .read_inline_info = options->read_inline_info,
        .demangle = options->demangle,
        // Data are named in findings.
        .only_code = gives_heap && !(run->tool.gives & TOOL_GIVES_ERRORS),
        .warn = warn_of_symbols,
        .warn_opaque = run,
    });
    report_on_alarm(raise_alarm, run);
    bool has_heap = open_heap(run);
    if (run->heap && run->consumer)
        wire_stream_to(run->consumer, run_take_stream);
    vec_init(&run->findings, sizeof(RunFinding *));
    run->asks = run->has_input = run->options->gen_suppressions == GEN_SUPPRESSIONS_YES;
    return run->consumer && run->symbols && run->vocabulary && has_heap;
}

// ------------------------------------------------------------------- the end

// A process that was killed could not sum up itself; what it counted is in memory that outlives it.
static void sum_up_heap(Run *run)
{
    const WireHeapCounts *counts = run->shared->heap_counts;
    WireHeapCounts sum = {0};
    bool has_report = run->report && !run->ended && !run->replaced;
    if (!has_report || !__atomic_load_n(&counts[0].is_used, __ATOMIC_RELAXED))
        return;
    for (u32 i = 0; i < WIRE_HEAP_COUNTS && counts[i].is_used; i++) {
        sum.allocs += counts[i].allocs;
        sum.frees += counts[i].frees;
        sum.allocated_bytes += counts[i].allocated_bytes;
        sum.freed_bytes += counts[i].freed_bytes;
        sum.more_allocs += counts[i].more_allocs;
        sum.more_frees += counts[i].more_frees;
        sum.more_bytes += counts[i].more_bytes;
    }
    report_heap_of_killed(run->report, &(HeapOfKilled){
        .blocks = sum.allocs - sum.frees,
        .bytes = sum.allocated_bytes - sum.freed_bytes,
        .allocs = sum.allocs + sum.more_allocs,
        .frees = sum.frees + sum.more_frees,
        .allocated_bytes = sum.allocated_bytes + sum.more_bytes,
    });
}

static void finish(Run *run)
{
    i32 exit_code = -1;
    if (run->finished)
        return;
    if (run->heap)
        heap_close(run->heap, &(HeapEnd){
            .is_known = run->ended,
            .by_exec = run->replaced && !run->ended,
            .status = run->status,
            .signal = run->signal,
        });
    run->ended_heap = run->heap;
    run->heap = NULL;
    sum_up_heap(run);
    if (run->report)
        exit_code = findings_close(run);
    run->finished = true;
    commands_end(run);
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
    i32 pid;    // of the child, in our namespace
    int fds[4]; // wire, life, attach, log
    int count;
} Attachment;

static void take_message(const struct cmsghdr *header, Attachment *attachment)
{
    size_t size = header->cmsg_len - CMSG_LEN(0);
    struct ucred sender;
    if (header->cmsg_type == SCM_RIGHTS && size <= sizeof(attachment->fds)) {
        memcpy(attachment->fds, CMSG_DATA(header), size);
        attachment->count = (int)(size / sizeof(int));
    } else if (header->cmsg_type == SCM_CREDENTIALS && size == sizeof(sender)) {
        memcpy(&sender, CMSG_DATA(header), size);
        attachment->pid = sender.pid;
    }
}

static bool receive(int socket, Attachment *ret_attachment)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    i32 inner_pid; // the child's word; the kernel's counts
    struct iovec data = {&inner_pid, sizeof(inner_pid)};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    *ret_attachment = (Attachment){0};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(inner_pid))
        return false;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at))
        take_message(at, ret_attachment);
    return ret_attachment->count >= 3 && ret_attachment->pid > 0;
}

// In the twin: the parent's run is forgotten. Its symbols too, since their reader is
// the parent's child.
static void become_twin(Run *run, const Attachment *attachment, u64 fork_stamp)
{
    HeapModel *heap = run->heap ? run->heap : run->ended_heap;
    static const int places[] = {INTAKE_WIRE, INTAKE_LIFE, INTAKE_ATTACH, INTAKE_LOG};
    if (heap)
        heap_go_back(heap, fork_stamp);
    // The parent's report stays with the parent: what is written is on its way already.
    commands_forget(run);
    profiles_forget(run);
    vocabulary_free(run->vocabulary);
    wire_consumer_free(run->consumer);
    wire_unmap(run->shared);
    close(run->pidfd);
    for (int i = 0; i < attachment->count; i++)
        dup2(attachment->fds[i], places[i]);
    close_range(INTAKE_FDS, ~0u, 0);
    *run = (Run){
        .command = run->command,
        .options = run->options,
        .suppressions = run->suppressions,
        .heap = heap,
        .os_pid = attachment->pid,
    };
    for (size_t i = 0; i < suppress_count(run->suppressions); i++)
        suppress_reset(run->suppressions, i);
    if (!run_open(run))
        _exit(1);
    commands_open(run);
}

// Takes what the client did before it made this child; what it did since as well, if that is
// between. A thread that was stopped in the middle of a record is not waited for for ever.
static void catch_up(Run *run, u64 stamp)
{
    enum { TRIES = 1000, PAUSE_US = 1000 };

    for (int i = 0; i < TRIES && !run->finished; i++) {
        bool gone = client_is_gone(run);
        size_t count = wire_drain(run->consumer, gone, run_take, run);
        if (gone || wire_has_drained(run->consumer, stamp))
            break;
        if (count < WIRE_DRAIN_MAX)
            usleep(PAUSE_US);
    }
}

// When the child began to be made.
static u64 fork_stamp_of(const Attachment *attachment)
{
    WireShared *shared = wire_map(attachment->fds[0]);
    u64 stamp = shared ? shared->header.fork_stamp : 0;

    if (shared)
        wire_unmap(shared);
    return stamp;
}

// A child of the client wants a monitor: this process divides, and the twin serves it. A
// twin stays our child, for in a container orphans might come to the client, which
// would find a child that it does not know.
static bool divide(Run *run)
{
    Attachment attachment;
    if (!receive(run->attach, &attachment))
        return false;
    u64 stamp = fork_stamp_of(&attachment);
    if (run->heap) {
        catch_up(run, stamp);
        heap_prepare_copy(run->heap, stamp);
    }
    pid_t pid = fork();
    if (pid == 0) {
        become_twin(run, &attachment, stamp);
        return true;
    }
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

// The more there is to read, the sooner we look again. That a thread waits for us it
// tells by the bell.
static int next_wait_ms(size_t count, int wait_ms)
{
    if (count >= WIRE_DRAIN_MAX)
        return 0;
    if (count > 0)
        return WAIT_MIN_MS;
    return wait_ms == 0 ? WAIT_MIN_MS : wait_ms * 2 < WAIT_MAX_MS ? wait_ms * 2 : WAIT_MAX_MS;
}

// The client has gone. Children of it that may still ask for a twin hold the other end of `attach`:
// then it must not wait for our end (collect_guard() in the engine's relay).
static void note_leaving(Run *run)
{
    struct pollfd attach = {run->attach, 0, 0};
    run->client_left = true;
    if (poll(&attach, 1, 0) == 0)
        __atomic_store_n(&run->shared->header.staying, 1, __ATOMIC_RELEASE);
}

// One turn; false when there is nothing left to wait for.
static bool turn(Run *run, int *wait_ms)
{
    enum { OWN_FDS = 3 };
    struct pollfd fds[OWN_FDS + CONTROL_FDS_MAX] = {
        {run->client_left ? -1 : run->life, run->finished ? 0 : POLLIN, 0},
        {run->attach, POLLIN, 0},
        {run->finished ? -1 : run->pidfd, POLLIN, 0},
    };
    size_t control_count = commands_fds(run, fds + OWN_FDS);
    // The kernel refuses more entries than the process may have descriptors, so that unused ones at
    // the end are not shown to it.
    size_t polled = OWN_FDS + control_count;
    while (polled > OWN_FDS && fds[polled - 1].fd < 0)
        polled--;
    int timeout_ms = run->finished ? -1 : commands_wait_ms(run, *wait_ms);
    if (run->heap)
        timeout_ms = heap_wait_ms(run->heap, timeout_ms);
    if (poll(fds, polled, timeout_ms) < 0 && errno != EINTR)
        return false;
    if (fds[0].revents & POLLIN)
        empty_bell(run->life);
    if (!run->finished) {
        bool gone = client_is_gone(run);
        size_t count = wire_drain(run->consumer, gone, run_take, run);
        *wait_ms = next_wait_ms(count, *wait_ms);
        if (run->heap)
            heap_turn(run->heap);
        if (run->ended || gone)
            finish(run);
        else
            run_say_progress(run);
        if (!run->finished)
            commands_turn(run, fds + OWN_FDS, control_count);
        if (count == 0)
            symbols_rest(run->symbols);
    }
    if (run->finished && !run->client_left && fds[0].revents & POLLHUP)
        note_leaving(run);
    if ((fds[1].revents & POLLIN) && divide(run))
        return true;
    return !(fds[1].revents & POLLHUP) || !run->finished;
}

// Holds nothing meanwhile that somebody might wait for the end of.
static void wait_for_twins(WireShared *shared)
{
    if (waitpid(-1, NULL, WNOHANG) == 0)
        __atomic_store_n(&shared->header.staying, 1, __ATOMIC_RELEASE);
    close_range(0, ~0u, 0);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
}

int intake_serve(const IntakeCommand *command)
{
    Run run = {.command = command, .options = command->options};
    int wait_ms = 0; // the start stands in the ring already, and the client waits for its report

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a limit that a report meets is an error of its write()
    signal(SIGCHLD, SIG_IGN); // nobody has to be told of the end of a twin
    run.suppressions = suppress_new();
    if (!run_open(&run))
        return 1;
    if (!load_suppressions(&run)) {
        wire_set_ready(run.shared, READY_REFUSED);
        return 1;
    }
    commands_open(&run);
    while (turn(&run, &wait_ms))
        ;
    symbols_free(run.symbols);
    heap_free_model(run.ended_heap);
    wait_for_twins(run.shared);
    return 0;
}
