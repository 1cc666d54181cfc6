// SPDX-License-Identifier: MIT
//
// Who holds the blocks of each record, summed up from the one holder that each block has. A sum
// is of a record and a holder, which is another record, a word of the input or a cell: some
// neighbouring words of roots. Cells are single words until there are too many of them, then
// ever more words: a table with a million pointers in it is one holder to people, and whoever
// knows the names of variables puts its cells together again.
#include "base/pages.h"
#include "tools/heap/leak_internal.h"

enum {
    CELLS_MAX = 1 << 16,  // of all records
    SUMS_MAX = 1 << 20,   // what comes behind is among the others of its record
    TOLD_ROOTS = 32,      // of one record
    TOLD_RECORDS = LEAK_HOLDERS_MAX - 1 - TOLD_ROOTS,
    CACHE_ENTRIES = 4096, // a power of two
};

#define HOLDER_RECORD 0x80000000u
#define HOLDER_OTHERS 0xffffffffu
#define NO_RECORD     0xffffffffu

typedef struct HolderSum {
    u32 record; // that is held
    u32 holder; // HOLDER_RECORD | record, a code (of a word), or a code >> shift (a cell)
    u32 first;  // the lowest code of a cell
    u64 blocks;
    u64 bytes;
} HolderSum;

typedef struct LeakHolderTable {
    Vec sums;
    Map by_key; // record, holder → index in sums
    u32 shift;  // of cells
    u64 cells;
    u32 *first_of;   // by record: where its sums begin in `order`
    u32 *order;      // indices in sums
    u64 first_bytes; // of the two arrays
    u64 order_bytes;
    struct {
        u64 key;
        u64 index; // + 1; 0: empty
    } cache[CACHE_ENTRIES];
} LeakHolderTable;

// ------------------------------------------------------------------ codes

bool leak_codes_make(LeakCodes *codes, const LeakInput *input)
{
    const u64 room = (1ull << 31) - input->block_count - min_u64(input->word_count, 1u << 20);
    u64 next = 0, fine = input->root_count - min_u64(input->coarse_roots, input->root_count);

    codes->root_bytes = (input->root_count + 1) * sizeof(u32);
    codes->of_root = pages_map(codes->root_bytes);
    if (!codes->of_root)
        return false;
    for (u64 i = 0; i < fine; i++)
        next += (input->roots[i].high - input->roots[i].low) / 8 + 1;
    if (next + input->root_count >= room)
        fine = 0;
    next = 0;
    for (u64 i = 0; i < input->root_count; i++) {
        codes->of_root[i] = (u32)next;
        next += i < fine ? (input->roots[i].high - input->roots[i].low) / 8 + 1 : 1;
    }
    codes->of_root[input->root_count] = (u32)next;
    codes->fine_roots = fine;
    codes->first_word = (u32)next;
    codes->first_block = (u32)(next + input->word_count);
    return next + input->word_count + input->block_count < 1ull << 31;
}

void leak_codes_free(LeakCodes *codes)
{
    if (codes->of_root)
        pages_unmap(codes->of_root, codes->root_bytes);
    *codes = (LeakCodes){0};
}

