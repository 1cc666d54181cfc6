// SPDX-License-Identifier: MIT
//
// Writes recordings for the viewer's tests, the same every time.
//
//   make_recording KIND FILE [PID]
//
//   demo     a program with two threads, a peak, a leak and temporaries, over two seconds
//   later    the same with other numbers: something to compare it with
//   hostile  functions and files whose names are markup, reorder text, or never end
//   wide     a tree of more than 100,000 frames
//   grow     like demo, but written in steps of a tenth of a second, as if by the program PID,
//            until standard input is closed
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording/recording.h"

enum { SITES_MAX = 200000, BLOCKS_MAX = 4096, LONG_NAME = 10000 };

typedef struct Block {
    u32 site;
    u64 address, size, born_ns;
} Block;

typedef struct Maker {
    RecordingWriter *writer;
    Moment now;
    u64 next_address;
    u32 module[3];
    u32 sites[SITES_MAX];
    u32 site_count;
    Block live[BLOCKS_MAX]; // a ring of those that will be freed
    u32 live_first, live_count;
    u64 seed;
    SiteSums sums[SITES_MAX];    // live now, heap only
    SiteSums at_peak[SITES_MAX]; // and then
    u64 total, peak;
    Moment peak_moment;
    bool is_at_peak;             // nothing was freed since
    u32 mapped_site;             // U32_MAX: none
} Maker;

static u64 random_below(Maker *maker, u64 bound)
{
    maker->seed = maker->seed * 6364136223846793005u + 1442695040888963407u;
    return (maker->seed >> 33) % bound;
}

static u32 add_frame(Maker *maker, u32 parent, u32 module, const char *function, const char *file,
                     u32 line)
{
    static const char *objects[] = {"/opt/shop/bin/shop", "/opt/shop/lib/libstore.so",
                                    "/usr/lib/x86_64-linux-gnu/libc.so.6"};
    u64 pc = 0x401000 + (u64)line * 16 + (u64)module * 0x100000 + (u64)parent * 4;
    u32 context = recording_add_context(maker->writer, parent, maker->module[module], pc, true);
    RecordedFrame frame = {
        .function = function,
        .file = file,
        .directory = file ? "/src/shop" : NULL,
        .object = objects[module],
        .pc = pc,
        .object_offset = pc - 0x400000,
        .line = file ? line : 0,
    };

    recording_set_frames(maker->writer, context, &frame, 1);
    return context;
}

static u32 add_site(Maker *maker, u32 context, u32 thread, Space space)
{
    RecordedSite site = {.space = space, .context = context, .thread = thread};
    u32 index = recording_add_site(maker->writer, &site);

    if (maker->site_count < SITES_MAX)
        maker->sites[maker->site_count++] = index;
    return index;
}

static void tick(Maker *maker, u64 ns)
{
    maker->now.ns += ns;
}

// To be called before the heap shrinks, and at the end.
static void leave_peak(Maker *maker)
{
    if (maker->is_at_peak)
        memcpy(maker->at_peak, maker->sums, maker->site_count * sizeof(maker->sums[0]));
    maker->is_at_peak = false;
}

static void count(Maker *maker, const Block *block, i64 sign)
{
    SiteSums *sums = &maker->sums[block->site];

    if (block->site == maker->mapped_site)
        return;
    sums->live_bytes += (u64)(sign * (i64)block->size);
    sums->live_usable += (u64)(sign * (i64)block->size);
    sums->live_blocks += (u64)sign;
    maker->total += (u64)(sign * (i64)block->size);
    if (maker->total > maker->peak) {
        maker->peak = maker->total;
        maker->peak_moment = maker->now;
        maker->is_at_peak = true;
    }
}

static Block allocate(Maker *maker, u32 site, u32 thread, u64 size)
{
    Block block = {site, maker->next_address, size, maker->now.ns};
    HeapEvent event = {
        .kind = EVENT_ALLOC,
        .site = site,
        .thread = thread,
        .address = block.address,
        .size = size,
        .usable = (size + 23) / 16 * 16 + 8,
    };

    maker->next_address += (size + 31) / 16 * 16;
    maker->now.allocated_bytes += size;
    event.time = maker->now;
    count(maker, &block, 1);
    recording_add_event(maker->writer, &event);
    return block;
}

static void release(Maker *maker, const Block *block, u32 thread, bool is_temporary)
{
    HeapEvent event = {
        .kind = EVENT_FREE,
        .flags = is_temporary ? EVENT_TEMPORARY : 0,
        .site = block->site,
        .thread = thread,
        .address = block->address,
        .size = block->size,
        .usable = (block->size + 23) / 16 * 16 + 8,
        .born_ns = block->born_ns,
    };

    maker->now.allocated_bytes += block->size;
    event.time = maker->now;
    leave_peak(maker);
    count(maker, block, -1);
    recording_add_event(maker->writer, &event);
}

