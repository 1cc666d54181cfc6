// SPDX-License-Identifier: MIT
//
// Tables for people: aligned, numbers to the right, places shortened where a terminal is too
// narrow.
#include <stdlib.h>
#include <string.h>

#include "inspect/print/cells.h"

enum { ROWS_KEPT_MAX = 20000 };

static bool is_shown(const TextTable *table, u32 column)
{
    return !(table->columns[column].flags & COLUMN_DATA_ONLY);
}

static TextRow *new_row(TextTable *table)
{
    if (table->row_count == table->row_capacity) {
        table->row_capacity = table->row_capacity * 2 + 64;
        table->rows = realloc(table->rows, table->row_capacity * sizeof(*table->rows));
        if (!table->rows)
            abort();
    }
    TextRow *row = &table->rows[table->row_count++];
    *row = (TextRow){.cells = calloc(table->column_count + 1, sizeof(*row->cells))};
    if (!row->cells)
        abort();
    return row;
}

void text_table_begin(TextTable *table, const Column *columns, u32 column_count)
{
    table->columns = columns;
    table->column_count = column_count;
    table->has_heading = false;
    memset(table->widths, 0, sizeof(table->widths));
    TextRow *row = new_row(table);
    for (u32 i = 0; i < column_count; i++) {
        row->cells[i] = strdup(columns[i].heading);
        table->is_number[i] = true;
    }
}

void text_table_row(TextTable *table, const Cell *cells)
{
    if (table->row_count >= ROWS_KEPT_MAX)
        text_table_flush(table);
    TextRow *row = new_row(table);
    for (u32 i = 0; i < table->column_count; i++) {
        if (!is_shown(table, i))
            continue;
        size_t size;
        FILE *out = open_memstream(&row->cells[i], &size);
        if (!out)
            abort();
        put_text_cell(out, &cells[i]);
        fclose(out);
        bool is_text = cells[i].kind == CELL_TEXT || cells[i].kind == CELL_LIST;
        table->is_number[i] &= !is_text;
    }
}

void text_table_note(TextTable *table, const char *text)
{
    size_t size;
    TextRow *row = new_row(table);

    row->is_note = true;
    FILE *out = open_memstream(&row->cells[0], &size);
    if (!out)
        abort();
    plain_text(out, text);
    fclose(out);
}

// --------------------------------------------------------------------- narrow terminals

// The length of the first `count` characters.
static size_t characters(const char *text, u32 count)
{
    size_t at = 0;

    for (; count && text[at]; count--)
        at += max_u64(utf8_length(text + at), 1);
    return at;
}

// Takes out of the middle what does not fit: where it is stands at the end.
static void shorten(char **text, u32 columns)
{
    char *place = strrchr(*text, '(');
    u32 kept = place ? plain_width(place) : 0;
    char *shorter = NULL;

    if (plain_width(*text) <= columns || columns < 8)
        return;
    if (kept + 4 > columns)
        kept = 0;
    size_t head = characters(*text, columns - kept - 1);
    if (asprintf(&shorter, "%.*s…%s", (int)head, *text, kept ? place : "") < 0)
        abort();
    free(*text);
    *text = shorter;
}

static void fit(const TextTable *table, const TextRow *row, u32 last)
{
    u32 used = row->is_note ? 4 : 0;

    if (!table->fit_width || !(row->is_note || table->columns[last].flags & COLUMN_PLACE))
        return;
    for (u32 i = 0; i < last && !row->is_note; i++)
        used += is_shown(table, i) ? table->widths[i] + 2 : 0;
    if (used < table->fit_width)
        shorten(&row->cells[row->is_note ? 0 : last], table->fit_width - used);
}

// ----------------------------------------------------------------------------- printing

static void put_cell(const TextTable *table, u32 column, const char *text, bool is_heading,
                     bool is_last)
{
    u32 flags = table->columns[column].flags;
    u32 own = plain_width(text);
    u32 pad = own < table->widths[column] ? table->widths[column] - own : 0;
    bool is_right = flags & COLUMN_RIGHT || (flags & COLUMN_BY_VALUE && table->is_number[column]);

    if (is_right)
        fprintf(table->out, "%*s", (int)pad, "");
    if (table->colour && flags & COLUMN_STRONG && !is_heading)
        fprintf(table->out, COLOUR_STRONG "%s" COLOUR_OFF, text);
    else
        fputs(text, table->out);
    if (!is_right && !is_last)
        fprintf(table->out, "%*s", (int)pad, "");
    fputs(is_last ? "" : "  ", table->out);
}

static void put_row(const TextTable *table, const TextRow *row, u32 last, bool is_heading)
{
    bool is_dim = table->colour && (is_heading || row->is_note);

    fputs(is_dim ? COLOUR_DIM : "", table->out);
    if (row->is_note)
        fprintf(table->out, "    %s", row->cells[0]);
    for (u32 i = 0; i < table->column_count && !row->is_note; i++) {
        if (is_shown(table, i))
            put_cell(table, i, row->cells[i], is_heading, i == last);
    }
    fputs(is_dim ? COLOUR_OFF "\n" : "\n", table->out);
}

static void widen(TextTable *table, const TextRow *row)
{
    for (u32 i = 0; i < table->column_count && !row->is_note; i++) {
        u32 width = row->cells[i] ? plain_width(row->cells[i]) : 0;
        table->widths[i] = width > table->widths[i] ? width : table->widths[i];
    }
}

void text_table_flush(TextTable *table)
{
    u32 last = 0;

    for (u32 i = 0; i < table->column_count; i++)
        last = is_shown(table, i) ? i : last;
    for (size_t r = 0; r < table->row_count; r++)
        widen(table, &table->rows[r]);
    for (size_t r = 0; r < table->row_count; r++) {
        TextRow *row = &table->rows[r];
        fit(table, row, last);
        put_row(table, row, last, r == 0 && !table->has_heading);
        for (u32 i = 0; i <= table->column_count; i++)
            free(row->cells[i]);
        free(row->cells);
    }
    table->row_count = 0;
    table->has_heading = true;
}