// The root whose word a code is.
static u64 root_of_code(const LeakCheck *check, u32 code)
{
    u64 low = 0, high = check->input.root_count;

    while (high - low > 1) {
        u64 middle = (low + high) / 2;
        if (check->codes.of_root[middle] <= code)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// ------------------------------------------------------------------ sums

static u64 key_of(u32 record, u32 holder)
{
    return (u64)record << 32 | holder;
}

// The sum of a record and a holder, made if it is not there. NULL: no memory.
static HolderSum *sum_for(LeakHolderTable *table, u32 record, u32 holder, u32 code)
{
    u64 index;

    if (!map_get(&table->by_key, key_of(record, holder), &index)) {
        HolderSum sum = {.record = record, .holder = holder, .first = code};
        if (!vec_push(&table->sums, &sum) ||
            !map_put(&table->by_key, key_of(record, holder), table->sums.count - 1))
            return NULL;
        index = table->sums.count - 1;
    }
    return vec_at(&table->sums, index);
}

static bool is_cell(const LeakCheck *check, const HolderSum *sum)
{
    return !(sum->holder & HOLDER_RECORD) && sum->first < check->codes.first_word;
}

// Doubles the cells a few times and puts together what is now one.
static bool coarsen(const LeakCheck *check, LeakHolderTable *table)
{
    Vec old = table->sums;
    bool ok = true;

    table->shift += 2;
    table->cells = 0;
    map_free(&table->by_key);
    vec_init(&table->sums, sizeof(HolderSum));
    for (u64 i = 0; ok && i < old.count; i++) {
        const HolderSum *from = vec_at(&old, i);
        bool cell = is_cell(check, from);
        u64 count = table->sums.count;
        HolderSum *to = sum_for(table, from->record,
                                cell ? from->first >> table->shift : from->holder, from->first);
        if ((ok = to != NULL)) {
            to->first = to->first < from->first ? to->first : from->first;
            to->blocks += from->blocks;
            to->bytes += from->bytes;
            table->cells += cell && count != table->sums.count;
        }
    }
    vec_free(&old);
    for (u32 i = 0; i < CACHE_ENTRIES; i++)
        table->cache[i].index = 0;
    return ok;
}

static bool add(const LeakCheck *check, LeakHolderTable *table, u32 record, u32 code, u32 holder,
                u64 bytes)
{
    bool cell = !(holder & HOLDER_RECORD) && code < check->codes.first_word;

    if (cell)
        holder = code >> table->shift;
    u64 key = key_of(record, holder), slot = (key ^ key >> 27) % CACHE_ENTRIES;
    if (!table->cache[slot].index || table->cache[slot].key != key) {
        u64 count = table->sums.count;
        HolderSum *sum = sum_for(table, record, count < SUMS_MAX ? holder : HOLDER_OTHERS, code);
        if (!sum)
            return false;
        table->cells += cell && table->sums.count != count;
        table->cache[slot].key = key;
        table->cache[slot].index = (u64)(sum - (HolderSum *)table->sums.data) + 1;
    }
    HolderSum *sum = vec_at(&table->sums, table->cache[slot].index - 1);
    sum->first = sum->first < code ? sum->first : code;
    sum->blocks++;
    sum->bytes += bytes;
    return table->cells <= CELLS_MAX || coarsen(check, table);
}

// The code of who holds a block; false: nobody.
static bool holder_of(const LeakCheck *check, u64 block, u32 *ret_code)
{
    switch (leak_kind_of(check, block)) {
    case LOSS_DEFINITE: return false;
    case LOSS_INDIRECT:
        *ret_code = check->codes.first_block + check->lost[block].parent;
        return true;
    default: *ret_code = check->holders[block]; return true;
    }
}

// `place_of` leads from the order in which records were made to their own.
static bool add_all(LeakCheck *check, LeakHolderTable *table, const u32 *place_of)
{
    const u32 *made_of = check->made_of;
    u32 code, first_block = check->codes.first_block;

    for (u64 i = 0; i < check->input.block_count; i++) {
        if (!holder_of(check, i, &code))
            continue;
        u32 holder = code < first_block ? code
                                        : HOLDER_RECORD | place_of[made_of[code - first_block]];
        if (!add(check, table, place_of[made_of[i]], code, holder,
                 leak_block_size(&check->input.blocks[i])))
            return false;
    }
    return true;
}

// ------------------------------------------------------------------ the table

// Sums in the order of their records.
static bool put_in_order(const LeakCheck *check, LeakHolderTable *table)
{
    u64 records = check->records.count;

    table->first_bytes = (records + 2) * sizeof(u32);
    table->order_bytes = (table->sums.count + 1) * sizeof(u32);
    table->first_of = pages_map(table->first_bytes);
    table->order = pages_map(table->order_bytes);
    if (!table->first_of || !table->order)
        return false;
    // Counts are kept two places on, so that the places that are being filled end as beginnings.
    for (u64 i = 0; i < table->sums.count; i++) {
        u32 record = ((HolderSum *)vec_at(&table->sums, i))->record;
        if (record + 2 < records + 2)
            table->first_of[record + 2]++;
    }
    for (u64 i = 2; i < records + 2; i++)
        table->first_of[i] += table->first_of[i - 1];
    for (u64 i = 0; i < table->sums.count; i++) {
        u32 record = ((HolderSum *)vec_at(&table->sums, i))->record;
        table->order[table->first_of[record + 1]++] = (u32)i;
    }
    return true;
}

// What only the table is made from: it may be kept for long.
static void free_per_block(LeakCheck *check)
{
    const u64 bytes = max_u64(1, check->input.block_count) * sizeof(u32);

    if (check->holders)
        pages_unmap(check->holders, bytes);
    if (check->made_of)
        pages_unmap(check->made_of, bytes);
    check->holders = check->made_of = NULL;
}

bool leak_make_holders(LeakCheck *check)
{
    u64 bytes = (check->records.count + 1) * sizeof(u32);

    if (!check->holders)
        return true;
    u32 *place_of = pages_map(bytes);
    LeakHolderTable *table = pages_map(sizeof(LeakHolderTable));
    check->holder_table = table;
    if (table)
        vec_init(&table->sums, sizeof(HolderSum));
    bool ok = place_of && table && check->records.count < HOLDER_RECORD - 1;
    for (u64 i = 0; ok && i < check->records.count; i++)
        place_of[leak_record(check, i)->made] = (u32)i;
    ok = ok && add_all(check, table, place_of) && put_in_order(check, table);
    if (place_of)
        pages_unmap(place_of, bytes);
    free_per_block(check);
    return ok;
}

void leak_holders_free(LeakCheck *check)
{
    LeakHolderTable *table = check->holder_table;

    free_per_block(check);
    if (!table)
        return;
    vec_free(&table->sums);
    map_free(&table->by_key);
    if (table->first_of)
        pages_unmap(table->first_of, table->first_bytes);
    if (table->order)
        pages_unmap(table->order, table->order_bytes);
    pages_unmap(table, sizeof(LeakHolderTable));
}

// ------------------------------------------------------------------ answers

typedef struct Answer {
    const LeakCheck *check;
    LeakHolder roots[TOLD_ROOTS]; // and words
    u32 root_count;
    u32 shift; // of the cells among them
    LeakHolder records[TOLD_RECORDS];
    u32 record_count;
    LeakHolder others;
} Answer;

static void add_to(LeakHolder *holder, const LeakHolder *more)
{
    if (more->location && more->location < holder->location)
        holder->location = more->location;
    holder->blocks += more->blocks;
    holder->bytes += more->bytes;
}

static bool is_one(const Answer *answer, const LeakHolder *a, const LeakHolder *b)
{
    return a->place == b->place && a->index == b->index &&
           (a->location >> answer->shift == b->location >> answer->shift);
}

static bool join(Answer *answer, const LeakHolder *holder)
{
    for (u32 i = 0; i < answer->root_count; i++) {
        if (is_one(answer, &answer->roots[i], holder)) {
            add_to(&answer->roots[i], holder);
            return true;
        }
    }
    return false;
}

static void put_among_others(Answer *answer, const LeakHolder *holder)
{
    answer->others.place = LEAK_IN_OTHERS;
    answer->others.index++;
    add_to(&answer->others, holder);
}

// A full list gets larger cells until there is room, or nothing is left to put together.
static void put_root(Answer *answer, const LeakHolder *holder)
{
    enum { SHIFT_MAX = 47 };

    while (!join(answer, holder)) {
        if (answer->root_count < TOLD_ROOTS) {
            answer->roots[answer->root_count++] = *holder;
            return;
        }
        if (answer->shift == SHIFT_MAX) {
            put_among_others(answer, holder);
            return;
        }
        answer->shift++;
        u32 count = answer->root_count;
        answer->root_count = 0;
        for (u32 i = 0; i < count; i++) {
            LeakHolder told = answer->roots[i];
            if (!join(answer, &told))
                answer->roots[answer->root_count++] = told;
        }
    }
}

static bool is_larger(const LeakHolder *a, const LeakHolder *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->index < b->index;
}

static void put_record(Answer *answer, LeakHolder holder)
{
    for (u32 i = 0; i < answer->record_count; i++) {
        if (is_larger(&holder, &answer->records[i])) {
            LeakHolder smaller = answer->records[i];
            answer->records[i] = holder;
            holder = smaller;
        }
    }
    if (answer->record_count < TOLD_RECORDS)
        answer->records[answer->record_count++] = holder;
    else
        put_among_others(answer, &holder);
}

static void put_sum(Answer *answer, const HolderSum *sum)
{
    const LeakCheck *check = answer->check;
    LeakHolder holder = {.blocks = sum->blocks, .bytes = sum->bytes};

    if (sum->holder == HOLDER_OTHERS) {
        put_among_others(answer, &holder);
    } else if (sum->holder & HOLDER_RECORD) {
        holder.place = LEAK_IN_BLOCK;
        holder.index = sum->holder & ~HOLDER_RECORD;
        put_record(answer, holder);
    } else if (sum->first >= check->codes.first_word) {
        holder.place = LEAK_IN_WORD;
        holder.index = sum->first - check->codes.first_word;
        put_root(answer, &holder);
    } else {
        holder.place = LEAK_IN_ROOT;
        holder.index = root_of_code(check, sum->first);
        holder.location = (check->input.roots[holder.index].low + 7) & ~7ull;
        if (holder.index < check->codes.fine_roots)
            holder.location += (sum->first - check->codes.of_root[holder.index]) * 8ull;
        put_root(answer, &holder);
    }
}

u32 leak_holders(const LeakCheck *check, u64 record, LeakHolder ret_holders[LEAK_HOLDERS_MAX])
{
    const LeakHolderTable *table = check->holder_table;
    Answer answer = {.check = check};
    u32 count = 0;

    if (!table || record >= check->records.count)
        return 0;
    for (u32 i = table->first_of[record]; i < table->first_of[record + 1]; i++)
        put_sum(&answer, vec_at(&table->sums, table->order[i]));
    for (u32 i = 0; i < answer.root_count; i++)
        ret_holders[count++] = answer.roots[i];
    for (u32 i = 0; i < answer.record_count; i++)
        ret_holders[count++] = answer.records[i];
    if (answer.others.blocks)
        ret_holders[count++] = answer.others;
    return count;
}
