// SPDX-License-Identifier: MIT
//
// A record at a time: what each means for the run.
#include <string.h>

#include "monitor/intake/run.h"

typedef void RecordFn(Run *run, const WireRecord *record);

static void take_start(Run *run, const WireRecord *record)
{
    Wire_start start;
    if (!wire_get_start(record, &start) || run->report)
        return;
    // Its pid we know from before the client ran (W3).
    run->info.ppid = (i32)start.ppid;
    run->info.is_fork_child = start.is_fork_child;
    run->report = report_open(run->options, &run->info, INTAKE_LOG);
    report_set_listener(run->report, commands_hear, run);
    // The banner is written: the program may begin. A child has begun.
    bool failed = (run->output_failed || report_failures()) && !start.is_fork_child;
    wire_set_ready(run->shared, failed ? READY_FAILED : READY_YES);
}

// The child of a vfork executes for itself. Else the process waits, with its mappings.
static void take_exec(Run *run, const WireRecord *record)
{
    Wire_exec exec;
    if (!wire_get_exec(record, &exec) || exec.is_vfork)
        return;
    run->replaced = true;
    if (run->heap)
        heap_before_exec(run->heap);
}

static void take_exec_failed(Run *run, const WireRecord *record)
{
    (void)record;
    run->replaced = false;
    if (run->heap)
        heap_exec_failed(run->heap);
}

static void take_end(Run *run, const WireRecord *record)
{
    Wire_end end;
    if (!wire_get_end(record, &end))
        return;
    run->ended = true;
    run->status = (i32)end.status;
    run->signal = (i32)end.signal;
    if (run->heap)
        heap_ended(run->heap, record->stamp);
}

static void take_fatal_stack(Run *run, const WireRecord *record)
{
    Wire_fatal_stack stack;
    if (!wire_get_fatal_stack(record, &stack) || stack.words.count <= UNWIND_REGISTERS)
        return;
    run->fatal_word_count = stack.words.count;
    run->fatal_words = arena_alloc(&run->arena, stack.words.count * sizeof(u64), 8);
    if (run->fatal_words)
        memcpy(run->fatal_words, stack.words.data, stack.words.count * sizeof(u64));
}

