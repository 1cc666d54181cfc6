// SPDX-License-Identifier: MIT
//
// The page as one file. Answers are put in by importance; one that does not fit is asked for
// again with less detail, then left out, and the page says so where it is missed.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output_file.h"
#include "base/same_file.h"
#include "inspect/dom/dom.h"
#include "inspect/http/export.h"
#include "inspect/http/server.h"

typedef struct Export {
    Viewer *viewer;
    Json answers; // "key": answer, …
    u64 budget;   // of `answers`
    u32 left_out;
} Export;

// How much is asked for, from most to least. Parameters of size do not stand in keys.
static const char *const details[] = {
    "points=600&top=12&limit=1000&spark=40&cells=2048&max_nodes=8000&min_ppm=100",
    "points=400&top=10&limit=300&spark=24&cells=1024&max_nodes=3000&min_ppm=500",
    "points=200&top=8&limit=100&spark=0&cells=512&max_nodes=800&min_ppm=2000",
    "points=100&top=5&limit=30&spark=0&cells=128&max_nodes=200&min_ppm=5000",
};

static bool ask(Export *export, const char *key, const char *detail, Json *ret_answer)
{
    Request *request = calloc(1, sizeof(*request));
    char url[1024];

    snprintf(url, sizeof(url), "%s%c%s", key, strchr(key, '?') ? '&' : '?', detail);
    Call call = {.viewer = export->viewer, .request = request};
    if (!request || !request_parse(request, url)) {
        free(request);
        return false;
    }
    call_run(&call);
    free(request);
    if (call.status != 200 || call.out.failed) {
        json_free(&call.out);
        return false;
    }
    *ret_answer = call.out;
    return true;
}

// No answer may take more than an eighth, so that many fit.
static bool fits(const Export *export, const char *key, const Json *answer)
{
    u64 left = export->budget - min_u64(export->budget, export->answers.size);
    u64 size = answer->size + strlen(key) + 8;

    return size < left && size < export->budget / 8;
}

// The answer as it was put in, to be freed; empty: there is none.
static Json put_answer(Export *export, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(details); i++) {
        Json answer = {0};
        if (!ask(export, key, details[i], &answer))
            return answer;
        if (fits(export, key, &answer)) {
            json_key(&export->answers, key);
            json_value(&export->answers, answer.data, answer.size);
            return answer;
        }
        json_free(&answer);
    }
    export->left_out++;
    return (Json){0};
}

static void put(Export *export, const char *key)
{
    Json answer = put_answer(export, key);

    json_free(&answer);
}

// The key of a request of a file: parameters in alphabetical order, `f` among them unless 0.
static void make_key(char key[256], const OpenFile *file, const char *path, const char *before_f,
                     const char *after_f)
{
    char f[16] = "";
    const char *parts[3] = {before_f, f, after_f};
    size_t size = (size_t)snprintf(key, 256, "%s", path);
    bool any = false;

    if (file->id)
        snprintf(f, sizeof(f), "f=%u", file->id);
    for (int i = 0; i < 3; i++) {
        if (!parts[i][0])
            continue;
        size += (size_t)snprintf(key + size, 256 - size, "%c%s", any ? '&' : '?', parts[i]);
        any = true;
    }
}

static void put_each(Export *export, const OpenFile *file, const char *path,
                     const char *const *before, const char *const *after)
{
    char key[256];

    for (int i = 0; before[i]; i++) {
        for (int k = 0; after[k]; k++) {
            make_key(key, file, path, before[i], after[k]);
            put(export, key);
        }
    }
}

// For each of the first rows of an answer, the request that shows more of it.
static void put_rows(Export *export, const OpenFile *file, const Json *answer, const char *path,
                     const char *member, const char *after, u32 most)
{
    Arena arena = {0};
    size_t used;
    const Dom *dom =
        answer->data ? dom_read_json(&arena, answer->data, answer->size, &used) : NULL;
    const Dom *rows = dom_child(dom, "rows");
    char key[256], parameter[64];

    for (const Dom *row = rows ? rows->first : NULL; row && most > 0; row = row->next) {
        const char *value = dom_text(row, member);
        const char *readable = dom_text(row, "readable");
        if (!value || (readable && strcmp(readable, "true") != 0))
            continue;
        most--;
        // "context" comes before "f", "id" after it.
        bool is_before = strcmp(member, "f") < 0;
        snprintf(parameter, sizeof(parameter), "%s=%s%s%s", member, value, *after ? "&" : "",
                 after);
        make_key(key, file, path, is_before ? parameter : "", is_before ? "" : parameter);
        put(export, key);
    }
    arena_free(&arena);
}

