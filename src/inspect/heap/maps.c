// SPDX-License-Identifier: MIT
//
// `muninn heap maps`: the pages. The regions that are mapped at the moment asked for, what they
// are, who mapped how much, and how much of all that was resident.
#include <stdlib.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

typedef struct Regions {
    Question *question;
    const SiteSums *sums; // of selected sites
    u64 at_ns;
    RecordedBlock *items;
    size_t count, capacity;
} Regions;

static bool add_region(void *arg, const RecordedBlock *block)
{
    Regions *regions = arg;
    const Selection *selection = &regions->question->selection;
    const SiteSums *sums = &regions->sums[block->site];
    bool is_live = block->born_ns <= regions->at_ns &&
                   (block->died_ns == 0 || block->died_ns > regions->at_ns);

    if (!is_live || !(sums->allocations || sums->live_blocks) ||
        block->size < selection->min_size ||
        (selection->max_size && block->size > selection->max_size))
        return true;
    if (regions->count == regions->capacity) {
        regions->capacity = regions->capacity * 2 + 64;
        regions->items = realloc(regions->items, regions->capacity * sizeof(*regions->items));
        if (!regions->items)
            abort();
    }
    regions->items[regions->count++] = *block;
    return true;
}

static int largest_first(const void *a, const void *b)
{
    const RecordedBlock *x = a, *y = b;

    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void print_regions(Regions *regions)
{
    static const Column columns[] = {
        {"address", "address", COLUMN_RIGHT},
        {"bytes", "size", COLUMN_RIGHT | COLUMN_STRONG},
        {"born_ns", "mapped at", COLUMN_RIGHT},
        {"thread", "thread", COLUMN_RIGHT},
        {"kind", "kind", 0},
        {"where", "where", COLUMN_STRONG | COLUMN_PLACE},
        {"stack", "", COLUMN_DATA_ONLY},
    };
    Question *question = regions->question;
    u64 left_rows = 0, left = 0;

    if (regions->count)
        qsort(regions->items, regions->count, sizeof(*regions->items), largest_first);
    printer_table(question->out, "regions", "Regions", columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < regions->count; i++) {
        const RecordedBlock *block = &regions->items[i];
        const RecordedSite *site = recording_site(question->recording, block->site);
        if (i >= question->arguments->limit) {
            left_rows++;
            saturate_grow_u64(&left, block->size);
            continue;
        }
        Where where;
        where_read(&where, question->recording, site->context);
        const Cell cells[] = {
            cell_u64(CELL_ADDRESS, block->address), cell_u64(CELL_BYTES, block->size),
            cell_u64(CELL_NS, block->born_ns),      cell_u64(CELL_COUNT, site->thread),
            cell_text(pages_kind_name(site->pages)),
            cell_text(where.own),
            cell_list((const char *const *)where.labels, where.count),
        };
        printer_row(question->out, cells);
        where_free(&where);
    }
    printer_more(question->out, left_rows, left, NULL);
}

static void print_kinds(const Regions *regions)
{
    static const Column columns[] = {
        {"kind", "kind", COLUMN_STRONG},
        {"bytes", "size", COLUMN_RIGHT | COLUMN_STRONG},
        {"regions", "regions", COLUMN_RIGHT},
    };
    const Question *question = regions->question;
    u64 bytes[PAGES_KINDS] = {0}, counts[PAGES_KINDS] = {0};

    for (size_t i = 0; i < regions->count; i++) {
        const RecordedBlock *block = &regions->items[i];
        PagesKind kind = recording_site(question->recording, block->site)->pages;
        saturate_grow_u64(&bytes[kind], block->size);
        counts[kind]++;
    }
    printer_table(question->out, "kinds", "By kind", columns, ARRAY_LEN(columns));
    for (u32 kind = 0; kind < PAGES_KINDS; kind++) {
        if (counts[kind] == 0)
            continue;
        const char *name = pages_kind_name((PagesKind)kind);
        printer_row(question->out, (const Cell[]){cell_text(name ? name : "not known"),
                                                  cell_u64(CELL_BYTES, bytes[kind]),
                                                  cell_u64(CELL_COUNT, counts[kind])});
    }
}

static void print_resident(Question *question, u64 at_ns)
{
    const Sample *nearest = NULL;

    for (size_t i = 0; i < recording_sample_count(question->recording); i++) {
        const Sample *sample = recording_sample(question->recording, i);
        if (sample->ns <= at_ns || !nearest)
            nearest = sample;
    }
    if (!nearest)
        return;
    printer_fact(question->out, "resident_bytes", "resident",
                 cell_u64(CELL_BYTES, nearest->rss_bytes));
    printer_fact(question->out, "resident_at_ns", "measured at", cell_u64(CELL_NS, nearest->ns));
}

int heap_maps(Question *question)
{
    const Selection *selection = &question->selection;
    Regions regions = {.question = question};
    u64 mapped = 0;

    if (question->selection.spaces == 0)
        question->selection.spaces = 1u << SPACE_MAPPED;
    if (selection->at_peak)
        question->selection.to_ns = peak_ns(question->recording, &question->selection) + 1;
    question->selection.at_peak = false;
    regions.at_ns = selection->to_ns ? selection->to_ns - 1
                                     : recording_last(question->recording).ns;
    SiteSums *sums = question_sums(question);
    i64 *values = sums ? question_values(question, METRIC_LIVE) : NULL;
    if (!values) {
        free(sums);
        return 1;
    }
    regions.sums = sums;
    progress_begin("reading regions");
    recording_each_block(question->recording, regions.at_ns, regions.at_ns + 1, add_region,
                         &regions);
    progress_end();
    Groups *groups = groups_build(question->recording, sums, values,
                                  (GroupBy)question->arguments->by);
    for (u32 i = 0; i < groups->count; i++)
        saturate_grow_u64(&mapped, groups->items[i].sums.live_bytes);

    answer_begin(question);
    printer_fact(question->out, "mapped_bytes", "mapped", cell_u64(CELL_BYTES, mapped));
    print_resident(question, regions.at_ns);
    printer_line(question->out, "%s", "");
    print_regions(&regions);
    print_kinds(&regions);
    groups_print(question, groups, METRIC_LIVE, "groups", "By who mapped them");
    groups_free(groups);
    free(regions.items);
    free(sums);
    free(values);
    return answer_end(question);
}
