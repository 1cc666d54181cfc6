// SPDX-License-Identifier: MIT
//
// The printer. JSON and CSV are written as the rows come; text_table.c keeps those for people.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "inspect/print/cells.h"

enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 40 };

struct Printer {
    FILE *out;
    PrintForm form;
    bool colour;
    u32 width;          // of the terminal
    bool has_member;    // of the JSON object
    bool has_row;       // of the JSON array
    bool in_table;
    u32 table_count;
    const char *table_key;
    Column columns[COLUMN_MAX];
    u32 column_count;
    char *facts;        // of a CSV: rows that are printed if no table comes
    size_t facts_size;
    FILE *facts_out;
    TextTable text;     // the table that is open, for people
    bool ended_in_table; // the text so far: a blank line comes before what follows
};

Printer *printer_new(FILE *out, PrintForm form)
{
    Printer *printer = calloc(1, sizeof(*printer));
    const char *term = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");
    struct winsize size;

    if (!printer)
        abort();
    printer->out = out;
    printer->form = form;
    printer->width = WIDTH_DEFAULT;
    bool is_terminal = isatty(fileno(out));
    if (is_terminal) {
        printer->colour = !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0;
        if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
            printer->width = size.ws_col;
    }
    printer->text = (TextTable){.out = out, .colour = printer->colour,
                                .fit_width = is_terminal ? printer->width : 0};
    if (form == PRINT_JSON)
        fputs("{", out);
    printer->facts_out = open_memstream(&printer->facts, &printer->facts_size);
    if (!printer->facts_out)
        abort();
    return printer;
}

PrintForm printer_form(const Printer *printer)
{
    return printer->form;
}

u32 printer_width(const Printer *printer)
{
    return printer->width;
}

// ------------------------------------------------------------------------ tables

// In JSON and CSV.
static bool is_shown(const Printer *printer, u32 column)
{
    return !(printer->columns[column].flags & COLUMN_TEXT_ONLY);
}

static void end_table(Printer *printer)
{
    if (!printer->in_table)
        return;
    printer->in_table = false;
    if (printer->form == PRINT_TEXT) {
        text_table_flush(&printer->text);
        printer->ended_in_table = true;
    } else if (printer->form == PRINT_JSON) {
        fputs(printer->has_row ? "\n]" : "]", printer->out);
    }
}

static void json_key(Printer *printer, const char *key)
{
    fputs(printer->has_member ? ",\n" : "\n", printer->out);
    json_string(printer->out, key);
    fputc(':', printer->out);
    printer->has_member = true;
}

static void separate(Printer *printer)
{
    if (printer->ended_in_table)
        fputc('\n', printer->out);
    printer->ended_in_table = false;
}

void printer_table(Printer *printer, const char *key, const char *title, const Column *columns,
                   u32 column_count)
{
    end_table(printer);
    printer->column_count = column_count < COLUMN_MAX ? column_count : COLUMN_MAX;
    memcpy(printer->columns, columns, printer->column_count * sizeof(*columns));
    printer->in_table = true;
    printer->table_key = key;
    printer->has_row = false;
    printer->table_count++;
    if (printer->form == PRINT_JSON) {
        json_key(printer, key);
        fputc('[', printer->out);
    } else if (printer->form == PRINT_CSV) {
        const char *between = "";
        for (u32 i = 0; i < printer->column_count && printer->table_count == 1; i++) {
            if (!is_shown(printer, i))
                continue;
            fputs(between, printer->out);
            put_csv_string(printer->out, printer->columns[i].key);
            between = ",";
        }
        fputs(*between ? "\r\n" : "", printer->out);
    } else {
        separate(printer);
        if (title)
            fprintf(printer->out, "%s\n", title);
        text_table_begin(&printer->text, printer->columns, printer->column_count);
    }
}

static void text_row(Printer *printer, const Cell *cells)
{
    text_table_row(&printer->text, cells);
}

