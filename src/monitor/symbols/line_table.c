// SPDX-License-Identifier: MIT
//
// The line number program of DWARF 2 to 5. Every read is checked against the end of the
// program; a cursor that ran out stays at its end and gives zeroes, so that the loop below needs
// one check for each opcode.
#include "monitor/symbols/line_table.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMATS_MAX 16
#define ROWS_MAX    (1u << 28)

typedef struct Cursor {
    const u8 *at, *end;
    bool is_bad; // something was read past the end
} Cursor;

static u64 take(Cursor *cursor, size_t size)
{
    u64 value = 0;
    if ((size_t)(cursor->end - cursor->at) < size) {
        cursor->at = cursor->end;
        cursor->is_bad = true;
        return 0;
    }
    memcpy(&value, cursor->at, size);
    cursor->at += size;
    return value;
}

static u64 take_uleb(Cursor *cursor)
{
    u64 value = 0;
    for (u32 shift = 0; cursor->at < cursor->end; shift += 7) {
        u8 byte = *cursor->at++;
        if (shift < 64)
            value |= (u64)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    cursor->is_bad = true;
    return 0;
}

static i64 take_sleb(Cursor *cursor)
{
    u64 value = 0;
    for (u32 shift = 0; cursor->at < cursor->end;) {
        u8 byte = *cursor->at++;
        if (shift < 64)
            value |= (u64)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if ((byte & 0x40) && shift < 64)
                value |= ~0ull << shift;
            return (i64)value;
        }
    }
    cursor->is_bad = true;
    return 0;
}

static const char *take_string(Cursor *cursor)
{
    const u8 *end = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
    const char *text = (const char *)cursor->at;
    if (!end) {
        cursor->at = cursor->end;
        cursor->is_bad = true;
        return "";
    }
    cursor->at = end + 1;
    return text;
}

// A string in another section, which must end there.
static const char *string_at(const PlainSection *section, u64 offset)
{
    if (offset >= section->size)
        return NULL;
    const char *text = (const char *)section->data + offset;
    return memchr(text, 0, section->size - offset) ? text : NULL;
}

// ---- the header -----------------------------------------------------------------------------

typedef struct Header {
    Cursor program;
    u32 version, offset_size;
    u32 minimum_length, line_range, opcode_base;
    i32 line_base;
    u8 operand_counts[256];
} Header;

static bool add_folder(LineTable *table, const char *name)
{
    if (!list_grow((void **)&table->folders, &table->folder_capacity, table->folder_count,
                   sizeof *table->folders))
        return false;
    table->folders[table->folder_count++] = name;
    return true;
}

static bool add_file(LineTable *table, const char *name, u64 folder)
{
    if (!list_grow((void **)&table->files, &table->file_capacity, table->file_count,
                   sizeof *table->files))
        return false;
    table->files[table->file_count++] = (LineFile){ .name = name, .folder = folder };
    return true;
}

// Before DWARF 5 both lists end with an empty string and count from 1.
static bool read_old_lists(LineTable *table, Cursor *cursor)
{
    if (!add_folder(table, NULL) || !add_file(table, NULL, 0))
        return false;
    for (const char *name; *(name = take_string(cursor));)
        if (!add_folder(table, name))
            return false;
    for (const char *name; *(name = take_string(cursor));) {
        u64 folder = take_uleb(cursor);
        take_uleb(cursor); // time
        take_uleb(cursor); // size
        if (!add_file(table, name, folder))
            return false;
    }
    return !cursor->is_bad;
}

// One value of a DWARF 5 entry: a text or a number, whatever its form has. False: a form that is
// not known here.
static bool take_form(Cursor *cursor, const LineSections *sections, u32 offset_size, u64 form,
                      const char **ret_text, u64 *ret_number)
{
    switch (form) {
    case DW_FORM_string: *ret_text = take_string(cursor); return true;
    case DW_FORM_line_strp:
        *ret_text = string_at(&sections->line_strings, take(cursor, offset_size));
        return *ret_text != NULL;
    case DW_FORM_strp:
        *ret_text = string_at(&sections->strings, take(cursor, offset_size));
        return *ret_text != NULL;
    case DW_FORM_udata: *ret_number = take_uleb(cursor); return true;
    case DW_FORM_data1: *ret_number = take(cursor, 1); return true;
    case DW_FORM_data2: *ret_number = take(cursor, 2); return true;
    case DW_FORM_data4: *ret_number = take(cursor, 4); return true;
    case DW_FORM_data8: *ret_number = take(cursor, 8); return true;
    case DW_FORM_data16:
        take(cursor, 8);
        take(cursor, 8);
        return true;
    default: return false;
    }
}

