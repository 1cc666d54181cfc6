// SPDX-License-Identifier: MIT
//
// See findings.h.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "inspect/http/findings.h"
#include "monitor/report/report.h"

enum {
    REPORT_BYTES_MAX = 128 << 20,
    FINDINGS_MAX = 1 << 20,
};

static bool begins(const char *text, size_t size, const char *word)
{
    return size >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

bool findings_look(const char *head, size_t size)
{
    while (size && *head && strchr(" \t\r\n", *head)) {
        head++;
        size--;
    }
    // JSON of a heap profile looks the same at first: the name of the format decides.
    if (size && (*head == '{'))
        return memmem(head, size, "\"muninn-report\"", 15) != NULL;
    return begins(head, size, "<?xml") || begins(head, size, "<valgrindoutput");
}

static char *read_report(const char *path, size_t *ret_size, char **ret_error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat stat;
    char *data = NULL;
    size_t size = 0;
    ssize_t n = 1;

    const char *why = fd < 0                              ? strerror(errno)
                      : fstat(fd, &stat) != 0             ? strerror(errno)
                      : !S_ISREG(stat.st_mode)            ? "not a file"
                      : stat.st_size > REPORT_BYTES_MAX   ? "a report of more than 128 MiB"
                                                          : NULL;
    if (!why && !(data = malloc((size_t)stat.st_size + 1)))
        why = strerror(ENOMEM);
    while (data && n > 0 && size < (size_t)stat.st_size) {
        n = read(fd, data + size, (size_t)stat.st_size - size);
        size += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    if (why && asprintf(ret_error, "%s: %s", path, why) < 0)
        *ret_error = NULL;
    *ret_size = size;
    return data;
}

// A run may search for leaks several times: of a record only what was said last counts.
static void drop_older_leaks(Findings *findings)
{
    Map last = {0};
    u32 kept = 0;
    u64 index;

    for (u32 i = 0; i < findings->count; i++) {
        if (finding_is_leak(&findings->found[i]))
            map_put(&last, findings->found[i].fingerprint, i);
    }
    for (u32 i = 0; i < findings->count; i++) {
        Found *found = &findings->found[i];
        bool is_older = finding_is_leak(found) && map_get(&last, found->fingerprint, &index) &&
                        index != i && findings->found[index].check != found->check;
        if (is_older)
            free(found->parts);
        else
            findings->found[kept++] = *found;
    }
    findings->count = kept;
    map_free(&last);
}

// Where indirect leaks are records of their own, what is lost with a block is theirs.
static void count_own_bytes(Findings *findings)
{
    bool has_indirect = false;

    for (u32 i = 0; i < findings->count; i++)
        has_indirect |= strcmp(findings->found[i].kind, "leak-indirect") == 0;
    for (u32 i = 0; i < findings->count; i++) {
        Found *found = &findings->found[i];
        u64 own = 0;
        // "72 (16 direct, 56 indirect) bytes in 2 blocks …": the incumbent's words, and ours.
        const char *at = strstr(found->what, " (");
        const char *word = at ? strstr(at, " direct, ") : NULL;
        for (at = at ? at + 2 : NULL; word && at < word; at++) {
            if (*at >= '0' && *at <= '9')
                own = own * 10 + (u64)(*at - '0');
            else if (*at == '(' || *at == ' ')
                break; // what it has grown by
        }
        bool has_own = has_indirect && word;
        found->own_bytes = has_own ? min_u64(own, found->leaked_bytes) : found->leaked_bytes;
    }
}

Findings *findings_load(const char *path, char **ret_error)
{
    size_t size = 0;
    char *text = read_report(path, &size, ret_error);
    Findings *findings = text ? calloc(1, sizeof(*findings)) : NULL;

    if (!findings) {
        free(text);
        return NULL;
    }
    findings->format = findings->tool = findings->command = findings->status = "";
    findings->file_bytes = size;
    text[size] = '\0';
    bool is_xml = text[strspn(text, " \t\r\n")] == '<';
    bool good = is_xml ? findings_read_xml(findings, text, size)
                       : findings_read_json(findings, text, size);
    free(text);
    if (good) {
        drop_older_leaks(findings);
        count_own_bytes(findings);
        return findings;
    }
    findings_free(findings);
    if (asprintf(ret_error, "%s: this looks like a report, but no finding can be read", path) < 0)
        *ret_error = NULL;
    return NULL;
}

void findings_free(Findings *findings)
{
    for (u32 i = 0; i < findings->count; i++)
        free(findings->found[i].parts);
    free(findings->found);
    free(findings->sources);
    free(findings->problem);
    arena_free(&findings->arena);
    free(findings);
}

Found *findings_add(Findings *findings)
{
    if (findings->count == findings->capacity) {
        u32 capacity = findings->capacity ? 2 * findings->capacity : 64;
        Found *found = findings->count < FINDINGS_MAX
                           ? realloc(findings->found, capacity * sizeof(*found))
                           : NULL;
        if (!found) {
            findings_note(findings, "the report has more findings than can be shown");
            return NULL;
        }
        findings->found = found;
        findings->capacity = capacity;
    }
    Found *found = &findings->found[findings->count++];
    *found = (Found){.kind = "", .tool = "", .what = "", .count = 1};
    return found;
}

void findings_note(Findings *findings, const char *problem)
{
    if (!findings->problem)
        findings->problem = strdup(problem);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

u32 findings_source(Findings *findings, const char *directory, const char *file)
{
    enum { SOURCES_MAX = 4096 }; // they are searched one by one

    for (u32 i = 0; i < findings->source_count; i++) {
        if (is_same_text(findings->sources[i].file, file) &&
            is_same_text(findings->sources[i].directory, directory))
            return i;
    }
    if (findings->source_count == findings->source_capacity) {
        u32 capacity = findings->source_capacity ? 2 * findings->source_capacity : 64;
        FoundSource *sources =
            capacity <= SOURCES_MAX ? realloc(findings->sources, capacity * sizeof(*sources))
                                    : NULL;
        if (!sources)
            return UINT32_MAX;
        findings->sources = sources;
        findings->source_capacity = capacity;
    }
    findings->sources[findings->source_count] = (FoundSource){file, directory};
    return findings->source_count++;
}

// ---------------------------------------------------------------------------- words

const char *finding_title(const Found *found)
{
    const KindDescription *row = kind_of_id(found->kind);

    return row ? row->title : found->title ? found->title : found->kind;
}

const char *finding_level(const Found *found)
{
    const KindDescription *row = kind_of_id(found->kind);

    return row ? row->level : found->level ? found->level : "error";
}

bool finding_is_leak(const Found *found)
{
    return strncmp(found->kind, "leak-", 5) == 0;
}

// Libraries of the system, and objects that are there because of the tool.
static bool is_systems(const char *object)
{
    static const char *const folders[] = {"/usr/lib", "/usr/libexec", "/lib", "/nix/store/"};
    const char *slash = strrchr(object, '/');
    const char *name = slash ? slash + 1 : object;

    if (strncmp(name, "vgpreload_", 10) == 0 || strcmp(name, "muninn-engine") == 0)
        return true;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        if (strncmp(object, folders[i], strlen(folders[i])) == 0)
            return true;
    }
    return false;
}

const FoundFrame *finding_place(const Found *found)
{
    const FoundFrame *with_line = NULL, *own = NULL;

    for (u32 i = 0; i < found->stack.count; i++) {
        const FoundFrame *frame = &found->stack.frames[i];
        bool is_own = frame->object && !is_systems(frame->object);
        if (frame->file && is_own)
            return frame;
        if (frame->file && !with_line)
            with_line = frame;
        if (is_own && !own)
            own = frame;
    }
    return with_line ? with_line : own ? own : found->stack.count ? found->stack.frames : NULL;
}

// ----------------------------------------------------------- what the monitor would say

static Frame *copy_frames(const FoundStack *stack)
{
    Frame *frames = calloc(stack->count + 1u, sizeof(*frames));

    for (u32 i = 0; frames && i < stack->count; i++) {
        const FoundFrame *from = &stack->frames[i];
        frames[i] = (Frame){
            .pc = from->pc, .function = from->function,
            .mangled = from->mangled ? from->mangled : from->function, .object = from->object,
            .object_offset = from->object_offset, .directory = from->directory,
            .file = from->file, .line = from->line, .inlined = from->inlined,
        };
    }
    return frames;
}

u64 finding_fingerprint(const Found *found)
{
    Frame *frames = copy_frames(&found->stack);
    char text[17] = "0";

    const KindDescription *kind = kind_of_id(found->kind);
    if (frames && kind) {
        Finding finding = {.kind = kind, .param = found->param,
                           .stack = {frames, found->stack.count}};
        report_fingerprint(&finding, text);
    }
    free(frames);
    return strtoull(text, NULL, 16);
}

// "Addr4", with the size that the headline names.
static void fill_kind(const Found *found, const char *words, char *text, size_t size)
{
    const char *of = strstr(found->what, "of size ");
    u64 bytes = of ? strtoull(of + strlen("of size "), NULL, 10) : 8;
    FieldValues values = fields_of(SHAPE_VALUE, (AnyFields){.value = {.size = bytes}});

    report_words(words, &values, text, size);
}

char *finding_suppression(const Found *found)
{
    const KindDescription *row = kind_of_id(found->kind);
    char *text = NULL, kind[64];
    size_t size;

    if (found->suppression || !row)
        return found->suppression ? strdup(found->suppression) : NULL;
    fill_kind(found, row->suppression, kind, sizeof(kind));
    SuppressQuery query = {
        .tool = row->family, .kind = kind, .extra = found->param,
        .leak_kind = finding_is_leak(found) ? found->kind + strlen("leak-") : NULL,
        .frames = copy_frames(&found->stack), .count = found->stack.count,
    };
    FILE *out = query.frames ? open_memstream(&text, &size) : NULL;
    if (out) {
        suppress_generate(&query, out);
        fclose(out);
    }
    free((Frame *)query.frames);
    return text;
}
