// SPDX-License-Identifier: MIT
//
// A leak search from the wish to the findings. Every record is told to the monitor, also
// those that nobody is to see: only it knows the suppressions, and what they know is
// counted apart.
//
// Records are told in the order in which they are worth looking at (leak_records.c), not by
// size alone, the largest last, as the incumbent does.
#include <stdio.h>
#include <string.h>

#include "base/pages.h"
#include "base/pkru_x64.h"
#include "engine/signal/signal.h"
#include "engine/thread/thread.h"
#include "tools/memcheck/leaks/leaks.h"

LeakTotals leaks_totals, leaks_totals_before;

static LeakHistory history;
static LeakLast last;
static u64 checks_made;

u32 leaks_option_bit(LeakKind kind)
{
    static const u8 bits[LEAK_KIND_COUNT] = {
        [LOSS_REACHABLE] = LEAK_REACHABLE,
        [LOSS_POSSIBLE] = LEAK_POSSIBLE,
        [LOSS_INDIRECT] = LEAK_INDIRECT,
        [LOSS_DEFINITE] = LEAK_DEFINITE,
    };
    return bits[kind];
}

void leaks_default_wish(LeakWish *ret_wish)
{
    *ret_wish = (LeakWish){
        .full = memcheck_options->leak_check == LEAK_CHECK_FULL || memcheck_options->xml,
        .show = memcheck_options->show_leak_kinds,
        .errors = memcheck_options->errors_for_leak_kinds,
        .heuristics = memcheck_options->leak_check_heuristics,
        .delta = LEAK_ANY,
    };
}

// ------------------------------------------------------------------ words

static const char *const kind_words[LEAK_KIND_COUNT] = {
    [LOSS_REACHABLE] = "still reachable",
    [LOSS_POSSIBLE] = "possibly lost",
    [LOSS_INDIRECT] = "indirectly lost",
    [LOSS_DEFINITE] = "definitely lost",
};

char *leaks_put_number(char *at, char *end, u64 value)
{
    char digits[32];
    int count = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
    for (int i = 0; i < count && at < end; i++) {
        if (i && (count - i) % 3 == 0)
            *at++ = ',';
        if (at < end)
            *at++ = digits[i];
    }
    return at;
}

typedef struct Writer {
    char *at, *end;
} Writer;

static void put(Writer *w, const char *text)
{
    while (*text && w->at < w->end)
        *w->at++ = *text++;
}

static void put_number(Writer *w, u64 value)
{
    w->at = leaks_put_number(w->at, w->end, value);
}

size_t leaks_record_text(const LeakRecord *record, u64 number, u64 count, char *buffer, size_t size)
{
    Writer w = {buffer, buffer + size - 1};
    put_number(&w, record->bytes + record->indirect_bytes);
    if (record->indirect_bytes) {
        put(&w, " (");
        put_number(&w, record->bytes);
        put(&w, " direct, ");
        put_number(&w, record->indirect_bytes);
        put(&w, " indirect)");
    }
    put(&w, " bytes in ");
    put_number(&w, record->blocks);
    put(&w, " blocks are ");
    put(&w, kind_words[record->kind]);
    put(&w, " in loss record ");
    put_number(&w, number);
    put(&w, " of ");
    put_number(&w, count);
    *w.at = 0;
    return (size_t)(w.at - buffer);
}

// ------------------------------------------------------------------ findings

static const u32 finding_kinds[LEAK_KIND_COUNT] = {
    [LOSS_REACHABLE] = KIND_LEAK_REACHABLE,
    [LOSS_POSSIBLE] = KIND_LEAK_POSSIBLE,
    [LOSS_INDIRECT] = KIND_LEAK_INDIRECT,
    [LOSS_DEFINITE] = KIND_LEAK_DEFINITE,
};

