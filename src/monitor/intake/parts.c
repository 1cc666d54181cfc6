// SPDX-License-Identifier: MIT
//
// Parts of findings that the engine can only number: a frame is named by a pc in it, a
// variable by an address. Here they get their names.
#include <stdio.h>
#include <string.h>

#include "monitor/intake/run.h"

enum { INLINE_MAX = 64, TEXT_MAX = 4096 };

// Makes the part one of the table, of other fields.
static void reword(Run *run, FindingPart *part, PartKind kind, FieldValues values)
{
    part->kind = part_in_table(kind);
    part->text = findings_words(run, part->kind->sentence, &values);
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

static void set_declaration(FindingPart *part, const DataName *name)
{
    part->directory = name->directory;
    part->file = name->file;
    part->line = name->line;
}

// "a[2].b"
static void put_name(const DataName *name, char text[TEXT_MAX])
{
    snprintf(text, TEXT_MAX, "%s%s", name->name, name->part ? name->part : "");
}

// Where the function begins; and the variable behind it. Returns how many parts it is.
static size_t name_origin(Run *run, const FieldsCode *code, FindingPart *part)
{
    char text[TEXT_MAX];
    DataName name;
    Frame *frame = arena_alloc(&run->arena, sizeof(*frame), _Alignof(Frame));
    if (part->stack.count || !function_frame(run, code->pc, code->is_return, frame))
        return 1;
    part->stack = (ReportStack){frame, 1};
    if (!code->depth || !local_variable(run, code->pc, code->is_return, -(i64)code->depth, &name))
        return 1;
    put_name(&name, text);
    part[1] = (FindingPart){0};
    reword(run, &part[1], PART_ORIGIN_VARIABLE, fields_of(SHAPE_CREATED_VARIABLE, (AnyFields){
        .created_variable = {
            .line = name.line,
            .is_part = name.part != NULL,
            .name = text,
            .file = name.file,
        },
    }));
    set_declaration(&part[1], &name);
    return 2;
}

// The variable, or the part of it that has the byte.
static void name_variable(Run *run, PartKind kind, u64 address, const DataName *name,
                          FindingPart *part)
{
    char text[TEXT_MAX];
    u64 offset = name->part ? name->part_offset : name->offset;

    put_name(name, text);
    reword(run, part, kind, fields_of(SHAPE_VARIABLE, (AnyFields){
        .variable = {
            .address = address,
            .offset = offset,
            .is_single = offset == 1,
            .is_part = name->part != NULL,
            .name = text,
        },
    }));
}

static void declared(Run *run, const DataName *name, u64 frame, u64 thread, FindingPart *part)
{
    *part = (FindingPart){0};
    reword(run, part, PART_VARIABLE_DECLARED, fields_of(SHAPE_DECLARATION, (AnyFields){
        .declaration = {
            .line = name->line,
            .frame = frame,
            .thread = thread,
            .is_global_part = thread == 0 && name->part,
            .file = name->file,
        },
    }));
    set_declaration(part, name);
}

// "in frame #1, created by f (a.c:3)"; or the variable, if the user wants such names. Then
// the part before, which says on whose stack it is, makes way.
static void name_frame(Run *run, const FieldsFrame *fields, FindingPart *before, FindingPart *part)
{
    char text[TEXT_MAX] = "";
    Frame frame;
    DataName name;
    FieldsFrame named = *fields;
    if ((fields->function && fields->function[0]) || !fields->pc)
        return;
    if (run->options->read_var_info && before &&
        local_variable(run, fields->pc, fields->is_return, fields->cfa_distance, &name)) {
        name_variable(run, PART_VARIABLE_LOCAL, fields->address, &name, before);
        declared(run, &name, fields->number, fields->thread, part);
        return;
    }
    if (function_frame(run, fields->pc, fields->is_return, &frame) && frame.function)
        report_frame_text(run->report, &frame, text, sizeof(text));
    named.function = text;
    reword(run, part, PART_STACK_FRAME, fields_of(SHAPE_FRAME, (AnyFields){.frame = named}));
}

// A variable if there is one. Returns how many parts it is.
static size_t name_mapped(Run *run, const FieldsMapping *mapping, FindingPart *part)
{
    static const u8 sections[] = {
        [MAPPED_TEXT] = SECTION_TEXT, [MAPPED_DATA] = SECTION_DATA, [MAPPED_BSS] = SECTION_BSS,
    };
    DataName name;
    u64 address = mapping->address, place = mapping->place;
    if (place >= MAPPED_DATA && symbols_data(run->symbols, address, &name)) {
        if (run->options->read_var_info && name.line && name.file) {
            name_variable(run, PART_VARIABLE_GLOBAL, address, &name, part);
            declared(run, &name, 0, 0, part + 1);
            return 2;
        }
        reword(run, part, PART_ADDRESS_SYMBOL, fields_of(SHAPE_SYMBOL, (AnyFields){
            .symbol = {.address = address, .offset = name.offset, .name = name.name},
        }));
        return 1;
    }
    if (place == MAPPED_TEXT || place == MAPPED_DATA || place == MAPPED_BSS)
        reword(run, part, PART_ADDRESS_SECTION, fields_of(SHAPE_SECTION, (AnyFields){
            .section = {address, .section = sections[place], .object = mapping->path},
        }));
    else
        reword(run, part, place == MAPPED_FILE ? PART_ADDRESS_FILE : PART_ADDRESS_ANONYMOUS,
               fields_of(SHAPE_MAPPING, (AnyFields){.mapping = *mapping}));
    if (place == MAPPED_TEXT)
        part->stack = findings_stack(run, (WireWords){&address, 1});
    return 1;
}

size_t parts_name(Run *run, const FieldValues *values, FindingPart *before, FindingPart *part)
{
    const FieldsCode *code = fields_code(values);
    const FieldsFrame *frame = fields_frame(values);
    const FieldsMapping *mapping = fields_mapping(values);
    if (code)
        return name_origin(run, code, part);
    if (frame)
        name_frame(run, frame, before, part);
    if (mapping && part->kind->number == PART_ADDRESS_MAPPED)
        return name_mapped(run, mapping, part);
    return 1;
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
    FieldValues values;
    const PartDescription *kind = vocabulary_part(run->vocabulary, remark->kind);
    if (!kind)
        return;
    fields_decode(kind->shape, remark->values.data, remark->values.count, remark->texts.data,
                  remark->texts.size, &values);
    FindingPart parts[2] = {{
        .kind = kind,
        .text = findings_words(run, kind->sentence, &values),
        .stack = findings_stack(run, remark->pcs),
    }};
    size_t count = parts_name(run, &values, NULL, &parts[0]);
    for (size_t i = 0; i < count; i++)
        say_part(run, remark->sequence, &parts[i]);
}
