// SPDX-License-Identifier: MIT
//
// See live.h. One thread looks at all live files; streams wait for its `tick`.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "inspect/http/findings.h"
#include "inspect/http/live.h"
#include "monitor/control/control.h"

enum {
    TICK_MS = 250,
    QUIET_MS = 5000, // then a stream says that it is there
    STREAMS_MAX = 8,
    ASK_MS = 5000, // for a monitor to answer, on a busy machine too
    ACTION_MS = 20 * 1000, // a leak check of a large program takes its time
    ALIVE_EVERY = 4,       // ticks
    NAMES_EVERY = 6,
    NAMES_MS = 3000,
};

struct Live {
    Viewer *viewer;
    pthread_mutex_t lock; // for all below
    pthread_cond_t tick;
    pthread_t thread;
    bool stopping;
    u32 stream_count;
};

struct LiveStream {
    Live *live;
    u32 file_id; // U32_MAX: all
    u64 versions[FILES_MAX]; // that it has told
    bool ended[FILES_MAX];
    u64 spoke_ns;
};

// ------------------------------------------------------------------------ looking

static void ignore_answer(void *arg, const char *text, size_t size)
{
    (void)arg;
    (void)text;
    (void)size;
}

bool live_is_running(i32 pid)
{
    return pid > 0 && control_ask(pid, "status", ASK_MS, ignore_answer, NULL) >= 0;
}

static bool has_bare_contexts(OpenFile *file)
{
    View *view = &file->views[LANE_QUICK];
    bool is_bare = false;

    pthread_mutex_lock(&view->lock);
    for (u32 i = 1; i < recording_context_count(view->recording) && !is_bare; i++)
        is_bare = recording_context(view->recording, i)->frame_count == 0;
    pthread_mutex_unlock(&view->lock);
    return is_bare;
}

static void look_at(OpenFile *file, u32 turn)
{
    bool asks_alive = turn % ALIVE_EVERY == 0;

    if (!file->live)
        return;
    // A monitor looks names up at the end, unless somebody wants them before.
    if (turn % NAMES_EVERY == 0 && file->kind == FILE_HEAP && has_bare_contexts(file))
        control_ask(file->pid, "heap_names", NAMES_MS, ignore_answer, NULL);
    // Asked before the refresh: what it wrote while it lived is then taken in.
    bool runs = !asks_alive || live_is_running(file->pid);
    file_refresh(file);
    if (!runs) {
        file->live = false;
        file->version++;
    }
}

static struct timespec after_ms(u32 ms)
{
    u64 then = clock_ns() + ms * 1000000ull;

    return (struct timespec){(time_t)(then / 1000000000u), (long)(then % 1000000000u)};
}

static void *watch(void *arg)
{
    Live *live = arg;

    pthread_mutex_lock(&live->lock);
    for (u32 turn = 0; !live->stopping; turn++) {
        pthread_mutex_unlock(&live->lock);
        for (u32 i = 0; i < live->viewer->file_count; i++)
            look_at(live->viewer->files[i], turn);
        pthread_mutex_lock(&live->lock);
        pthread_cond_broadcast(&live->tick);
        struct timespec until = after_ms(TICK_MS);
        if (!live->stopping)
            pthread_cond_timedwait(&live->tick, &live->lock, &until);
    }
    pthread_mutex_unlock(&live->lock);
    return NULL;
}

Live *live_start(Viewer *viewer)
{
    Live *live = calloc(1, sizeof(*live));
    pthread_condattr_t attributes;

    if (!live)
        return NULL;
    live->viewer = viewer;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&live->tick, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&live->lock, NULL);
    if (pthread_create(&live->thread, NULL, watch, live) == 0)
        return live;
    free(live);
    return NULL;
}

void live_end_streams(Live *live)
{
    pthread_mutex_lock(&live->lock);
    live->stopping = true;
    pthread_cond_broadcast(&live->tick);
    pthread_mutex_unlock(&live->lock);
}

