// SPDX-License-Identifier: MIT
//
// The connection to the monitor: made at the start, made anew in the child of a
// fork, given up when the monitor dies.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/raw_syscall.h"
#include "base/text.h"
#include "engine/callstack/callstack.h"
#include "engine/descriptors/descriptors.h"
#include "engine/log/log.h"
#include "engine/relay/relay_internal.h"
#include "engine/thread/thread.h"
#include "engine/toolapi/toolapi.h"
#include "launch/launch.h"

// What the monitor finds at which number.
enum { MONITOR_LOG = 2, MONITOR_WIRE = 3, MONITOR_LIFE = 4, MONITOR_ATTACH = 5 };
enum { MONITOR_INPUT = 6, MONITOR_XML = 7, MONITOR_FDS = 8 };
enum { EXIT_REFUSED = 1, EXIT_CANNOT_RUN = 126 };

static Lock attach_lock; // of becoming a child with a monitor
Relay relay = {.life = -1, .attach = -1};
bool relay_adopts_orphans;

bool relay_is_on(void)
{
    return relay.shared || (relay.is_child && relay.attach >= 0);
}

WireHeapCounts *relay_heap_counts(void)
{
    return relay.shared ? relay.shared->heap_counts : NULL;
}

// ------------------------------------------------------------ the connection

// The two ends of a wire and its sockets, before they have found their owners.
typedef struct Ends {
    int wire;
    int life[2], attach[2]; // ours, the monitor's
} Ends;

static void close_ends(Ends *ends)
{
    const int fds[] = {ends->wire, ends->life[0], ends->life[1], ends->attach[0], ends->attach[1]};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    *ends = (Ends){-1, {-1, -1}, {-1, -1}};
}

static bool make_ends(Ends *ends)
{
    struct rlimit limit;
    const int yes = 1;
    *ends = (Ends){-1, {-1, -1}, {-1, -1}};
    bool is_raised = descriptors_make_room(&limit);
    ends->wire = wire_create();
    bool ok = ends->wire >= 0 &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->life) == 0 &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->attach) == 0 &&
              // Who asks the monitor for a twin is told to it by the kernel, with the pid that
              // it has in the monitor's namespace.
              setsockopt(ends->attach[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) == 0;
    int error = errno;
    if (is_raised)
        descriptors_give_room_back(&limit);
    if (!ok)
        close_ends(ends);
    errno = error;
    return ok;
}

// -1: the client has taken every number that it may have. To the monitor this looks like the
// client's end.
static void life_moved(int fd)
{
    relay.life = fd;
    if (fd >= 0)
        return;
    relay.is_lost = true;
    log_alarm("the program uses all descriptors, also that of the connection to the monitor: the "
              "program goes on, and nothing more is reported");
}

static void attach_moved(int fd)
{
    relay.attach = fd;
}

static WireTool describe_tool(void)
{
    const char *title = tool->title ? tool->title : tool->name;
    const char *other = tool->title_as_valgrind ? tool->title_as_valgrind : title;
    WireTool words = {.gives = tool->gives};
    text_format(words.name, sizeof(words.name), "%s", tool->name);
    text_format(words.title, sizeof(words.title), "%s", title);
    text_format(words.title_as_valgrind, sizeof(words.title_as_valgrind), "%s", other);
    return words;
}

