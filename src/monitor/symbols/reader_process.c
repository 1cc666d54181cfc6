// SPDX-License-Identifier: MIT
//
// Both ends of the socket between the monitor and its reader, and the limits that keep
// a hostile file harmless: processor time per question, wall time for a file that never
// answers (a dead network mount), memory, and the first place in the kernel's choice when memory
// runs out. A reply is checked as any input is: the reader may be out of its mind.
#include "monitor/symbols/reader_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CPU_LIMIT_MS          10000
#define WALL_LIMIT_MS         120000
#define WALL_LIMIT_NETWORK_MS 900000 // debuginfod has time limits of its own
#define LOOK_STEP_MS          250 // how often the limits are looked at
#define REST_AFTER_MS         1000
#define REST_WORK_PARTS       8 // and so many times as long as it has worked
#define REPLY_USUAL           (16 * KiB)
#define READER_FD             3
#define READER_DATA_LIMIT     (16 * GiB)

void reader_process_init(ReaderProcess *process, const SymbolsConfig *config)
{
    *process = (ReaderProcess){
        .config = *config,
        .fd = -1,
        .cpu_limit_ms = CPU_LIMIT_MS,
        .rest_after_ms = REST_AFTER_MS,
    };
}

static void reap(ReaderProcess *process)
{
    if (process->fd >= 0)
        close(process->fd);
    process->fd = -1;
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    process->pid = 0;
    process->was_ahead = process->ahead_count != 0;
    process->ahead_first = process->ahead_count = process->unsent = 0;
    process->reply_bytes = process->reply_all = 0;
}

void reader_process_free(ReaderProcess *process)
{
    reap(process);
    free(process->reply);
    process->reply = NULL;
}

// Its descriptor may have been closed, and its number be another file's by now.
void reader_process_forget(ReaderProcess *process)
{
    process->pid = 0;
    process->fd = -1;
    process->ahead_first = process->ahead_count = process->unsent = 0;
    process->reply_bytes = process->reply_all = 0;
}

// ---- the reader's end -----------------------------------------------------------------------