static RelayPart part_of_holder(const LeakScene *scene, const LeakCheck *check,
                                const LeakHolder *holder)
{
    RelayPart part = {
        .kind = PART_HELD_BY,
        .holder = {.place = HOLDER_OTHERS, .blocks = holder->blocks, .bytes = holder->bytes},
    };
    if (holder->place == LEAK_IN_ROOT) {
        const LeakRootPlace *place = &scene->root_places[holder->index];
        part.holder.place = place->kind;
        part.holder.thread = place->thread;
        part.holder.address = holder->location;
        part.holder.object = scene->names + place->name;
    } else if (holder->place == LEAK_IN_WORD) {
        part.holder.place = HOLDER_REGISTER;
        part.holder.thread = scene->word_places[holder->index] >> 4;
        part.holder.reg = scene->word_places[holder->index] & 15;
    } else if (holder->place == LEAK_IN_BLOCK) {
        const LeakRecord *record = leak_record(check, holder->index);
        part.holder.place = HOLDER_RECORD;
        part.holder.record = holder->index + 1;
        part.holder.record_kind = finding_kinds[record->kind];
        part.context = record->context;
    } else {
        part.holder.holders = holder->index;
    }
    return part;
}

static i64 change(u64 now, u64 before)
{
    return (i64)(now - before);
}

static u32 tell(ToolThread *thread, const LeakWish *wish, u64 number, bool is_shown)
{
    const LeakRecord *record = leak_record(last.check, number - 1);
    LeakHolder holders[LEAK_HOLDERS_MAX];
    RelayPart parts[LEAK_HOLDERS_MAX];
    u32 holder_count = is_shown ? leak_holders(last.check, number - 1, holders) : 0;
    bool is_error = wish->full && wish->errors & leaks_option_bit((LeakKind)record->kind) &&
                    leak_record_matches(record, wish->delta);
    for (u32 i = 0; i < holder_count; i++)
        parts[i] = part_of_holder(&last.scene, last.check, &holders[i]);
    return relay_finding_tell(thread, &(RelayFinding){
        .kind = finding_kinds[record->kind],
        .leak = {
            .bytes = record->bytes + record->indirect_bytes,
            .blocks = record->blocks,
            .record = number,
            .records = leak_record_count(last.check),
            .direct_bytes = record->bytes,
            .indirect_bytes = record->indirect_bytes,
            .check = checks_made,
            .is_compared = wish->delta != LEAK_ANY,
            .bytes_change = change(record->bytes + record->indirect_bytes,
                                   record->old_bytes + record->old_indirect_bytes),
            .blocks_change = change(record->blocks, record->old_blocks),
            .direct_change = change(record->bytes, record->old_bytes),
            .indirect_change = change(record->indirect_bytes, record->old_indirect_bytes),
        },
        .part_count = holder_count,
        .parts = parts,
        .context = record->context,
        .flags = FINDING_ASKED_FOR | (is_error ? 0 : FINDING_NOT_ERROR) |
                 (is_shown ? 0 : FINDING_HIDDEN),
        .key = checks_made << 32 | number, // every record is one of its own
    });
}

static void count_in(LeakTotals *totals, const LeakRecord *record, WireVerdict verdict)
{
    LeakAmount *amount = verdict == VERDICT_SUPPRESSED ? &totals->suppressed
                                                       : &totals->kinds[record->kind];
    amount->blocks += record->blocks;
    amount->bytes += record->bytes;
}

// Whether a record is one of those that the wish wants to see, its limit apart.
static bool is_wanted(const LeakWish *wish, const LeakRecord *record)
{
    return wish->full && !wish->quiet && !wish->as_tree &&
           wish->show & leaks_option_bit((LeakKind)record->kind) &&
           (record->blocks || wish->delta != LEAK_ANY) &&
           leak_record_matches(record, wish->delta);
}

