// SPDX-License-Identifier: MIT
//
// A query in a process of its own: a fork of this one, which has the recording and nothing else of
// it, sends the rows through a pipe, and is killed when its time is over.
//
//   names   'n' count (size text)…           once, before all rows
//   row     'r' (type value)…                value: 8 bytes, or size and text
//   end     'e' ok SqlOutcome size error
//
// Numbers are as they are in memory: both ends are the same program. A child that was killed has
// not sent its end.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspect/sql/table.h"

enum {
    FLUSH_BYTES = 64 * 1024,
    ROW_BYTES_MAX = 64 << 20,
    GRACE_MS = 1000, // for the child's own words, when its time is over
};
static const u64 file_bytes_max = 1ull << 30; // of what SQLite sorts in temporary files

struct SqlTask {
    pid_t pid;
    int fd; // what the child sends
    u32 time_ms;
    u64 deadline_ns; // 0: none
    u8 *data;
    size_t begin, end, room; // of what came and was not taken yet
    u32 column_count;
    char **names;
};

static u64 clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

static char *line_of(const char *text)
{
    return strdup(text);
}

// --------------------------------------------------------------------------- the child

typedef struct Sender {
    int fd;
    u8 *data;
    size_t size, room;
    bool failed; // no memory, or nobody reads any more
    bool row_is_too_large;
} Sender;

static void flush(Sender *sender)
{
    size_t done = 0;

    while (!sender->failed && done < sender->size) {
        ssize_t n = write(sender->fd, sender->data + done, sender->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        sender->failed = n <= 0;
        done += n > 0 ? (size_t)n : 0;
    }
    sender->size = 0;
}

static void put(Sender *sender, const void *data, size_t size)
{
    if (sender->size + size > sender->room) {
        size_t room = (sender->size + size) * 2;
        u8 *larger = sender->failed ? NULL : realloc(sender->data, room);
        if (!larger) {
            sender->failed = true;
            return;
        }
        sender->data = larger;
        sender->room = room;
    }
    memcpy(sender->data + sender->size, data, size);
    sender->size += size;
}

static void put_u32(Sender *sender, u32 value)
{
    put(sender, &value, sizeof(value));
}

static void put_text(Sender *sender, const char *text)
{
    size_t size = strlen(text);

    put_u32(sender, (u32)size);
    put(sender, text, size);
}

static void put_value(Sender *sender, const SqlValue *value)
{
    u8 type = (u8)value->type;

    put(sender, &type, 1);
    if (value->type == SQL_INTEGER)
        put(sender, &value->integer, sizeof(value->integer));
    else if (value->type == SQL_REAL)
        put(sender, &value->real, sizeof(value->real));
    else if (value->type == SQL_TEXT)
        put_text(sender, value->text);
}

static bool send_row(void *arg, u32 count, const char *const *names, const SqlValue *values)
{
    Sender *sender = arg;
    size_t before = sender->size;

    put(sender, values ? "r" : "n", 1);
    if (!values)
        put_u32(sender, count);
    for (u32 i = 0; i < count; i++) {
        if (values)
            put_value(sender, &values[i]);
        else
            put_text(sender, names[i]);
    }
    if (sender->size - before > ROW_BYTES_MAX) {
        sender->size = before;
        sender->row_is_too_large = true;
    } else if (sender->size >= FLUSH_BYTES || !values) {
        flush(sender);
    }
    return !sender->failed && !sender->row_is_too_large;
}

static void send_end(Sender *sender, bool good, const SqlOutcome *outcome, const char *error)
{
    u8 is_good = good;

    put(sender, "e", 1);
    put(sender, &is_good, 1);
    put(sender, outcome, sizeof(*outcome));
    put_text(sender, error ? error : "");
    flush(sender);
}

// What the kernel counts as data now is not the query's.
static u64 data_bytes_now(void)
{
    unsigned long long data = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (!file || fscanf(file, "%*u %*u %*u %*u %*u %llu", &data) != 1)
        data = 0;
    if (file)
        fclose(file);
    return data * (u64)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, u64 value)
{
    setrlimit(resource, &(struct rlimit){value, value});
}

// Only the recording and the pipe stay open: a connection of the viewer's would not end before the
// query does.
static void keep_files(const Recording *recording, int pipe)
{
    unsigned file = (unsigned)recording_fd(recording), other = (unsigned)pipe;
    unsigned kept[] = {file < other ? file : other, file < other ? other : file};
    unsigned first = 3;

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (kept[i] > first)
            close_range(first, kept[i] - 1, 0);
        first = (unsigned)max_u64(first, kept[i] + 1);
    }
    close_range(first, ~0u, 0);
}