// Maps the wire and makes it one. The monitor may look at it as soon as it has it.
static bool map_wire(const Ends *ends)
{
    struct timespec now;
    WireShared *shared = wire_map(ends->wire);
    if (!shared)
        return false;
    // A child of ours must not write into our rings.
    madvise(shared, sizeof(*shared), MADV_DONTFORK);
    // Not through libc: the vdso has become the client's.
    raw_syscall2(SYS_clock_gettime, CLOCK_MONOTONIC, (u64)&now);
    shared->header = (WireHeader){
        .magic = WIRE_MAGIC,
        .version = WIRE_VERSION,
        .pid = (i32)raw_syscall0(SYS_getpid),
        .start_stamp = wire_stamp(),
        .start_ns = (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec,
        .fork_stamp = relay.fork_stamp,
        .tool = describe_tool(),
        .exit_code = -1,
        .kicks_closed = !relay.takes_kicks,
    };
    relay.shared = shared;
    return true;
}

// The client's limit may leave room for no more: each makes room for the next.
static bool hide_socket(int *fd, DescriptorMoved *moved)
{
    bool ok = descriptor_hide(*fd, moved) >= 0;
    close(*fd);
    *fd = -1;
    return ok;
}

static bool hide_sockets(Ends *ends)
{
    return hide_socket(&ends->life[0], life_moved) && hide_socket(&ends->attach[0], attach_moved);
}

void relay_lost(void)
{
    int life = __atomic_exchange_n(&relay.life, -1, __ATOMIC_ACQ_REL);
    if (life < 0)
        return; // another thread says it
    descriptor_drop(life);
    relay.is_lost = true;
    relay_say_alarms();
    log_alarm("the monitor has gone: the program goes on, and nothing more is reported");
}

bool relay_is_lost(void)
{
    return relay.is_lost;
}

// What the client can scribble over is not trusted to end (W3).
void relay_say_alarms(void)
{
    if (!relay.shared)
        return;
    u32 sequence = __atomic_load_n(&relay.shared->header.alarm_sequence, __ATOMIC_ACQUIRE);
    if (__atomic_exchange_n(&relay.alarm_seen, sequence, __ATOMIC_ACQ_REL) == sequence)
        return;
    char text[WIRE_ALARM_BYTES];
    memcpy(text, relay.shared->header.alarm, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    size_t length = strlen(text);
    char *line = text + (relay.alarm_said <= length ? relay.alarm_said : 0);
    relay.alarm_said = length;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        log_alarm("%s", line);
    }
}

bool relay_check(void)
{
    relay_say_alarms();
    if (relay.life >= 0 && wire_hung_up(relay.life))
        relay_lost();
    return relay.life < 0;
}

// ------------------------------------------------------------------ the start

static bool monitor_path(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n > 0)
        path[n] = '\0';
    else // without /proc, what execve was given is the next best
        text_format(path, PATH_MAX, "%s", (const char *)getauxval(AT_EXECFN));
    char *slash = strrchr(path, '/');
    const char name[] = "/muninn-monitor";
    if (!slash || slash - path + sizeof(name) > PATH_MAX)
        return false;
    memcpy(slash, name, sizeof(name));
    return true;
}

// A number that none of the monitor's descriptors has.
static int out_of_the_way(int fd)
{
    int moved = fd < MONITOR_FDS ? fcntl(fd, F_DUPFD, MONITOR_FDS) : fd;
    return moved < 0 ? fd : moved;
}

// In the process that becomes the monitor: nothing of the client's stays open in it, or
// its pipes would not end with it. The client's limit may be a low one.
static void arrange_descriptors(const Ends *ends, const Options *options)
{
    struct rlimit limit;
    descriptors_make_room(&limit);
    close(relay.life);
    close(relay.attach);
    int nothing = out_of_the_way(open("/dev/null", O_RDWR));
    int log = log_fd() >= 0 ? out_of_the_way(log_fd()) : nothing;
    int sources[MONITOR_FDS] = {
        nothing, nothing, log, out_of_the_way(ends->wire), out_of_the_way(ends->life[1]),
        out_of_the_way(ends->attach[1]),
        options->gen_suppressions == GEN_SUPPRESSIONS_YES ? out_of_the_way(options->input_fd)
                                                          : nothing,
        options->xml_fd >= 0 ? out_of_the_way(options->xml_fd) : nothing,
    };
    for (int i = 0; i < MONITOR_FDS; i++)
        dup2(sources[i], i);
    close_range(MONITOR_FDS, ~0u, 0);
}

static _Noreturn void become_monitor(const char *path, const Ends *ends,
                                     const Options *options, char **argv)
{
    prctl(PR_SET_NAME, "muninn-monitor");
    arrange_descriptors(ends, options);
    // Late, the variables for the client's ld.so and libc have their own names again.
    environment_drop_hidden(environ);
    execv(path, argv);
    _exit(127);
}

