// SPDX-License-Identifier: MIT
//
// The tables that the reader has as arrays: contexts, frames, sites, threads, modules,
// snapshots, slices, samples. A bound on the first column goes to the row at once.
#include <stdlib.h>
#include <string.h>

#include "inspect/sql/table.h"

const char *space_name(Space space)
{
    static const char *const names[SPACE_COUNT] = {"heap", "mapped", "stack"};

    return space < SPACE_COUNT ? names[space] : "?";
}

static void put(sqlite3_context *context, u64 value)
{
    sqlite3_result_int64(context, (sqlite3_int64)value);
}

// Rows [first, count) of an array whose first column is the row's number.
static int start_array(TableCursor *cursor)
{
    const Bounds *bounds = &cursor->bounds[0];
    u64 count = cursor->table->row_count(cursor->recording);

    cursor->row = bounds->min > 0 ? min_u64((u64)bounds->min, count) : 0;
    cursor->end = bounds->max < 0 ? 0 : min_u64((u64)bounds->max + 1, count);
    return SQLITE_OK;
}

// The row that is read is row - 1.
static bool step_array(TableCursor *cursor)
{
    return cursor->row < cursor->end && ++cursor->row;
}

static void free_data(TableCursor *cursor)
{
    free(cursor->data);
}

static const Stack *stack_at(TableCursor *cursor, u32 context)
{
    if (cursor->stack_context != context) {
        stack_read(&cursor->stack, cursor->recording, context);
        cursor->stack_context = context;
    }
    return &cursor->stack;
}

// ------------------------------------------------------------------------- contexts

static u64 count_contexts(Recording *recording)
{
    return recording_context_count(recording);
}

static const SqlColumn context_columns[] = {
    {"id", "INTEGER", "0 is the empty stack"},
    {"parent", "INTEGER", "the context that called"},
    {"depth", "INTEGER", "frames"},
    {"pc", "INTEGER", "of the innermost frame"},
    {"function", "TEXT", "the user's own innermost frame: its function"},
    {"file", "TEXT", "its file"},
    {"line", "INTEGER", "its line"},
    {"object", "TEXT", "its executable or library"},
    {"stack", "TEXT", "functions from main in, with ; between"},
    {"module", "INTEGER", "modules.id of the pc"},
};

static void put_stack(Recording *recording, const Stack *stack, sqlite3_context *context)
{
    sqlite3_str *text = sqlite3_str_new(NULL);

    for (u32 i = stack->count; i-- > 0;)
        sqlite3_str_appendf(text, "%s%s", stack_function(&stack->frames[i], recording),
                            i ? ";" : "");
    int length = sqlite3_str_length(text);
    char *whole = sqlite3_str_finish(text);
    sqlite3_result_text(context, whole ? whole : "", length, SQLITE_TRANSIENT);
    sqlite3_free(whole);
}

static void put_own(TableCursor *cursor, u32 id, u32 column, sqlite3_context *context)
{
    const Stack *stack = stack_at(cursor, id);
    const StackFrame *own =
        stack->count ? &stack->frames[stack_first_own(stack, cursor->recording)] : NULL;
    const RecordedFrame *frame = own ? stack_frame(own, cursor->recording) : NULL;

    if (!frame)
        sqlite3_result_null(context);
    else if (column == 4)
        result_text(context, frame->function);
    else if (column == 5)
        result_text(context, frame->file);
    else if (column == 7)
        result_text(context, frame->object);
    else if (frame->line)
        put(context, frame->line);
}

static void context_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    u32 id = (u32)cursor->row - 1;
    const RecordedContext *row = recording_context(cursor->recording, id);

    switch (column) {
    case 0: put(context, id); break;
    case 1: put(context, row->parent); break;
    case 2: put(context, stack_at(cursor, id)->count); break;
    case 3: put(context, row->pc); break;
    case 8: put_stack(cursor->recording, stack_at(cursor, id), context); break;
    case 9: put(context, row->module); break;
    default: put_own(cursor, id, column, context); break;
    }
}

// --------------------------------------------------------------------------- frames

