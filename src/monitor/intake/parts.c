// SPDX-License-Identifier: MIT
//
// Parts of findings that the engine can only number: a frame is named by a pc in it, a
// variable by an address. Here they get their names.
#include <string.h>
#include <sys/mman.h>

#include "monitor/intake/run.h"

enum { INLINE_MAX = 64, TEXT_MAX = 4096 };

static u64 value(const Wire_part *record, size_t index)
{
    return index < record->values.count ? record->values.data[index] : 0;
}

static const char *words(Run *run, u32 kind, const u64 *values, size_t count, const char *text)
{
    char buffer[TEXT_MAX];
    report_part_text(kind, values, count, text, buffer, sizeof(buffer));
    return buffer[0] ? findings_keep_text(run, buffer) : NULL;
}

// The frame at the first instruction of the function that a pc lies in, inlining apart.
static bool function_frame(Run *run, u64 pc, bool is_return, Frame *ret_frame)
{
    Frame frames[INLINE_MAX];
    CodePlace place = symbols_place(run->symbols, is_return ? pc - 1 : pc);
    size_t count = symbols_frames(run->symbols, place, pc, is_return, frames, INLINE_MAX);
    if (count == 0)
        return false;
    u64 start = frames[count - 1].pc - frames[count - 1].function_offset;
    *ret_frame = frames[count - 1];
    if (!ret_frame->function)
        return true;
    count = symbols_frames(run->symbols, symbols_place(run->symbols, start), start, false, frames,
                           INLINE_MAX);
    if (count)
        *ret_frame = frames[count - 1];
    return true;
}

static void name_origin(Run *run, const Wire_part *record, FindingPart *part)
{
    Frame *frame = arena_alloc(&run->arena, sizeof(*frame), _Alignof(Frame));
    if (record->values.count == 0 || part->stack.count ||
        !function_frame(run, value(record, 0), value(record, 1) != 0, frame))
        return;
    part->stack = (ReportStack){frame, 1};
}

static void declared(Run *run, const DataName *name, u64 frame, u64 thread, FindingPart *part)
{
    const u64 values[] = {name->line, frame, thread};
    *part = (FindingPart){
        .kind = PART_VARIABLE_DECLARED,
        .text = words(run, PART_VARIABLE_DECLARED, values, 3, name->file),
        .directory = name->directory,
        .file = name->file,
        .line = name->line,
    };
}

// "in frame #1, created by f (a.c:3)"; or the variable, if the user wants such names. Then
// the part before, which says on whose stack it is, makes way.
static void name_frame(Run *run, const Wire_part *record, FindingPart *before, FindingPart *part)
{
    char text[TEXT_MAX] = "";
    Frame frame;
    DataName name;
    bool is_return = value(record, 2) != 0;
    u64 pc = value(record, 1);
    if (record->text.size || record->values.count < 3)
        return;
    if (run->options->read_var_info && before && record->values.count >= 6 &&
        symbols_stack_data(run->symbols, symbols_place(run->symbols, is_return ? pc - 1 : pc),
                           is_return, (i64)value(record, 3), &name) &&
        name.line && name.file) {
        const u64 values[] = {value(record, 5), name.offset};
        before->kind = PART_VARIABLE_LOCAL;
        before->text = words(run, PART_VARIABLE_LOCAL, values, 2, name.name);
        declared(run, &name, value(record, 0), value(record, 4), part);
        return;
    }
    if (function_frame(run, pc, is_return, &frame) && frame.function)
        report_frame_text(run->report, &frame, text, sizeof(text));
    part->text = words(run, PART_STACK_FRAME, record->values.data, record->values.count, text);
}

// Values: address, PROT_ bits, MAPPED_. A variable if there is one. Returns how many parts it is.
static size_t name_mapped(Run *run, const Wire_part *record, FindingPart *part)
{
    static const u8 sections[] = {[MAPPED_TEXT] = 0, [MAPPED_DATA] = 1, [MAPPED_BSS] = 2};
    DataName name;
    u64 address = value(record, 0), place = value(record, 2);
    if (place >= MAPPED_DATA && symbols_data(run->symbols, address, &name)) {
        const u64 values[] = {address, name.offset};
        bool wants_line = run->options->read_var_info && name.line && name.file;
        part->kind = wants_line ? PART_VARIABLE_GLOBAL : PART_ADDRESS_SYMBOL;
        part->text = words(run, part->kind, values, 2, name.name);
        if (!wants_line)
            return 1;
        declared(run, &name, 0, 0, part + 1);
        return 2;
    }
    const u64 with_section[] = {address, place < ARRAY_LEN(sections) ? sections[place] : 0};
    bool in_section = place == MAPPED_TEXT || place == MAPPED_DATA || place == MAPPED_BSS;
    part->kind = in_section                ? PART_ADDRESS_SECTION
                 : place == MAPPED_FILE    ? PART_ADDRESS_FILE
                                           : PART_ADDRESS_ANONYMOUS;
    part->text = words(run, part->kind, in_section ? with_section : record->values.data, 2,
                       record->text.data);
    return 1;
}

size_t parts_name(Run *run, const Wire_part *record, FindingPart *before, FindingPart *part)
{
    switch (record->kind) {
    case PART_ORIGIN_STACK: name_origin(run, record, part); return 1;
    case PART_STACK_FRAME: name_frame(run, record, before, part); return 1;
    case PART_ADDRESS_MAPPED: return name_mapped(run, record, part);
    default: return 1;
    }
}