static const char *const nothing[] = {"", NULL};

static void put_tables(Export *export, const OpenFile *file)
{
    static const char *const groups[] = {"group=function", "group=file", "group=library",
                                         "group=thread", NULL};
    char key[256];

    make_key(key, file, "/api/contexts", "", "");
    Json contexts = put_answer(export, key);
    put_each(export, file, "/api/contexts", nothing, groups);
    put_rows(export, file, &contexts, "/api/stack", "context", "", 200);
    json_free(&contexts);
}

// A list, and for its first rows what the page shows of one.
static void put_list(Export *export, const OpenFile *file, const char *list, const char *one,
                     const char *metric, u32 most)
{
    char key[256];

    make_key(key, file, list, "", metric);
    Json rows = put_answer(export, key);
    put_rows(export, file, &rows, one, "id", metric, most);
    json_free(&rows);
}

static void put_lists(Export *export, const OpenFile *file, const char *metric, u32 most)
{
    put_list(export, file, "/api/functions", "/api/function", metric, 2 * most);
    put_list(export, file, "/api/sources", "/api/source", metric, most);
}

static void put_heap(Export *export, const OpenFile *file)
{
    static const char *const groups[] = {"",           "group=function", "group=file",
                                         "group=library", "group=thread", "group=none", NULL};
    static const char *const directions[] = {"", "bottom_up=1", NULL};
    static const char *const by_function[] = {"by_function=1", "bottom_up=1&by_function=1", NULL};
    static const char *const metrics[] = {
        "", "metric=peak", "metric=leaked", "metric=allocated", "metric=allocations",
        "metric=temporary", NULL};
    char key[256];

    put_each(export, file, "/api/timeline", nothing, groups);
    put_each(export, file, "/api/tree", directions, metrics);
    put_tables(export, file);
    make_key(key, file, "/api/histogram", "", "");
    put(export, key);
    make_key(key, file, "/api/threads", "", "");
    put(export, key);
    make_key(key, file, "/api/map", "", "");
    put(export, key);
    make_key(key, file, "/api/sql/tables", "", "");
    put(export, key);
    // The page asks for the peak first.
    put_lists(export, file, "metric=peak", 20);
    put_each(export, file, "/api/tree", by_function, metrics);
    for (int i = 0; metrics[i]; i++) {
        if (strcmp(metrics[i], "metric=peak") != 0)
            put_lists(export, file, metrics[i], metrics[i][0] ? 10 : 20);
    }
}

static void put_findings(Export *export, const OpenFile *file)
{
    static const char *const ways[] = {"", "bottom_up=1", "by=holder", NULL};
    char key[256];

    make_key(key, file, "/api/findings", "", "");
    put(export, key);
    put_each(export, file, "/api/leaks", ways, nothing);
}

static void put_all(Export *export)
{
    char key[256];

    put(export, "/api/files");
    for (u32 i = 0; i < export->viewer->file_count; i++) {
        const OpenFile *file = export->viewer->files[i];
        make_key(key, file, "/api/info", "", "");
        put(export, key);
    }
    for (u32 i = 0; i < export->viewer->file_count; i++) {
        const OpenFile *file = export->viewer->files[i];
        if (file->kind == FILE_HEAP)
            put_heap(export, file);
        else if (file->kind == FILE_FINDINGS)
            put_findings(export, file);
    }
}

// -------------------------------------------------------------------------- the page

// Puts text in which a script or style sheet may stand, without its own end in it.
static void put_inline(Json *page, const Asset *asset)
{
    const char *at = (const char *)asset->data, *end = at + asset->size;

    while (at < end) {
        const char *stop = memmem(at, (size_t)(end - at), "</", 2);
        size_t size = (size_t)((stop ? stop : end) - at);
        json_raw(page, at, size);
        if (!stop)
            break;
        json_raw(page, "<\\/", 3);
        at = stop + 2;
    }
}