static const SqlColumn frame_columns[] = {
    {"context", "INTEGER", "contexts.id; every context has all frames of its stack"},
    {"level", "INTEGER", "0 is the innermost"},
    {"function", "TEXT", ""},
    {"file", "TEXT", ""},
    {"line", "INTEGER", ""},
    {"directory", "TEXT", ""},
    {"object", "TEXT", "executable or library"},
    {"pc", "INTEGER", ""},
    {"inlined", "INTEGER", "1: into the next frame"},
    {"own", "INTEGER", "1: of the user's own code"},
};

static u64 count_frames(Recording *recording)
{
    return (u64)recording_context_count(recording) * 16;
}

static int start_frames(TableCursor *cursor)
{
    const Bounds *bounds = &cursor->bounds[0];
    u64 count = recording_context_count(cursor->recording);

    cursor->row = bounds->min > 0 ? min_u64((u64)bounds->min, count) : 0;
    cursor->end = bounds->max < 0 ? 0 : min_u64((u64)bounds->max + 1, count);
    return SQLITE_OK;
}

// `row` is the next context, the stack that of the one before it.
static bool step_frame(TableCursor *cursor)
{
    if (cursor->in_stack && ++cursor->level < cursor->stack.count)
        return true;
    cursor->in_stack = false;
    while (cursor->row < cursor->end && !cursor->in_stack) {
        stack_at(cursor, (u32)cursor->row++);
        cursor->level = 0;
        cursor->in_stack = cursor->stack.count != 0;
    }
    return cursor->in_stack;
}

static void frame_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const StackFrame *at = &cursor->stack.frames[cursor->level];
    const RecordedFrame *frame = stack_frame(at, cursor->recording);

    switch (column) {
    case 0: put(context, cursor->row - 1); break;
    case 1: put(context, cursor->level); break;
    case 2: result_text(context, frame ? frame->function : NULL); break;
    case 3: result_text(context, frame ? frame->file : NULL); break;
    case 4:
        if (frame && frame->line)
            put(context, frame->line);
        break;
    case 5: result_text(context, frame ? frame->directory : NULL); break;
    case 6: result_text(context, frame ? frame->object : NULL); break;
    case 7:
        put(context, frame && frame->pc ? frame->pc
                                        : recording_context(cursor->recording, at->context)->pc);
        break;
    case 8: put(context, frame && frame->inlined); break;
    case 9: put(context, frame_is_own(frame, cursor->recording)); break;
    }
}

// ---------------------------------------------------------------------------- sites

static const SqlColumn site_columns[] = {
    {"id", "INTEGER", ""},
    {"space", "TEXT", "heap, mapped or stack"},
    {"context", "INTEGER", "contexts.id"},
    {"thread", "INTEGER", "threads.number"},
    {"live_bytes", "INTEGER", "at the end"},
    {"live_blocks", "INTEGER", "at the end"},
    {"live_usable", "INTEGER", "at the end, with what the allocator added"},
    {"allocated_bytes", "INTEGER", "of the whole run, as are those that follow"},
    {"allocations", "INTEGER", ""},
    {"freed_bytes", "INTEGER", ""},
    {"frees", "INTEGER", ""},
    {"temporary", "INTEGER", "freed before their thread allocated another"},
    {"reallocations", "INTEGER", ""},
    {"peak_bytes", "INTEGER", "the most at once, at least what is known"},
    {"first_ns", "INTEGER", "of its allocations"},
    {"last_ns", "INTEGER", "of its allocations"},
    {"at_peak_bytes", "INTEGER", "live at the peak of the heap"},
    {"at_peak_blocks", "INTEGER", "live at the peak of the heap"},
    {"kind", "TEXT", "of mapped pages; NULL: not known"},
};

static u64 count_sites(Recording *recording)
{
    return recording_site_count(recording);
}

// The sums of the run, then those of the peak: two arrays in one.
static int start_sites(TableCursor *cursor)
{
    u32 count = recording_site_count(cursor->recording);
    SiteSums *sums = calloc((size_t)count * 2 + 1, sizeof(*sums));
    size_t peak = recording_find_state(cursor->recording, STATE_PEAK);

    cursor->data = sums;
    if (!sums)
        return SQLITE_NOMEM;
    if (!recording_range(cursor->recording, 0, recording_last(cursor->recording).ns + 1, sums))
        return SQLITE_CORRUPT;
    if (peak != SIZE_MAX && !recording_state(cursor->recording, peak, sums + count))
        return SQLITE_CORRUPT;
    return start_array(cursor);
}

