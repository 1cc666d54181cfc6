// SPDX-License-Identifier: MIT
//
// Writes a heap recording of a run that never was, for tests and benchmarks of what reads them:
//
//     make_recording [--events=N] [--contexts=N] [--threads=N] [--seed=N] [--depth=N]
//                    [--live=N] [--seconds=N] [--samples=N] [--asked=N] [--max-bytes=N]
//                    [--spaces] [--hostile] [--instructions] [--unclosed] [--bare] FILE
//
// The same options give the same file. --live is about how many blocks live at once; --hostile
// gives names that break what does not escape them; --bare leaves out the frames of some
// contexts, and the path of a module; --unclosed ends as a monitor that was killed would. On
// stdout: `events N`, `peak BYTES NS`, `live BYTES`, `write_ns N` (for an event).
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recording/recording.h"

typedef struct Settings {
    u64 events, contexts, threads, seed, depth, live, seconds, samples, asked, max_bytes;
    bool spaces, hostile, instructions, unclosed, bare;
} Settings;

typedef struct Block {
    u64 address, born_ns;
    u32 size, site;
} Block;

// A site at the highest moment: what it had, kept when it first changes after it.
typedef struct PeakSite {
    SiteSums live, at_peak;
    u64 epoch;
} PeakSite;

typedef struct Run {
    Settings set;
    RecordingWriter *writer;
    u64 random;
    Moment now;
    u64 start_ns_per_event;
    Block *blocks;
    size_t block_count, block_capacity;
    PeakSite *sites;
    u32 site_count;
    u64 heap_bytes, peak_bytes, epoch;
    Moment peak;
    u64 next_address;
    u64 *recent; // addresses to use again, as an allocator would
    u32 recent_count;
} Run;

static u64 next_random(Run *run)
{
    u64 x = run->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    run->random = x;
    return x * 0x2545f4914f6cdd1dull >> 11;
}

static u64 below(Run *run, u64 limit)
{
    return limit ? next_random(run) % limit : 0;
}

static u64 now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (u64)time.tv_sec * 1000000000 + (u64)time.tv_nsec;
}

// ---------------------------------------------------------------- names
static char *long_name(void)
{
    char *name = malloc(10001);

    memset(name, 'n', 10000);
    memcpy(name, "long_", 5);
    name[10000] = '\0';
    return name;
}

static const char *function_name(Run *run, u32 number, char *buffer, size_t size)
{
    static const char *const hostile[] = {
        "<script>alert(1)</script>", "\xe2\x80\xae" "evil_rtl" "\xe2\x80\xac", "a\"b'c`d",
        "line\nbreak\tand\x1b[31mcolour", "\xff\xfe not utf-8 \xc3", "';DROP TABLE frames;--",
        "=cmd|' /C calc'!A0", "semi;colon;frames", "", "\xef\xbf\xbd\xe2\x80\x8bzero-width",
        "operator()<std::map<int, char>, (lambda at <x>)>(int)", "NULL",
    };
    static char *endless;

    if (run->set.hostile && number % 4 == 1) {
        u32 which = number / 4 % (ARRAY_LEN(hostile) + 1);
        if (which == ARRAY_LEN(hostile))
            return endless ? endless : (endless = long_name());
        return hostile[which];
    }
    snprintf(buffer, size, number % 3 ? "function_%u" : "Klass%u::method(int, char const*)",
             number);
    return buffer;
}

static void name_context(Run *run, u32 context, u32 parent, bool is_allocator)
{
    char name[64], inner[64], file[32];
    u32 number = (u32)below(run, 10 + run->set.contexts / 8);
    bool in_library = below(run, 4) == 0;

    if (run->set.hostile && context % 2)
        number = context / 2 * 4 + 1; // each of the hostile names in turn
    snprintf(file, sizeof(file), "source_%u.cc", number % 97);
    RecordedFrame frames[2] = {
        { .function = function_name(run, number, name, sizeof(name)), .file = file,
          .directory = "/home/user/project/src", .object = "/home/user/project/app",
          .pc = 0x401000 + number * 64ull, .object_offset = 0x1000 + number * 64ull,
          .line = 10 + number % 500 },
    };
    u32 count = 1;

    if (in_library) {
        frames[0].object = "/usr/lib/x86_64-linux-gnu/libstuff.so.1";
        frames[0].file = frames[0].directory = NULL;
        frames[0].line = 0;
    }
    if (parent == 0) {
        frames[0].function = "main";
        frames[0].object = "/home/user/project/app";
    } else if (is_allocator) {
        frames[0] = (RecordedFrame){
            .function = number % 2 ? "malloc" : "operator new(unsigned long)",
            .object = "/usr/lib/x86_64-linux-gnu/libc.so.6", .pc = 0x7f0000010000,
            .object_offset = 0x10000 };
    } else if (number % 5 == 0) {
        frames[1] = frames[0];
        frames[0].function = function_name(run, number + 1, inner, sizeof(inner));
        frames[0].inlined = true;
        count = 2;
    } else if (number % 11 == 0) {
        frames[0].function = NULL;
        frames[0].file = frames[0].directory = NULL;
    }
    recording_set_frames(run->writer, context, frames, count);
}

