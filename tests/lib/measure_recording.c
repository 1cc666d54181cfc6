// SPDX-License-Identifier: MIT
//
// What recordings cost, for benchmarks:
//
//     measure_recording FILE           reads it: a line `name value unit` for each question
//     measure_recording --write FILE   writes it: CPU of an event, for three kinds of programs
//
// Times are CPU times of this process (of reading and writing, `cpu_ms`, `cpu_ns`), because a
// machine that does other things too would otherwise be what is measured.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "recording/query.h"

enum { POINTS = 1000, GROUPS = 10, BATCH = 1024, WRITTEN = 4 << 20 };

static u64 cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (u64)time.tv_sec * 1000000000 + (u64)time.tv_nsec;
}

static u64 asked_ns;

static void begin(void)
{
    asked_ns = cpu_ns();
}

static void end(const char *name)
{
    printf("%s %.1f cpu_ms\n", name, (double)(cpu_ns() - asked_ns) / 1e6);
}

// ---------------------------------------------------------------- reading
static void measure_tree(Recording *recording, const i64 *values, const char *name,
                         const TreeOptions *options)
{
    begin();
    Tree *tree = tree_build(recording, values, options);
    end(name);
    tree_free(tree);
}

static void measure_questions(Recording *recording)
{
    u32 sites = recording_site_count(recording), *groups = calloc(sites + 1, sizeof(u32));
    u64 last = recording_last(recording).ns;
    u64 *series = calloc(POINTS * GROUPS, sizeof(u64));
    SiteSums *sums = calloc(sites + 1, sizeof(*sums));
    i64 *values = calloc(sites + 1, sizeof(*values));
    char *error = NULL;

    for (u32 i = 0; i < sites; i++)
        groups[i] = i % GROUPS;
    begin();
    recording_range(recording, 0, last, sums);
    end("first_answer");
    begin();
    recording_range(recording, last / 3, last / 3 * 2, sums);
    end("range");
    begin();
    recording_series(recording, 0, last, POINTS, groups, GROUPS, series);
    end("series_first");
    begin();
    recording_series(recording, 0, last, POINTS, groups, GROUPS, series);
    end("series");
    begin();
    selection_metric(recording, &(Selection){ .from_ns = last / 4, .to_ns = last / 2 },
                     METRIC_LEAKED, values, &error);
    end("leaked_in_range");
    begin();
    selection_metric(recording, &(Selection){ .function = "*a*" }, METRIC_ALLOCATED, values,
                     &error);
    end("filtered");
    measure_tree(recording, values, "tree_down", &(TreeOptions){ 0 });
    measure_tree(recording, values, "tree_up", &(TreeOptions){ .bottom_up = true });
    free(groups);
    free(series);
    free(sums);
    free(values);
    free(error);
}

static int measure_reading(const char *path)
{
    struct rusage usage;
    char *error = NULL;

    begin();
    Recording *recording = recording_open(path, NULL, NULL, &error);
    if (!recording) {
        fprintf(stderr, "measure_recording: %s\n", error);
        return 1;
    }
    end("open");
    measure_questions(recording);
    u64 events = recording_event_count(recording);
    getrusage(RUSAGE_SELF, &usage);
    printf("memory %ld KiB\nevents %llu\nplain_bytes_per_event %.2f bytes\n", usage.ru_maxrss,
           (unsigned long long)events,
           (double)recording_plain_bytes(recording) / (double)(events ? events : 1));
    recording_free(recording);
    return 0;
}

// ---------------------------------------------------------------- writing
typedef struct Kind {
    const char *name;
    u32 sites, kept;
    bool is_churn; // each block is freed next; else half of them live long
} Kind;

typedef struct Kept {
    u64 address, born_ns;
    u32 site, size;
} Kept;

static u64 next_random(u64 limit)
{
    static u64 state = 88172645463325252ull;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 8) % limit;
}

static HeapEvent next_event(const Kind *kind, Kept *all, u64 number, Moment *now)
{
    u64 which = kind->is_churn ? number / 2 % kind->kept
                               : next_random(next_random(2) ? 16 : kind->kept);
    Kept *kept = &all[which];
    bool is_free = kept->address != 0;

    now->ns += 30 + next_random(kind->is_churn ? 60 : 200);
    if (!is_free)
        *kept = (Kept){
            .address = 0x555555560000 + (kind->is_churn ? which * 4 : next_random(1 << 20)) * 16,
            .born_ns = now->ns, .site = (u32)next_random(kind->sites),
            .size = 1 + (u32)next_random(kind->is_churn || next_random(4) ? 300 : 9000),
        };
    now->allocated_bytes += kept->size;
    HeapEvent event = {
        .kind = is_free ? EVENT_FREE : EVENT_ALLOC, .site = kept->site, .thread = 1, .time = *now,
        .flags = is_free && kind->is_churn ? EVENT_TEMPORARY : 0, .address = kept->address,
        .size = kept->size, .born_ns = kept->born_ns,
        .usable = kept->size <= 24 ? 24 : ((kept->size + 23ull) & ~15ull) - 8,
    };
    kept->address = is_free ? 0 : kept->address;
    return event;
}

static bool measure_kind(const char *path, const Kind *kind)
{
    static HeapEvent events[BATCH];
    Kept *all = calloc(kind->kept, sizeof(Kept));
    Moment now = { 0 };
    int error;
    u64 spent = 0;
    RecordingWriter *writer = recording_create(&(WriterConfig){ .path = path },
                                               &(RecordingInfo){ .tool = "massif" }, &error);

    if (!writer || !all)
        return false;
    for (u32 i = 0; i < kind->sites; i++) {
        u32 context = recording_add_context(writer, 0, 0, i, false);
        recording_add_site(writer, &(RecordedSite){ .context = context, .thread = 1 });
    }
    for (u64 done = 0; done < WRITTEN; done += BATCH) {
        for (u32 i = 0; i < BATCH; i++)
            events[i] = next_event(kind, all, done + i, &now);
        u64 began = cpu_ns();
        for (u32 i = 0; i < BATCH; i++)
            recording_add_event(writer, &events[i]);
        spent += cpu_ns() - began;
    }
    u64 began = cpu_ns();
    bool ok = recording_close(writer, &now, &(RecordingEnd){ 0 }) == 0;
    spent += cpu_ns() - began;
    printf("write_%s %.1f cpu_ns\n", kind->name, (double)spent / WRITTEN);
    free(all);
    return ok;
}

static int measure_writing(const char *path)
{
    static const Kind kinds[] = {
        { "churn", 100, 64, true },
        { "mixed", 3000, 20000, false },
        { "many_sites", 100000, 20000, false },
    };

    for (u32 i = 0; i < ARRAY_LEN(kinds); i++)
        if (!measure_kind(path, &kinds[i])) {
            fprintf(stderr, "measure_recording: %s cannot be written\n", path);
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return measure_writing(argv[2]);
    if (argc == 2 && argv[1][0] != '-')
        return measure_reading(argv[1]);
    fprintf(stderr, "usage: measure_recording [--write] FILE\n");
    return 2;
}
