// SPDX-License-Identifier: MIT
//
// Writes the recording of a small run whose answers are known by heart:
//
//     make_run [--rebuilt] [--short] [--extra] FILE
//
//   grow    keeps 1 KiB every 10 ms, all along: a leak
//   cache   keeps 10 KiB every 20 ms of the first second, then stays
//   spike   holds 4 MiB from 5 s to 5.1 s: the peak
//   churn   100 bytes, freed at once, every 10 ms, in thread 2
//   vector  64 KiB through std::vector and operator new, kept
//
// --rebuilt is the same program built again: other addresses, other lines, other suffixes of
// clones and hashes. --extra leaks at one place more. --short is a run of 100 ms.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"

enum { APP = 1, LIBC = 2 };

typedef struct Run {
    RecordingWriter *writer;
    bool is_rebuilt, is_short, has_extra;
    u32 context_count;
    u64 next_address;
    u64 live, allocated;
    u64 peak;
    u64 site_live[16], site_blocks[16];
    u64 peak_live[16], peak_blocks[16];
    Moment peak_moment;
    u32 site_count;
} Run;

static u32 add_frame(Run *run, u32 parent, u32 module, const char *function, const char *file,
                     u32 line)
{
    u64 pc = 0x400000 + 0x100 * run->context_count++ + (run->is_rebuilt ? 0x7730 : 0);
    u32 context = recording_add_context(run->writer, parent, module, pc, true);
    RecordedFrame frame = {
        .function = function,
        .file = file,
        .directory = file ? module == APP ? "/src/app" : "/usr/include/c++/12/bits" : NULL,
        .object = module == APP ? "/opt/app/app" : "/usr/lib/x86_64-linux-gnu/libc.so.6",
        .pc = pc,
        .object_offset = pc & 0xffff,
        .line = file ? line + (run->is_rebuilt ? 40 : 0) : 0,
    };

    recording_set_frames(run->writer, context, &frame, 1);
    return context;
}

static Moment moment(const Run *run, u64 ns)
{
    return (Moment){.ns = ns, .allocated_bytes = run->allocated};
}

static u64 allocate(Run *run, u64 ns, u32 site, u32 thread, u64 size)
{
    u64 address = run->next_address += 0x20000000;

    run->allocated += size;
    recording_add_event(run->writer,
                        &(HeapEvent){.kind = EVENT_ALLOC, .site = site, .thread = thread,
                                     .time = moment(run, ns), .address = address, .size = size,
                                     .usable = (size + 15) & ~15ull});
    run->live += size;
    run->site_live[site] += size;
    run->site_blocks[site]++;
    if (run->live > run->peak) {
        run->peak = run->live;
        run->peak_moment = moment(run, ns);
        memcpy(run->peak_live, run->site_live, sizeof(run->site_live));
        memcpy(run->peak_blocks, run->site_blocks, sizeof(run->site_blocks));
    }
    return address;
}

static void release(Run *run, u64 ns, u32 site, u32 thread, u64 size, u64 address, u64 born_ns,
                    u32 flags)
{
    run->allocated += size;
    recording_add_event(run->writer,
                        &(HeapEvent){.kind = EVENT_FREE, .flags = flags, .site = site,
                                     .thread = thread, .time = moment(run, ns),
                                     .address = address, .size = size,
                                     .usable = (size + 15) & ~15ull, .born_ns = born_ns});
    run->live -= size;
    run->site_live[site] -= size;
    run->site_blocks[site]--;
}

typedef struct Places {
    u32 grow, cache, spike, churn, vector, extra;
} Places;

static u32 site_of(Run *run, u32 caller, const char *allocator, u32 thread)
{
    u32 context = add_frame(run, caller, LIBC, allocator, NULL, 0);

    run->site_count++;
    return recording_add_site(run->writer, &(RecordedSite){.context = context, .thread = thread});
}