static void become_query(const Recording *recording, const SqlLimits *limits, int pipe,
                         pid_t parent)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    prctl(PR_SET_NAME, "muninn-query");
    keep_files(recording, pipe);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, file_bytes_max);
    // A sanitizer's shadow counts as data, terabytes of it.
    if (limits->memory_bytes && !MUNINN_DEBUG)
        limit(RLIMIT_DATA, data_bytes_now() + limits->memory_bytes);
}

static void run_query(Recording *recording, const char *text, const SqlLimits *limits, int pipe)
{
    Sender sender = {.fd = pipe};
    SqlOutcome outcome = {0};
    char *error = NULL;
    SqlDatabase *database = sql_open(recording, &error);
    bool good = database &&
                sql_run(database, text, limits, send_row, &sender, &outcome, &error);

    if (good && sender.row_is_too_large) {
        good = false;
        error = line_of("a row of the answer is too large");
    }
    send_end(&sender, good, &outcome, error);
}

// --------------------------------------------------------------------------- the parent

SqlTask *sql_begin(Recording *recording, const char *text, const SqlLimits *limits,
                   char **ret_error)
{
    SqlTask *task = calloc(1, sizeof(*task));
    int ends[2] = {-1, -1};
    pid_t parent = getpid();

    if (!task || pipe2(ends, O_CLOEXEC) != 0) {
        *ret_error = line_of("there is not enough memory, or too many files are open");
        free(task);
        return NULL;
    }
    task->time_ms = limits->time_ms;
    if (limits->time_ms)
        task->deadline_ns = clock_ns() + (limits->time_ms + GRACE_MS) * 1000000ull;
    task->pid = fork();
    if (task->pid == 0) {
        become_query(recording, limits, ends[1], parent);
        run_query(recording, text, limits, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    task->fd = ends[0];
    if (task->pid > 0)
        return task;
    *ret_error = line_of("no process can be started for the query");
    close(ends[0]);
    free(task);
    return NULL;
}

// Returns what the child died of, 0: of nothing.
static int end_child(SqlTask *task, bool kills)
{
    int status = 0;

    if (kills)
        kill(task->pid, SIGKILL);
    while (waitpid(task->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static bool make_room(SqlTask *task)
{
    if (task->begin > 0) {
        memmove(task->data, task->data + task->begin, task->end - task->begin);
        task->end -= task->begin;
        task->begin = 0;
    }
    if (task->end < task->room)
        return true;
    size_t room = task->room ? task->room * 2 : FLUSH_BYTES;
    u8 *larger = room <= 4ull * ROW_BYTES_MAX ? realloc(task->data, room) : NULL;
    if (!larger)
        return false;
    task->data = larger;
    task->room = room;
    return true;
}

typedef enum Arrival { ARRIVAL_MORE, ARRIVAL_END, ARRIVAL_LATE, ARRIVAL_NO_ROOM } Arrival;

static int wait_ms(const SqlTask *task)
{
    u64 now = clock_ns();

    if (!task->deadline_ns)
        return -1;
    return now >= task->deadline_ns ? 0 : (int)((task->deadline_ns - now) / 1000000 + 1);
}

static Arrival receive(SqlTask *task)
{
    struct pollfd poll_fd = {.fd = task->fd, .events = POLLIN};

    if (!make_room(task))
        return ARRIVAL_NO_ROOM;
    for (;;) {
        int ready = poll(&poll_fd, 1, wait_ms(task));
        if (ready == 0)
            return ARRIVAL_LATE;
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t n = read(task->fd, task->data + task->end, task->room - task->end);
        if (n < 0 && errno == EINTR)
            continue;
        task->end += n > 0 ? (size_t)n : 0;
        return n > 0 ? ARRIVAL_MORE : ARRIVAL_END;
    }
}

// ------------------------------------------------------------------------- messages

// Takes pieces of what has come; `lacks` when they have not come yet.
typedef struct Taker {
    u8 *at, *end;
    bool lacks;
} Taker;

static void take(Taker *taker, void *ret_data, size_t size)
{
    if ((size_t)(taker->end - taker->at) < size) {
        taker->lacks = true;
        memset(ret_data, 0, size);
        return;
    }
    memcpy(ret_data, taker->at, size);
    taker->at += size;
}

// The text without its end, which the byte behind it will be; NULL: it has not come.
static char *take_text(Taker *taker, u32 *ret_size)
{
    u32 size;

    take(taker, &size, sizeof(size));
    if (taker->lacks || (size_t)(taker->end - taker->at) < size) {
        taker->lacks = true;
        return NULL;
    }
    char *text = (char *)taker->at;
    taker->at += size;
    *ret_size = size;
    return text;
}

static bool take_names(SqlTask *task, Taker *taker)
{
    u32 count, size;

    take(taker, &count, sizeof(count));
    char **names = calloc((size_t)count + 1, sizeof(*names));
    for (u32 i = 0; names && i < count && !taker->lacks; i++) {
        const char *text = take_text(taker, &size);
        names[i] = text ? strndup(text, size) : NULL;
    }
    if (names && !taker->lacks) {
        task->names = names;
        task->column_count = count;
        return true;
    }
    for (u32 i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
    return false;
}

// Each text is moved over its size, so that there is room for the zero behind it.
static bool take_values(const SqlTask *task, Taker *taker, SqlValue values[SQL_COLUMNS_MAX])
{
    u32 sizes[SQL_COLUMNS_MAX] = {0};

    for (u32 i = 0; i < task->column_count && !taker->lacks; i++) {
        u8 type;
        take(taker, &type, 1);
        values[i] = (SqlValue){.type = (SqlType)type};
        if (type == SQL_INTEGER)
            take(taker, &values[i].integer, sizeof(i64));
        else if (type == SQL_REAL)
            take(taker, &values[i].real, sizeof(double));
        else if (type == SQL_TEXT)
            values[i].text = take_text(taker, &sizes[i]);
    }
    for (u32 i = 0; i < task->column_count && !taker->lacks; i++) {
        if (values[i].type != SQL_TEXT)
            continue;
        char *moved = memmove((char *)values[i].text - 1, values[i].text, sizes[i]);
        moved[sizes[i]] = '\0';
        values[i].text = moved;
    }
    return !taker->lacks;
}

typedef struct Ending {
    bool is_there, is_good;
    SqlOutcome outcome;
    char *error;
} Ending;

static void take_end(Taker *taker, Ending *ending)
{
    u8 is_good;
    u32 size = 0;

    take(taker, &is_good, 1);
    take(taker, &ending->outcome, sizeof(ending->outcome));
    const char *text = take_text(taker, &size);
    if (!text)
        return;
    ending->is_there = true;
    ending->is_good = is_good;
    ending->error = is_good ? NULL : strndup(text, size);
}

// Gives all messages that have come whole to fn. False: fn has enough, or it was the last.
static bool take_messages(SqlTask *task, SqlRowFn *fn, void *arg, Ending *ending)
{
    SqlValue values[SQL_COLUMNS_MAX];

    while (!ending->is_there) {
        Taker taker = {.at = task->data + task->begin, .end = task->data + task->end};
        const char *const *names = (const char *const *)task->names;
        bool goes_on = true;
        u8 kind = 0;
        take(&taker, &kind, 1);
        if (kind == 'e')
            take_end(&taker, ending);
        else if (kind == 'n' && !names && take_names(task, &taker))
            goes_on = fn(arg, task->column_count, (const char *const *)task->names, NULL);
        else if (kind == 'r' && names && take_values(task, &taker, values))
            goes_on = fn(arg, task->column_count, names, values);
        if (taker.lacks)
            return true;
        task->begin = (size_t)(taker.at - task->data);
        if (!goes_on) {
            *ending = (Ending){.is_there = true, .is_good = true};
            return false;
        }
    }
    return false;
}

static void free_task(SqlTask *task)
{
    close(task->fd);
    for (u32 i = 0; i < task->column_count; i++)
        free(task->names[i]);
    free(task->names);
    free(task->data);
    free(task);
}

// What is said of a child that could not say it.
static char *explain(const SqlTask *task, Arrival arrival, int died_of)
{
    char *line = NULL;

    if (arrival == ARRIVAL_LATE) {
        if (asprintf(&line, "the query took longer than %u ms", task->time_ms) < 0)
            line = NULL;
    } else if (arrival == ARRIVAL_NO_ROOM) {
        line = line_of("there is not enough memory for a row of the answer");
    } else {
        if (asprintf(&line, "the query's process ended early (signal %d): it may need more memory "
                            "than it may have", died_of) < 0)
            line = NULL;
    }
    return line;
}

bool sql_end(SqlTask *task, SqlRowFn *fn, void *arg, SqlOutcome *ret_outcome, char **ret_error)
{
    Ending ending = {0};
    Arrival arrival;

    do
        arrival = receive(task);
    while (arrival == ARRIVAL_MORE && take_messages(task, fn, arg, &ending));
    int died_of = end_child(task, arrival != ARRIVAL_END);
    if (!ending.is_there)
        ending.error = explain(task, arrival, died_of);
    if (!ending.is_good)
        *ret_error = ending.error;
    if (ret_outcome)
        *ret_outcome = ending.outcome;
    free_task(task);
    return ending.is_good;
}
