// SPDX-License-Identifier: MIT
//
// heaptrack's data into a recording. Numbers are hexadecimal; a line is
//
//   v VERSION FORMAT    X COMMAND    I PAGE_SIZE PAGES    s [LENGTH] STRING
//   i PC MODULE [FUNCTION [FILE LINE]]...   an instruction and its frames, innermost first
//   t INSTRUCTION PARENT                    a stack
//   a SIZE STACK                            a kind of allocation
//   + KIND    - KIND    c MILLISECONDS    R RESIDENT_PAGES
//
// Strings, instructions and stacks count from 1, kinds from 0. The file is gone through twice: the
// first time finds the peak, so that the second knows it when it comes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/foreign/import.h"

enum { FRAMES_MAX = 64, FORMAT_WITH_LENGTHS = 3 };

typedef struct Kind {
    u64 size;
    u32 site;
    u32 live;
} Kind;

typedef struct Instruction {
    u64 pc;
    char *line; // what stands behind the pc: module and frames
} Instruction;

typedef struct List {
    void *items;
    u32 count, room;
} List;

typedef struct Heaptrack {
    Import *import;
    char *next, *end;
    u32 line_number;
    u64 format, page_bytes;
    List strings;      // char *
    List instructions; // Instruction
    List kinds;        // Kind
    u32 trace_count;
    u64 event_count, peak_event; // events count from 1; peak 0: none
    u32 last_kind;     // allocated by the event before; UINT32_MAX: none was
    u32 skipped;       // lines that make no sense
} Heaptrack;

// ------------------------------------------------------------------------- lines

static void *add_item(Heaptrack *track, List *list, size_t size)
{
    if (list->count == list->room) {
        u32 room = list->room ? list->room * 2 : 256;
        void *moved = room > list->room ? realloc(list->items, room * size) : NULL;
        if (!moved) {
            track->import->failed = true;
            return NULL;
        }
        list->items = moved;
        list->room = room;
    }
    return (char *)list->items + list->count++ * size;
}

// The next line, terminated in place, or NULL.
static char *next_line(Heaptrack *track)
{
    char *line = track->next;

    if (line >= track->end)
        return NULL;
    char *end = memchr(line, '\n', (size_t)(track->end - line));
    track->next = end ? end + 1 : track->end;
    *(end ? end : track->end) = '\0';
    track->line_number++;
    return line;
}

// The next number of a line. False: there is none.
static bool take_hex(char **text, u64 *ret_number)
{
    char *end;

    while (**text == ' ')
        (*text)++;
    *ret_number = strtoull(*text, &end, 16);
    if (end == *text)
        return false;
    *text = end;
    return true;
}

static const char *string_of(const Heaptrack *track, u64 index)
{
    return index > 0 && index <= track->strings.count ? ((char **)track->strings.items)[index - 1]
                                                      : NULL;
}

// ------------------------------------------------------------------------ stacks

static void add_string(Heaptrack *track, char *text)
{
    u64 length;
    char **string = add_item(track, &track->strings, sizeof(char *));

    if (track->format >= FORMAT_WITH_LENGTHS)
        take_hex(&text, &length);
    if (string)
        *string = text + (*text == ' ');
}

static void add_instruction(Heaptrack *track, char *text)
{
    Instruction *instruction = add_item(track, &track->instructions, sizeof(Instruction));

    if (!instruction)
        return;
    instruction->pc = 0;
    take_hex(&text, &instruction->pc);
    instruction->line = text;
}

static const char *last_component(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path;
}