// Bytes and blocks of each kind, their increase and their decrease since the last search. What is
// lost indirectly through a block is part of its definite bytes.
static void tell_tree(ToolThread *thread, const LeakRecord *record)
{
    enum { DEFINITE_INDIRECTLY = 4, BLOCKS = 5, AMOUNTS = 9 };
    static const u8 places[LEAK_KIND_COUNT] = {
        [LOSS_REACHABLE] = 0, [LOSS_POSSIBLE] = 1, [LOSS_INDIRECT] = 2, [LOSS_DEFINITE] = 3,
    };
    u64 now[AMOUNTS] = {0}, before[AMOUNTS] = {0}, values[3 * AMOUNTS] = {0};
    u32 place = places[record->kind];
    now[place] = record->bytes;
    before[place] = record->old_bytes;
    if (record->kind == LOSS_DEFINITE) {
        now[place] += now[DEFINITE_INDIRECTLY] = record->indirect_bytes;
        before[place] += before[DEFINITE_INDIRECTLY] = record->old_indirect_bytes;
    }
    now[BLOCKS + place] = record->blocks;
    before[BLOCKS + place] = record->old_blocks;
    for (u32 i = 0; i < AMOUNTS; i++) {
        values[i] = now[i];
        values[AMOUNTS + i] = now[i] > before[i] ? now[i] - before[i] : 0;
        values[2 * AMOUNTS + i] = before[i] > now[i] ? before[i] - now[i] : 0;
    }
    relay_tree_node(thread, TREE_LEAKS, values, ARRAY_LEN(values), record->context);
}

// Many at a time: the monitor, which has to wake for the first, finds the others there.
static void tell_records(ToolThread *thread, const LeakWish *wish)
{
    enum { TOLD_AT_ONCE = 256 };
    u64 count = leak_record_count(last.check), shown = 0;
    u64 told[TOLD_AT_ONCE]; // records
    u32 ids[TOLD_AT_ONCE], told_count = 0;
    for (u64 i = 0; i < count; i++) {
        const LeakRecord *record = leak_record(last.check, i);
        bool is_shown = is_wanted(wish, record) && (!wish->limit || shown < wish->limit);
        shown += is_shown;
        if (record->blocks || is_shown) {
            told[told_count] = i;
            ids[told_count++] = tell(thread, wish, i + 1, is_shown);
        }
        if (told_count < TOLD_AT_ONCE && i + 1 < count)
            continue;
        for (u32 k = 0; k < told_count; k++) {
            WireVerdict verdict = relay_finding_verdict(thread, ids[k]);
            count_in(&leaks_totals, leak_record(last.check, told[k]), verdict);
            if (wish->as_tree && verdict != VERDICT_SUPPRESSED)
                tell_tree(thread, leak_record(last.check, told[k]));
        }
        told_count = 0;
    }
}

// ------------------------------------------------------------------ the search

static void forget_last(void)
{
    if (!last.check)
        return;
    leak_free(last.check);
    leaks_scene_close(&last.scene);
    last.check = NULL;
}

LeakLast *leaks_last(void)
{
    HeapStats stats;
    heap_stats(&stats);
    last.is_stale = last.frees != stats.frees;
    return last.check ? &last : NULL;
}

// The scene and the search while nobody else runs.
static bool search(ToolThread *thread, const LeakWish *wish)
{
    HeapStats stats;
    bool ok = false;
    u64 mask = signal_admit_faults(); // none are, when the program ends
    u32 keys = pkru_open();           // workers inherit it
    forget_last();
    thread_stop_others(thread);
    if (leaks_scene_open(thread, wish->heuristics, &last.scene)) {
        last.check = leak_check(&last.scene.input, &history);
        ok = last.check != NULL;
        if (!ok)
            leaks_scene_close(&last.scene);
    }
    heap_stats(&stats);
    last.frees = stats.frees;
    thread_resume_others(thread);
    pkru_write(keys);
    signal_put_host_mask(mask);
    return ok;
}

static void check(ToolThread *thread, const LeakWish *wish)
{
    if (!search(thread, wish)) {
        relay_line(thread, "There is no memory to search for leaks.");
        return;
    }
    checks_made++;
    leaks_totals_before = leaks_totals;
    leaks_totals = (LeakTotals){0};
    const LeakSummary *summary = leak_summary(last.check);
    memcpy(leaks_totals.by_heuristic, summary->by_heuristic, sizeof(leaks_totals.by_heuristic));
    if (last.scene.blocks.count)
        tell_records(thread, wish);
    if (wish->as_tree)
        relay_tree_done(thread, TREE_LEAKS, wish->by_command ? (u32)checks_made : 0);
    if (!wish->quiet)
        summary_leaks(thread, wish);
}

// What one search has found is told before another thread's begins.
void leaks_check(ToolThread *thread, const LeakWish *wish)
{
    thread_stop_others(thread);
    check(thread, wish);
    thread_resume_others(thread);
}
