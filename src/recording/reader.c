// SPDX-License-Identifier: MIT
//
// Opening a recording and telling what is in it. Names, spans and states are in memory from
// the start; sums and events are read when they are asked for.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "recording/reader.h"

__attribute__((format(printf, 2, 3))) static void *fail(char **ret_error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(ret_error, format, arguments) < 0)
        *ret_error = NULL;
    va_end(arguments);
    return NULL;
}

// Why this file is none, or NULL. The text is static, but for %s of the path.
static const char *check_header(int fd, const struct stat *status)
{
    FileHeader header;
    ssize_t got = pread(fd, &header, sizeof(header), 0);

    if (!S_ISREG(status->st_mode))
        return "not a file";
    if (got == 0)
        return "the file is empty";
    if (got < (ssize_t)sizeof(header) || memcmp(header.magic, FILE_MAGIC, 8) != 0)
        return "not a heap recording of muninn (wrong bytes at offset 0)";
    if (header.version < FORMAT_VERSION_READ || header.version > FORMAT_VERSION)
        return "a heap recording of another version of muninn (the version is at offset 8)";
    return NULL;
}

static void free_spans(Recording *recording)
{
    for (size_t i = 0; i < recording->state_count; i++)
        free((char *)recording->states[i].state.label);
    recording->state_count = 0;
    recording->node_count = 0;
    recording->leaf_count = 0;
    recording->histogram_count = 0;
    recording->living_chunk_count = recording->living_listed = 0;
    recording->has_living_list = false;
    free(recording->histograms);
    free(recording->histogram_known);
    recording->histograms = NULL;
    recording->histogram_known = NULL;
}

int recording_fd(const Recording *recording)
{
    return recording->fd;
}

void recording_free(Recording *recording)
{
    if (!recording)
        return;
    free_spans(recording);
    reader_forget_sums(recording);
    reader_forget_living(recording);
    reader_drop_cache(recording);
    reader_free_names(recording);
    run_free(&recording->info);
    for (u32 i = 0; i < LEVELS; i++)
        free(recording->by_level[i]);
    free(recording->histogram_chunks);
    free(recording->living_chunks);
    free(recording->states);
    free(recording->samples);
    free(recording->nodes);
    free(recording->leaves);
    free(recording->ring);
    ZSTD_freeDCtx(recording->decompressor);
    free(recording->path);
    if (recording->fd >= 0)
        close(recording->fd);
    free(recording);
}

Recording *recording_open(const char *path, RecordingWarnFn *warn, void *arg, char **ret_error)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return fail(ret_error, "%s: cannot be opened: %s", path, strerror(error));
    }
    const char *problem = check_header(fd, &status);
    if (problem) {
        close(fd);
        return fail(ret_error, "%s: %s", path, problem);
    }
    Recording *recording = calloc(1, sizeof(*recording));
    if (!recording) {
        close(fd);
        return fail(ret_error, "%s: no memory to read it", path);
    }
    recording->fd = fd;
    recording->path = strdup(path);
    recording->warn = warn;
    recording->warn_arg = arg;
    recording->file_size = (u64)status.st_size;
    recording->inode = status.st_ino;
    if (!reader_begin_names(recording) || !reader_scan(recording, true)) {
        recording_free(recording);
        return fail(ret_error, "%s: no memory to read it", path);
    }
    return recording;
}