static void json_row(Printer *printer, const Cell *cells)
{
    const char *between = "";

    fputs(printer->has_row ? ",\n {" : "\n {", printer->out);
    printer->has_row = true;
    for (u32 i = 0; i < printer->column_count; i++) {
        if (!is_shown(printer, i))
            continue;
        fputs(between, printer->out);
        json_string(printer->out, printer->columns[i].key);
        fputc(':', printer->out);
        put_json_cell(printer->out, &cells[i]);
        between = ",";
    }
    fputc('}', printer->out);
}

static void csv_row(Printer *printer, const Cell *cells)
{
    const char *between = "";

    if (printer->table_count > 1)
        return;
    for (u32 i = 0; i < printer->column_count; i++) {
        if (!is_shown(printer, i))
            continue;
        fputs(between, printer->out);
        put_csv_cell(printer->out, &cells[i]);
        between = ",";
    }
    fputs("\r\n", printer->out);
}

void printer_row(Printer *printer, const Cell *cells)
{
    static void (*const put_row[])(Printer *, const Cell *) = {
        [PRINT_TEXT] = text_row, [PRINT_JSON] = json_row, [PRINT_CSV] = csv_row};

    put_row[printer->form](printer, cells);
}

void printer_note(Printer *printer, const char *text)
{
    if (printer->form == PRINT_TEXT && printer->in_table)
        text_table_note(&printer->text, text);
}

void printer_more(Printer *printer, u64 rows, u64 bytes, const char *what)
{
    char count[VALUE_BYTES_MAX], sum[VALUE_BYTES_MAX];

    if (rows == 0)
        return;
    end_table(printer);
    value_count(rows, count);
    if (!what)
        what = value_bytes(bytes, sum);
    if (printer->form == PRINT_JSON) {
        char key[64];
        snprintf(key, sizeof(key), "%s_more_rows", printer->table_key);
        printer_fact(printer, key, NULL, cell_u64(CELL_COUNT, rows));
        snprintf(key, sizeof(key), "%s_more_bytes", printer->table_key);
        printer_fact(printer, key, NULL, cell_u64(CELL_BYTES, bytes));
        return;
    }
    // A CSV is a table to its last line: what is missing is told beside it.
    fprintf(printer->form == PRINT_CSV ? stderr : printer->out, "%s%s more%s%s%s%s\n",
            printer->colour ? COLOUR_DIM : "", count, *what ? " (" : "", what, *what ? ")" : "",
            printer->colour ? COLOUR_OFF : "");
}

// ------------------------------------------------------------------------- facts

void printer_fact(Printer *printer, const char *key, const char *label, Cell value)
{
    if (printer->form == PRINT_JSON) {
        end_table(printer);
        json_key(printer, key);
        put_json_cell(printer->out, &value);
    } else if (printer->form == PRINT_CSV) {
        put_csv_string(printer->facts_out, key);
        fputc(',', printer->facts_out);
        put_csv_cell(printer->facts_out, &value);
        fputs("\r\n", printer->facts_out);
    } else if (label) {
        end_table(printer);
        separate(printer);
        fprintf(printer->out, "%s%-22s%s", printer->colour ? COLOUR_DIM : "", label,
                printer->colour ? COLOUR_OFF : "");
        put_text_cell(printer->out, &value);
        fputc('\n', printer->out);
    }
}

void printer_line(Printer *printer, const char *format, ...)
{
    va_list arguments;
    char *line = NULL;

    if (printer->form != PRINT_TEXT)
        return;
    end_table(printer);
    separate(printer);
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) < 0)
        abort();
    va_end(arguments);
    plain_text(printer->out, line);
    fputc('\n', printer->out);
    free(line);
}

bool printer_end(Printer *printer)
{
    end_table(printer);
    if (printer->form == PRINT_JSON)
        fputs("\n}\n", printer->out);
    fclose(printer->facts_out);
    if (printer->form == PRINT_CSV && printer->table_count == 0)
        fprintf(printer->out, "key,value\r\n%s", printer->facts);
    bool ok = fflush(printer->out) == 0 && !ferror(printer->out);
    // A reader that has seen enough (`| head`) is no failure to tell of.
    if (!ok && errno != EPIPE)
        fprintf(stderr, "muninn: cannot write the answer: %s\n", strerror(errno));
    free(printer->facts);
    free(printer->text.rows);
    free(printer);
    return ok;
}