static void add_site(Run *run, Space space, u32 context, u32 thread)
{
    recording_add_site(run->writer, &(RecordedSite){
        space, context, thread,
        space == SPACE_MAPPED ? (PagesKind)(run->site_count % PAGES_KINDS) : PAGES_NOT_KNOWN });
    run->sites = realloc(run->sites, (run->site_count + 1) * sizeof(PeakSite));
    run->sites[run->site_count++] = (PeakSite){ 0 };
}

// A tree of contexts: inner ones, then one with an allocator for each that allocates.
static void add_contexts(Run *run)
{
    static const u8 build_id[20] = { 0xde, 0xad, 0xbe, 0xef, 1, 2, 3 };
    const Settings *set = &run->set;
    u32 inner = (u32)(set->contexts / 2 + 1), root;

    recording_add_module(run->writer, &(RecordedModule){
        .path = "/home/user/project/app", .start = 0x400000, .size = 0x1000000,
        .build_id = build_id, .build_id_size = sizeof(build_id) });
    recording_add_module(run->writer, &(RecordedModule){
        .path = "/usr/lib/x86_64-linux-gnu/libc.so.6", .start = 0x7f0000000000,
        .size = 0x200000 });
    u32 nameless = recording_add_module(run->writer, &(RecordedModule){ .start = 0x2000000,
                                                                        .size = 0x1000 });
    root = recording_add_context(run->writer, 0, 1, 0x401000, true);
    name_context(run, root, 0, false);
    for (u32 i = 1; i < inner; i++) {
        u32 back = (u32)min_u64(i, max_u64(1, inner / max_u64(1, set->depth)));
        u32 parent = root + i - 1 - (u32)below(run, back);
        bool is_bare = set->bare && i % 3 == 0;
        u32 module = is_bare && i % 2 ? nameless : 1;
        u32 context = recording_add_context(run->writer, parent, module, 0x401000 + i * 16, true);
        if (!is_bare)
            name_context(run, context, parent, false);
    }
    for (u32 i = inner; i < max_u64(set->contexts, inner + 1); i++) {
        u32 parent = root + (u32)below(run, inner);
        u32 context = recording_add_context(run->writer, parent, 2, 0x7f0000010000, false);
        name_context(run, context, parent, true);
        u32 thread = 1 + i % (u32)max_u64(1, set->threads);
        Space space = !set->spaces ? SPACE_HEAP : i % 10 == 7 ? SPACE_MAPPED
                      : i % 10 == 8 ? SPACE_STACK : SPACE_HEAP;
        add_site(run, space, context, thread);
    }
    for (u32 i = 1; i <= set->threads; i++)
        recording_set_thread(run->writer, &(RecordedThread){
            .number = i, .tid = (i32)(1000 + i), .name = i == 1 ? "main" : "worker",
            .start_ns = i * 1000, .end_ns = i == 2 ? set->seconds * 500000000ull : 0 });
}

// ---------------------------------------------------------------- events
static void save_before_change(Run *run, u32 site)
{
    PeakSite *state = &run->sites[site];

    if (state->epoch == run->epoch)
        return;
    state->at_peak = state->live;
    state->epoch = run->epoch;
}

static Space space_of(const Run *run, u32 site)
{
    u64 inner = run->set.contexts / 2 + 1, i = inner + site;

    return !run->set.spaces ? SPACE_HEAP : i % 10 == 7 ? SPACE_MAPPED
           : i % 10 == 8 ? SPACE_STACK : SPACE_HEAP;
}

static u64 usable_of(const Block *block)
{
    return block->size <= 24 ? 24 : ((block->size + 23ull) & ~15ull) - 8;
}

static void send(Run *run, EventKind kind, u32 flags, const Block *block, u32 thread)
{
    bool is_heap = space_of(run, block->site) == SPACE_HEAP;
    SiteSums *live = &run->sites[block->site].live;

    save_before_change(run, block->site);
    u64 usable = usable_of(block);
    run->now.allocated_bytes += is_heap ? block->size : 0;
    run->now.instructions += run->set.instructions ? 100 + below(run, 5000) : 0;
    recording_add_event(run->writer, &(HeapEvent){
        .kind = kind, .flags = flags, .site = block->site, .thread = thread, .time = run->now,
        .address = block->address, .size = block->size, .usable = usable,
        .born_ns = block->born_ns });
    u64 sign = kind == EVENT_ALLOC ? 1 : UINT64_MAX;
    live->live_bytes += sign * block->size;
    live->live_blocks += sign;
    live->live_usable += sign * usable;
    if (is_heap)
        run->heap_bytes += sign * block->size;
    if (run->heap_bytes > run->peak_bytes) {
        run->peak_bytes = run->heap_bytes;
        run->peak = run->now;
        run->epoch++;
    }
}