static bool read_new_list(LineTable *table, Cursor *cursor, const LineSections *sections,
                          u32 offset_size, bool is_files)
{
    u64 kinds[FORMATS_MAX], forms[FORMATS_MAX];
    u64 format_count = take(cursor, 1);

    if (format_count > FORMATS_MAX)
        return false;
    for (u64 i = 0; i < format_count; i++) {
        kinds[i] = take_uleb(cursor);
        forms[i] = take_uleb(cursor);
    }
    u64 count = take_uleb(cursor);
    // Each entry takes at least a byte.
    if (count > (u64)(cursor->end - cursor->at) || (count && !format_count))
        return false;
    for (u64 i = 0; i < count; i++) {
        const char *name = NULL;
        u64 folder = 0;
        for (u64 k = 0; k < format_count; k++) {
            const char *text = NULL;
            u64 number = 0;
            if (!take_form(cursor, sections, offset_size, forms[k], &text, &number))
                return false;
            if (kinds[k] == DW_LNCT_path)
                name = text;
            else if (kinds[k] == DW_LNCT_directory_index)
                folder = number;
        }
        if (!(is_files ? add_file(table, name, folder) : add_folder(table, name)))
            return false;
    }
    return !cursor->is_bad;
}

static bool read_header(LineTable *table, const LineSections *sections, u64 offset,
                        Header *ret_header)
{
    Header header = { .offset_size = 4 };
    Cursor cursor = { .end = (const u8 *)sections->lines.data + sections->lines.size };
    if (!sections->lines.data || offset >= sections->lines.size)
        return false;
    cursor.at = (const u8 *)sections->lines.data + offset;
    u64 length = take(&cursor, 4);
    if (length == 0xffffffff) {
        header.offset_size = 8;
        length = take(&cursor, 8);
    }
    if (length > (u64)(cursor.end - cursor.at))
        return false;
    cursor.end = cursor.at + length;
    header.version = (u32)take(&cursor, 2);
    if (header.version < 2 || header.version > 5)
        return false;
    if (header.version >= 5 && (take(&cursor, 1) != 8 || take(&cursor, 1) != 0))
        return false; // address and segment sizes
    u64 header_length = take(&cursor, header.offset_size);
    if (header_length > (u64)(cursor.end - cursor.at))
        return false;
    header.program = (Cursor){ .at = cursor.at + header_length, .end = cursor.end };
    cursor.end = header.program.at;
    header.minimum_length = (u32)take(&cursor, 1);
    if (header.version >= 4 && take(&cursor, 1) != 1)
        return false; // operations of one instruction: only VLIW machines have more
    take(&cursor, 1); // default_is_stmt
    header.line_base = (i8)take(&cursor, 1);
    header.line_range = (u32)take(&cursor, 1);
    header.opcode_base = (u32)take(&cursor, 1);
    for (u32 i = 1; i < header.opcode_base; i++)
        header.operand_counts[i] = (u8)take(&cursor, 1);
    if (cursor.is_bad || header.line_range == 0)
        return false;
    *ret_header = header;
    if (header.version < 5)
        return read_old_lists(table, &cursor);
    return read_new_list(table, &cursor, sections, header.offset_size, false) &&
           read_new_list(table, &cursor, sections, header.offset_size, true);
}

// ---- the program ----------------------------------------------------------------------------

typedef struct Machine {
    LineTable *table;
    const Header *header;
    LineRow row;
    size_t first_row; // of the sequence
    bool is_ordered;
    bool is_full;
} Machine;

static void begin_sequence(Machine *machine)
{
    machine->row = (LineRow){ .file = 1, .line = 1 };
    machine->first_row = machine->table->row_count;
    machine->is_ordered = true;
}

static void emit_row(Machine *machine)
{
    LineTable *table = machine->table;
    if (table->row_count >= ROWS_MAX ||
        !list_grow((void **)&table->rows, &table->row_capacity, table->row_count,
                   sizeof *table->rows)) {
        machine->is_full = true;
        return;
    }
    if (table->row_count > machine->first_row &&
        table->rows[table->row_count - 1].address > machine->row.address)
        machine->is_ordered = false;
    table->rows[table->row_count++] = machine->row;
}

