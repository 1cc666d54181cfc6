// SPDX-License-Identifier: MIT
//
// From a request to an answer: finds the endpoint and the files, takes their locks, runs.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspect/http/rows.h"

typedef enum Needs { NEEDS_NO_FILE, NEEDS_HEAP, NEEDS_FINDINGS, NEEDS_ANY } Needs;

typedef struct Endpoint {
    const char *path;
    EndpointFn *answer;
    Needs needs;
    Lane lane;
    bool takes_base;
} Endpoint;

static const Endpoint endpoints[] = {
    {"/api/files", answer_files, NEEDS_NO_FILE, LANE_QUICK, false},
    {"/api/info", answer_info, NEEDS_ANY, LANE_QUICK, false},
    {"/api/timeline", answer_timeline, NEEDS_HEAP, LANE_QUICK, false},
    {"/api/tree", answer_tree, NEEDS_HEAP, LANE_QUICK, true},
    {"/api/contexts", answer_contexts, NEEDS_HEAP, LANE_QUICK, true},
    {"/api/stack", answer_stack, NEEDS_HEAP, LANE_QUICK, false},
    {"/api/functions", answer_functions, NEEDS_HEAP, LANE_QUICK, true},
    {"/api/function", answer_function, NEEDS_HEAP, LANE_QUICK, false},
    {"/api/histogram", answer_histogram, NEEDS_HEAP, LANE_SLOW, false},
    {"/api/map", answer_map, NEEDS_HEAP, LANE_SLOW, false},
    {"/api/blocks", answer_blocks, NEEDS_HEAP, LANE_SLOW, false},
    {"/api/threads", answer_threads, NEEDS_HEAP, LANE_QUICK, false},
    {"/api/sources", answer_sources, NEEDS_HEAP, LANE_QUICK, false},
    {"/api/source", answer_source, NEEDS_ANY, LANE_QUICK, false},
    {"/api/sql", answer_sql, NEEDS_HEAP, LANE_SLOW, false},
    {"/api/sql/tables", answer_sql_tables, NEEDS_HEAP, LANE_QUICK, false},
    {"/api/findings", answer_findings, NEEDS_FINDINGS, LANE_QUICK, true},
    {"/api/leaks", answer_leaks, NEEDS_FINDINGS, LANE_QUICK, false},
};

// ------------------------------------------------------------------------ failures

void call_fail(Call *call, unsigned status, const char *code, const char *format, ...)
{
    va_list arguments;

    if (call->code)
        return;
    call->status = status;
    call->code = code;
    va_start(arguments, format);
    vsnprintf(call->message, sizeof(call->message), format, arguments);
    va_end(arguments);
}

bool call_failed(const Call *call)
{
    return call->code || call->out.failed || call->request->error[0];
}

void call_fail_selection(Call *call, char *error)
{
    const char *words = error ? error : "this cannot be selected";
    bool is_missing = strstr(words, "not kept") || strstr(words, "no events");

    call_fail(call, is_missing ? 409 : 400, is_missing ? "no-events" : "bad-parameter", "%s",
              words);
    free(error);
}

u64 clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

bool call_goes_on(Call *call, double progress)
{
    if (call->code)
        return false;
    if (call->progress && progress >= 0 && progress <= 1)
        atomic_store_explicit(call->progress, (u32)(progress * 1000), memory_order_relaxed);
    if (call->deadline_ns && clock_ns() > call->deadline_ns) {
        call_fail(call, 503, "busy",
                  "this takes too long: choose a shorter range of time or another filter");
        return false;
    }
    return true;
}

void *call_alloc(Call *call, size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory)
        call_fail(call, 500, "internal", "no memory for this answer");
    return memory;
}

// ------------------------------------------------------------------------ dispatch

static const Endpoint *find_endpoint(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        if (strcmp(endpoints[i].path, path) == 0)
            return &endpoints[i];
    }
    return NULL;
}

// Single blocks are looked at only by a walk through the events.
static bool asks_for_blocks(const Request *request)
{
    static const char *const names[] = {"min_size", "max_size", "min_lifetime", "max_lifetime"};

    for (size_t i = 0; i < request->param_count; i++) {
        const char *name = request->params[i].name;
        if (strncmp(name, "base_", 5) == 0)
            name += 5;
        for (size_t k = 0; k < ARRAY_LEN(names); k++) {
            if (strcmp(name, names[k]) == 0)
                return true;
        }
    }
    return false;
}