static void site_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    u32 id = (u32)cursor->row - 1;
    const RecordedSite *site = recording_site(cursor->recording, id);
    const SiteSums *sums = (const SiteSums *)cursor->data + id;
    const SiteSums *peak = sums + recording_site_count(cursor->recording);

    switch (column) {
    case 0: put(context, id); break;
    case 1: result_text(context, space_name(site->space)); break;
    case 2: put(context, site->context); break;
    case 3: put(context, site->thread); break;
    case 4: put(context, sums->live_bytes); break;
    case 5: put(context, sums->live_blocks); break;
    case 6: put(context, sums->live_usable); break;
    case 7: put(context, sums->allocated_bytes); break;
    case 8: put(context, sums->allocations); break;
    case 9: put(context, sums->freed_bytes); break;
    case 10: put(context, sums->frees); break;
    case 11: put(context, sums->temporary); break;
    case 12: put(context, sums->reallocations); break;
    case 13: put(context, sums->peak_bytes); break;
    case 14: put(context, sums->first_ns); break;
    case 15: put(context, sums->last_ns); break;
    case 16: put(context, peak->live_bytes); break;
    case 17: put(context, peak->live_blocks); break;
    case 18: result_text(context, pages_kind_name(site->pages)); break;
    }
}

// ------------------------------------------------------------------------ snapshots

static const SqlColumn snapshot_columns[] = {
    {"id", "INTEGER", ""},
    {"reason", "TEXT", "peak, asked, threshold, periodic, end, …"},
    {"label", "TEXT", "as it was asked for"},
    {"time_ns", "INTEGER", ""},
    {"instructions", "INTEGER", "0: not counted"},
    {"time_bytes", "INTEGER", "bytes asked for and freed so far: time unit B"},
    {"heap_bytes", "INTEGER", ""},
    {"heap_blocks", "INTEGER", ""},
    {"heap_usable", "INTEGER", "with what the allocator added"},
    {"mapped_bytes", "INTEGER", ""},
    {"mapped_blocks", "INTEGER", ""},
    {"stack_bytes", "INTEGER", ""},
};

static u64 count_states(Recording *recording)
{
    return recording_state_count(recording);
}

static const char *reason_name(StateReason reason)
{
    static const char *const names[] = {
        [STATE_KEY_FRAME] = "key frame",     [STATE_PEAK] = "peak",
        [STATE_PEAK_MAPPED] = "peak mapped", [STATE_PEAK_STACK] = "peak stack",
        [STATE_PEAK_ALL] = "peak all",       [STATE_ASKED] = "asked",
        [STATE_THRESHOLD] = "threshold",     [STATE_PERIODIC] = "periodic",
        [STATE_END] = "end",           [STATE_PEAK_COUNTED] = "peak counted",
    };

    return (size_t)reason < ARRAY_LEN(names) ? names[reason] : "?";
}

static void snapshot_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const RecordedState *state = recording_state_info(cursor->recording, cursor->row - 1);

    switch (column) {
    case 0: put(context, cursor->row - 1); break;
    case 1: result_text(context, reason_name(state->reason)); break;
    case 2: result_text(context, state->label); break;
    case 3: put(context, state->moment.ns); break;
    case 4: put(context, state->moment.instructions); break;
    case 5: put(context, state->moment.allocated_bytes); break;
    case 6: put(context, state->totals.bytes[SPACE_HEAP]); break;
    case 7: put(context, state->totals.blocks[SPACE_HEAP]); break;
    case 8: put(context, state->totals.usable[SPACE_HEAP]); break;
    case 9: put(context, state->totals.bytes[SPACE_MAPPED]); break;
    case 10: put(context, state->totals.blocks[SPACE_MAPPED]); break;
    case 11: put(context, state->totals.bytes[SPACE_STACK]); break;
    }
}

static const SqlColumn snapshot_site_columns[] = {
    {"snapshot", "INTEGER", "snapshots.id"},
    {"site", "INTEGER", "sites.id"},
    {"live_bytes", "INTEGER", ""},
    {"live_blocks", "INTEGER", ""},
    {"live_usable", "INTEGER", ""},
};

static u64 count_snapshot_sites(Recording *recording)
{
    return (u64)recording_state_count(recording) * recording_site_count(recording);
}

