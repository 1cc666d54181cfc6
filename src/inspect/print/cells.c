// SPDX-License-Identifier: MIT
//
// A cell in each of the three forms.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/print/cells.h"

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

void put_text_cell(FILE *out, const Cell *cell)
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

void put_json_cell(FILE *out, const Cell *cell)
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
void put_csv_string(FILE *out, const char *text)
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

void put_csv_cell(FILE *out, const Cell *cell)
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