static bool read_all(int fd, void *buffer, size_t size)
{
    u8 *next = buffer;
    while (size) {
        ssize_t got = read(fd, next, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        next += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *buffer, size_t size)
{
    const u8 *next = buffer;
    while (size) {
        ssize_t got = send(fd, next, size, MSG_NOSIGNAL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        next += got;
        size -= (size_t)got;
    }
    return true;
}

static bool send_reply(int fd, ReplyText *reply)
{
    size_t items = reply->reply.item_count * sizeof(ReaderItem);
    size_t size = sizeof(ReaderReply) + items + reply->reply.text_bytes;
    u8 *bytes = malloc(size);
    if (!bytes)
        return false;
    memcpy(bytes, &reply->reply, sizeof(ReaderReply));
    memcpy(bytes + sizeof(ReaderReply), reply->items, items);
    if (reply->reply.text_bytes)
        memcpy(bytes + sizeof(ReaderReply) + items, reply->text, reply->reply.text_bytes);
    bool sent = write_all(fd, bytes, size);
    free(bytes);
    return sent;
}

static void serve(int fd, const SymbolsConfig *config)
{
    Reader *reader = reader_new(config);
    ReplyText reply = { 0 };
    ReaderRequest request;

    while (reader && read_all(fd, &request, sizeof request)) {
        char *payload = calloc(1, (size_t)request.payload_bytes + 1);
        if (!payload || !read_all(fd, payload, request.payload_bytes))
            return;
        if (request.op == READER_DEFINE) {
            ModuleSpec spec;
            memcpy(&spec, payload, sizeof spec);
            spec.path = payload + sizeof spec;
            reader_define(reader, request.module, &spec);
        } else {
            reply.reply = (ReaderReply){ 0 };
            reader_answer(reader, &request, payload, &reply);
            if (!send_reply(fd, &reply))
                return;
        }
        free(payload);
    }
}

// A crash of this process is expected of it: no core file, no handler of the monitor's. What the
// terminal sends to the whole group is not for it: the monitor has a report to write still.
static void become_reader(int fd)
{
    static const int dies_of[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGCHLD, SIGALRM };
    static const int ignores[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP, SIGTTOU };
    sigset_t none;

    for (size_t i = 0; i < ARRAY_LEN(dies_of); i++)
        signal(dies_of[i], SIG_DFL);
    for (size_t i = 0; i < ARRAY_LEN(ignores); i++)
        signal(ignores[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    struct rlimit no_core = { 0, 0 }, data = { READER_DATA_LIMIT, READER_DATA_LIMIT };
    setrlimit(RLIMIT_CORE, &no_core);
    // A sanitizer's shadow counts as data, terabytes of it.
    if (!MUNINN_DEBUG)
        setrlimit(RLIMIT_DATA, &data);
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    // A sandbox may refuse it: nothing is lost but the order in which the kernel kills.
    ssize_t ignored = score < 0 ? 0 : write(score, "1000", 4);
    (void)ignored;
    prctl(PR_SET_NAME, "muninn-symbols");
    // The monitor's files must not stay open because its reader has them, the user's terminal and
    // pipes least of all; nor are last words of a library for the user. Sanitizers may speak.
    dup2(fd, READER_FD);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; nothing >= 0 && standard < (MUNINN_DEBUG ? 2 : 3); standard++)
        dup2(nothing, standard);
    close_range(READER_FD + 1, ~0u, 0);
}

bool reader_process_ready(ReaderProcess *process)
{
    if (process->pid > 0)
        return true;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    i32 pid = fork();
    if (pid == 0) {
        become_reader(ends[1]);
        serve(READER_FD, &process->config);
        _exit(0);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    struct timeval step = { .tv_usec = LOOK_STEP_MS * 1000 };
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
    process->pid = pid;
    process->fd = ends[0];
    process->generation++;
    return true;
}

// ---- the monitor's end ----------------------------------------------------------------------

static u64 clock_ms(clockid_t clock)
{
    struct timespec now = { 0 };
    if (clock_gettime(clock, &now) < 0)
        return 0;
    return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

static bool send_ahead(ReaderProcess *process)
{
    ReaderRequest requests[READER_AHEAD_MAX];
    u32 count = process->unsent, first = process->ahead_first + process->ahead_count - count;

    for (u32 i = 0; i < count; i++)
        requests[i] = process->ahead[(first + i) % READER_AHEAD_MAX];
    process->unsent = 0;
    process->asked_ms = clock_ms(CLOCK_MONOTONIC);
    return write_all(process->fd, requests, count * sizeof *requests);
}

void reader_process_rest(ReaderProcess *process)
{
    clockid_t cpu;
    if (process->pid <= 0 || process->ahead_count)
        return;
    u64 idle_ms = clock_ms(CLOCK_MONOTONIC) - process->asked_ms;
    if (idle_ms < process->rest_after_ms || clock_getcpuclockid(process->pid, &cpu) != 0 ||
        idle_ms < REST_WORK_PARTS * clock_ms(cpu))
        return;
    reap(process);
}

bool reader_process_send(ReaderProcess *process, const ReaderRequest *request,
                         const void *payload)
{
    process->asked_ms = clock_ms(CLOCK_MONOTONIC);
    if (process->pid > 0 && send_ahead(process) &&
        write_all(process->fd, request, sizeof *request) &&
        write_all(process->fd, payload, request->payload_bytes))
        return true;
    reap(process);
    return false;
}

typedef struct Limits {
    clockid_t cpu; // the reader's processor time
    bool has_cpu;
    u64 cpu_end_ms, wall_end_ms;
} Limits;

static Limits limits_from_now(const ReaderProcess *process)
{
    Limits limits = { .has_cpu = false };
    limits.has_cpu = clock_getcpuclockid(process->pid, &limits.cpu) == 0;
    if (limits.has_cpu)
        limits.cpu_end_ms = clock_ms(limits.cpu) + process->cpu_limit_ms;
    limits.wall_end_ms = clock_ms(CLOCK_MONOTONIC) +
                         (process->config.debuginfod ? WALL_LIMIT_NETWORK_MS : WALL_LIMIT_MS);
    return limits;
}

// Reads until `wanted` bytes of the reply are there, and more if more have come. Processor time
// is what is limited, so that a busy machine does not cost names.
static bool read_limited(ReaderProcess *process, size_t wanted, const Limits *limits)
{
    while (process->reply_all < wanted) {
        ssize_t size = read(process->fd, process->reply + process->reply_all,
                            process->reply_capacity - process->reply_all);
        if (size > 0) {
            process->reply_all += (size_t)size;
        } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
            return false;
        } else if (clock_ms(CLOCK_MONOTONIC) > limits->wall_end_ms ||
                   (limits->has_cpu && clock_ms(limits->cpu) > limits->cpu_end_ms)) {
            return false;
        }
    }
    return true;
}

static bool is_sound_text(const ReaderReply *reply, u32 text)
{
    return text <= reply->text_bytes;
}

static bool is_sound(const ReaderReply *reply)
{
    const ReaderItem *items = reader_reply_items(reply);
    const char *text = (const char *)(items + reply->item_count);

    if (reply->text_bytes && text[reply->text_bytes - 1] != '\0')
        return false;
    for (u32 i = 0; i < reply->item_count; i++)
        if (!is_sound_text(reply, items[i].name) || !is_sound_text(reply, items[i].mangled) ||
            !is_sound_text(reply, items[i].plain) ||
            !is_sound_text(reply, items[i].directory) || !is_sound_text(reply, items[i].file))
            return false;
    return is_sound_text(reply, reply->warning);
}

static bool reserve(ReaderProcess *process, size_t size)
{
    if (process->reply_capacity >= size)
        return true;
    u8 *grown = realloc(process->reply, 2 * size);
    if (!grown)
        return false;
    process->reply = grown;
    process->reply_capacity = 2 * size;
    return true;
}

static bool receive(ReaderProcess *process)
{
    Limits limits = { .has_cpu = false };
    ReaderReply head;

    if (!reserve(process, REPLY_USUAL))
        return false;
    process->reply_all -= process->reply_bytes;
    memmove(process->reply, process->reply + process->reply_bytes, process->reply_all);
    process->reply_bytes = 0;
    if (process->reply_all < REPLY_USUAL / 2) // else all of it is likely to be here
        limits = limits_from_now(process);
    if (!read_limited(process, sizeof head, &limits))
        return false;
    memcpy(&head, process->reply, sizeof head);
    if (head.item_count > READER_FRAMES_MAX || head.text_bytes > READER_TEXT_MAX)
        return false;
    size_t whole = sizeof head + head.item_count * sizeof(ReaderItem) + head.text_bytes;
    if (!reserve(process, whole) || !read_limited(process, whole, &limits))
        return false;
    process->reply_bytes = whole;
    // Nothing comes unasked.
    return (process->ahead_count || process->reply_all == whole) &&
           is_sound((const ReaderReply *)process->reply);
}

static bool is_same(const ReaderRequest *a, const ReaderRequest *b)
{
    return a->op == b->op && a->module == b->module && a->offset == b->offset &&
           a->distance == b->distance && !a->payload_bytes && !b->payload_bytes;
}

// The next one that was asked ahead.
static bool take_ahead(ReaderProcess *process, ReaderRequest *ret_request)
{
    if (process->ahead_count == 0)
        return false;
    *ret_request = process->ahead[process->ahead_first];
    process->ahead_first = (process->ahead_first + 1) % READER_AHEAD_MAX;
    process->ahead_count--;
    return true;
}

bool reader_process_ask_ahead(ReaderProcess *process, const ReaderRequest *request)
{
    if (process->pid <= 0 || process->ahead_count == READER_AHEAD_MAX)
        return false;
    process->ahead[(process->ahead_first + process->ahead_count++) % READER_AHEAD_MAX] = *request;
    process->unsent++;
    return true;
}

void reader_process_send_ahead(ReaderProcess *process)
{
    if (process->unsent && !send_ahead(process))
        reap(process);
}

bool reader_process_has_answer(const ReaderProcess *process)
{
    struct pollfd answer = { process->fd, POLLIN, 0 };
    if (process->ahead_count == process->unsent)
        return false;
    return process->reply_all > process->reply_bytes || poll(&answer, 1, 0) == 1;
}

// Answers to what was asked ahead, up to that of `request`; false: that was not.
static bool receive_ahead(ReaderProcess *process, const ReaderRequest *request)
{
    ReaderRequest next;
    bool sent = send_ahead(process);
    while (take_ahead(process, &next)) {
        if (!sent || !receive(process)) {
            reap(process);
            process->was_ahead = true;
            return false;
        }
        if (is_same(&next, request))
            return true;
    }
    return false;
}

const ReaderReply *reader_process_ask(ReaderProcess *process, const ReaderRequest *request,
                                      const void *payload)
{
    if (receive_ahead(process, request))
        return (const ReaderReply *)process->reply;
    if (!reader_process_send(process, request, payload))
        return NULL;
    if (!receive(process)) {
        reap(process);
        return NULL;
    }
    return (const ReaderReply *)process->reply;
}

const ReaderItem *reader_reply_items(const ReaderReply *reply)
{
    return (const ReaderItem *)(reply + 1);
}

const char *reader_reply_text(const ReaderReply *reply, u32 text)
{
    const char *texts = (const char *)(reader_reply_items(reply) + reply->item_count);
    return text ? texts + text - 1 : NULL;
}
