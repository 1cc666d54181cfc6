// SPDX-License-Identifier: MIT
//
// See jobs.h. Each lane has two workers, so that one can wait for a file's lock while the
// other answers for another file.
//
// Concurrency
//   J1  All lists, `refs` and the states of entries are under `lock`.
//   J2  An entry's answer is written by one worker while it is RUNNING, and read by others
//       only after `done`, which is set under the lock.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspect/http/jobs.h"

enum {
    WORKERS_PER_LANE = 2,
    KEY_BYTES = 1024,
    QUEUE_MAX = 128,
    CACHE_MAX_BYTES = 48 << 20,
    CACHE_MAX_ENTRIES = 2000,
    FAILURE_KEPT_MS = 3000, // so that whoever was told to ask again learns of it
    DEADLINE_MS = 60 * 1000,
};

typedef enum EntryState { ENTRY_QUEUED, ENTRY_RUNNING, ENTRY_DONE } EntryState;

typedef struct Entry {
    Answer answer; // first: an Answer is its Entry
    struct Entry *older; // in order of use
    u32 refs;
    EntryState state;
    bool forgotten; // no longer in the list
    Lane lane;
    u64 done_ns;
    Request *request; // until done
    char key[KEY_BYTES];
} Entry;

struct Jobs {
    Viewer *viewer;
    pthread_mutex_t lock;
    pthread_cond_t changed; // something was queued, or done
    Entry *newest;
    u64 bytes;
    u32 entry_count, queued_count;
    bool stopping;
    pthread_t workers[LANE_COUNT][WORKERS_PER_LANE];
    u32 worker_count[LANE_COUNT];
};

typedef struct WorkerStart {
    Jobs *jobs;
    Lane lane;
} WorkerStart;

// ------------------------------------------------------------------------- entries

static void free_entry(Entry *entry)
{
    free(entry->answer.body);
    free(entry->request);
    free(entry);
}

// Takes the entry out of the list; it is freed when nobody has it any more.
static void forget(Jobs *jobs, Entry **link)
{
    Entry *entry = *link;

    *link = entry->older;
    entry->forgotten = true;
    jobs->entry_count--;
    jobs->bytes -= entry->answer.size;
    if (entry->refs == 0)
        free_entry(entry);
}

static bool is_stale(const Entry *entry, u64 now)
{
    return entry->state == ENTRY_DONE && entry->answer.status != 200 &&
           now - entry->done_ns > FAILURE_KEPT_MS * 1000000ull;
}

static void trim(Jobs *jobs)
{
    u64 kept_bytes = 0, now = clock_ns();
    u32 kept = 0;

    for (Entry **link = &jobs->newest; *link;) {
        Entry *entry = *link;
        bool too_many = kept_bytes + entry->answer.size > CACHE_MAX_BYTES ||
                        kept >= CACHE_MAX_ENTRIES;
        if (entry->state == ENTRY_DONE && (is_stale(entry, now) || too_many)) {
            forget(jobs, link);
        } else {
            kept_bytes += entry->answer.size;
            kept++;
            link = &entry->older;
        }
    }
}

static Entry *find_entry(Jobs *jobs, const char *key)
{
    for (Entry **link = &jobs->newest; *link; link = &(*link)->older) {
        Entry *entry = *link;
        if (strcmp(entry->key, key) == 0) {
            *link = entry->older;
            entry->older = jobs->newest;
            jobs->newest = entry;
            return entry;
        }
    }
    return NULL;
}

// The file's version stands in the key: a file that has grown is asked anew.
static void make_key(const Jobs *jobs, const Request *request, char key[KEY_BYTES])
{
    static const char *const names[] = {"f", "base_f"};
    size_t size = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *text = request_text(request, names[i]);
        u64 id = text ? strtoull(text, NULL, 10) : 0;
        u64 version = id < jobs->viewer->file_count ? jobs->viewer->files[id]->version : 0;
        size += (size_t)snprintf(key + size, KEY_BYTES - size, "%llu ",
                                 (unsigned long long)version);
    }
    request_key(request, key + size, KEY_BYTES - size);
}

static Entry *add_entry(Jobs *jobs, const Request *request, const char *key)
{
    Entry *entry = calloc(1, sizeof(*entry));
    Request *copy = malloc(sizeof(*copy));

    if (!entry || !copy || jobs->queued_count >= QUEUE_MAX || jobs->stopping) {
        free(entry);
        free(copy);
        return NULL;
    }
    *copy = (Request){0};
    request_set_path(copy, request->path);
    for (size_t i = 0; i < request->param_count; i++)
        request_add(copy, request->params[i].name, request->params[i].value);
    entry->request = copy;
    entry->lane = call_lane(copy);
    snprintf(entry->key, sizeof(entry->key), "%s", key);
    entry->older = jobs->newest;
    jobs->newest = entry;
    jobs->entry_count++;
    jobs->queued_count++;
    pthread_cond_broadcast(&jobs->changed);
    return entry;
}