static u64 new_address(Run *run, u32 size)
{
    if (run->recent_count && below(run, 4))
        return run->recent[--run->recent_count];
    run->next_address += (size + 31ull) & ~15ull;
    return run->next_address;
}

static void allocate(Run *run, u32 flags)
{
    u64 shape = next_random(run);
    u32 size = shape % 64 == 0 ? (u32)(shape >> 6) % 100000 : 1 + (u32)(shape >> 6) % 400;
    // A few sites are hot, as everywhere.
    u32 site = (u32)(below(run, 3) ? below(run, run->site_count / 16 + 1)
                                   : below(run, run->site_count));
    Block block = { .born_ns = run->now.ns, .size = size, .site = site };
    block.address = new_address(run, size);
    u32 i = (u32)(run->set.contexts / 2 + 1) + site;
    run->blocks[run->block_count++] = block;
    send(run, EVENT_ALLOC, flags, &block, 1 + i % (u32)max_u64(1, run->set.threads));
}

static void release(Run *run, bool newest, u32 flags)
{
    size_t at = newest ? run->block_count - 1 : below(run, run->block_count);
    Block block = run->blocks[at];
    u32 i = (u32)(run->set.contexts / 2 + 1) + block.site;
    u32 thread = 1 + (i + (below(run, 50) == 0)) % (u32)max_u64(1, run->set.threads);

    run->blocks[at] = run->blocks[--run->block_count];
    if (run->recent_count < 1024)
        run->recent[run->recent_count++] = block.address;
    send(run, EVENT_FREE, flags | (newest ? EVENT_TEMPORARY : 0), &block, thread);
}

// One or two events; how many live goes up to --live by the middle of the run and half down.
static u64 step(Run *run, u64 done)
{
    u64 half = run->set.events / 2 + 1;
    u64 wanted = done < half ? run->set.live * done / half
                             : run->set.live - run->set.live / 2 * (done - half) / half;

    run->now.ns += 1 + below(run, 2 * run->start_ns_per_event);
    if (run->block_count > 1 && below(run, 20) == 0) {
        release(run, false, EVENT_BY_REALLOC);
        allocate(run, EVENT_BY_REALLOC);
        return 2;
    }
    if (run->block_count + 2 < run->block_capacity &&
        (run->block_count == 0 || (run->block_count <= wanted && below(run, 3)) || below(run, 2)))
        allocate(run, 0);
    else
        release(run, below(run, 3) != 0, 0);
    return 1;
}

static void keep_live(Run *run, StateReason reason, const char *label, bool at_peak)
{
    SiteSums *live = calloc(run->site_count, sizeof(*live));

    for (u32 i = 0; i < run->site_count; i++) {
        const PeakSite *site = &run->sites[i];
        live[i] = at_peak && site->epoch == run->epoch ? site->at_peak : site->live;
    }
    recording_keep_state(run->writer, reason, label, at_peak ? &run->peak : &run->now, live,
                         run->site_count);
    free(live);
}

static void play(Run *run)
{
    const Settings *set = &run->set;
    u64 next_sample = 0, next_asked = set->events / (set->asked + 1), asked = 0;

    for (u64 done = 0; done < set->events;) {
        done += step(run, done);
        if (set->samples && done >= next_sample) {
            recording_add_sample(run->writer, &(Sample){
                .ns = run->now.ns, .rss_bytes = run->heap_bytes + run->heap_bytes / 4 + 2 * MiB,
                .process_rss_bytes = run->heap_bytes * 2 + 8 * MiB,
                .cpu_ms = run->now.ns / 1000000 });
            next_sample += set->events / set->samples + 1;
        }
        if (asked < set->asked && done >= next_asked * (asked + 1)) {
            char label[32];
            snprintf(label, sizeof(label), "asked %llu", (unsigned long long)++asked);
            keep_live(run, STATE_ASKED, label, false);
        }
    }
}

static void add_living(Run *run)
{
    for (size_t i = 0; i < run->block_count; i++) {
        const Block *block = &run->blocks[i];
        if (space_of(run, block->site) == SPACE_HEAP)
            recording_add_living(run->writer, &(RecordedBlock){
                .site = block->site, .address = block->address, .size = block->size,
                .usable = usable_of(block), .born_ns = block->born_ns });
    }
}

