// SPDX-License-Identifier: MIT
//
// The lines of the screen:
//
//   muninn top 4242: ./server --port 8080                    0:12, every 1 s
//   heap 12.3 MiB (peak 20.1 MiB)  mapped 30.2 MiB  stacks 132.0 KiB  RSS 45.1 MiB
//   1,234,567 allocations, 12,345/s; 41 % temporary, 5,000/s; heap +1.2 MiB/s
//   ▁▂▃▅▆▇ heap, up to 20.1 MiB
//         LIVE     GROWTH/s   BLOCKS  ALLOCS/s    TEMP/s SPACE  WHERE
//     10.1 MiB     +1.2 MiB    1,024     1,230        12 heap   insert (table.c:40) < main …
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/top/view.h"

enum {
    LINES_ABOVE = 5,
    LINES_BELOW = 1,
    STACK_LINES = 10,
    LINE_BYTES = 4096,
};

// ------------------------------------------------------------------------ lines

// The length of the character at `text`, 0: none that may be shown.
static size_t printable(const u8 *text)
{
    static const u32 least[] = {0, 0, 0x80, 0x800, 0x10000};
    u8 lead = *text;
    size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    u32 code = length <= 1 ? *text : *text & (0xffu >> (length + 1));

    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool is_control = code < ' ' || (code >= 0x7f && code < 0xa0);
    bool turns_the_line = (code >= 0x200e && code <= 0x200f) ||
                          (code >= 0x2028 && code <= 0x202e) ||
                          (code >= 0x2060 && code <= 0x2069) || code == 0xfeff;
    bool is_wrong = length == 0 || code < least[length] || code > 0x10ffff ||
                    (code >= 0xd800 && code < 0xe000);
    return is_control || turns_the_line || is_wrong ? 0 : length;
}

// Text as one line, cut to the view's width. `style` is the terminal's word for how, or NULL.
static void put_line(const View *view, FILE *out, const char *style, const char *text)
{
    u32 columns = 0;

    if (view->is_terminal && style)
        fputs(style, out);
    for (const u8 *c = (const u8 *)text; *c && (view->width == 0 || columns < view->width);) {
        size_t length = printable(c);
        if (length > 1 && !view->is_utf8) {
            fputc('?', out);
        } else if (length == 0) {
            fputc('?', out);
            length = 1;
        } else {
            fwrite(c, 1, length, out);
        }
        c += length;
        columns++;
    }
    if (view->is_terminal && style) {
        for (; columns < view->width; columns++)
            fputc(' ', out);
        fputs("\033[0m", out);
    }
    fputs(view->is_terminal ? "\033[K\r\n" : "\n", out);
}

