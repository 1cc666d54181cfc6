// SPDX-License-Identifier: MIT
//
// RSS over time, from /proc. The engine shares the client's process, so what statm says
// has the engine in it. Whose a page is only smaps tells, by its address, and that walks
// all page tables: tens of milliseconds for a large program. So smaps is read rarely (never
// for more than SMAPS_SHARE of the time), gives the engine's part, which hardly changes,
// and statm less that part is the client's.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitor/heap/model.h"

#define SAMPLE_NS 100000000ull      // between samples
#define SMAPS_FIRST_NS 50000000ull  // the engine has most of what it will have by then
#define SMAPS_NS 2000000000ull      // between measurements of the engine, at least
#define NAMES_NS 1000000000ull      // between looks at the names of threads
enum { SMAPS_SHARE = 200 };         // of our time at most one part in so many

// Below is the client's, but for the code cache; as in engine/aspace/aspace.h.
#define CLIENT_END 0x100000000000ull
#define CACHE_START 0x60000000ull
#define CACHE_END 0x70000000ull

static u64 clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

static FILE *open_proc(const Sampler *sampler, const char *name)
{
    int fd = sampler->directory < 0 ? -1 : openat(sampler->directory, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

static bool read_small(const Sampler *sampler, const char *name, char *text, size_t size)
{
    int fd = sampler->directory < 0 ? -1 : openat(sampler->directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool is_engines(u64 start)
{
    return start >= CLIENT_END || (start >= CACHE_START && start < CACHE_END);
}

// The RSS of mappings that are not the client's.
static bool measure_engine(const Sampler *sampler, u64 *ret_bytes)
{
    FILE *file = open_proc(sampler, "smaps");
    char line[512];
    u64 bytes = 0;
    bool engines = false, any = false;

    if (!file)
        return false;
    setvbuf(file, NULL, _IOFBF, 64 * KiB); // the kernel walks the list of mappings for each read
    while (fgets(line, sizeof(line), file)) {
        unsigned long long start, end, kib;
        if (sscanf(line, "%llx-%llx ", &start, &end) == 2)
            engines = is_engines(start);
        else if (engines && sscanf(line, "Rss: %llu kB", &kib) == 1)
            bytes += kib * KiB;
        any = true;
    }
    fclose(file);
    *ret_bytes = bytes;
    return any;
}

static u64 cpu_ms(const Sampler *sampler)
{
    char text[1024];
    unsigned long long user, system;

    if (!read_small(sampler, "stat", text, sizeof(text)))
        return 0;
    const char *behind = strrchr(text, ')');
    if (!behind || sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
                          &user, &system) != 2)
        return 0;
    return (user + system) * 1000 / (u64)sysconf(_SC_CLK_TCK);
}

void sample_open(HeapModel *model)
{
    char path[32];
    Sampler *sampler = &model->sampler;

    *sampler = (Sampler){0};
    snprintf(path, sizeof(path), "/proc/%d", model->config.os_pid);
    sampler->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    sampler->next_smaps_ns = clock_ns(CLOCK_MONOTONIC) + SMAPS_FIRST_NS;
}

static void update_engine(Sampler *sampler, u64 now_ns, bool must)
{
    if (!must && now_ns < sampler->next_smaps_ns)
        return;
    u64 cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), bytes;
    if (measure_engine(sampler, &bytes)) {
        sampler->engine_rss = bytes;
        sampler->has_engine_rss = true;
    }
    cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    if (now_ns >= sampler->next_smaps_ns) // else the engine still grows: the first is due as it was
        sampler->next_smaps_ns = now_ns + max_u64(SMAPS_NS, cpu_ns * SMAPS_SHARE);
}

void sample_turn(HeapModel *model, bool now)
{
    Sampler *sampler = &model->sampler;
    u64 now_ns = clock_ns(CLOCK_MONOTONIC);
    unsigned long long size, resident;
    char text[256];

    if (now_ns < sampler->next_ns && !now)
        return;
    sampler->next_ns = now_ns + SAMPLE_NS;
    update_engine(sampler, now_ns, now && !sampler->has_engine_rss);
    if (!read_small(sampler, "statm", text, sizeof(text)) ||
        sscanf(text, "%llu %llu", &size, &resident) != 2 || resident == 0)
        return;
    if (now || now_ns >= sampler->next_names_ns) {
        sampler->next_names_ns = now_ns + NAMES_NS;
        threads_name(model);
    }
    if (!sampler->has_engine_rss)
        return; // the engine's would pass for the client's, and for its peak
    u64 process = resident * PAGE_SIZE;
    u64 engine = min_u64(sampler->engine_rss, process);
    sampler->last_rss = process - engine;
    sampler->rss_peak = max_u64(sampler->rss_peak, sampler->last_rss);
    sampler->process_rss_peak = max_u64(sampler->process_rss_peak, process);
    if (model->writer)
        recording_add_sample(model->writer, &(Sample){
            .ns = model->config.shared ? model_moment(model).ns : 0,
            .rss_bytes = sampler->last_rss,
            .process_rss_bytes = process,
            .cpu_ms = cpu_ms(sampler),
        });
}

void sample_close(HeapModel *model)
{
    if (model->sampler.directory >= 0)
        close(model->sampler.directory);
    model->sampler.directory = -1;
}