// `row` is the next snapshot, `level` the site in the one before it, `data` its sums.
static int start_snapshot_sites(TableCursor *cursor)
{
    const Bounds *bounds = &cursor->bounds[0];
    u64 count = recording_state_count(cursor->recording);

    cursor->row = bounds->min > 0 ? min_u64((u64)bounds->min, count) : 0;
    cursor->end = bounds->max < 0 ? 0 : min_u64((u64)bounds->max + 1, count);
    cursor->level = recording_site_count(cursor->recording);
    cursor->data = calloc((size_t)cursor->level + 1, sizeof(SiteSums));
    return cursor->data ? SQLITE_OK : SQLITE_NOMEM;
}

static bool step_snapshot_site(TableCursor *cursor)
{
    u32 site_count = recording_site_count(cursor->recording);
    SiteSums *sums = cursor->data;

    for (;;) {
        while (cursor->level < site_count && ++cursor->level < site_count) {
            if (sums[cursor->level].live_blocks || sums[cursor->level].live_bytes)
                return true;
        }
        if (cursor->row >= cursor->end || sql_is_late(cursor->database)) {
            cursor->status = cursor->database->is_late ? SQLITE_INTERRUPT : SQLITE_OK;
            return false;
        }
        if (!recording_state(cursor->recording, cursor->row++, sums))
            continue;
        cursor->level = 0;
        if (site_count && (sums[0].live_blocks || sums[0].live_bytes))
            return true;
    }
}

static void snapshot_site_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const SiteSums *sums = (const SiteSums *)cursor->data + cursor->level;
    const u64 values[] = {cursor->row - 1, cursor->level, sums->live_bytes, sums->live_blocks,
                          sums->live_usable};

    put(context, values[column]);
}

// --------------------------------------------------------- slices, samples, the rest

static const SqlColumn slice_columns[] = {
    {"id", "INTEGER", ""},
    {"start_ns", "INTEGER", ""},
    {"end_ns", "INTEGER", ""},
    {"heap_bytes", "INTEGER", "live at its end"},
    {"heap_blocks", "INTEGER", "live at its end"},
    {"mapped_bytes", "INTEGER", "live at its end"},
    {"stack_bytes", "INTEGER", "live at its end"},
    {"heap_high", "INTEGER", "the most bytes in it"},
    {"mapped_high", "INTEGER", ""},
    {"stack_high", "INTEGER", ""},
    {"events", "INTEGER", ""},
    {"allocations", "INTEGER", ""},
    {"frees", "INTEGER", ""},
    {"temporary", "INTEGER", ""},
    {"has_events", "INTEGER", "1: they are kept"},
};

static u64 count_slices(Recording *recording)
{
    return recording_slice_count(recording);
}

static void slice_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const SliceInfo *slice = recording_slice(cursor->recording, cursor->row - 1);
    const u64 values[] = {
        cursor->row - 1,
        slice->start.ns,
        slice->end.ns,
        slice->totals.bytes[SPACE_HEAP],
        slice->totals.blocks[SPACE_HEAP],
        slice->totals.bytes[SPACE_MAPPED],
        slice->totals.bytes[SPACE_STACK],
        slice->high[SPACE_HEAP],
        slice->high[SPACE_MAPPED],
        slice->high[SPACE_STACK],
        slice->events,
        slice->allocations,
        slice->frees,
        slice->temporary,
        slice->has_events,
    };

    put(context, values[column]);
}

static const SqlColumn sample_columns[] = {
    {"id", "INTEGER", ""},
    {"time_ns", "INTEGER", ""},
    {"rss_bytes", "INTEGER", "resident, of the program's own mappings"},
    {"process_rss_bytes", "INTEGER", "resident, of the whole process"},
    {"cpu_ms", "INTEGER", ""},
};

static u64 count_samples(Recording *recording)
{
    return recording_sample_count(recording);
}

static void sample_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const Sample *sample = recording_sample(cursor->recording, cursor->row - 1);
    const u64 values[] = {cursor->row - 1, sample->ns, sample->rss_bytes,
                          sample->process_rss_bytes, sample->cpu_ms};

    put(context, values[column]);
}

static const SqlColumn thread_columns[] = {
    {"number", "INTEGER", "from 1"},
    {"tid", "INTEGER", "the kernel's"},
    {"name", "TEXT", ""},
    {"start_ns", "INTEGER", ""},
    {"end_ns", "INTEGER", "NULL: it lived until the end"},
};

