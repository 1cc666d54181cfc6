// SPDX-License-Identifier: MIT
//
// The printer. JSON and CSV are written as the rows come; text is kept until the table
// ends, because a column is as wide as its widest cell.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "inspect/print/print.h"

enum {
    WIDTH_DEFAULT = 100,
    WIDTH_MIN = 40,
    COLUMN_MAX = 64,
    ROWS_KEPT_MAX = 20000, // then the widths so far are good enough
};

// A row of a text table: its cells, or a note that stands below the row before.
typedef struct TextRow {
    char **cells; // [0] alone in a note
    bool is_note;
} TextRow;

struct Printer {
    FILE *out;
    PrintForm form;
    bool colour;
    bool is_terminal;
    u32 width;
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
    TextRow *rows;      // of the table that is open; the first is its heading
    size_t row_count, row_capacity;
    u32 widths[COLUMN_MAX];
    bool has_heading;   // it has been printed
    bool ended_in_table; // the text so far: a blank line comes before what follows
};

static const char colour_dim[] = "\x1b[2m", colour_strong[] = "\x1b[1m", colour_off[] = "\x1b[0m";

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
    printer->is_terminal = isatty(fileno(out));
    if (printer->is_terminal) {
        printer->colour = !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0;
        if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
            printer->width = size.ws_col;
    }
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

// ------------------------------------------------------------------------- cells

static void sparkline(FILE *out, const u64 *values, u32 count)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { BARS_MAX = 16 };
    u64 high = 1;

    for (u32 i = 0; i < count; i++)
        high = max_u64(high, values[i]);
    for (u32 i = 0; i < min_u64(count, BARS_MAX); i++) {
        u64 value = values[count <= BARS_MAX ? i : (u64)(i + 1) * count / BARS_MAX - 1];
        fputs(bars[(u32)((double)value / (double)high * 7.49)], out);
    }
}

static void put_text_cell(FILE *out, const Cell *cell)
{
    char text[VALUE_BYTES_MAX];

    switch (cell->kind) {
    case CELL_NONE: fputs("-", out); break;
    case CELL_TEXT: plain_text(out, cell->text); break;
    case CELL_BYTES: fputs(value_bytes(cell->count, text), out); break;
    case CELL_CHANGE: fputs(value_change(cell->number, text), out); break;
    case CELL_COUNT: fputs(value_count(cell->count, text), out); break;
    case CELL_NUMBER: fprintf(out, "%lld", (long long)cell->number); break;
    case CELL_NS: fputs(value_ns(cell->count, text), out); break;
    case CELL_PERCENT: fputs(value_share(cell->real, text), out); break;
    case CELL_REAL: fprintf(out, "%.6g", cell->real); break;
    case CELL_RATE: fprintf(out, "%s/s", value_change((i64)cell->real, text)); break;
    case CELL_ADDRESS: fprintf(out, "0x%llx", (unsigned long long)cell->count); break;
    case CELL_BOOL: fputs(cell->count ? "yes" : "no", out); break;
    case CELL_SERIES: sparkline(out, cell->values, cell->value_count); break;
    case CELL_LIST:
        for (u32 i = 0; i < cell->item_count; i++) {
            fputs(i ? ", " : "", out);
            plain_text(out, cell->items[i]);
        }
        break;
    }
}

static void put_real(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.15g", value);
    else
        fputs("null", out);
}

