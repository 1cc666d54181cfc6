// SPDX-License-Identifier: MIT
//
// From marks to loss records, sums and differences to the last check.
#include "base/pages.h"
#include "tools/heap/leak_internal.h"

#define CACHE_ENTRIES 1024

// Neighbouring blocks often have few contexts between them.
typedef struct RecordCache {
    struct {
        u64 key; // context, kind; 0 is empty
        u64 record;
    } entries[CACHE_ENTRIES];
} RecordCache;

LeakKind leak_kind_of(const LeakCheck *check, u64 block)
{
    u8 mark = check->marks[block];

    if (mark == MARK_LEADER)
        return LOSS_DEFINITE;
    if (mark == MARK_INDIRECT)
        return LOSS_INDIRECT;
    return mark == MARK_POSSIBLE ? LOSS_POSSIBLE : LOSS_REACHABLE;
}

LeakHeuristic leak_heuristic_of(const LeakCheck *check, u64 block)
{
    u8 mark = check->marks[block];

    if (mark < MARK_REACHED || mark > MARK_START)
        return LEAK_BY_START;
    return (LeakHeuristic)(MARK_START - mark);
}

static bool key_of_context(LeakCheck *check, u32 context, u32 *ret_key)
{
    u64 key;

    if (!check->input.context_key) {
        *ret_key = context;
        return true;
    }
    if (!map_get(&check->keys, context, &key)) {
        key = check->input.context_key(check->input.data, context);
        if (!map_put(&check->keys, context, key))
            return false;
    }
    *ret_key = (u32)key;
    return true;
}

static u64 record_key(u32 key, u32 kind)
{
    return key | (u64)kind << 32;
}

// Records in order of their making, by key. False: no memory.
static bool record_for(LeakCheck *check, u32 context, u32 key, u32 kind, u64 *ret_index)
{
    u64 map_key = record_key(key, kind);

    if (map_get(&check->records_by_key, map_key, ret_index))
        return true;
    LeakRecord record = {
        .context = context,
        .key = key,
        .kind = kind,
        .is_new = true,
        .made = (u32)check->records.count,
    };
    if (!vec_push(&check->records, &record))
        return false;
    *ret_index = check->records.count - 1;
    return map_put(&check->records_by_key, map_key, *ret_index);
}

static bool record_of_block(LeakCheck *check, RecordCache *cache, u64 block, u64 *ret_index)
{
    u32 context = leak_block_context(&check->input.blocks[block]);
    u32 kind = leak_kind_of(check, block);
    u64 key = record_key(context, kind) | 1ull << 63;
    u64 slot = (context * 4 + kind) % CACHE_ENTRIES;
    u32 merged;

    if (LIKELY(cache->entries[slot].key == key)) {
        *ret_index = cache->entries[slot].record;
        return true;
    }
    if (!key_of_context(check, context, &merged) ||
        !record_for(check, context, merged, kind, ret_index))
        return false;
    cache->entries[slot].key = key;
    cache->entries[slot].record = *ret_index;
    return true;
}

static bool add_blocks(LeakCheck *check, RecordCache *cache)
{
    for (u64 i = 0; i < check->input.block_count; i++) {
        u64 index, size = leak_block_size(&check->input.blocks[i]);
        if (!record_of_block(check, cache, i, &index))
            return false;
        LeakRecord *record = &((LeakRecord *)check->records.data)[index];
        if (check->made_of)
            check->made_of[i] = (u32)index;
        LeakAmount *sum = &check->summary.now[record->kind];
        record->blocks++;
        record->bytes += size;
        sum->blocks++;
        sum->bytes += size;
        if (record->kind == LOSS_DEFINITE) {
            record->indirect_bytes += check->indirect_bytes[i];
        } else if (record->kind == LOSS_REACHABLE) {
            LeakAmount *by = &check->summary.by_heuristic[leak_heuristic_of(check, i)];
            by->blocks++;
            by->bytes += size;
        }
    }
    return true;
}

static bool add_history(LeakCheck *check, const LeakHistory *history)
{
    for (u64 i = 0; i < history->record_count; i++) {
        const LeakRecord *old = &history->records[i];
        u64 index;
        if (!record_for(check, old->context, old->key, old->kind, &index))
            return false;
        LeakRecord *record = vec_at(&check->records, index);
        record->old_blocks = old->blocks;
        record->old_bytes = old->bytes;
        record->old_indirect_bytes = old->indirect_bytes;
        record->is_new = false;
        check->summary.before[old->kind].blocks += old->blocks;
        check->summary.before[old->kind].bytes += old->bytes;
    }
    return true;
}

