// SPDX-License-Identifier: MIT
//
// cachesim: the misses of a first-level data cache and of a last-level one, and the instructions
// that have most of them. Shows buffers with a tag for the instruction, and a model of the tool's
// own that threads share.
#include <muninn/tool.h>
#include <pthread.h>
#include <stdlib.h>

MUNINN_TOOL("cachesim", "simulates data caches")

typedef struct Cache {
    uint64_t bytes, ways, line, sets;
    uint64_t *lines; // [set][way], the newest first; 0: empty
} Cache;
typedef struct Site {
    MuninnAddress address;
    uint64_t reads, writes, misses, last_misses;
} Site;
enum { BATCH = 8192, SITES_MAX = 1 << 20 };

static Cache d1 = {.bytes = 32768, .ways = 8, .line = 64};
static Cache ll = {.bytes = 8 << 20, .ways = 16, .line = 64};
static Site *sites;
static uint32_t site_count = 1; // site 0: of instructions that have found no room
static MuninnBuffer *buffer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // the caches and the sites' sums
static uint64_t limit = 10;

static bool prepare(Cache *c)
{
    c->sets = c->ways && c->line ? c->bytes / c->ways / c->line : 0;
    c->lines = c->sets ? calloc(c->sets * c->ways, sizeof(*c->lines)) : NULL;
    return c->lines != NULL;
}

// Least recently used: what is touched goes to the front of its set. True: it was there.
static bool touch(Cache *c, uint64_t line)
{
    uint64_t *set = &c->lines[line % c->sets * c->ways], moved = line + 1;
    for (uint64_t i = 0; i < c->ways; i++) {
        uint64_t old = set[i];
        set[i] = moved;
        moved = old;
        if (old == line + 1)
            return true;
    }
    return false;
}

static void on_records(MuninnThread *thread, const MuninnRecord *records, size_t count, void *data)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        const MuninnRecord *r = &records[i];
        Site *site = &sites[r->tag];
        uint64_t last = (r->address + (r->size ? r->size - 1u : 0)) / d1.line;
        bool misses = false, misses_last = false;
        for (uint64_t line = r->address / d1.line; line <= last; line++) {
            bool is_miss = !touch(&d1, line);
            misses |= is_miss;
            misses_last |= is_miss && !touch(&ll, line);
        }
        site->writes += r->writes;
        site->reads += !r->writes;
        site->misses += misses;
        site->last_misses += misses_last;
    }
    pthread_mutex_unlock(&lock);
}

static void on_block(MuninnBlock *block, void *data)
{
    for (size_t i = 0; i < muninn_block_count(block); i++) {
        MuninnInsn *insn = muninn_block_insn(block, i);
        size_t count = muninn_insn_accesses(insn, NULL, 0);
        uint32_t tag = count && site_count < SITES_MAX ? site_count++ : 0;
        sites[tag].address = tag ? muninn_insn_address(insn) : 0;
        for (size_t j = 0; j < count; j++)
            muninn_record(insn, j, buffer, tag);
    }
}

static int by_address(const void *a, const void *b)
{
    MuninnAddress x = ((const Site *)a)->address, y = ((const Site *)b)->address;
    return (x > y) - (x < y);
}

static int most_first(const void *a, const void *b)
{
    uint64_t x = ((const Site *)a)->misses, y = ((const Site *)b)->misses;
    return (x < y) - (x > y);
}

static void add(Site *sum, const Site *s)
{
    sum->reads += s->reads;
    sum->writes += s->writes;
    sum->misses += s->misses;
    sum->last_misses += s->last_misses;
}

// An instruction has as many sites as blocks that it was translated in: they become one.
static size_t join(void)
{
    size_t kept = 0;
    qsort(sites, site_count, sizeof(Site), by_address);
    for (size_t i = 1; i < site_count; i++) {
        if (sites[i].address == sites[kept].address)
            add(&sites[kept], &sites[i]);
        else
            sites[++kept] = sites[i];
    }
    return kept + 1;
}

static void on_end(void *data)
{
    Site sum = {0};
    char name[256];
    size_t count = join();
    for (size_t i = 0; i < count; i++)
        add(&sum, &sites[i]);
    uint64_t accesses = sum.reads + sum.writes;
    muninn_log("%lu accesses: %lu reads, %lu writes", accesses, sum.reads, sum.writes);
    muninn_log("%lu misses of the first level (%.2f %%), %lu of the last (%.2f %%)", sum.misses,
               accesses ? 100.0 * (double)sum.misses / (double)accesses : 0, sum.last_misses,
               accesses ? 100.0 * (double)sum.last_misses / (double)accesses : 0);
    qsort(sites, count, sizeof(Site), most_first);
    for (size_t i = 0; i < count && i < limit && sites[i].misses; i++)
        muninn_log("%12lu %12lu  %#lx %s", sites[i].misses, sites[i].last_misses, sites[i].address,
                   muninn_name(NULL, sites[i].address, name, sizeof(name)));
}

int muninn_tool_start(void)
{
    muninn_option_number("d1-size", &d1.bytes, "Bytes of the first-level cache.");
    muninn_option_number("d1-ways", &d1.ways, "Its associativity.");
    muninn_option_number("ll-size", &ll.bytes, "Bytes of the last-level cache.");
    muninn_option_number("ll-ways", &ll.ways, "Its associativity.");
    muninn_option_number("line", &d1.line, "Bytes of a line, in both.");
    muninn_option_number("limit", &limit, "How many instructions are listed.");
    ll.line = d1.line;
    sites = calloc(SITES_MAX, sizeof(Site));
    if (!sites || !prepare(&d1) || !prepare(&ll)) {
        muninn_log("a cache of these sizes cannot be");
        return 1;
    }
    muninn_need(MUNINN_NEED_NAMES);
    buffer = muninn_buffer(BATCH, on_records, NULL);
    muninn_on_block(on_block, NULL);
    muninn_on_end(on_end, NULL);
    return 0;
}