static void put_json_cell(FILE *out, const Cell *cell)
{
    switch (cell->kind) {
    case CELL_NONE: fputs("null", out); break;
    case CELL_TEXT: json_string(out, cell->text); break;
    case CELL_BYTES:
    case CELL_COUNT:
    case CELL_NS: fprintf(out, "%llu", (unsigned long long)cell->count); break;
    case CELL_CHANGE:
    case CELL_NUMBER: fprintf(out, "%lld", (long long)cell->number); break;
    case CELL_PERCENT: put_real(out, cell->real * 100); break;
    case CELL_REAL:
    case CELL_RATE: put_real(out, cell->real); break;
    case CELL_ADDRESS: fprintf(out, "\"0x%llx\"", (unsigned long long)cell->count); break;
    case CELL_BOOL: fputs(cell->count ? "true" : "false", out); break;
    case CELL_SERIES:
    case CELL_LIST:
        fputc('[', out);
        for (u32 i = 0; i < cell->item_count; i++) {
            fputs(i ? "," : "", out);
            if (cell->kind == CELL_LIST)
                json_string(out, cell->items[i]);
            else
                fprintf(out, "%llu", (unsigned long long)cell->values[i]);
        }
        fputc(']', out);
        break;
    }
}

// Quotes are doubled; a cell that has a separator, a quote or a line end is quoted.
static void put_csv_string(FILE *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;

    fputs(quoted ? "\"" : "", out);
    while (*text) {
        u32 length = utf8_length(text);
        if (*text == '"')
            fputs("\"\"", out);
        else if (length)
            fwrite(text, 1, length, out);
        else
            fputs("\xef\xbf\xbd", out); // U+FFFD
        text += length ? length : 1;
    }
    fputs(quoted ? "\"" : "", out);
}

static void put_csv_cell(FILE *out, const Cell *cell)
{
    char *text = NULL;
    size_t size;

    if (cell->kind == CELL_NONE)
        return;
    if (cell->kind == CELL_TEXT) {
        put_csv_string(out, cell->text);
        return;
    }
    if (cell->kind == CELL_ADDRESS) {
        fprintf(out, "0x%llx", (unsigned long long)cell->count);
        return;
    }
    if (cell->kind != CELL_LIST && cell->kind != CELL_SERIES) {
        put_json_cell(out, cell);
        return;
    }
    FILE *joined = open_memstream(&text, &size);
    if (!joined)
        abort();
    for (u32 i = 0; i < cell->item_count; i++) {
        fputs(i ? ";" : "", joined);
        if (cell->kind == CELL_LIST)
            fputs(cell->items[i], joined);
        else
            fprintf(joined, "%llu", (unsigned long long)cell->values[i]);
    }
    fclose(joined);
    put_csv_string(out, text);
    free(text);
}

// ------------------------------------------------------------------------ tables

static bool is_shown(const Printer *printer, u32 column)
{
    u32 hidden = printer->form == PRINT_TEXT ? COLUMN_DATA_ONLY : COLUMN_TEXT_ONLY;

    return !(printer->columns[column].flags & hidden);
}

static TextRow *new_row(Printer *printer)
{
    if (printer->row_count == printer->row_capacity) {
        printer->row_capacity = printer->row_capacity * 2 + 64;
        printer->rows = realloc(printer->rows, printer->row_capacity * sizeof(*printer->rows));
        if (!printer->rows)
            abort();
    }
    TextRow *row = &printer->rows[printer->row_count++];
    *row = (TextRow){.cells = calloc(printer->column_count + 1, sizeof(*row->cells))};
    if (!row->cells)
        abort();
    return row;
}

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

static void fit_terminal(Printer *printer, const TextRow *row, u32 last)
{
    u32 used = row->is_note ? 4 : 0;

    if (!printer->is_terminal || !(row->is_note || printer->columns[last].flags & COLUMN_PLACE))
        return;
    for (u32 i = 0; i < last && !row->is_note; i++)
        used += is_shown(printer, i) ? printer->widths[i] + 2 : 0;
    if (used < printer->width)
        shorten(&row->cells[row->is_note ? 0 : last], printer->width - used);
}

static void put_padded(Printer *printer, const char *text, u32 width, u32 flags, bool is_last)
{
    u32 own = plain_width(text);
    u32 pad = own < width ? width - own : 0;

    if (flags & COLUMN_RIGHT)
        fprintf(printer->out, "%*s", (int)pad, "");
    if (printer->colour && flags & COLUMN_STRONG)
        fprintf(printer->out, "%s%s%s", colour_strong, text, colour_off);
    else
        fputs(text, printer->out);
    if (!(flags & COLUMN_RIGHT) && !is_last)
        fprintf(printer->out, "%*s", (int)pad, "");
}

