// SPDX-License-Identifier: MIT
//
// From a foreign text to a recording. Blocks of a site are a stack: the newest is freed first,
// since nobody knows better; its place on the stack makes its address.
#include "inspect/foreign/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording/format.h"

enum { ADDRESS_BITS = 24 }; // of a site

// Doubles an array. False: no memory, and the import has failed.
static bool grow(Import *import, void **array, u32 count, u32 *room, size_t element_bytes)
{
    if (count < *room)
        return true;
    u32 larger = *room ? *room * 2 : 64;
    void *moved = *room < UINT32_MAX / 4 ? realloc(*array, larger * element_bytes) : NULL;
    if (!moved) {
        import->failed = true;
        return false;
    }
    *array = moved;
    *room = larger;
    return true;
}

void import_warn(const Import *import, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (import->warn)
        import->warn(import->warn_argument, line);
}

bool foreign_is_kind(const char *tool)
{
    static const char *const kinds[] = {"massif.out", "heaptrack", "pprof"};
    bool is_kind = false;

    for (size_t i = 0; tool && i < ARRAY_LEN(kinds); i++)
        is_kind |= strcmp(tool, kinds[i]) == 0;
    return is_kind;
}

// ---------------------------------------------------------------------- contexts

static u64 hash_label(u32 parent, const char *label)
{
    u64 hash = 0xcbf29ce484222325ull ^ parent * 0x9e3779b97f4a7c15ull; // FNV-1a

    for (const u8 *c = (const u8 *)label; *c; c++)
        hash = (hash ^ *c) * 0x100000001b3ull;
    return hash;
}

static bool add_context(Import *import, u32 parent, const char *label)
{
    u32 room = import->context_room;

    if (import->context_count == 0)
        import->context_count = 1; // the empty stack
    if (!grow(import, (void **)&import->labels, import->context_count, &room, sizeof(char *)) ||
        !grow(import, (void **)&import->parents, import->context_count, &import->context_room,
              sizeof(u32)))
        return false;
    char *copy = strdup(label);
    import->failed |= !copy;
    import->labels[import->context_count] = copy;
    import->parents[import->context_count++] = parent;
    return copy != NULL;
}

u32 import_context(Import *import, u32 parent, const char *label, const RecordedFrame *frame)
{
    u64 key = hash_label(parent, label), known;

    for (; map_get(&import->contexts, key, &known); key++) {
        if (import->parents[known] == parent && strcmp(import->labels[known], label) == 0)
            return (u32)known;
    }
    if (import->failed || !add_context(import, parent, label))
        return parent;
    u32 context = recording_add_context(import->writer, parent, 0, frame->pc, true);
    recording_set_frames(import->writer, context, frame, 1);
    map_put(&import->contexts, key, context);
    return context;
}

// ------------------------------------------------------------------------- sites

u32 import_site(Import *import, Space space, u32 context)
{
    u64 key = (u64)context << 2 | space, known;

    if (map_get(&import->site_of, key, &known))
        return (u32)known;
    if (!grow(import, (void **)&import->sites, import->site_count, &import->site_room,
              sizeof(ImportSite)))
        return 0;
    u32 site = recording_add_site(
        import->writer, &(RecordedSite){.space = space, .context = context, .thread = 1});
    import->sites[import->site_count++] = (ImportSite){.space = space};
    map_put(&import->site_of, key, site);
    return site;
}

static HeapEvent make_event(const Import *import, EventKind kind, u32 site, u64 size)
{
    u32 depth = import->sites[site].block_count;

    return (HeapEvent){
        .kind = kind, .site = site, .thread = 1, .time = import->now, .size = size,
        .usable = size, .address = ((u64)(site + 1) << ADDRESS_BITS) + (u64)depth * 16};
}

void import_alloc(Import *import, u32 site, u64 size, u64 usable)
{
    if (site >= import->site_count)
        return;
    ImportSite *at = &import->sites[site];
    HeapEvent event = make_event(import, EVENT_ALLOC, site, size);

    if (!grow(import, (void **)&at->blocks, at->block_count, &at->block_room,
              sizeof(ImportBlock)))
        return;
    event.usable = max_u64(size, usable);
    at->blocks[at->block_count++] = (ImportBlock){size, event.usable};
    at->live_bytes += size;
    at->live_usable += event.usable;
    recording_add_event(import->writer, &event);
}

void import_free(Import *import, u32 site, u32 flags)
{
    if (site >= import->site_count || import->sites[site].block_count == 0)
        return;
    ImportSite *at = &import->sites[site];
    ImportBlock block = at->blocks[--at->block_count];
    HeapEvent event = make_event(import, EVENT_FREE, site, block.size);

    event.flags = flags;
    event.usable = block.usable;
    at->live_bytes -= block.size;
    at->live_usable -= block.usable;
    recording_add_event(import->writer, &event);
}

void import_set_live(Import *import, u32 site, u64 bytes)
{
    if (site >= import->site_count)
        return;
    ImportSite *at = &import->sites[site];

    while (at->live_bytes > bytes && at->block_count > 0)
        import_free(import, site, 0);
    if (at->live_bytes < bytes)
        import_alloc(import, site, bytes - at->live_bytes, 0);
}