// The row that ends a sequence has no line: it only says how far the one before it reaches.
static void end_sequence(Machine *machine)
{
    LineTable *table = machine->table;
    LineSequence sequence = { machine->first_row, table->row_count };
    bool is_whole = machine->is_ordered && !machine->is_full && sequence.end > sequence.first &&
                    list_grow((void **)&table->sequences, &table->sequence_capacity,
                              table->sequence_count, sizeof sequence);

    if (is_whole && ranges_add(&table->ranges, table->rows[sequence.first].address,
                               machine->row.address, (u32)table->sequence_count))
        table->sequences[table->sequence_count++] = sequence;
    else
        table->row_count = sequence.first;
    begin_sequence(machine);
}

static void run_extended(Machine *machine, Cursor *program)
{
    u64 length = take_uleb(program);
    if (length == 0 || length > (u64)(program->end - program->at)) {
        program->is_bad = program->is_bad || length;
        return;
    }
    Cursor inside = { .at = program->at, .end = program->at + length };
    program->at = inside.end;
    switch (take(&inside, 1)) {
    case DW_LNE_end_sequence: end_sequence(machine); break;
    case DW_LNE_set_address: machine->row.address = take(&inside, 8); break;
    case DW_LNE_define_file: {
        const char *name = take_string(&inside);
        add_file(machine->table, name, take_uleb(&inside));
        break;
    }
    }
}

static void run_standard(Machine *machine, Cursor *program, u8 opcode)
{
    const Header *header = machine->header;
    switch (opcode) {
    case DW_LNS_copy: emit_row(machine); break;
    case DW_LNS_advance_pc:
        machine->row.address += take_uleb(program) * header->minimum_length;
        break;
    case DW_LNS_advance_line: machine->row.line += (u32)take_sleb(program); break;
    case DW_LNS_set_file: machine->row.file = (u32)take_uleb(program); break;
    case DW_LNS_const_add_pc:
        machine->row.address +=
            (255 - header->opcode_base) / header->line_range * header->minimum_length;
        break;
    case DW_LNS_fixed_advance_pc: machine->row.address += take(program, 2); break;
    default:
        for (u32 i = 0; i < header->operand_counts[opcode]; i++)
            take_uleb(program);
    }
}

static void run_program(LineTable *table, const Header *header)
{
    Cursor program = header->program;
    Machine machine = { .table = table, .header = header };

    begin_sequence(&machine);
    while (program.at < program.end && !program.is_bad && !machine.is_full) {
        u8 opcode = *program.at++;
        if (opcode >= header->opcode_base) {
            u32 adjusted = opcode - header->opcode_base;
            machine.row.address += adjusted / header->line_range * header->minimum_length;
            machine.row.line += (u32)(header->line_base + (i32)(adjusted % header->line_range));
            emit_row(&machine);
        } else if (opcode == 0) {
            run_extended(&machine, &program);
        } else {
            run_standard(&machine, &program, opcode);
        }
    }
    table->row_count = machine.first_row; // a sequence without its end is not known to be whole
}

bool line_table_read(LineTable *table, const LineSections *sections, u64 offset)
{
    Header header;
    if (!read_header(table, sections, offset, &header)) {
        line_table_free(table);
        return false;
    }
    run_program(table, &header);
    ranges_seal(&table->ranges);
    return true;
}

void line_table_free(LineTable *table)
{
    for (size_t i = 0; i < table->file_count; i++)
        free(table->files[i].path);
    free(table->rows);
    free(table->sequences);
    free(table->ranges.list);
    free(table->folders);
    free(table->files);
    *table = (LineTable){ 0 };
}

// ---- questions ------------------------------------------------------------------------------

const LineRow *line_table_find(const LineTable *table, u64 address)
{
    const AddressRange *range = ranges_find(&table->ranges, address);
    if (!range)
        return NULL;
    // Of several rows at one address the last counts, as for other debuggers.
    size_t low = table->sequences[range->index].first, high = table->sequences[range->index].end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->rows[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > table->sequences[range->index].first ? &table->rows[low - 1] : NULL;
}

const char *line_table_file(LineTable *table, u64 number)
{
    if (number >= table->file_count || !table->files[number].name)
        return NULL;
    LineFile *file = &table->files[number];
    const char *folder = file->folder < table->folder_count ? table->folders[file->folder] : NULL;

    if (file->name[0] == '/' || !folder || !*folder)
        return file->name;
    if (!file->path && asprintf(&file->path, "%s/%s", folder, file->name) < 0)
        file->path = NULL;
    return file->path;
}