static void add_histograms(Run *run)
{
    for (u32 i = 0; i < run->site_count && i < 1000; i++) {
        SiteHistogram histogram = { 0 };
        for (u32 k = 1; k < 12; k++) {
            histogram.sizes[k] = below(run, 100);
            histogram.lifetimes[k + 8] = below(run, 100);
        }
        recording_set_histogram(run->writer, i, &histogram);
    }
}

// ---------------------------------------------------------------- the program
enum { FLAG_FIRST = 100 };
static const struct {
    const char *name;
    size_t offset;
    bool is_flag;
} options_table[] = {
#define NUMBER(field, name) { name, offsetof(Settings, field), false }
#define FLAG(field, name) { name, offsetof(Settings, field), true }
    NUMBER(events, "events"), NUMBER(contexts, "contexts"), NUMBER(threads, "threads"),
    NUMBER(seed, "seed"), NUMBER(depth, "depth"), NUMBER(live, "live"),
    NUMBER(seconds, "seconds"), NUMBER(samples, "samples"), NUMBER(asked, "asked"),
    NUMBER(max_bytes, "max-bytes"), FLAG(spaces, "spaces"), FLAG(hostile, "hostile"),
    FLAG(instructions, "instructions"), FLAG(unclosed, "unclosed"), FLAG(bare, "bare"),
};

static bool parse(int argc, char **argv, Settings *set, const char **path)
{
    struct option options[ARRAY_LEN(options_table) + 1] = { 0 };
    int which;

    for (size_t i = 0; i < ARRAY_LEN(options_table); i++)
        options[i] = (struct option){ options_table[i].name,
                                      options_table[i].is_flag ? no_argument : required_argument,
                                      NULL, FLAG_FIRST + (int)i };
    while ((which = getopt_long(argc, argv, "", options, NULL)) >= FLAG_FIRST) {
        u8 *field = (u8 *)set + options_table[which - FLAG_FIRST].offset;
        if (options_table[which - FLAG_FIRST].is_flag)
            *(bool *)field = true;
        else
            *(u64 *)field = strtoull(optarg, NULL, 0);
    }
    *path = argv[optind];
    return which == -1 && optind == argc - 1;
}

int main(int argc, char **argv)
{
    Run run = { .set = { .events = 10000, .contexts = 200, .threads = 2, .seed = 1, .depth = 12,
                         .live = 2000, .seconds = 10, .samples = 50, .asked = 2 } };
    const char *path;
    int error = 0;

    if (!parse(argc, argv, &run.set, &path)) {
        fprintf(stderr, "usage: make_recording [--events=N ...] FILE; see its source\n");
        return 2;
    }
    run.random = run.set.seed * 0x9e3779b97f4a7c15ull + 1;
    run.next_address = 0x555555600000;
    run.recent = calloc(1024, sizeof(u64));
    run.block_capacity = run.set.live * 2 + 1024;
    run.blocks = calloc(run.block_capacity, sizeof(Block));
    run.start_ns_per_event = run.set.seconds * 1000000000ull / (run.set.events + 1);
    run.writer = recording_create(
        &(WriterConfig){ .path = path, .max_bytes = run.set.max_bytes },
        &(RecordingInfo){ .tool = "massif", .command = "app --synthetic 'a b'",
                          .options = "--tool=massif", .executable = "/home/user/project/app",
                          .pid = 4711, .start_unix_ns = 1700000000000000000ull,
                          .counts_instructions = run.set.instructions,
                          .has_stacks = run.set.spaces, .heap_admin_bytes = 8, .time_unit = 1,
                          .depth = 30, .threshold_ppm = 10000 }, &error);
    if (!run.writer) {
        fprintf(stderr, "make_recording: %s: %s\n", path, strerror(error));
        return 1;
    }
    add_contexts(&run);
    u64 began = now_ns();
    play(&run);
    u64 took = now_ns() - began;
    printf("events %llu\npeak %llu %llu\nlive %llu\nwrite_ns %.1f\n",
           (unsigned long long)run.set.events, (unsigned long long)run.peak_bytes,
           (unsigned long long)run.peak.ns, (unsigned long long)run.heap_bytes,
           (double)took / (double)(run.set.events + 1));
    keep_live(&run, STATE_PEAK, NULL, true);
    if (run.set.unclosed) {
        recording_flush(run.writer);
        fflush(stdout);
        _exit(0);
    }
    keep_live(&run, STATE_END, NULL, false);
    add_histograms(&run);
    add_living(&run);
    run.now.ns += 1000;
    int result = recording_close(run.writer, &run.now, &(RecordingEnd){ .known = true });
    free(run.blocks);
    free(run.sites);
    free(run.recent);
    return result != 0;
}