static void put_text_row(Printer *printer, const TextRow *row, u32 last, bool is_heading)
{
    if (row->is_note) {
        fprintf(printer->out, "%s    %s%s\n", printer->colour ? colour_dim : "", row->cells[0],
                printer->colour ? colour_off : "");
        return;
    }
    if (is_heading && printer->colour)
        fputs(colour_dim, printer->out);
    for (u32 i = 0; i < printer->column_count; i++) {
        if (!is_shown(printer, i))
            continue;
        u32 flags = printer->columns[i].flags & (is_heading ? (u32)~COLUMN_STRONG : ~0u);
        put_padded(printer, row->cells[i], printer->widths[i], flags, i == last);
        fputs(i == last ? "" : "  ", printer->out);
    }
    fputs(is_heading && printer->colour ? colour_off : "", printer->out);
    fputc('\n', printer->out);
}

static void flush_text_rows(Printer *printer)
{
    u32 last = 0;

    for (u32 i = 0; i < printer->column_count; i++)
        last = is_shown(printer, i) ? i : last;
    for (size_t r = 0; r < printer->row_count; r++) {
        for (u32 i = 0; i < printer->column_count && !printer->rows[r].is_note; i++) {
            const char *text = printer->rows[r].cells[i];
            u32 width = text ? plain_width(text) : 0;
            printer->widths[i] = width > printer->widths[i] ? width : printer->widths[i];
        }
    }
    for (size_t r = 0; r < printer->row_count; r++) {
        TextRow *row = &printer->rows[r];
        fit_terminal(printer, row, last);
        put_text_row(printer, row, last, r == 0 && !printer->has_heading);
        for (u32 i = 0; i <= printer->column_count; i++)
            free(row->cells[i]);
        free(row->cells);
    }
    printer->row_count = 0;
    printer->has_heading = true;
    printer->ended_in_table = true;
}

static void end_table(Printer *printer)
{
    if (!printer->in_table)
        return;
    printer->in_table = false;
    if (printer->form == PRINT_TEXT)
        flush_text_rows(printer);
    else if (printer->form == PRINT_JSON)
        fputs(printer->has_row ? "\n]" : "]", printer->out);
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
        memset(printer->widths, 0, sizeof(printer->widths));
        printer->has_heading = false;
        TextRow *row = new_row(printer);
        for (u32 i = 0; i < printer->column_count; i++)
            row->cells[i] = strdup(printer->columns[i].heading);
    }
}

static void text_row(Printer *printer, const Cell *cells)
{
    if (printer->row_count >= ROWS_KEPT_MAX)
        flush_text_rows(printer);
    TextRow *row = new_row(printer);
    for (u32 i = 0; i < printer->column_count; i++) {
        if (!is_shown(printer, i))
            continue;
        size_t size;
        FILE *out = open_memstream(&row->cells[i], &size);
        if (!out)
            abort();
        put_text_cell(out, &cells[i]);
        fclose(out);
    }
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
    size_t size;

    if (printer->form != PRINT_TEXT || !printer->in_table)
        return;
    TextRow *row = new_row(printer);
    row->is_note = true;
    FILE *out = open_memstream(&row->cells[0], &size);
    if (!out)
        abort();
    plain_text(out, text);
    fclose(out);
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
            printer->colour ? colour_dim : "", count, *what ? " (" : "", what, *what ? ")" : "",
            printer->colour ? colour_off : "");
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
        fprintf(printer->out, "%s%-22s%s", printer->colour ? colour_dim : "", label,
                printer->colour ? colour_off : "");
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
    free(printer->rows);
    free(printer);
    return ok;
}