static void hold(Maker *maker, Block block)
{
    if (maker->live_count == BLOCKS_MAX) {
        release(maker, &maker->live[maker->live_first], 1, false);
        maker->live_first = (maker->live_first + 1) % BLOCKS_MAX;
        maker->live_count--;
    }
    maker->live[(maker->live_first + maker->live_count++) % BLOCKS_MAX] = block;
}

static void let_go(Maker *maker, u32 count)
{
    while (count-- > 0 && maker->live_count > 0) {
        release(maker, &maker->live[maker->live_first], 1, false);
        maker->live_first = (maker->live_first + 1) % BLOCKS_MAX;
        maker->live_count--;
        tick(maker, 50000);
    }
}

static Maker *begin(const char *path, const char *command, i32 pid)
{
    static const RecordedModule modules[] = {
        {.path = "/opt/shop/bin/shop", .start = 0x400000, .size = 0x100000},
        {.path = "/opt/shop/lib/libstore.so", .start = 0x500000, .size = 0x100000},
        {.path = "/usr/lib/x86_64-linux-gnu/libc.so.6", .start = 0x600000, .size = 0x100000},
    };
    RecordingInfo info = {
        .tool = "massif",
        .command = command,
        .options = "--tool=massif",
        .executable = "/opt/shop/bin/shop",
        .pid = pid,
        .start_unix_ns = 1700000000000000000u,
        .depth = 30,
    };
    Maker *maker = calloc(1, sizeof(*maker));
    int error = 0;

    maker->writer = recording_create(&(WriterConfig){.path = path}, &info, &error);
    if (!maker->writer) {
        fprintf(stderr, "make_recording: %s: %s\n", path, strerror(error < 0 ? -error : error));
        exit(1);
    }
    maker->seed = 7;
    maker->mapped_site = UINT32_MAX;
    maker->next_address = 0x4a48040;
    for (u32 i = 0; i < 3; i++)
        maker->module[i] = recording_add_module(maker->writer, &modules[i]);
    recording_set_thread(maker->writer, &(RecordedThread){.number = 1, .tid = 100, .name = "shop"});
    recording_set_thread(maker->writer, &(RecordedThread){.number = 2, .tid = 101, .name = "store",
                                                          .start_ns = 300000000});
    return maker;
}

static void end(Maker *maker)
{
    RecordingEnd how = {.known = true};

    leave_peak(maker);
    recording_keep_state(maker->writer, STATE_PEAK, NULL, &maker->peak_moment, maker->at_peak,
                         maker->site_count);
    int error = recording_close(maker->writer, &maker->now, &how);

    if (error) {
        fprintf(stderr, "make_recording: %s\n", strerror(-error));
        exit(1);
    }
    free(maker);
}

typedef struct Shop {
    u32 catalogue, index, prices, cache, row, log, pages;
} Shop;

static Shop open_shop(Maker *maker)
{
    u32 start = add_frame(maker, 0, 2, "__libc_start_main", NULL, 0);
    u32 main_ = add_frame(maker, start, 0, "main", "main.c", 31);
    u32 load = add_frame(maker, main_, 0, "shop::Catalogue::load(std::string const&)", "load.cc", 88);
    u32 parse = add_frame(maker, load, 0, "parse_items", "parse.c", 140);
    u32 item = add_frame(maker, parse, 0, "make_item", "item.c", 22);
    u32 index = add_frame(maker, load, 1, "store::Index::insert(store::Key)", "index.cc", 61);
    u32 serve = add_frame(maker, main_, 0, "serve", "serve.c", 212);
    u32 prices = add_frame(maker, serve, 0, "read_prices", "prices.c", 19);
    u32 cache = add_frame(maker, serve, 1, "store::Cache::grow()", "cache.cc", 47);
    u32 row = add_frame(maker, serve, 0, "format_row", "row.c", 12);
    u32 log = add_frame(maker, serve, 0, "log_line", "log.c", 9);
    u32 pages = add_frame(maker, start, 2, "sysmalloc", NULL, 0);

    maker->mapped_site = add_site(maker, pages, 1, SPACE_MAPPED);
    return (Shop){
        .catalogue = add_site(maker, item, 1, SPACE_HEAP),
        .index = add_site(maker, index, 1, SPACE_HEAP),
        .prices = add_site(maker, prices, 1, SPACE_HEAP),
        .cache = add_site(maker, cache, 2, SPACE_HEAP),
        .row = add_site(maker, row, 2, SPACE_HEAP),
        .log = add_site(maker, log, 1, SPACE_HEAP),
        .pages = maker->mapped_site,
    };
}