// Whether process 1 collects its children: it waits for SIGCHLD, or ignores it. If that cannot be
// found out it is taken for an init.
static bool init_collects(void)
{
    static const char *const rows[] = {"SigBlk:", "SigIgn:", "SigCgt:"};
    char status[4096];
    u64 signals = 0;
    int fd = open("/proc/1/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, status, sizeof(status) - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return true;
    status[length] = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *row = strstr(status, rows[i]);
        signals |= row ? strtoull(row + strlen(rows[i]), NULL, 16) : 0;
    }
    return signals >> (SIGCHLD - 1) & 1;
}

// True when orphans would not come to an init that collects them: the client is the first process
// of a container, or a process has asked for orphans, or the first one collects nobody.
static bool needs_guard(const Options *options)
{
    int adopts = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    relay_adopts_orphans = adopts || options->under_reaper;
    return relay_adopts_orphans || raw_syscall0(SYS_getpid) == 1 || !init_collects();
}

// The monitor's parent where orphans would not come to an init.
static _Noreturn void guard(i64 monitor)
{
    prctl(PR_SET_NAME, "muninn-guard");
    close_range(0, ~0u, 0);
    while (raw_syscall4(SYS_wait4, (u64)monitor, 0, __WALL, 0) == -EINTR)
        ;
    _exit(0);
}

// A signal to everybody (`kill -1`, as an init sends it to its namespace before it ends) is not for
// the monitor and its parent: both end with the client. What is ignored stays so in the monitor.
static void ignore_signals(void)
{
    for (int sig = 1; sig <= SIGRTMAX; sig++) {
        bool is_own = sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE ||
                      sig == SIGTRAP || sig == SIGSYS || sig == SIGABRT || sig == SIGCHLD;
        if (!is_own)
            signal(sig, SIG_IGN);
    }
}

// The monitor's parent is init, so that no wait() of the client's knows of it. If the client
// itself takes init's place, the parent is a process that ends without a signal: wait()
// passes such children over. The monitor cannot be that one, for execve resets the signal.
//
// CLONE_UNTRACED: who traces the client (`strace -f`) sees nothing of the monitor.
static bool spawn_monitor(const Ends *ends, const Options *options, char **argv)
{
    char path[PATH_MAX];
    if (!monitor_path(path) || access(path, X_OK) != 0)
        return false;
    bool has_guard = needs_guard(options);
    relay.old_guard = options->guard;
    u64 signal = has_guard ? 0 : SIGCHLD;
    i64 pid = raw_syscall6(SYS_clone, CLONE_UNTRACED | signal, 0, 0, 0, 0, 0);
    if (pid == 0) {
        raw_syscall0(SYS_setsid); // a Ctrl-C is for the client
        ignore_signals();
        i64 monitor = raw_syscall6(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0, 0);
        if (monitor == 0)
            become_monitor(path, ends, options, argv);
        if (has_guard)
            guard(monitor);
        _exit(0);
    }
    while (pid > 0 && !has_guard && raw_syscall4(SYS_wait4, (u64)pid, 0, __WALL, 0) == -EINTR)
        ;
    if (has_guard && pid > 0)
        relay.guard = pid;
    return pid > 0;
}

i32 relay_guard(void)
{
    return (i32)relay.guard;
}

// At the client's end. A guard that outlived the client would be an orphan, too, and an unknown
// child of whoever adopts it. It ends with the monitor, unless that goes on for children of the
// client.
static void collect_guard(void)
{
    const struct timespec a_moment = {0, 200000};
    WireHeader *header = &relay.shared->header;
    i64 guard = relay.guard;
    if (relay.old_guard)
        raw_syscall4(SYS_wait4, (u64)relay.old_guard, 0, __WALL | WNOHANG, 0);
    if (guard <= 0)
        return;
    relay.guard = 0;
    int life = __atomic_exchange_n(&relay.life, -1, __ATOMIC_ACQ_REL);
    descriptor_drop(relay.attach);
    relay.attach = -1;
    if (life >= 0)
        descriptor_drop(life);
    while (raw_syscall4(SYS_wait4, (u64)guard, 0, __WALL | WNOHANG, 0) == 0 &&
           !__atomic_load_n(&header->staying, __ATOMIC_ACQUIRE))
        raw_syscall2(SYS_nanosleep, (u64)&a_moment, 0);
}