void live_stop(Live *live)
{
    live_end_streams(live);
    pthread_join(live->thread, NULL);
    pthread_cond_destroy(&live->tick);
    pthread_mutex_destroy(&live->lock);
    free(live);
}

// ------------------------------------------------------------------------ streams

LiveStream *live_stream_new(Live *live, u32 file_id)
{
    LiveStream *stream = NULL;

    pthread_mutex_lock(&live->lock);
    if (live->stream_count < STREAMS_MAX && !live->stopping &&
        (stream = calloc(1, sizeof(*stream))))
        live->stream_count++;
    pthread_mutex_unlock(&live->lock);
    if (!stream)
        return NULL;
    stream->live = live;
    stream->file_id = file_id;
    // The first thing it tells is where each file stands.
    for (u32 i = 0; i < FILES_MAX; i++)
        stream->versions[i] = UINT64_MAX;
    return stream;
}

void live_stream_free(LiveStream *stream)
{
    pthread_mutex_lock(&stream->live->lock);
    stream->live->stream_count--;
    pthread_mutex_unlock(&stream->live->lock);
    free(stream);
}

static void put_totals(Json *out, OpenFile *file)
{
    View *view = &file->views[LANE_QUICK];

    pthread_mutex_lock(&view->lock);
    size_t count = view->recording ? recording_slice_count(view->recording) : 0;
    json_key_u64(out, "duration_ns", view->recording ? recording_last(view->recording).ns : 0);
    json_key_u64(out, "events", view->recording ? recording_event_count(view->recording) : 0);
    const SliceInfo *slice = count ? recording_slice(view->recording, count - 1) : NULL;
    json_key_u64(out, "heap", slice ? slice->totals.bytes[SPACE_HEAP] : 0);
    json_key_u64(out, "mapped", slice ? slice->totals.bytes[SPACE_MAPPED] : 0);
    json_key_u64(out, "stack", slice ? slice->totals.bytes[SPACE_STACK] : 0);
    pthread_mutex_unlock(&view->lock);
}

static void put_event(Json *out, OpenFile *file, bool has_ended, u64 version)
{
    const char *name = has_ended ? "event: end\ndata: " : "event: change\ndata: ";

    json_raw(out, name, strlen(name));
    json_open(out, '{');
    json_key_u64(out, "f", file->id);
    json_key_u64(out, "version", version);
    put_totals(out, file);
    json_close(out, '}');
    json_raw(out, "\n\n", 2);
    out->needs_comma = false;
}

static void collect(LiveStream *stream, Json *out, size_t room)
{
    Viewer *viewer = stream->live->viewer;

    for (u32 i = 0; i < viewer->file_count && out->size + 512 < room; i++) {
        OpenFile *file = viewer->files[i];
        u64 version = file->version;
        bool has_ended = !file->live;
        if ((stream->file_id != UINT32_MAX && stream->file_id != i) ||
            file->kind == FILE_UNREADABLE)
            continue;
        if (stream->versions[i] == version && stream->ended[i] == has_ended)
            continue;
        put_event(out, file, has_ended, version);
        stream->versions[i] = version;
        stream->ended[i] = has_ended;
    }
}

ssize_t live_stream_read(LiveStream *stream, char *buffer, size_t size)
{
    Live *live = stream->live;
    Json out = {0};

    pthread_mutex_lock(&live->lock);
    if (stream->spoke_ns && !live->stopping) {
        struct timespec until = after_ms(TICK_MS);
        pthread_cond_timedwait(&live->tick, &live->lock, &until);
    }
    bool stopping = live->stopping;
    pthread_mutex_unlock(&live->lock);
    if (stopping)
        return -1;
    collect(stream, &out, size);
    if (out.size == 0 && clock_ns() - stream->spoke_ns > QUIET_MS * 1000000ull)
        json_raw(&out, ": here\n\n", 8);
    size_t told = out.size <= size ? out.size : 0;
    if (told) {
        memcpy(buffer, out.data, told);
        stream->spoke_ns = clock_ns();
    }
    json_free(&out);
    return (ssize_t)told;
}

// ------------------------------------------------------------------------ actions