static bool keep_history(LeakCheck *check, LeakHistory *history)
{
    u64 count = check->records.count;
    u64 bytes = count * sizeof(LeakRecord);
    LeakRecord *records = count ? pages_map(bytes) : NULL;
    u64 kept = 0;

    if (count && !records)
        return false;
    for (u64 i = 0; i < count; i++) {
        const LeakRecord *record = vec_at(&check->records, i);
        if (record->blocks)
            records[kept++] = *record;
    }
    leak_history_free(history);
    *history = (LeakHistory){records, kept, bytes};
    return true;
}

void leak_history_free(LeakHistory *history)
{
    if (history->records)
        pages_unmap(history->records, history->mapped_bytes);
    *history = (LeakHistory){0};
}

static u64 total_of(const LeakRecord *record)
{
    return record->bytes + record->indirect_bytes;
}

// What has been added to it since the last check.
static u64 growth_of(const LeakRecord *record)
{
    u64 now = total_of(record), old = record->old_bytes + record->old_indirect_bytes;
    return now > old ? now - old : 0;
}

// What is tiny comes behind all that is not.
static u32 rank_of(const LeakRecord *record)
{
    enum { TINY_BYTES = 1024 };
    static const u8 ranks[LEAK_KIND_COUNT] = {
        [LOSS_DEFINITE] = 0, [LOSS_REACHABLE] = 1, [LOSS_POSSIBLE] = 2, [LOSS_INDIRECT] = 3,
    };
    return ranks[record->kind] + (total_of(record) < TINY_BYTES ? LEAK_KIND_COUNT : 0);
}

// The order of records: what to look at first. What is lost, the most first; what is still
// reachable, by how much it has grown; what may be lost. Then blocks and context, to be the same
// each time.
static bool comes_before(const LeakRecord *a, const LeakRecord *b)
{
    if (rank_of(a) != rank_of(b))
        return rank_of(a) < rank_of(b);
    if (a->kind == LOSS_REACHABLE && growth_of(a) != growth_of(b))
        return growth_of(a) > growth_of(b);
    if (total_of(a) != total_of(b))
        return total_of(a) > total_of(b);
    if (a->blocks != b->blocks)
        return a->blocks > b->blocks;
    return a->context < b->context;
}

static void sift_down(LeakRecord *records, u64 root, u64 count)
{
    for (u64 child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && comes_before(&records[child], &records[child + 1]))
            child++;
        if (!comes_before(&records[root], &records[child]))
            return;
        LeakRecord record = records[root];
        records[root] = records[child];
        records[child] = record;
    }
}

// Heap sort: qsort() would call malloc. The map then leads to the new places.
static bool sort_records(LeakCheck *check)
{
    LeakRecord *records = (LeakRecord *)check->records.data;
    u64 count = check->records.count;

    for (u64 i = count / 2; i-- > 0;)
        sift_down(records, i, count);
    for (u64 i = count; i-- > 1;) {
        LeakRecord last = records[i];
        records[i] = records[0];
        records[0] = last;
        sift_down(records, 0, i);
    }
    for (u64 i = 0; i < count; i++) {
        if (!map_put(&check->records_by_key, record_key(records[i].key, records[i].kind), i))
            return false;
    }
    return true;
}

bool leak_make_records(LeakCheck *check, LeakHistory *history)
{
    RecordCache *cache = pages_map(sizeof(RecordCache));

    if (!cache)
        return false;
    vec_init(&check->records, sizeof(LeakRecord));
    bool ok = add_blocks(check, cache);
    pages_unmap(cache, sizeof(RecordCache));
    if (ok && history)
        ok = add_history(check, history) && keep_history(check, history);
    return ok && sort_records(check);
}

bool leak_record_matches(const LeakRecord *record, LeakDelta delta)
{
    switch (delta) {
    case LEAK_INCREASED:
        return record->blocks > record->old_blocks || record->bytes > record->old_bytes ||
               record->indirect_bytes > record->old_indirect_bytes;
    case LEAK_CHANGED:
        return record->blocks != record->old_blocks || record->bytes != record->old_bytes ||
               record->indirect_bytes != record->old_indirect_bytes;
    case LEAK_NEW:
        return record->is_new;
    case LEAK_ANY:
        break;
    }
    return record->blocks != 0;
}

u64 leak_record_of(LeakCheck *check, u64 block)
{
    u32 key;
    u64 index = 0;

    if (!key_of_context(check, leak_block_context(&check->input.blocks[block]), &key))
        return 0;
    map_get(&check->records_by_key, record_key(key, leak_kind_of(check, block)), &index);
    return index;
}