// Nobody has kept the calls of the thread: they are found by what its stack is now.
static WireWords unwind(Run *run, u64 pcs[WIRE_FRAMES_MAX])
{
    static const u8 dwarf_number[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
    _Static_assert(UNWIND_EXACT_PC == WIRE_EXACT_PC, "a list of pcs is one");
    UnwindStart start = {
        .stack_address = run->fatal_words[UNWIND_REGISTERS],
        .words = run->fatal_words + UNWIND_REGISTERS + 1,
        .word_count = run->fatal_word_count - UNWIND_REGISTERS - 1,
    };

    for (u32 i = 0; i < ARRAY_LEN(dwarf_number); i++)
        start.registers[dwarf_number[i]] = run->fatal_words[i];
    start.registers[UNWIND_RETURN] = run->fatal_words[ARRAY_LEN(dwarf_number)];
    return (WireWords){pcs, symbols_unwind(run->symbols, &start, pcs, WIRE_FRAMES_MAX)};
}

static void take_fatal_signal(Run *run, const WireRecord *record)
{
    u64 pcs[WIRE_FRAMES_MAX];
    Wire_fatal_signal fatal;
    if (!wire_get_fatal_signal(record, &fatal))
        return;
    if (fatal.pcs.count == 0 && run->fatal_words)
        fatal.pcs = unwind(run, pcs);
    report_fatal_signal(run->report, &(FatalSignal){
        .tid = (u32)fatal.tid,
        .thread_name = findings_thread_name(run, fatal.tid),
        .signal = (i32)fatal.signal,
        .code = (i32)fatal.code,
        .address = fatal.address,
        .full_stack_bytes = fatal.stack_bytes,
        .stack_limit_bytes = fatal.stack_bytes ? fatal.stack_bytes : fatal.stack_limit,
        .stack = findings_stack(run, fatal.pcs),
    });
}

static void take_line(Run *run, const WireRecord *record)
{
    Wire_line line;
    if (!wire_get_line(record, &line))
        return;
    if (line.is_note)
        report_note(run->report, line.text.data);
    else
        report_line(run->report, line.text.data);
}

static void take_client_ended(Run *run, const WireRecord *record)
{
    (void)record;
    run->client_ended = true;
    report_client_ended(run->report);
}

static void take_client_text(Run *run, const WireRecord *record)
{
    Wire_client_text text;
    if (!wire_get_client_text(record, &text))
        return;
    ReportStack stack = findings_stack(run, text.pcs);
    report_client_text(run->report, (u32)text.tid, text.text.data, stack.count ? &stack : NULL);
}

static void take_sync(Run *run, const WireRecord *record)
{
    Wire_sync sync;
    if (wire_get_sync(record, &sync))
        wire_synced(run->shared, record->ring, (u32)sync.sequence);
}

static void take_command_text(Run *run, const WireRecord *record)
{
    Wire_command_text text;
    if (wire_get_command_text(record, &text))
        commands_text(run, &text);
}

static void take_command_done(Run *run, const WireRecord *record)
{
    Wire_command_done done;
    if (wire_get_command_done(record, &done))
        commands_done(run, &done);
}

static void take_thread_stack(Run *run, const WireRecord *record)
{
    Wire_thread_stack stack;
    if (wire_get_thread_stack(record, &stack))
        commands_stack(run, &stack);
}

static void take_command(Run *run, const WireRecord *record)
{
    Wire_command command;
    if (!wire_get_command(record, &command))
        return;
    WireCommandStatus status = commands_from_client(run, command.text.data);
    __atomic_store_n(&run->shared->rings[record->ring].command_status, status, __ATOMIC_RELEASE);
}

static void take_option(Run *run, const WireRecord *record)
{
    Wire_option option;
    if (wire_get_option(record, &option))
        run_change_option(run, option.word.data);
}

static void take_tree_node(Run *run, const WireRecord *record)
{
    Wire_tree_node node;
    if (wire_get_tree_node(record, &node))
        trees_add(run, &node);
}

static void take_tree_done(Run *run, const WireRecord *record)
{
    Wire_tree_done done;
    if (wire_get_tree_done(record, &done))
        trees_write(run, &done);
}

static void take_profile(Run *run, const WireRecord *record)
{
    Wire_profile profile;
    if (wire_get_profile(record, &profile))
        profiles_begin(run, &profile);
}

static void take_profile_cost(Run *run, const WireRecord *record)
{
    Wire_profile_cost cost;
    if (wire_get_profile_cost(record, &cost))
        profiles_add(run, &cost);
}

static void take_profile_done(Run *run, const WireRecord *record)
{
    Wire_profile_done done;
    if (wire_get_profile_done(record, &done))
        profiles_write(run, &done);
}

static void take_place(Run *run, const WireRecord *record)
{
    enum { INLINED_MAX = 32 };
    char *answer = run->shared->rings[record->ring].place;
    Frame frames[INLINED_MAX];
    Wire_place place;

    if (!wire_get_place(record, &place))
        return;
    // Of what is inlined there, the innermost.
    symbols_frames(run->symbols, symbols_place(run->symbols, place.pc), place.pc, false, frames,
                   INLINED_MAX);
    report_frame_text(run->report, &frames[0], run->shared->rings[record->ring].name,
                      WIRE_NAME_BYTES);
    answer[0] = '\0';
    if (frames[0].file && frames[0].line)
        snprintf(answer, WIRE_PLACE_BYTES, "%s:%u", frames[0].file, frames[0].line);
}

static void take_map(Run *run, const WireRecord *record)
{
    Wire_map map;
    if (!wire_get_map(record, &map))
        return;
    SymbolsMapping mapping = {
        .start = map.start,
        .size = map.size,
        .file_offset = map.offset,
        .device = map.device,
        .inode = map.inode,
        .executable = map.executable,
        .path = map.path.data,
    };
    symbols_map(run->symbols, &mapping);
    if (run->heap)
        heap_code(run->heap, &mapping);
}

static void take_unmap(Run *run, const WireRecord *record)
{
    Wire_unmap unmap;
    if (wire_get_unmap(record, &unmap))
        symbols_unload(run->symbols, unmap.start, unmap.size, (u32)unmap.unloading);
}

static void take_maps_reset(Run *run, const WireRecord *record)
{
    (void)record;
    symbols_unmap(run->symbols, 0, ~0ull);
}

// Contexts and events are for the model of the heap.
static void take_heap(Run *run, const WireRecord *record)
{
    if (run->heap)
        heap_take(heap_decoder(run->heap), record);
}

static void take_thread_start(Run *run, const WireRecord *record)
{
    Wire_thread_start thread;
    if (wire_get_thread_start(record, &thread))
        map_put(&run->thread_tids, thread.number, thread.tid);
    take_heap(run, record);
}

static void take_thread_end(Run *run, const WireRecord *record)
{
    Wire_thread_end thread;
    if (wire_get_thread_end(record, &thread))
        map_remove(&run->thread_tids, thread.number);
    take_heap(run, record);
}

static void take_describe_kind(Run *run, const WireRecord *record)
{
    Wire_describe_kind kind;
    if (wire_get_describe_kind(record, &kind))
        vocabulary_add_kind(run->vocabulary, &kind);
}

static void take_describe_part(Run *run, const WireRecord *record)
{
    Wire_describe_part part;
    if (wire_get_describe_part(record, &part))
        vocabulary_add_part(run->vocabulary, &part);
}

static void take_finding(Run *run, const WireRecord *record)
{
    Wire_finding finding;
    if (wire_get_finding(record, &finding))
        findings_add(run, &finding);
}

static void take_remark(Run *run, const WireRecord *record)
{
    Wire_remark remark;
    if (wire_get_remark(record, &remark))
        parts_remark(run, &remark);
}

static void take_part(Run *run, const WireRecord *record)
{
    Wire_part part;
    if (wire_get_part(record, &part))
        findings_add_part(run, &part);
}

#define take_context take_heap
#define take_heap_alloc take_heap
#define take_heap_realloc take_heap
#define take_heap_run take_heap
#define take_heap_pair take_heap
#define take_heap_pairs take_heap
#define take_heap_free take_heap
#define take_heap_map take_heap
#define take_heap_unmap take_heap
#define take_heap_remap take_heap
#define take_heap_stack take_heap
#define take_heap_clock take_heap

static RecordFn *const take_fns[RECORD_TYPES] = {
#define RECORD(NAME, Name, ...) [RECORD_##NAME] = take_##Name,
#include "wire/records.def"
};

size_t run_take_stream(void *arg, WireStream *stream)
{
    Run *run = arg;
    if (run->finished || !run->report || !run->heap)
        return 0;
    size_t records = heap_take_stream(heap_decoder(run->heap), stream);
    run->records += records;
    return records;
}

static bool comes_before_start(WireRecordType type)
{
    return type == RECORD_START || type == RECORD_MAPS_RESET || type == RECORD_DESCRIBE_KIND ||
           type == RECORD_DESCRIBE_PART;
}

void run_take(void *arg, const WireRecord *record)
{
    Run *run = arg;
    if (run->finished || record->type >= RECORD_TYPES || !take_fns[record->type])
        return;
    if (!run->report && !comes_before_start(record->type))
        return; // a ring whose beginning was lost
    run->records++;
    take_fns[record->type](run, record);
}