static void put_format(const View *view, FILE *out, const char *style, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void put_format(const View *view, FILE *out, const char *style, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    put_line(view, out, style, line);
}

// ---------------------------------------------------------------------- numbers

enum { NUMBER_TEXT = 40 };

// "12.3 MiB"; `sign` puts a + before what grows.
static const char *size_text(char text[NUMBER_TEXT], double bytes, bool sign)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double value = fabs(bytes);
    const char *before = bytes < 0 ? "-" : sign && bytes > 0 ? "+" : "";

    while (value >= 1023.95 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    snprintf(text, NUMBER_TEXT, "%s%.*f %s", before, unit ? 1 : 0, value, units[unit]);
    return text;
}

static const char *count_text(char text[NUMBER_TEXT], double count)
{
    char digits[NUMBER_TEXT];
    double whole = count > 0 ? count < 1e15 ? count : 1e15 : 0;
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%.0f", whole);
    char *out = text;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

// ------------------------------------------------------------------------ parts

static void put_title(const View *view, FILE *out)
{
    u64 seconds = view->sample->time_ms / 1000;
    const char *state = view->has_ended ? ", ended" : view->is_paused ? ", paused" : "";

    put_format(view, out, "\033[7m", "muninn top %d: %.200s   %llu:%02llu, every %g s%s", view->pid,
               view->command, (unsigned long long)(seconds / 60),
               (unsigned long long)(seconds % 60), view->interval_s, state);
}

static void put_totals(const View *view, FILE *out)
{
    const TopSample *s = view->sample;
    char heap[NUMBER_TEXT], heap_peak[NUMBER_TEXT], mapped[NUMBER_TEXT], stacks[NUMBER_TEXT];
    char rss[NUMBER_TEXT], rss_peak[NUMBER_TEXT], count[NUMBER_TEXT], speed[NUMBER_TEXT];
    char churn[NUMBER_TEXT], growth[NUMBER_TEXT];
    double share = s->allocations ? (double)s->temporary * 100 / (double)s->allocations : 0;

    put_format(view, out, NULL, "heap %s (peak %s)  mapped %s  stacks %s  RSS %s (peak %s)",
               size_text(heap, (double)s->bytes[TOP_HEAP], false),
               size_text(heap_peak, (double)s->peak_bytes[TOP_HEAP], false),
               size_text(mapped, (double)s->bytes[TOP_MAPPED], false),
               size_text(stacks, (double)s->bytes[TOP_STACKS], false),
               size_text(rss, (double)s->rss_bytes, false),
               size_text(rss_peak, (double)s->rss_peak_bytes, false));
    put_format(view, out, NULL, "%s allocations, %s/s; %.0f %% temporary, %s/s; heap %s/s",
               count_text(count, (double)s->allocations), count_text(speed, s->allocations_per_s),
               share, count_text(churn, s->temporary_per_s),
               size_text(growth, s->growth_per_s, true));
}

// The heap over time, newest at the right; the highest is what was highest of what is shown.
static void put_history(const View *view, FILE *out)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char marks[] = "_.-=oxX#";
    char line[LINE_BYTES] = "", size[NUMBER_TEXT];
    u32 room = view->width > 40 ? view->width - 28 : view->width ? 12 : 60;
    u32 shown = view->history_count < room ? view->history_count : room;
    const u64 *first = view->history + view->history_count - shown;
    u64 highest = 1;
    size_t length = 0;

    for (u32 i = 0; i < shown; i++)
        highest = max_u64(highest, first[i]);
    for (u32 i = 0; i < shown && length + 8 < sizeof(line); i++) {
        u32 level = (u32)((double)first[i] / (double)highest * 7.999);
        length += (size_t)snprintf(line + length, sizeof(line) - length,
                                   view->is_utf8 ? "%s" : "%.1s",
                                   view->is_utf8 ? bars[level] : &marks[level]);
    }
    put_format(view, out, NULL, "%s heap, up to %s", line, size_text(size, (double)highest, false));
}

static const Dom *first_frame(const TopContext *context)
{
    return context->frames ? context->frames->first : NULL;
}

static void describe_stack(const TopContext *context, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (const Dom *frame = first_frame(context); frame && length + 1 < size;
         frame = frame->next) {
        char label[512];
        sample_frame_label(frame, label, sizeof(label));
        int n = snprintf(text + length, size - length, "%s%s", length ? " < " : "", label);
        length += n > 0 ? (size_t)n : 0;
    }
}

static void put_row(const View *view, FILE *out, u32 row)
{
    const TopContext *context = &view->sample->contexts[row];
    char where[1024], live[NUMBER_TEXT], growth[NUMBER_TEXT], blocks[NUMBER_TEXT];
    char speed[NUMBER_TEXT], churn[NUMBER_TEXT];

    describe_stack(context, where, sizeof(where));
    put_format(view, out, row == view->selected ? "\033[7m" : NULL,
               "%12s %12s %10s %10s %9s %-6s %s", size_text(live, (double)context->bytes, false),
               size_text(growth, context->growth_per_s, true),
               count_text(blocks, (double)context->blocks),
               count_text(speed, context->allocations_per_s),
               count_text(churn, context->temporary_per_s), top_space_names[context->space], where);
}

static u32 put_stack(const View *view, FILE *out)
{
    const TopContext *context = &view->sample->contexts[view->selected];
    u32 lines = 1;

    put_line(view, out, "\033[1m", "  the stack, innermost first");
    for (const Dom *frame = first_frame(context); frame && lines < STACK_LINES;
         frame = frame->next) {
        char label[512];
        sample_frame_label(frame, label, sizeof(label));
        put_format(view, out, NULL, "    %s", label);
        lines++;
    }
    return lines;
}

static const char *const help_lines[] = {
    "LIVE      bytes that are allocated now, by this stack",
    "GROWTH/s  how much more than at the last look, for each second",
    "BLOCKS    how many blocks that is",
    "ALLOCS/s  allocations in a second",
    "TEMP/s    of these, freed again before their thread allocated anything else",
    "",
    "b g t a   sort by live bytes, growth, temporary, allocations",
    "up down PgUp PgDn Home End    move; Enter shows the stack",
    "p         pause       + -     faster, slower",
    "q         quit        h       this help",
};

static u32 put_help(const View *view, FILE *out)
{
    u32 lines = 0;

    for (; lines < ARRAY_LEN(help_lines) && lines < view_rows(view); lines++)
        put_line(view, out, NULL, help_lines[lines]);
    return lines;
}

// ------------------------------------------------------------------- the screen

void view_take(View *view, const TopSample *sample)
{
    view->sample = sample;
    if (view->history_count == HISTORY_MAX)
        memmove(view->history, view->history + 1, --view->history_count * sizeof(u64));
    view->history[view->history_count++] = sample->bytes[TOP_HEAP];
    view_move(view, 0);
}

static bool has_stack(const View *view)
{
    return view->shows_stack && !view->shows_help && view->sample->context_count > 0;
}

u32 view_rows(const View *view)
{
    u32 taken = LINES_ABOVE + (view->is_terminal ? LINES_BELOW : 0) +
                (has_stack(view) ? STACK_LINES : 0);

    if (view->height == 0)
        return UINT32_MAX;
    return view->height > taken ? view->height - taken : 1;
}

void view_move(View *view, i64 rows)
{
    i64 last = view->sample->context_count ? (i64)view->sample->context_count - 1 : 0;
    i64 to = (i64)view->selected + rows;
    u32 fit = view_rows(view);

    view->selected = (u32)(to < 0 ? 0 : to > last ? last : to);
    if (view->selected < view->offset)
        view->offset = view->selected;
    if (view->selected - view->offset >= fit)
        view->offset = view->selected - fit + 1;
}

void view_print(const View *view, FILE *out)
{
    u32 fit = view_rows(view), lines = 0;

    put_title(view, out);
    put_totals(view, out);
    put_history(view, out);
    put_format(view, out, "\033[1m", "%12s %12s %10s %10s %9s %-6s %s", "LIVE", "GROWTH/s",
               "BLOCKS", "ALLOCS/s", "TEMP/s", "SPACE", "WHERE");
    if (view->shows_help)
        lines = put_help(view, out);
    for (u32 i = view->offset; !view->shows_help && i < view->sample->context_count && lines < fit;
         i++, lines++)
        put_row(view, out, i);
    if (!view->is_terminal)
        return;
    if (has_stack(view))
        lines += put_stack(view, out);
    for (u32 all = fit + (has_stack(view) ? STACK_LINES : 0); lines < all; lines++)
        put_line(view, out, NULL, "");
    put_format(view, out, NULL, "%s by %s, %u of %u  q quit  h help  b g t a sort  Enter stack",
               view->has_ended ? "the program has ended;" : "sorted", top_order_names[view->order],
               view->sample->context_count ? view->selected + 1 : 0, view->sample->context_count);
}

// ------------------------------------------------------------------------- JSON

static void json_put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const u8 *c = (const u8 *)text; *c;) {
        size_t length = printable(c);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (length > 0)
            fwrite(c, 1, length, out);
        else
            fprintf(out, "\\u%04x", *c);
        c += length ? length : 1;
    }
    fputc('"', out);
}