// ------------------------------------------------------------------------- workers

// The one that has waited longest and somebody still waits for.
static Entry *take_queued(Jobs *jobs, Lane lane)
{
    Entry *found = NULL;

    for (Entry *entry = jobs->newest; entry; entry = entry->older) {
        if (entry->state == ENTRY_QUEUED && entry->lane == lane)
            found = entry;
    }
    return found;
}

static u64 content_tag(const char *data, size_t size)
{
    u64 hash = 14695981039346656037ull;
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        u64 word;
        memcpy(&word, data + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    for (; i < size; i++)
        hash = (hash ^ (u8)data[i]) * 1099511628211ull;
    return hash ^ size;
}

static void run_entry(Jobs *jobs, Entry *entry)
{
    Call call = {
        .viewer = jobs->viewer,
        .request = entry->request,
        .progress = &entry->answer.progress,
        .deadline_ns = clock_ns() + DEADLINE_MS * 1000000ull,
    };

    call_run(&call);
    entry->answer.status = call.status;
    entry->answer.type = call.type;
    entry->answer.body = call.out.data;
    entry->answer.size = call.out.size;
    entry->answer.tag = content_tag(call.out.data, call.out.size);
}

static void finish_entry(Jobs *jobs, Entry *entry)
{
    entry->state = ENTRY_DONE;
    entry->done_ns = clock_ns();
    entry->answer.done = true;
    free(entry->request);
    entry->request = NULL;
    jobs->bytes += entry->answer.size;
    entry->refs--;
    trim(jobs);
    pthread_cond_broadcast(&jobs->changed);
}

static void *work(void *arg)
{
    WorkerStart start = *(WorkerStart *)arg;
    Jobs *jobs = start.jobs;

    free(arg);
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->stopping) {
        Entry *entry = take_queued(jobs, start.lane);
        if (!entry) {
            pthread_cond_wait(&jobs->changed, &jobs->lock);
            continue;
        }
        entry->state = ENTRY_RUNNING;
        entry->refs++;
        jobs->queued_count--;
        pthread_mutex_unlock(&jobs->lock);
        run_entry(jobs, entry);
        pthread_mutex_lock(&jobs->lock);
        finish_entry(jobs, entry);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

static bool start_worker(Jobs *jobs, Lane lane)
{
    WorkerStart *start = malloc(sizeof(*start));
    u32 *count = &jobs->worker_count[lane];

    if (!start)
        return false;
    *start = (WorkerStart){jobs, lane};
    if (pthread_create(&jobs->workers[lane][*count], NULL, work, start) != 0) {
        free(start);
        return false;
    }
    ++*count;
    return true;
}

Jobs *jobs_start(Viewer *viewer)
{
    Jobs *jobs = calloc(1, sizeof(*jobs));
    bool good = jobs != NULL;

    if (!jobs)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&jobs->lock, NULL);
    jobs->viewer = viewer;
    for (int i = 0; good && i < LANE_COUNT * WORKERS_PER_LANE; i++)
        good = start_worker(jobs, (Lane)(i % LANE_COUNT));
    if (good)
        return jobs;
    jobs_stop(jobs);
    return NULL;
}

void jobs_stop(Jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->stopping = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        for (u32 i = 0; i < jobs->worker_count[lane]; i++)
            pthread_join(jobs->workers[lane][i], NULL);
    }
    while (jobs->newest)
        forget(jobs, &jobs->newest);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

// ------------------------------------------------------------------------- asking

static struct timespec after_ms(u32 ms)
{
    u64 then = clock_ns() + ms * 1000000ull;

    return (struct timespec){(time_t)(then / 1000000000u), (long)(then % 1000000000u)};
}

Answer *jobs_ask(Jobs *jobs, const Request *request, u32 wait_ms)
{
    struct timespec until = after_ms(wait_ms);
    char key[KEY_BYTES];

    make_key(jobs, request, key);
    pthread_mutex_lock(&jobs->lock);
    trim(jobs);
    Entry *entry = find_entry(jobs, key);
    if (!entry)
        entry = add_entry(jobs, request, key);
    if (entry) {
        entry->refs++;
        while (entry->state != ENTRY_DONE && !jobs->stopping &&
               pthread_cond_timedwait(&jobs->changed, &jobs->lock, &until) != ETIMEDOUT)
            continue;
    }
    pthread_mutex_unlock(&jobs->lock);
    return entry ? &entry->answer : NULL;
}

void jobs_release(Jobs *jobs, Answer *answer)
{
    Entry *entry = (Entry *)answer;

    pthread_mutex_lock(&jobs->lock);
    if (--entry->refs == 0 && entry->forgotten)
        free_entry(entry);
    pthread_mutex_unlock(&jobs->lock);
}