static u32 read_frames(const Heaptrack *track, const Instruction *instruction,
                       RecordedFrame frames[FRAMES_MAX])
{
    char *text = instruction->line;
    u64 module = 0, function, file, line;
    u32 count = 0;

    take_hex(&text, &module);
    while (count < FRAMES_MAX && take_hex(&text, &function)) {
        file = line = 0;
        if (take_hex(&text, &file))
            take_hex(&text, &line);
        frames[count++] = (RecordedFrame){
            .function = string_of(track, function), .object = string_of(track, module),
            .file = last_component(string_of(track, file)), .line = (u32)line,
            .pc = instruction->pc};
        if (count > 1)
            frames[count - 2].inlined = true;
    }
    if (count == 0)
        frames[count++] = (RecordedFrame){.object = string_of(track, module),
                                          .pc = instruction->pc};
    return count;
}

static void add_trace(Heaptrack *track, char *text)
{
    RecordedFrame frames[FRAMES_MAX];
    u64 index = 0, parent = 0;

    take_hex(&text, &index);
    take_hex(&text, &parent);
    parent = parent <= track->trace_count ? parent : 0;
    bool is_known = index > 0 && index <= track->instructions.count;
    const Instruction *instruction =
        is_known ? (Instruction *)track->instructions.items + (index - 1) : NULL;
    u32 context = recording_add_context(track->import->writer, (u32)parent, 0,
                                        instruction ? instruction->pc : 0, true);
    track->trace_count++;
    if (instruction)
        recording_set_frames(track->import->writer, context, frames,
                             read_frames(track, instruction, frames));
}

static void add_kind(Heaptrack *track, char *text)
{
    u64 size = 0, trace = 0;
    Kind *kind = add_item(track, &track->kinds, sizeof(Kind));

    take_hex(&text, &size);
    take_hex(&text, &trace);
    trace = trace <= track->trace_count ? trace : 0;
    if (kind)
        *kind = (Kind){.size = min_u64(size, 1ull << 50),
                       .site = import_site(track->import, SPACE_HEAP, (u32)trace)};
}

// ------------------------------------------------------------------------ events

// The kind that a + or - is about, NULL: none, or a free of what is not there.
static Kind *kind_of(const Heaptrack *track, char *text, bool is_free)
{
    u64 index;

    if (!take_hex(&text, &index) || index >= track->kinds.count)
        return NULL;
    Kind *kind = (Kind *)track->kinds.items + index;
    return is_free && kind->live == 0 ? NULL : kind;
}

static void add_event(Heaptrack *track, char *text, bool is_free)
{
    Import *import = track->import;
    Kind *kind = kind_of(track, text, is_free);

    if (!kind || kind->site >= import->site_count) {
        track->skipped++;
        return;
    }
    u32 index = (u32)(kind - (Kind *)track->kinds.items);
    ImportSite *site = &import->sites[kind->site];
    kind->live -= is_free;
    HeapEvent event = {
        .kind = is_free ? EVENT_FREE : EVENT_ALLOC, .site = kind->site, .thread = 1,
        .flags = is_free && index == track->last_kind ? EVENT_TEMPORARY : 0,
        .time = import->now, .size = kind->size, .usable = kind->size,
        .address = ((u64)(index + 1) << 28) + (u64)kind->live * 16};
    kind->live += !is_free;
    track->last_kind = is_free ? UINT32_MAX : index;
    site->live_bytes += is_free ? -kind->size : kind->size;
    site->live_usable = site->live_bytes;
    site->block_count += is_free ? -1u : 1u;
    import->now.allocated_bytes += kind->size;
    event.time = import->now;
    recording_add_event(import->writer, &event);
    if (++track->event_count == track->peak_event)
        import_keep_state(import, STATE_PEAK, NULL);
}

static void set_time(Heaptrack *track, char *text)
{
    u64 ms = 0;

    take_hex(&text, &ms);
    track->import->now.ns = max_u64(track->import->now.ns, min_u64(ms, 1ull << 40) * 1000000);
}

static void add_rss(Heaptrack *track, char *text)
{
    u64 pages = 0;

    take_hex(&text, &pages);
    u64 bytes = min_u64(pages, 1ull << 40) * track->page_bytes;
    recording_add_sample(track->import->writer, &(Sample){.ns = track->import->now.ns,
                                                          .rss_bytes = bytes,
                                                          .process_rss_bytes = bytes});
}