static void put_text(Json *page, const char *text)
{
    json_raw(page, text, strlen(text));
}

// The tag in `html` that names the file; false: there is none.
static bool find_tag(const char *html, size_t size, const char *file, size_t *ret_start,
                     size_t *ret_end)
{
    const char *name = memmem(html, size, file, strlen(file));
    const char *start = name, *close;

    if (!name)
        return false;
    while (start > html && *start != '<')
        start--;
    close = memchr(name, '>', size - (size_t)(name - html));
    if (!close)
        return false;
    *ret_start = (size_t)(start - html);
    *ret_end = (size_t)(close + 1 - html);
    return true;
}

static void put_data(Json *page, const Export *export)
{
    put_text(page, "<script type=\"application/json\" id=\"muninn-export\">"
                   "{\"version\":1,\"answers\":{");
    json_raw(page, export->answers.data, export->answers.size);
    put_text(page, "}}</script>\n");
}

// index.html, in which the tags of script and style become what they name.
static bool make_page(const Export *export, Json *page)
{
    Asset index, script, style;
    size_t style_start, style_end, script_start, script_end;

    if (!asset_find("/", &index) || !asset_find("/app.js", &script) ||
        !asset_find("/app.css", &style) || script.size == 0)
        return false;
    const char *html = (const char *)index.data;
    if (!find_tag(html, index.size, "app.css", &style_start, &style_end) ||
        !find_tag(html, index.size, "app.js", &script_start, &script_end))
        return false;
    bool style_first = style_start < script_start;
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        bool is_style = (i == 0) == style_first;
        json_raw(page, html + at, (is_style ? style_start : script_start) - at);
        if (!is_style)
            put_data(page, export);
        put_text(page, is_style ? "<style>\n" : "<script type=\"module\">\n");
        put_inline(page, is_style ? &style : &script);
        put_text(page, is_style ? "\n</style>" : "\n");
        at = is_style ? style_end : script_end;
    }
    json_raw(page, html + at, index.size - at);
    return !page->failed;
}

static bool write_file(const char *path, const Json *page, char **ret_error)
{
    int fd = output_open(path, O_WRONLY | O_TRUNC);
    size_t done = 0;
    ssize_t n = 1;

    while (fd >= 0 && done < page->size && n > 0) {
        n = write(fd, page->data + done, page->size - done);
        done += n > 0 ? (size_t)n : 0;
    }
    int failure = fd < 0 ? fd : -errno;
    if (fd >= 0 && close(fd) != 0)
        done = 0;
    if (done == page->size)
        return true;
    if (asprintf(ret_error, "%s: %s", path, output_error(failure)) < 0)
        *ret_error = NULL;
    return false;
}

bool export_write(Viewer *viewer, const char *path, char **ret_error)
{
    Export export = {.viewer = viewer};
    Asset index, script, style;
    Json page = {0};
    u64 assets = 0;

    for (u32 i = 0; i < viewer->file_count; i++) {
        if (!is_same_file(path, viewer->files[i]->path))
            continue;
        if (asprintf(ret_error, "%s is what is read: it would be lost", path) < 0)
            *ret_error = NULL;
        return false;
    }
    viewer->is_export = true;
    if (asset_find("/", &index) && asset_find("/app.js", &script) && asset_find("/app.css", &style))
        assets = index.size + script.size + style.size;
    export.budget = EXPORT_MAX_BYTES - min_u64(assets + assets / 50 + 4096, EXPORT_MAX_BYTES / 2);
    put_all(&export);
    bool good = make_page(&export, &page);
    if (!good)
        *ret_error = strdup("this build has no page: it was made without npm");
    else
        good = write_file(path, &page, ret_error);
    if (good && export.left_out)
        fprintf(stderr, "muninn view: %u views are not in %s, which would be too large\n",
                export.left_out, path);
    json_free(&export.answers);
    json_free(&page);
    return good;
}