typedef struct Told {
    Json text; // raw bytes, not JSON
} Told;

static void keep_answer(void *arg, const char *text, size_t size)
{
    json_raw(&((Told *)arg)->text, text, size);
}

void live_answer_action(Call *call)
{
    static const char *const actions[] = {"snapshot", "leak-check"};
    // The recording keeps the snapshot; massif's own file of it is not wanted.
    static const char *const commands[] = {"snapshot /dev/null", "leak_check full any"};
    Request *request = call->request;
    u64 id = request_u64(request, "f", 0, UINT32_MAX);
    u32 action = request_choice(request, "do", actions, 2, 2);
    Told told = {0};

    if (request->error[0] || action == 2 || id >= call->viewer->file_count) {
        call_fail(call, 400, "bad-parameter", "%s",
                  request->error[0] ? request->error : "do: snapshot or leak-check, f: a file");
        return;
    }
    OpenFile *file = call->viewer->files[id];
    if (!file->live) {
        call_fail(call, 409, "refused", "the program does not run any more");
        return;
    }
    int status = control_ask(file->pid, commands[action], ACTION_MS, keep_answer, &told);
    const char *text = told.text.data ? told.text.data : "";
    if (status == 0)
        file_refresh(file); // whoever asked looks for what is new in it
    if (status < 0)
        call_fail(call, 409, "refused", "process %d gave no answer", file->pid);
    else if (status != 0 && strncmp(text, "unknown command", 15) == 0)
        call_fail(call, 409, "refused", "the tool that watches this program has no %s",
                  actions[action]);
    json_open(&call->out, '{');
    json_key_i64(&call->out, "status", status);
    json_key_text(&call->out, "text",
                  action == 0 && status == 0 ? "What is live now is kept in the recording." : text);
    json_close(&call->out, '}');
    json_free(&told.text);
}

// ---------------------------------------------------------------- a program's recording

static bool is_recording(const char *path)
{
    char *error = NULL;
    Recording *recording = recording_open(path, NULL, NULL, &error);

    free(error);
    if (recording)
        recording_free(recording);
    return recording != NULL;
}

static bool is_report(const char *path)
{
    char head[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t size = fd >= 0 ? read(fd, head, sizeof(head)) : -1;

    if (fd >= 0)
        close(fd);
    return size > 0 && findings_look(head, (size_t)size);
}

// The path behind a descriptor if it is what is looked for, to be freed.
static char *try_descriptor(i32 monitor, const char *name, bool is_wanted(const char *path))
{
    char link[64], path[PATH_MAX];
    struct stat by_link, by_path;

    snprintf(link, sizeof(link), "/proc/%d/fd/%.20s", monitor, name);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || path[0] != '/')
        return NULL;
    path[n] = '\0';
    if (stat(link, &by_link) != 0 || !S_ISREG(by_link.st_mode) || stat(path, &by_path) != 0 ||
        by_link.st_ino != by_path.st_ino || by_link.st_dev != by_path.st_dev || !is_wanted(path))
        return NULL;
    return strdup(path);
}

static char *find_descriptor(i32 monitor, bool is_wanted(const char *path))
{
    char folder[32], *path = NULL;

    snprintf(folder, sizeof(folder), "/proc/%d/fd", monitor);
    DIR *dir = monitor ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && !path && (entry = readdir(dir));)
        path = try_descriptor(monitor, entry->d_name, is_wanted);
    if (dir)
        closedir(dir);
    return path;
}

char *live_find_recording(i32 pid, char **ret_error)
{
    i32 monitor = control_find_monitor(pid);
    char *path = find_descriptor(monitor, is_recording);

    if (!path)
        path = find_descriptor(monitor, is_report);
    if (path)
        return path;
    const char *why = monitor ? "its tool writes neither a heap recording (--tool=massif does) nor "
                                "a report (--json-file=FILE)"
                              : "no program with this process id runs under muninn";
    if (asprintf(ret_error, "%d: %s", pid, why) < 0)
        *ret_error = NULL;
    return NULL;
}