// muninn-monitor OPTIONS -- WORDS
static char **monitor_argv(const Options *options, int argc, char **argv)
{
    size_t text_size = options_text_size(options);
    char *text = malloc(text_size); // for ever: the words point into it
    char **words = calloc((size_t)argc + OPTIONS_ARGV_MAX + 3, sizeof(*words));
    if (!words || !text)
        return NULL;
    words[0] = (char *)"muninn-monitor";
    int count = options_to_argv(options, text, text_size, words + 1, OPTIONS_ARGV_MAX);
    if (count < 0) {
        free(words);
        return NULL;
    }
    words[count + 1] = (char *)"--";
    memcpy(words + count + 2, argv, (size_t)argc * sizeof(*argv));
    return words;
}

// Without a monitor nothing would be found, and the run would look like a good one.
static _Noreturn void refuse(const char *why)
{
    log_alarm("%s; the program is not run", why);
    _exit(EXIT_CANNOT_RUN);
}

// With fewer the monitor could begin, but not read all symbols, or write all files: NULL, or a line
// that says so. Whoever may raise the hard limit has enough.
static const char *too_few_descriptors(void)
{
    enum { NEEDED = 16 };
    static char text[128];
    struct rlimit limit, now;
    bool is_raised = descriptors_make_room(&limit);
    bool is_known = getrlimit(RLIMIT_NOFILE, &now) == 0;
    if (is_raised)
        descriptors_give_room_back(&limit);
    if (!is_known || now.rlim_max >= NEEDED)
        return NULL;
    text_format(text, sizeof(text), "a report needs %u descriptors, and the hard limit allows %u "
                                    "(ulimit -Hn)", NEEDED, (u32)now.rlim_max);
    return text;
}

// NULL, or why there is no monitor.
static const char *start(const Options *options, int argc, char **argv)
{
    Ends ends;
    relay.is_silent = options->child_silent_after_fork && !options->xml;
    relay.error_exitcode = options->error_exitcode;
    const char *why = too_few_descriptors();
    if (why)
        return why;
    if (!make_ends(&ends))
        return "there is no memory, or no descriptor, for the connection to the monitor";
    char **words = monitor_argv(options, argc, argv);
    bool ok = words && map_wire(&ends) && hide_sockets(&ends) &&
              spawn_monitor(&ends, options, words);
    free(words);
    close_ends(&ends);
    if (!ok) {
        relay.shared = NULL;
        return "the monitor cannot be started";
    }
    relay_producer(&thread_ctx);
    return NULL;
}

void relay_start(const Options *options, int argc, char **argv)
{
    const char *why = start(options, argc, argv);
    if (why)
        refuse(why);
}

// In the cache, where nobody may wait for this lock, the thread is alone and so the lock is free:
// before a child makes threads it is connected (relay_thread_create()).
static void announce_mappings(const ThreadCtx *ctx)
{
    if (ctx->dispatch.in_cache)
        ASSERT(lock_try(&engine_lock));
    else
        lock_acquire(&engine_lock);
    for (const Mapping *m = aspace_next(NULL); m; m = aspace_next(m))
        relay_code_mapped(m);
    lock_release(&engine_lock);
}

void relay_start_late(const Options *options, int argc, char **argv)
{
    const char *why = start(options, argc, argv);
    if (why)
        log_note("%s: nothing will be reported", why);
    else
        announce_mappings(&thread_ctx);
}

// What can be wrong with what the user gave us is told before the program starts.
void relay_await_ready(void)
{
    if (!relay.shared)
        return;
    bool is_there = wire_wait(&relay.shared->header.ready, &relay.life);
    relay_say_alarms();
    if (!is_there)
        refuse("the monitor has ended before the program could begin");
    if (relay.shared->header.ready == READY_REFUSED)
        _exit(EXIT_REFUSED);
    if (relay.shared->header.ready == READY_FAILED)
        _exit(EXIT_CANNOT_RUN);
}