void import_keep_state(Import *import, StateReason reason, const char *label)
{
    SiteSums *live = calloc((size_t)import->site_count + 1, sizeof(*live));

    for (u32 i = 0; live && i < import->site_count; i++) {
        live[i].live_bytes = import->sites[i].live_bytes;
        live[i].live_usable = import->sites[i].live_usable;
        live[i].live_blocks = import->sites[i].block_count;
    }
    if (live)
        recording_keep_state(import->writer, reason, label, &import->now, live,
                             import->site_count);
    free(live);
}

// ------------------------------------------------------------------ the recording

static const struct {
    bool (*is)(const ForeignText *text);
    ImporterFn *import;
} importers[] = {
    {massif_file_is, import_massif},
    {heaptrack_is, import_heaptrack},
    {pprof_is, import_pprof},
};

static int make_temporary(char path[PATH_MAX])
{
    const char *directory = getenv("TMPDIR");

    snprintf(path, PATH_MAX, "%.4000s/muninn-import.XXXXXX",
             directory && *directory ? directory : "/tmp");
    return mkostemp(path, O_CLOEXEC);
}

bool import_begin(Import *import, const RecordingInfo *info, char **ret_error)
{
    int error = 0;

    import->writer = recording_create(&(WriterConfig){.path = import->path}, info, &error);
    if (import->writer)
        recording_set_thread(import->writer, &(RecordedThread){.number = 1});
    else if (asprintf(ret_error, "%s: %s", import->path, strerror(error < 0 ? -error : error)) < 0)
        *ret_error = NULL;
    return import->writer != NULL;
}

static void free_import(Import *import)
{
    for (u32 i = 0; i < import->site_count; i++)
        free(import->sites[i].blocks);
    for (u32 i = 1; i < import->context_count; i++)
        free(import->labels[i]);
    free(import->sites);
    free(import->labels);
    free(import->parents);
    map_free(&import->site_of);
    map_free(&import->contexts);
}

// Frees the text. True: there is a recording in import->path.
static bool make_recording(Import *import, ForeignText *text, char **ret_error)
{
    bool is_made = false, is_known = false;

    for (size_t i = 0; i < ARRAY_LEN(importers) && !is_known; i++) {
        is_known = importers[i].is(text);
        if (is_known)
            is_made = importers[i].import(import, text, ret_error);
    }
    if (!is_known)
        *ret_error = strdup("it is neither a recording nor a profile that is known here");
    if (import->failed)
        import_warn(import, "there is not enough memory for all of it");
    if (import->writer &&
        recording_close(import->writer, &import->now, &(RecordingEnd){.known = true}) != 0 &&
        is_made) {
        is_made = false;
        *ret_error = strdup("its recording cannot be written");
    }
    foreign_free(text);
    return is_made;
}

static bool is_recording(const ForeignText *text)
{
    return text->size >= sizeof(FILE_MAGIC) - 1 &&
           memcmp(text->data, FILE_MAGIC, sizeof(FILE_MAGIC) - 1) == 0;
}

// A recording that was compressed.
static Recording *open_unpacked(Import *import, const ForeignText *text, int fd, const char *path,
                                char **ret_error)
{
    size_t done = 0;

    if (text->problem)
        import_warn(import, "%s: %s", path, text->problem);
    while (done < text->size) {
        ssize_t n = write(fd, text->data + done, text->size - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            if (asprintf(ret_error, "%s: it cannot be unpacked: %s", path, strerror(errno)) < 0)
                *ret_error = NULL;
            return NULL;
        }
    }
    return recording_open(import->path, import->warn, import->warn_argument, ret_error);
}

static Recording *open_profile(const char *path, RecordingWarnFn *warn, void *arg,
                               char **ret_error)
{
    Import import = {.warn = warn, .warn_argument = arg};
    ForeignText text;
    Recording *recording = NULL;
    char *why = NULL;

    if (!foreign_read(path, &text, ret_error))
        return NULL;
    int fd = make_temporary(import.path);
    if (fd < 0) {
        foreign_free(&text);
        *ret_error = strdup("there is no place for a temporary file");
        return NULL;
    }
    if (is_recording(&text)) {
        recording = open_unpacked(&import, &text, fd, path, ret_error);
        foreign_free(&text);
    } else if (make_recording(&import, &text, &why)) {
        recording = recording_open(import.path, warn, arg, ret_error);
    } else if (asprintf(ret_error, "%s: %s", path, why ? why : "there is not enough memory") < 0) {
        *ret_error = NULL;
    }
    close(fd);
    free(why);
    unlink(import.path);
    free_import(&import);
    return recording;
}

bool foreign_is_recordable(const ForeignText *text)
{
    return is_recording(text) || (!massif_file_is(text) && (heaptrack_is(text) || pprof_is(text)));
}

Recording *foreign_open(const char *path, RecordingWarnFn *warn, void *arg, char **ret_error)
{
    char head[sizeof(FILE_MAGIC) - 1];
    FILE *file = fopen(path, "re");
    bool is_ours = file && fread(head, sizeof(head), 1, file) == 1 &&
                   memcmp(head, FILE_MAGIC, sizeof(head)) == 0;

    if (file)
        fclose(file);
    return is_ours ? recording_open(path, warn, arg, ret_error)
                   : open_profile(path, warn, arg, ret_error);
}