static u64 count_threads(Recording *recording)
{
    return recording_thread_count(recording);
}

static int start_all(TableCursor *cursor)
{
    cursor->row = 0;
    cursor->end = cursor->table->row_count(cursor->recording);
    return SQLITE_OK;
}

static void thread_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const RecordedThread *thread = recording_thread(cursor->recording, (u32)cursor->row - 1);

    switch (column) {
    case 0: put(context, thread->number); break;
    case 1: sqlite3_result_int64(context, thread->tid); break;
    case 2: result_text(context, thread->name); break;
    case 3: put(context, thread->start_ns); break;
    case 4:
        if (thread->end_ns)
            put(context, thread->end_ns);
        break;
    }
}

static const SqlColumn module_columns[] = {
    {"id", "INTEGER", ""},
    {"path", "TEXT", ""},
    {"start", "INTEGER", "address"},
    {"size", "INTEGER", "bytes"},
    {"offset", "INTEGER", "in the file"},
    {"build_id", "TEXT", "hexadecimal"},
};

static u64 count_modules(Recording *recording)
{
    return recording_module_count(recording);
}

static void module_column(TableCursor *cursor, u32 column, sqlite3_context *context)
{
    const RecordedModule *module = recording_module(cursor->recording, (u32)cursor->row - 1);
    char id[2 * 64 + 1] = "";

    switch (column) {
    case 0: put(context, cursor->row - 1); break;
    case 1: result_text(context, module->path); break;
    case 2: put(context, module->start); break;
    case 3: put(context, module->size); break;
    case 4: put(context, module->offset); break;
    case 5:
        for (u32 i = 0; module->build_id && i < module->build_id_size && i < 64; i++)
            sqlite3_snprintf(3, id + 2 * (size_t)i, "%02x", module->build_id[i]);
        result_text(context, *id ? id : NULL);
        break;
    }
}

#define COLUMNS(columns) columns, ARRAY_LEN(columns)

// clang-format off
const TableSpec sql_array_tables[] = {
    {.shape = {"contexts", "stacks", COLUMNS(context_columns)},
     .bounded = 1, .seeks = 1,
     .row_count = count_contexts, .start = start_array, .step = step_array,
     .column = context_column},
    {.shape = {"frames", "the frames of every stack", COLUMNS(frame_columns)},
     .bounded = 1, .seeks = 1,
     .row_count = count_frames, .start = start_frames, .step = step_frame,
     .column = frame_column},
    {.shape = {"sites", "sums by stack, thread and kind of memory", COLUMNS(site_columns)},
     .bounded = 1, .seeks = 1, .row_count = count_sites, .start = start_sites, .step = step_array,
     .column = site_column, .stop = free_data},
    {.shape = {"snapshots", "moments whose state is kept", COLUMNS(snapshot_columns)},
     .bounded = 1, .seeks = 1, .row_count = count_states, .start = start_array, .step = step_array,
     .column = snapshot_column},
    {.shape = {"snapshot_sites", "what was live at them", COLUMNS(snapshot_site_columns)},
     .bounded = 1, .seeks = 1, .row_count = count_snapshot_sites, .start = start_snapshot_sites,
     .step = step_snapshot_site, .column = snapshot_site_column, .stop = free_data},
    {.shape = {"slices", "the timeline", COLUMNS(slice_columns)},
     .bounded = 1, .seeks = 1,
     .row_count = count_slices, .start = start_array, .step = step_array,
     .column = slice_column},
    {.shape = {"samples", "resident size over time", COLUMNS(sample_columns)},
     .bounded = 1, .seeks = 1,
     .row_count = count_samples, .start = start_array, .step = step_array,
     .column = sample_column},
    {.shape = {"threads", "the program's threads", COLUMNS(thread_columns)}, .bounded = 0,
     .row_count = count_threads, .start = start_all, .step = step_array,
     .column = thread_column},
    {.shape = {"modules", "executables and libraries", COLUMNS(module_columns)},
     .bounded = 1, .seeks = 1,
     .row_count = count_modules, .start = start_array, .step = step_array,
     .column = module_column},
};
// clang-format on
const size_t sql_array_table_count = ARRAY_LEN(sql_array_tables);