// ------------------------------------------------------------------- a child

static bool send_ends(int to, const Ends *ends)
{
    i32 pid = (i32)raw_syscall0(SYS_getpid);
    int fds[4] = {ends->wire, ends->life[1], ends->attach[1], log_fd()};
    int count = log_fd() >= 0 ? 4 : 3;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(fds))];
    } control = {0};
    struct iovec data = {&pid, sizeof(pid)};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int)),
    };
    control.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN((size_t)count * sizeof(int)),
        .cmsg_level = SOL_SOCKET,
        .cmsg_type = SCM_RIGHTS,
    };
    memcpy(CMSG_DATA(&control.header), fds, (size_t)count * sizeof(int));
    i64 n = raw_syscall3(SYS_sendmsg, (u64)to, (u64)&message, MSG_NOSIGNAL);
    return n == sizeof(pid);
}

// The parent's monitor divides: its twin takes our ends.
static bool attach(void)
{
    Ends ends;
    if (relay.attach < 0 || !make_ends(&ends))
        return false;
    int old = relay.attach;
    // Sent when the wire is complete: the twin looks at once.
    bool ok = map_wire(&ends) && send_ends(old, &ends);
    descriptor_drop(old);
    relay.attach = -1;
    ok = ok && hide_sockets(&ends);
    close_ends(&ends);
    if (!ok) {
        if (relay.life >= 0)
            descriptor_drop(relay.life);
        relay.life = relay.attach = -1;
        relay.shared = NULL;
        relay.is_lost = true;
        log_alarm("the monitor has gone: nothing is reported of this child");
    }
    return ok;
}

// What the forking thread does next is later than this, in both processes.
void relay_fork_prepare(void)
{
    if (relay.shared)
        relay.fork_stamp = wire_stamp();
}

void relay_fork_child(void)
{
    if (!relay.shared && !relay.is_child)
        return;
    thread_ctx.relay.wire = (WireProducer){0};
    relay.is_child = !relay.shared || relay.life >= 0; // not if we know that it is dead
    if (relay.life >= 0)
        descriptor_drop(relay.life);
    relay.life = -1;
    relay.shared = NULL;
    relay.guard = 0;
    lock_reset_after_fork(&attach_lock);
    relay.threads = 0;
    relay_findings_reset();
}

// ----------------------------------------------------------------- producers

static void announce_thread(ThreadCtx *ctx)
{
    ctx->relay.number = __atomic_add_fetch(&relay.threads, 1, __ATOMIC_RELAXED);
    wire_put_thread_start(&ctx->relay.wire, &(Wire_thread_start){
        .number = ctx->relay.number,
        .tid = (u64)raw_syscall0(SYS_gettid),
    });
}

static bool open_producer(ThreadCtx *ctx, bool is_first, bool is_fork_child)
{
    if (relay.life < 0 || !wire_producer_open(&ctx->relay.wire, relay.shared, &relay.life))
        return false;
    if (is_first) {
        relay_put_descriptions(&ctx->relay.wire);
        wire_put_start(&ctx->relay.wire, &(Wire_start){
            .pid = (u64)relay.shared->header.pid,
            .ppid = (u64)raw_syscall0(SYS_getppid),
            .is_fork_child = is_fork_child,
        });
    }
    announce_thread(ctx);
    return true;
}

// In a fork's child: the first thread that has something to say makes the connection; others
// wait. Those that map code meanwhile hold the engine's lock, so we take that one later.
static bool connect_child(ThreadCtx *ctx)
{
    bool is_first = false;
    lock_acquire(&attach_lock);
    if (relay.is_child) {
        is_first = attach() && open_producer(ctx, true, true);
        if (is_first)
            wire_put_maps_reset(&ctx->relay.wire,
                                &(Wire_maps_reset){(u64)relay.shared->header.pid});
        __atomic_store_n(&relay.is_child, false, __ATOMIC_RELEASE);
    }
    lock_release(&attach_lock);
    if (is_first && tool->connected)
        tool->connected();
    if (is_first)
        announce_mappings(ctx);
    return is_first || open_producer(ctx, false, false);
}