static Places add_places(Run *run)
{
    bool is_rebuilt = run->is_rebuilt;
    Places places;
    u32 start = add_frame(run, 0, LIBC,
                          is_rebuilt ? "__libc_start_call_main" : "__libc_start_main", NULL, 0);
    u32 main_frame = add_frame(run, start, APP, "main", "app.c", 100);
    u32 grow = add_frame(run, main_frame, APP, is_rebuilt ? "grow.constprop.0" : "grow", "app.c",
                         10);
    u32 cache = add_frame(run, main_frame, APP, "cache", "cache.c", 20);
    u32 spike = add_frame(run, main_frame, APP, "spike", "app.c", 30);
    u32 churn = add_frame(run, 0, APP,
                          is_rebuilt ? "rust::churn::hfedcba9876543210"
                                     : "rust::churn::h0123456789abcdef",
                          "churn.rs", 40);
    u32 owner = add_frame(run, main_frame, APP, "fill(int)", "fill.cc", 50);
    u32 vector = add_frame(run, owner, APP,
                           "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>"
                           "(int&&)", "vector.tcc", 440);

    places.grow = site_of(run, grow, "malloc", 1);
    places.cache = site_of(run, cache, "calloc", 1);
    places.spike = site_of(run, spike, "malloc", 1);
    places.churn = site_of(run, churn, "malloc", 2);
    places.vector = site_of(run, vector, "operator new(unsigned long)", 1);
    if (run->has_extra)
        places.extra = site_of(run, add_frame(run, main_frame, APP, "extra", "extra.c", 60),
                               "malloc", 1);
    return places;
}

static void run_it(Run *run, const Places *places)
{
    const u64 ms = 1000000;
    u64 end_ms = run->is_short ? 100 : 10000;
    u64 spike = 0;

    allocate(run, 1, places->vector, 1, 64 * KiB);
    for (u64 t = 0; t < end_ms; t += 10) {
        u64 ns = t * ms + 1000;
        allocate(run, ns, places->grow, 1, KiB);
        if (t < 1000 && t % 20 == 0)
            allocate(run, ns + 10, places->cache, 1, 10 * KiB);
        if (t == 5000)
            spike = allocate(run, ns + 20, places->spike, 1, 4 * MiB);
        if (t == 5100)
            release(run, ns + 20, places->spike, 1, 4 * MiB, spike, 5000 * ms + 1020, 0);
        u64 block = allocate(run, ns + 30, places->churn, 2, 100);
        release(run, ns + 130, places->churn, 2, 100, block, ns + 30, EVENT_TEMPORARY);
        if (run->has_extra && t % 100 == 0)
            allocate(run, ns + 200, places->extra, 1, 3000);
        if (t % 500 == 0)
            recording_add_sample(run->writer, &(Sample){.ns = ns, .rss_bytes = 8 * MiB + t});
    }
}

static void finish(Run *run)
{
    Moment end = moment(run, run->is_short ? 100000000 : 10000000000);
    SiteSums live[16] = {{0}};

    for (u32 i = 0; i < run->site_count; i++)
        live[i] = (SiteSums){.live_bytes = run->peak_live[i], .live_blocks = run->peak_blocks[i],
                             .live_usable = run->peak_live[i]};
    recording_keep_state(run->writer, STATE_PEAK, NULL, &run->peak_moment, live, run->site_count);
    recording_close(run->writer, &end, &(RecordingEnd){.known = true});
    printf("live %llu\npeak %llu\npeak_ns %llu\n", (unsigned long long)run->live,
           (unsigned long long)run->peak, (unsigned long long)run->peak_moment.ns);
}

int main(int argc, char **argv)
{
    Run run = {.next_address = 0x10000};
    RecordingInfo info = {.tool = "massif", .command = "app --serve", .executable = "/opt/app/app",
                          .pid = 99, .start_unix_ns = 1700000000000000000, .depth = 30};
    const char *path = NULL;
    int error = 0;

    for (int i = 1; i < argc; i++) {
        run.is_rebuilt |= strcmp(argv[i], "--rebuilt") == 0;
        run.is_short |= strcmp(argv[i], "--short") == 0;
        run.has_extra |= strcmp(argv[i], "--extra") == 0;
        if (argv[i][0] != '-')
            path = argv[i];
    }
    if (!path)
        return 2;
    run.writer = recording_create(&(WriterConfig){.path = path}, &info, &error);
    if (!run.writer)
        return 1;
    recording_add_module(run.writer, &(RecordedModule){.path = "/opt/app/app", .start = 0x400000,
                                                       .size = 0x100000});
    recording_add_module(run.writer,
                         &(RecordedModule){.path = "/usr/lib/x86_64-linux-gnu/libc.so.6",
                                           .start = 0x7f0000000000, .size = 0x200000});
    for (u32 i = 1; i <= 2; i++)
        recording_set_thread(run.writer, &(RecordedThread){.number = i, .tid = 98 + (i32)i,
                                                           .name = i == 1 ? "app" : "worker"});
    Places places = add_places(&run);
    run_it(&run, &places);
    finish(&run);
    return 0;
}