// One step of a hundredth of the run.
static void run_shop(Maker *maker, const Shop *shop, u32 step, u32 weight)
{
    u64 end_ns = (u64)(step + 1) * 20000000;

    if (step == 0)
        allocate(maker, shop->pages, 1, 1 << 20);
    for (u32 i = 0; i < 20 && step < 40; i++) {
        hold(maker, allocate(maker, shop->catalogue, 1, 64 + random_below(maker, 128)));
        hold(maker, allocate(maker, shop->index, 1, 48));
        tick(maker, 100000);
    }
    if (step >= 30 && step < 60)
        hold(maker, allocate(maker, shop->cache, 2, (4096 + random_below(maker, 4096)) * weight));
    for (u32 i = 0; i < 12; i++) {
        Block row = allocate(maker, shop->row, 2, 200 + random_below(maker, 100));
        tick(maker, 20000);
        release(maker, &row, 2, true);
    }
    hold(maker, allocate(maker, shop->prices, 1, 512));
    allocate(maker, shop->log, 1, 96); // never freed
    if (step > 60)
        let_go(maker, 40);
    if (maker->now.ns < end_ns)
        maker->now.ns = end_ns;
    recording_add_sample(maker->writer, &(Sample){.ns = maker->now.ns, .cpu_ms = step * 20,
                                                  .rss_bytes = 900000 + step * 3000,
                                                  .process_rss_bytes = 5000000});
}

static void make_demo(const char *path, u32 weight)
{
    Maker *maker = begin(path, "/opt/shop/bin/shop --port=8080 catalogue.json", 4711);
    Shop shop = open_shop(maker);

    for (u32 step = 0; step < 100; step++)
        run_shop(maker, &shop, step, weight);
    end(maker);
}

static void make_growing(const char *path, i32 pid)
{
    Maker *maker = begin(path, "/opt/shop/bin/shop --forever", pid);
    Shop shop = open_shop(maker);
    struct pollfd input = {.fd = 0, .events = POLLIN};

    for (u32 step = 0; step < 1200; step++) {
        run_shop(maker, &shop, step % 60, 1);
        maker->now.ns = (u64)(step + 1) * 20000000;
        recording_close_slice(maker->writer, &maker->now);
        recording_flush(maker->writer);
        if (poll(&input, 1, 100) > 0)
            break;
    }
    end(maker);
}

static void make_hostile(const char *path)
{
    static char long_name[LONG_NAME + 1];
    const char *names[] = {
        "<script>window.hacked = 1</script>",
        "<img src=x onerror=\"window.hacked = 1\">",
        "\"><svg onload=window.hacked=1>",
        "javascript:window.hacked=1",
        "safe_\xe2\x80\xae" "eman_desrever",
        "bytes_\xff\xfe_not_utf8",
        "tab\tnewline\nreturn\r",
        "\x1b[31mred\x1b[0m",
        "${window.hacked=1}{{constructor.constructor('window.hacked=1')()}}",
        "__proto__",
        long_name,
    };
    Maker *maker = begin(path, "</title><script>window.hacked = 1</script> --x=\"'`", 4712);
    u32 root = add_frame(maker, 0, 0, "main", "<b>main</b>.c", 1);

    memset(long_name, 'x', LONG_NAME);
    recording_set_thread(maker->writer, &(RecordedThread){.number = 1, .tid = 100,
                                                          .name = "<i>thread</i>"});
    for (u32 i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        u32 context = add_frame(maker, root, 0, names[i], "'\"><script>window.hacked=1</script>.c",
                                10 + i);
        allocate(maker, add_site(maker, context, 1, SPACE_HEAP), 1, 1000 + i * 100);
        tick(maker, 1000000);
    }
    end(maker);
}

// Three levels of 47 functions each: 47 + 47² + 47³ frames.
static void make_wide(const char *path)
{
    static char names[47][24];
    Maker *maker = begin(path, "/opt/shop/bin/shop --wide", 4713);
    u32 root = add_frame(maker, 0, 0, "main", "main.c", 1);

    for (u32 i = 0; i < 47; i++)
        snprintf(names[i], sizeof(names[i]), "function_%u", i);
    for (u32 i = 0; i < 47; i++) {
        u32 a = add_frame(maker, root, i % 3, names[i], "a.c", i + 1);
        for (u32 j = 0; j < 47; j++) {
            u32 b = add_frame(maker, a, j % 3, names[j], "b.c", j + 1);
            for (u32 k = 0; k < 47; k++) {
                u32 c = add_frame(maker, b, k % 3, names[k], "c.c", k + 1);
                allocate(maker, add_site(maker, c, 1, SPACE_HEAP), 1,
                         64 + random_below(maker, 4000));
                tick(maker, 1000);
            }
        }
    }
    end(maker);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: make_recording demo|later|hostile|wide|grow FILE [PID]\n");
        return 2;
    }
    const char *kind = argv[1];
    if (strcmp(kind, "demo") == 0)
        make_demo(argv[2], 1);
    else if (strcmp(kind, "later") == 0)
        make_demo(argv[2], 3);
    else if (strcmp(kind, "hostile") == 0)
        make_hostile(argv[2]);
    else if (strcmp(kind, "wide") == 0)
        make_wide(argv[2]);
    else if (strcmp(kind, "grow") == 0)
        make_growing(argv[2], argc > 3 ? atoi(argv[3]) : 0);
    else
        return 2;
    return 0;
}