WireProducer *relay_producer(ThreadCtx *ctx)
{
    if (LIKELY(ctx->relay.wire.ring != NULL))
        return relay.life >= 0 ? &ctx->relay.wire : NULL;
    bool ok;
    if (__atomic_load_n(&relay.is_child, __ATOMIC_ACQUIRE))
        ok = !relay.is_silent && connect_child(ctx);
    else
        ok = open_producer(ctx, relay.threads == 0, false);
    return ok ? &ctx->relay.wire : NULL;
}

void relay_thread_create(ThreadCtx *ctx)
{
    if (relay.is_child)
        relay_producer(ctx);
}

void relay_thread_start(ThreadCtx *ctx)
{
    if (relay.shared)
        relay_producer(ctx);
}

void relay_thread_end(ThreadCtx *ctx)
{
    if (!ctx->relay.wire.ring)
        return;
    wire_put_thread_end(&ctx->relay.wire, &(Wire_thread_end){ctx->relay.number});
    wire_producer_close(&ctx->relay.wire);
}

// ------------------------------------------------------------------- records

static WireText text_of(const char *text)
{
    return (WireText){text ? text : "", text ? strnlen(text, WIRE_RECORD_BYTES_MAX / 2) : 0};
}

void relay_code_mapped(const Mapping *mapping)
{
    bool is_code = mapping->prot & PROT_EXEC;
    // An object's data has names too, found from where its first bytes are.
    if (!relay.shared || !mapping->name || !(is_code || mapping->inode))
        return;
    WireProducer *producer = relay_producer(&thread_ctx);
    if (producer) {
        wire_put_map(producer, &(Wire_map){
            .start = mapping->start,
            .size = mapping->end - mapping->start,
            .offset = mapping->offset,
            .device = mapping->dev,
            .inode = mapping->inode,
            .executable = is_code,
            .path = text_of(mapping->name),
        });
    }
}

void relay_unmapped(GuestAddr start, GuestAddr end, u32 unloading)
{
    WireProducer *producer = relay.shared ? relay_producer(&thread_ctx) : NULL;
    if (producer)
        wire_put_unmap(producer, &(Wire_unmap){start, end - start, unloading});
}

void relay_accept_kicks(void)
{
    relay.takes_kicks = true;
    if (relay.shared)
        wire_kicks_open(relay.shared);
}

void relay_exec(ThreadCtx *ctx, const char *path)
{
    WireProducer *producer = relay.shared ? relay_producer(ctx) : NULL;
    if (!producer)
        return;
    bool is_vfork = ctx->thread.vfork_depth > 0;
    if (!is_vfork)
        wire_kicks_close(relay.shared);
    wire_put_exec(producer, &(Wire_exec){is_vfork, text_of(path)});
    // The monitor may want to look at what will be gone.
    if (!is_vfork)
        wire_sync(producer);
}

void relay_exec_failed(ThreadCtx *ctx, int error)
{
    WireProducer *producer = relay.shared ? relay_producer(ctx) : NULL;
    if (!producer)
        return;
    if (ctx->thread.vfork_depth == 0)
        wire_kicks_open(relay.shared);
    wire_put_exec_failed(producer, &(Wire_exec_failed){(u64)error});
}

static void put_line(ThreadCtx *ctx, const char *text, bool is_note)
{
    WireProducer *producer = relay_producer(ctx);
    if (!producer) {
        log_line("%s", text);
        return;
    }
    wire_put_line(producer, &(Wire_line){is_note, text_of(text)});
    wire_sync(producer);
    relay_check();
}

void relay_line(ThreadCtx *ctx, const char *text)
{
    put_line(ctx, text, false);
}

void relay_note(ThreadCtx *ctx, const char *text)
{
    put_line(ctx, text, true);
}

void relay_client_ended(ThreadCtx *ctx)
{
    WireProducer *producer = relay_is_on() ? relay_producer(ctx) : NULL;
    if (producer)
        wire_put_client_ended(producer, &(Wire_client_ended){0});
}