// So are leaks of a part of the run.
static bool asks_for_leaks(const Request *request)
{
    static const char *const names[] = {"from", "to", "at", "base_from", "base_to", "base_at"};
    bool is_part = false;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is_part |= request_text(request, names[i]) != NULL;
    return is_part && request_wants_leaked(request);
}

Lane call_lane(const Request *request)
{
    const Endpoint *endpoint = find_endpoint(request->path);

    if (asks_for_blocks(request) || asks_for_leaks(request))
        return LANE_SLOW;
    return endpoint ? endpoint->lane : LANE_QUICK;
}

static OpenFile *find_file(Call *call, const char *name, Needs needs)
{
    u64 id = request_u64(call->request, name, 0, UINT32_MAX);

    if (call->request->error[0])
        return NULL;
    if (id >= call->viewer->file_count) {
        call_fail(call, 404, "not-found", "%s: there is no file %llu", name,
                  (unsigned long long)id);
        return NULL;
    }
    OpenFile *file = call->viewer->files[id];
    if (file->kind == FILE_UNREADABLE)
        call_fail(call, 422, "bad-file", "%s", file->error);
    else if (needs == NEEDS_HEAP && file->kind != FILE_HEAP)
        call_fail(call, 400, "bad-parameter", "%s: this file has findings, no heap", name);
    else if (needs == NEEDS_FINDINGS && file->kind != FILE_FINDINGS)
        call_fail(call, 400, "bad-parameter", "%s: this file has no findings", name);
    return call->code ? NULL : file;
}

static bool asks_for_base(const Request *request)
{
    for (size_t i = 0; i < request->param_count; i++) {
        if (strncmp(request->params[i].name, "base_", 5) == 0)
            return true;
    }
    return false;
}

static bool find_files(Call *call, const Endpoint *endpoint)
{
    if (endpoint->needs == NEEDS_NO_FILE)
        return true;
    call->file = find_file(call, "f", endpoint->needs);
    if (!call->file || !endpoint->takes_base || !asks_for_base(call->request))
        return call->file != NULL;
    call->base_file = request_text(call->request, "base_f")
                          ? find_file(call, "base_f", endpoint->needs)
                          : call->file;
    return call->base_file != NULL;
}

// In order of ids, V3.
static bool lock_views(Call *call, Lane lane)
{
    OpenFile *file = call->file, *base = call->base_file;

    if (base && base->id < file->id)
        call->base_view = file_lock_view(base, lane);
    call->view = file_lock_view(file, lane);
    if (base && base->id > file->id)
        call->base_view = file_lock_view(base, lane);
    else if (base == file)
        call->base_view = call->view;
    if (call->view && (!base || call->base_view))
        return true;
    call_fail(call, 422, "bad-file", "the file cannot be read any more");
    return false;
}

void call_unlock_views(Call *call)
{
    if (call->base_view && call->base_view != call->view)
        pthread_mutex_unlock(&call->base_view->lock);
    if (call->view)
        pthread_mutex_unlock(&call->view->lock);
    call->view = call->base_view = NULL;
}

static void put_failure(Call *call)
{
    if (!call->code && call->request->error[0])
        call_fail(call, 400, "bad-parameter", "%s", call->request->error);
    if (!call->code && call->out.failed)
        call_fail(call, 413, "too-large", "the answer is too large: ask for less");
    if (!call->code)
        return;
    json_free(&call->out);
    call->type = "application/json";
    json_open(&call->out, '{');
    json_key_open(&call->out, "error", '{');
    json_key_text(&call->out, "code", call->code);
    json_key_text(&call->out, "message", call->message);
    json_close(&call->out, '}');
    json_close(&call->out, '}');
}

void call_run(Call *call)
{
    const Endpoint *endpoint = find_endpoint(call->request->path);

    call->status = 200;
    call->type = "application/json";
    if (!endpoint)
        call_fail(call, 404, "not-found", "there is nothing at this path");
    else if (endpoint->needs == NEEDS_NO_FILE)
        endpoint->answer(call);
    else if (find_files(call, endpoint) && lock_views(call, call_lane(call->request)))
        endpoint->answer(call);
    call_unlock_views(call);
    put_failure(call);
}