static void take_line(Heaptrack *track, char *line)
{
    char *text = line + (*line != '\0');

    switch (*line) {
    case 's': add_string(track, text); break;
    case 'i': add_instruction(track, text); break;
    case 't': add_trace(track, text); break;
    case 'a': add_kind(track, text); break;
    case '+': add_event(track, text, false); break;
    case '-': add_event(track, text, true); break;
    case 'c': set_time(track, text); break;
    case 'R': add_rss(track, text); break;
    default: break; // of others nothing is needed
    }
}

// ----------------------------------------------------------------- the first time

typedef struct FirstPass {
    const char *command;
    u64 format, page_bytes;
    u64 peak_event;
} FirstPass;

// Which event reaches the highest total. Leaves the text as it is, but for the command's line.
static bool find_peak(Heaptrack *track, char *text, FirstPass *first)
{
    u64 total = 0, most = 0, number = 0, size, ignored;
    List kinds = {0};

    for (char *line = text, *end; line < track->end; line = end + 1) {
        end = memchr(line, '\n', (size_t)(track->end - line));
        end = end ? end : track->end;
        char *at = line + 1;
        if (*line == 'v' && take_hex(&at, &ignored))
            take_hex(&at, &first->format);
        if (*line == 'I')
            take_hex(&at, &first->page_bytes);
        if (*line == 'X' && !first->command)
            first->command = strndup(at + (*at == ' '), (size_t)(end - at) - (*at == ' '));
        if (*line == 'a' && take_hex(&at, &size)) {
            Kind *kind = add_item(track, &kinds, sizeof(Kind));
            if (kind)
                *kind = (Kind){.size = min_u64(size, 1ull << 50)};
        }
        bool is_free = *line == '-';
        if ((!is_free && *line != '+') || !take_hex(&at, &size) || size >= kinds.count)
            continue;
        Kind *kind = (Kind *)kinds.items + size;
        if (is_free && kind->live == 0)
            continue;
        kind->live += is_free ? -1u : 1u;
        total += is_free ? -kind->size : kind->size;
        number++;
        if (total > most) {
            most = total;
            first->peak_event = number;
        }
    }
    free(kinds.items);
    return first->format > 0;
}

bool heaptrack_is(const ForeignText *text)
{
    char *at = text->data + 1;
    u64 version, format;

    return text->size > 2 && text->data[0] == 'v' && text->data[1] == ' ' &&
           take_hex(&at, &version) && take_hex(&at, &format);
}

bool import_heaptrack(Import *import, ForeignText *text, char **ret_error)
{
    Heaptrack track = {.import = import, .next = text->data, .end = text->data + text->size,
                       .last_kind = UINT32_MAX};
    FirstPass first = {.page_bytes = PAGE_SIZE};

    if (!find_peak(&track, text->data, &first)) {
        *ret_error = strdup("it has no version: the raw data of heaptrack must be interpreted");
        free((char *)first.command);
        return false;
    }
    track.format = first.format;
    track.page_bytes = min_u64(first.page_bytes, 1 << 30);
    track.peak_event = first.peak_event;
    RecordingInfo info = {.tool = "heaptrack", .command = first.command, .depth = 200,
                          .time_unit = 1}; // ms
    bool is_begun = import_begin(import, &info, ret_error);
    for (char *line; is_begun && !import->failed && (line = next_line(&track));)
        take_line(&track, line);
    if (text->problem)
        import_warn(import, "%s", text->problem);
    if (track.skipped > 0)
        import_warn(import, "%u events of unknown allocations were left out", track.skipped);
    free((char *)first.command);
    free(track.strings.items);
    free(track.instructions.items);
    free(track.kinds.items);
    return is_begun;
}