void relay_remark(ThreadCtx *ctx, const RelayPart *part)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    u64 words[FIELDS_MAX];
    char texts[FIELD_TEXTS_BYTES];
    const FieldShape *shape = relay_part_shape(part->kind);
    WireProducer *producer = relay_producer(ctx);
    if (!producer || !shape)
        return;
    size_t count = part->context ? context_frames(part->context, frames, WIRE_FRAMES_MAX) : 0;
    size_t size = fields_encode(shape, &part->fields, words, texts);
    wire_put_remark(producer, &(Wire_remark){
        .sequence = ctx->relay.answering,
        .kind = part->kind,
        .values = {words, shape->count},
        .texts = {texts, size},
        .pcs = {frames, min_u64(count, WIRE_FRAMES_MAX)},
    });
    wire_sync(producer);
    relay_check();
}

void relay_tree_node(ThreadCtx *ctx, u32 tree, const u64 *values, size_t count, u32 context)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    WireProducer *producer = relay_producer(ctx);
    if (!producer)
        return;
    size_t depth = context ? context_frames(context, frames, WIRE_FRAMES_MAX) : 0;
    wire_put_tree_node(producer, &(Wire_tree_node){
        .tree = tree,
        .values = {values, count},
        .pcs = {frames, min_u64(depth, WIRE_FRAMES_MAX)},
    });
}

void relay_tree_done(ThreadCtx *ctx, u32 tree, u32 number)
{
    WireProducer *producer = relay_producer(ctx);
    if (!producer)
        return;
    wire_put_tree_done(producer, &(Wire_tree_done){.tree = tree, .number = number});
    wire_sync(producer);
    relay_check();
}

void relay_profile(ThreadCtx *ctx, u32 number, const char *events)
{
    WireProducer *producer = relay_producer(ctx);
    if (producer)
        wire_put_profile(producer, &(Wire_profile){.number = number, .events = text_of(events)});
}

void relay_profile_cost(ThreadCtx *ctx, u32 number, GuestAddr pc, const u64 *values, size_t count)
{
    WireProducer *producer = relay_producer(ctx);
    if (producer)
        wire_put_profile_cost(producer, &(Wire_profile_cost){
            .number = number, .pc = pc, .values = {values, count},
        });
}

void relay_profile_done(ThreadCtx *ctx, u32 number)
{
    WireProducer *producer = relay_producer(ctx);
    if (!producer)
        return;
    wire_put_profile_done(producer, &(Wire_profile_done){.number = number});
    wire_sync(producer);
    relay_check();
}

void relay_client_text(ThreadCtx *ctx, const char *text, u32 context)
{
    GuestAddr frames[WIRE_FRAMES_MAX];
    WireProducer *producer = relay_producer(ctx);
    if (!producer) {
        log_line("**%d** %s", (int)raw_syscall0(SYS_getpid), text);
        return;
    }
    size_t count = context ? context_frames(context, frames, WIRE_FRAMES_MAX) : 0;
    wire_put_client_text(producer, &(Wire_client_text){
        .tid = ctx->relay.number,
        .text = text_of(text),
        .pcs = {frames, min_u64(count, WIRE_FRAMES_MAX)},
    });
    wire_sync(producer);
    relay_check();
}

// Nobody has judged the run: that is no success.
static int lost_status(int status)
{
    return relay.is_lost && relay.error_exitcode ? relay.error_exitcode : status;
}

int relay_end(ThreadCtx *ctx, int status, int signal)
{
    WireProducer *producer = relay_is_on() ? relay_producer(ctx) : NULL;
    if (!producer)
        return lost_status(status);
    WireHeader *header = &relay.shared->header;
    wire_put_end(producer, &(Wire_end){(u64)status, (u64)signal});
    wire_ring_bell(producer);
    if (!wire_wait(&header->finished, &relay.life)) {
        relay_lost();
        return lost_status(status);
    }
    collect_guard();
    relay_say_alarms();
    return header->exit_code >= 0 ? header->exit_code : status;
}