// The writer has put a smaller file in the place of the one that is open: what has been read
// of spans is of the old one. Names and samples are numbered, and go on where they were.
static bool reopen(Recording *recording, const struct stat *status)
{
    int fd = open(recording->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || check_header(fd, status)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    close(recording->fd);
    recording->fd = fd;
    recording->inode = status->st_ino;
    recording->scanned = 0;
    recording->file_size = 0;
    recording->plain_bytes = 0;
    free_spans(recording);
    reader_drop_cache(recording);
    return true;
}

static bool has_changed(Recording *recording)
{
    struct stat status;

    if (stat(recording->path, &status) == 0 && status.st_ino != recording->inode) {
        if (!reopen(recording, &status))
            return false;
    }
    if (fstat(recording->fd, &status) != 0 || (u64)status.st_size <= recording->file_size)
        return false;
    recording->file_size = (u64)status.st_size;
    return true;
}

bool recording_refresh(Recording *recording)
{
    if (recording->is_whole || !has_changed(recording))
        return false;
    u64 before = recording->scanned;
    if (!reader_scan(recording, false) || recording->scanned == before)
        return false;
    reader_forget_sums(recording);
    reader_forget_living(recording);
    free(recording->histograms);
    free(recording->histogram_known);
    recording->histograms = NULL;
    recording->histogram_known = NULL;
    return true;
}

const RecordingInfo *recording_info(const Recording *recording)
{
    return &recording->info;
}

const RecordingEnd *recording_end(const Recording *recording)
{
    return &recording->end;
}

Moment recording_last(const Recording *recording)
{
    return recording->last;
}

u64 recording_event_count(const Recording *recording)
{
    u64 count = 0;

    for (size_t i = 0; i < recording->leaf_count; i++)
        count += reader_leaf(recording, i)->info.events;
    return count;
}

u64 recording_plain_bytes(const Recording *recording)
{
    return recording->plain_bytes;
}

// Events go from the oldest on. Where some are missing between others the file is broken: that was
// said when it was found.
u64 recording_events_kept_since_ns(const Recording *recording)
{
    u64 since_ns = 0;

    for (size_t i = 0; i < recording->leaf_count; i++) {
        const Node *leaf = reader_leaf(recording, i);
        if (leaf->events_offset)
            break;
        if (leaf->info.events)
            since_ns = leaf->info.end.ns;
    }
    return since_ns;
}

u32 recording_context_count(const Recording *recording)
{
    return (u32)recording->context_count;
}

const RecordedContext *recording_context(const Recording *recording, u32 context)
{
    return context < recording->context_count ? &recording->contexts[context] : NULL;
}

const RecordedFrame *recording_frame(const Recording *recording, u32 frame)
{
    return frame < recording->frame_count ? &recording->frames[frame] : NULL;
}

u32 recording_frame_count(const Recording *recording)
{
    return (u32)recording->frame_count;
}

u32 recording_module_count(const Recording *recording)
{
    return (u32)recording->module_count;
}

const RecordedModule *recording_module(const Recording *recording, u32 module)
{
    return module < recording->module_count ? &recording->modules[module] : NULL;
}

u32 recording_thread_count(const Recording *recording)
{
    return (u32)recording->thread_count;
}

const RecordedThread *recording_thread(const Recording *recording, u32 index)
{
    return index < recording->thread_count ? &recording->threads[index] : NULL;
}

u32 recording_site_count(const Recording *recording)
{
    return (u32)recording->site_count;
}

const char *pages_kind_name(PagesKind kind)
{
    static const char *const names[PAGES_KINDS] = {
        [PAGES_ANONYMOUS] = "anonymous", [PAGES_FILE] = "file",   [PAGES_BRK] = "brk",
        [PAGES_SHM] = "shm",             [PAGES_STACK] = "stack", [PAGES_PROGRAM] = "program",
    };
    return kind < PAGES_KINDS ? names[kind] : NULL;
}

const RecordedSite *recording_site(const Recording *recording, u32 site)
{
    return site < recording->site_count ? &recording->sites[site] : NULL;
}

size_t recording_sample_count(const Recording *recording)
{
    return recording->sample_count;
}

const Sample *recording_sample(const Recording *recording, size_t index)
{
    return index < recording->sample_count ? &recording->samples[index] : NULL;
}

size_t recording_state_count(const Recording *recording)
{
    return recording->state_count;
}

const RecordedState *recording_state_info(const Recording *recording, size_t index)
{
    return index < recording->state_count ? &recording->states[index].state : NULL;
}

size_t recording_find_state(const Recording *recording, StateReason reason)
{
    for (size_t i = recording->state_count; i-- > 0;)
        if (recording->states[i].state.reason == reason)
            return i;
    return SIZE_MAX;
}

size_t recording_slice_count(const Recording *recording)
{
    return recording->leaf_count;
}

const SliceInfo *recording_slice(const Recording *recording, size_t index)
{
    return index < recording->leaf_count ? &reader_leaf(recording, index)->info : NULL;
}

// ---------------------------------------------------------------- histograms
static void get_buckets(Cursor *cursor, u64 *buckets)
{
    u64 count = cursor_varint(cursor);

    if (count > HISTOGRAM_BUCKETS)
        cursor->failed = true;
    for (u64 i = 0; i < count && !cursor->failed; i++)
        buckets[i] = cursor_varint(cursor);
}

// All chunks of histograms; of a site that is in several, the last is right.
static bool load_histograms(Recording *recording)
{
    recording->histogram_sites = (u32)recording->site_count;
    recording->histograms = calloc(recording->site_count + 1, sizeof(SiteHistogram));
    recording->histogram_known = calloc(recording->site_count + 1, 1);
    if (!recording->histograms || !recording->histogram_known)
        return false;
    for (size_t i = 0; i < recording->histogram_count; i++) {
        u32 size;
        u8 *body = reader_load_body(recording, recording->histogram_chunks[i], &size);
        Cursor cursor = cursor_of(body, body ? size : 0);
        while (cursor.at < cursor.end && !cursor.failed) {
            SiteHistogram histogram = { 0 };
            u64 site = cursor_varint(&cursor);
            get_buckets(&cursor, histogram.sizes);
            get_buckets(&cursor, histogram.lifetimes);
            if (cursor.failed || site >= recording->histogram_sites)
                break;
            recording->histograms[site] = histogram;
            recording->histogram_known[site] = 1;
        }
        free(body);
    }
    return true;
}

bool recording_histogram(Recording *recording, u32 site, SiteHistogram *ret_histogram)
{
    if (recording->histogram_count == 0 || (!recording->histograms && !load_histograms(recording)))
        return false;
    if (site >= recording->histogram_sites || !recording->histogram_known[site])
        return false;
    *ret_histogram = recording->histograms[site];
    return true;
}
