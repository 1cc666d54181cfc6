// SPDX-License-Identifier: MIT
//
// The files that are open: what each is, by its content, and what has been added to it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/foreign/foreign.h"
#include "inspect/http/findings.h"
#include "inspect/http/live.h"
#include "inspect/http/parts.h"

enum { HEAD_BYTES = 4096 };

static void keep_warning(void *arg, const char *line)
{
    OpenFile *file = arg;

    if (file->warning_count < WARNINGS_MAX && (file->warnings[file->warning_count] = strdup(line)))
        file->warning_count++;
}

// Reads the beginning. Returns its size, -errno.
static ssize_t read_head(OpenFile *file, char head[HEAD_BYTES])
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat stat;

    if (fd < 0)
        return -errno;
    ssize_t n = fstat(fd, &stat) != 0       ? -errno
                : S_ISDIR(stat.st_mode)     ? -EISDIR
                : !S_ISREG(stat.st_mode)    ? -EINVAL
                                            : read(fd, head, HEAD_BYTES);
    if (n == -1)
        n = -errno;
    file->bytes = n >= 0 ? (u64)stat.st_size : 0;
    close(fd);
    return n;
}

static void open_findings(OpenFile *file)
{
    file->findings = findings_load(file->path, &file->error);
    if (!file->findings)
        return;
    file->kind = FILE_FINDINGS;
    file->format = file->findings->format;
    file->pid = file->findings->pid;
    if (file->findings->problem)
        keep_warning(file, file->findings->problem);
    file->live = strcmp(file->findings->status, "running") == 0 && live_is_running(file->pid);
}

// A recording that was made of a foreign file has its kind where ours have the name of their tool.
static const char *format_of(const char *tool)
{
    if (!foreign_is_kind(tool))
        return "muninn";
    return strcmp(tool, "massif.out") == 0 ? "massif" : tool;
}

static void open_heap(OpenFile *file)
{
    Recording *recording = foreign_open(file->path, keep_warning, file, &file->error);

    if (!recording)
        return;
    const RecordingInfo *info = recording_info(recording);
    file->kind = FILE_HEAP;
    file->format = format_of(info->tool);
    file->pid = info->pid;
    file->views[LANE_QUICK].recording = recording;
    file->live = !recording_end(recording)->known && live_is_running(file->pid);
}

OpenFile *file_open(Viewer *viewer, const char *path)
{
    OpenFile *file = viewer->file_count < FILES_MAX ? calloc(1, sizeof(*file)) : NULL;
    char head[HEAD_BYTES];

    if (!file || !(file->path = strdup(path))) {
        free(file);
        return NULL;
    }
    const char *slash = strrchr(file->path, '/');
    file->name = slash && slash[1] ? slash + 1 : file->path;
    file->format = "unknown";
    file->version = 1;
    for (int i = 0; i < LANE_COUNT; i++) {
        pthread_mutex_init(&file->views[i].lock, NULL);
        file->views[i].version = 1;
    }
    ssize_t size = read_head(file, head);
    const char *why = size == -EINVAL ? "neither a recording nor a report" : strerror((int)-size);
    if (size < 0 && asprintf(&file->error, "%s: %s", path, why) < 0)
        file->error = NULL;
    else if (size >= 0 && findings_look(head, (size_t)size))
        open_findings(file);
    else if (size >= 0)
        open_heap(file);
    if (file->kind == FILE_UNREADABLE && !file->error)
        file->error = strdup("the file cannot be read");
    file->id = viewer->file_count;
    viewer->files[viewer->file_count++] = file;
    return file;
}

void file_free(OpenFile *file)
{
    for (int i = 0; i < LANE_COUNT; i++) {
        memo_clear(&file->views[i].memo);
        parts_free(file->views[i].parts);
        if (file->views[i].recording)
            recording_free(file->views[i].recording);
        pthread_mutex_destroy(&file->views[i].lock);
    }
    if (file->findings)
        findings_free(file->findings);
    for (u32 i = 0; i < file->warning_count; i++)
        free(file->warnings[i]);
    free(file->error);
    free(file->path);
    free(file);
}

// A report that has grown is read again.
static bool reload_findings(OpenFile *file)
{
    struct stat st;
    char *error = NULL;

    if (stat(file->path, &st) != 0 || (u64)st.st_size == file->findings->file_bytes)
        return false;
    Findings *findings = findings_load(file->path, &error);
    free(error);
    if (!findings)
        return false;
    findings_free(file->findings);
    file->findings = findings;
    file->format = findings->format;
    return true;
}

bool file_refresh(OpenFile *file)
{
    View *view = &file->views[LANE_QUICK];
    struct stat st;

    if (file->kind == FILE_UNREADABLE)
        return false;
    pthread_mutex_lock(&view->lock);
    bool grown = file->kind == FILE_HEAP ? recording_refresh(view->recording)
                                         : reload_findings(file);
    if (grown) {
        memo_clear(&view->memo);
        view->version = ++file->version;
        if (stat(file->path, &st) == 0)
            file->bytes = (u64)st.st_size;
    }
    pthread_mutex_unlock(&view->lock);
    return grown;
}

View *file_lock_view(OpenFile *file, Lane lane)
{
    View *view = &file->views[file->kind == FILE_HEAP ? lane : LANE_QUICK];
    char *error = NULL;

    pthread_mutex_lock(&view->lock);
    if (file->kind == FILE_HEAP && !view->recording)
        view->recording = foreign_open(file->path, NULL, NULL, &error);
    free(error);
    if (file->kind == FILE_HEAP && !view->recording) {
        pthread_mutex_unlock(&view->lock);
        return NULL;
    }
    u64 version = file->version;
    if (view->version != version) {
        if (file->kind == FILE_HEAP)
            recording_refresh(view->recording);
        memo_clear(&view->memo);
        view->version = version;
    }
    memo_begin_call(&view->memo);
    return view;
}
