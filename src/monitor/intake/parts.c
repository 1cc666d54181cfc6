// SPDX-License-Identifier: MIT
//
// Parts of findings that the engine can only number: a frame is named by a pc in it, a
// variable by an address. Here they get their names.
#include <stdio.h>
#include <string.h>

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

static bool local_variable(Run *run, u64 pc, bool is_return, i64 cfa_distance, DataName *ret_name)
{
    CodePlace place = symbols_place(run->symbols, is_return ? pc - 1 : pc);
    return symbols_stack_data(run->symbols, place, is_return, cfa_distance, ret_name) &&
           ret_name->line && ret_name->file;
}

// Where the function begins; and the variable behind it. Returns how many parts it is.
static size_t name_origin(Run *run, const Wire_part *record, FindingPart *part)
{
    char text[TEXT_MAX];
    DataName name;
    u64 pc = value(record, 0), distance = value(record, 2);
    bool is_return = value(record, 1) != 0;
    Frame *frame = arena_alloc(&run->arena, sizeof(*frame), _Alignof(Frame));
    if (record->values.count == 0 || part->stack.count ||
        !function_frame(run, pc, is_return, frame))
        return 1;
    part->stack = (ReportStack){frame, 1};
    if (!distance || !local_variable(run, pc, is_return, -(i64)distance, &name))
        return 1;
    const u64 values[] = {name.line, name.part != NULL};
    snprintf(text, sizeof(text), "%s%s(%s)", name.name, name.part ? name.part : "", name.file);
    part[1] = (FindingPart){
        .kind = PART_ORIGIN_VARIABLE,
        .text = words(run, PART_ORIGIN_VARIABLE, values, 2, text),
        .directory = name.directory,
        .file = name.file,
        .line = name.line,
    };
    return 2;
}

// The variable, or the part of it that has the byte.
static void name_variable(Run *run, u32 kind, u64 address, const DataName *name, FindingPart *part)
{
    char text[TEXT_MAX];
    u64 offset = name->part ? name->part_offset : name->offset;
    const u64 values[] = {address, offset, offset == 1, name->part != NULL};

    snprintf(text, sizeof(text), "%s%s", name->name, name->part ? name->part : "");
    part->kind = kind;
    part->text = words(run, kind, values, 4, text);
}

static void declared(Run *run, const DataName *name, u64 frame, u64 thread, FindingPart *part)
{
    const u64 values[] = {name->line, frame, thread, thread == 0 && name->part};
    *part = (FindingPart){
        .kind = PART_VARIABLE_DECLARED,
        .text = words(run, PART_VARIABLE_DECLARED, values, 4, name->file),
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
        local_variable(run, pc, is_return, (i64)value(record, 3), &name)) {
        name_variable(run, PART_VARIABLE_LOCAL, value(record, 5), &name, before);
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
        if (run->options->read_var_info && name.line && name.file) {
            name_variable(run, PART_VARIABLE_GLOBAL, address, &name, part);
            declared(run, &name, 0, 0, part + 1);
            return 2;
        }
        const u64 values[] = {address, name.offset};
        part->kind = PART_ADDRESS_SYMBOL;
        part->text = words(run, part->kind, values, 2, name.name);
        return 1;
    }
    const u64 with_section[] = {address, place < ARRAY_LEN(sections) ? sections[place] : 0};
    bool in_section = place == MAPPED_TEXT || place == MAPPED_DATA || place == MAPPED_BSS;
    part->kind = in_section                ? PART_ADDRESS_SECTION
                 : place == MAPPED_FILE    ? PART_ADDRESS_FILE
                                           : PART_ADDRESS_ANONYMOUS;
    part->text = words(run, part->kind, in_section ? with_section : record->values.data, 2,
                       record->text.data);
    if (place == MAPPED_TEXT)
        part->stack = findings_stack(run, (WireWords){&address, 1});
    return 1;
}

size_t parts_name(Run *run, const Wire_part *record, FindingPart *before, FindingPart *part)
{
    switch (record->kind) {
    case PART_ORIGIN_STACK: return name_origin(run, record, part);
    case PART_STACK_FRAME: name_frame(run, record, before, part); return 1;
    case PART_ADDRESS_MAPPED: return name_mapped(run, record, part);
    default: return 1;
    }
}

// ------------------------------------------------------------------ remarks

static void say_line(Run *run, u64 sequence, const char *line)
{
    char text[TEXT_MAX];
    if (sequence == 0) {
        report_note(run->report, line);
        return;
    }
    int size = snprintf(text, sizeof(text), "==%d== %s\n", run->info.pid, line);
    commands_text(run, &(Wire_command_text){
        .sequence = sequence,
        .text = {text, min_u64((u64)size, sizeof(text) - 1)},
    });
}

static void say_part(Run *run, u64 sequence, const FindingPart *part)
{
    char line[TEXT_MAX], frame[TEXT_MAX - 64];
    if (part->text) {
        snprintf(line, sizeof(line), " %.4000s", part->text);
        say_line(run, sequence, line);
    }
    for (size_t i = 0; i < part->stack.count; i++) {
        report_frame_text(run->report, &part->stack.frames[i], frame, sizeof(frame));
        snprintf(line, sizeof(line), "   %s 0x%llX: %s", i ? "by" : "at",
                 (unsigned long long)part->stack.frames[i].pc, frame);
        say_line(run, sequence, line);
    }
}

void parts_remark(Run *run, const Wire_remark *remark)
{
    const Wire_part record = {
        .kind = remark->kind,
        .values = remark->values,
        .text = remark->text,
        .pcs = remark->pcs,
    };
    FindingPart parts[2] = {{
        .kind = (u32)remark->kind,
        .text = words(run, (u32)remark->kind, remark->values.data, remark->values.count,
                      remark->text.data),
        .stack = findings_stack(run, remark->pcs),
    }};
    size_t count = parts_name(run, &record, NULL, &parts[0]);
    for (size_t i = 0; i < count; i++)
        say_part(run, remark->sequence, &parts[i]);
}