static void json_put_stack(const TopContext *context, FILE *out)
{
    fputs(", \"frames\": [", out);
    for (const Dom *frame = first_frame(context); frame; frame = frame->next) {
        char label[512];
        sample_frame_label(frame, label, sizeof(label));
        fputs(frame == first_frame(context) ? "" : ", ", out);
        json_put_text(out, label);
    }
    fputc(']', out);
}

void view_print_json(const View *view, u32 rows, FILE *out)
{
    const TopSample *s = view->sample;

    fprintf(out, "{\"pid\": %d, \"time_ms\": %llu", view->pid, (unsigned long long)s->time_ms);
    for (int i = 0; i < TOP_SPACES; i++)
        fprintf(out, ", \"%s_bytes\": %llu, \"%s_peak_bytes\": %llu", top_space_names[i],
                (unsigned long long)s->bytes[i], top_space_names[i],
                (unsigned long long)s->peak_bytes[i]);
    fprintf(out, ", \"rss_bytes\": %llu, \"rss_peak_bytes\": %llu, \"allocations\": %llu, "
                 "\"temporary\": %llu, \"growth_bytes_per_s\": %.0f, \"allocations_per_s\": %.0f, "
                 "\"temporary_per_s\": %.0f, \"contexts\": [",
            (unsigned long long)s->rss_bytes, (unsigned long long)s->rss_peak_bytes,
            (unsigned long long)s->allocations, (unsigned long long)s->temporary, s->growth_per_s,
            s->allocations_per_s, s->temporary_per_s);
    for (u32 i = 0; i < s->context_count && i < rows; i++) {
        const TopContext *c = &s->contexts[i];
        fprintf(out, "%s{\"context\": %lld, \"space\": \"%s\", \"bytes\": %llu, \"blocks\": %llu, "
                     "\"peak_bytes\": %llu, \"allocations\": %llu, \"temporary\": %llu, "
                     "\"growth_bytes_per_s\": %.0f, \"allocations_per_s\": %.0f, "
                     "\"temporary_per_s\": %.0f",
                i ? ", " : "", (long long)c->id, top_space_names[c->space],
                (unsigned long long)c->bytes, (unsigned long long)c->blocks,
                (unsigned long long)c->peak_bytes, (unsigned long long)c->allocations,
                (unsigned long long)c->temporary, c->growth_per_s, c->allocations_per_s,
                c->temporary_per_s);
        json_put_stack(c, out);
        fputc('}', out);
    }
    fputs("]}\n", out);
}
