// SPDX-License-Identifier: MIT
//
// What only a person at a terminal sees: the source at a finding with the line
// marked, the source of its origin beside it, findings grouped by source line.
//
// Source files are the user's, but their names come from debug info: only regular
// files of a sane size are read, without blocking, and what they contain is made
// harmless.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/report/text_writer.h"

enum {
    SOURCE_MAX_BYTES = 8 << 20,
    TAB_WIDTH = 4,
    BESIDE_MIN_COLUMNS = 150, // two excerpts fit side by side
    GROUPS_MAX = 20,
};

u32 terminal_columns(int fd)
{
    struct winsize size;
    const char *text = getenv("COLUMNS");
    int columns = text ? atoi(text) : 0;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        columns = size.ws_col;
    return columns >= 40 && columns <= 1000 ? (u32)columns : 80;
}

// The whole file, or NULL.
static char *read_source(const char *path, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat stat;
    char *data = NULL;
    size_t size = 0;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0 &&
        stat.st_size <= SOURCE_MAX_BYTES)
        data = malloc((size_t)stat.st_size);
    while (data && size < (size_t)stat.st_size) {
        ssize_t got = read(fd, data + size, (size_t)stat.st_size - size);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        size += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    *ret_size = size;
    return data;
}

// Tabs become blanks, and what does not fit is cut between characters.
static void put_source_line(char *out, size_t out_size, const char *line, size_t length)
{
    Buffer safe = {0};
    size_t size = 0;

    if (length && line[length - 1] == '\r')
        length--;
    buffer_put_safe(&safe, line, min_u64(length, 1024), READER_TERMINAL);
    for (size_t i = 0; i < safe.size && size + TAB_WIDTH < out_size; i++) {
        if (safe.data[i] != '\t') {
            out[size++] = safe.data[i];
            continue;
        }
        do
            out[size++] = ' ';
        while (size % TAB_WIDTH && size + 1 < out_size);
    }
    while (size && ((u8)out[size - 1] & 0xc0) == 0x80 && size + TAB_WIDTH >= out_size)
        size--;
    if (size && (u8)out[size - 1] >= 0xc0)
        size--;
    out[size] = 0;
    buffer_free(&safe);
}

static bool cut_excerpt(const char *data, size_t size, Excerpt *excerpt)
{
    u32 line = 1;

    for (size_t at = 0; at < size && excerpt->count < ARRAY_LEN(excerpt->text); line++) {
        const char *end = memchr(data + at, '\n', size - at);
        size_t length = end ? (size_t)(end - data) - at : size - at;
        if (line >= excerpt->first_line)
            put_source_line(excerpt->text[excerpt->count++], sizeof(excerpt->text[0]), data + at,
                            length);
        at += length + 1;
    }
    return excerpt->first_line + excerpt->count > excerpt->marked_line;
}

bool excerpt_read(const Frame *frame, u32 context, Excerpt *ret_excerpt)
{
    Buffer path = {0};
    Excerpt excerpt = {.marked_line = frame->line};
    size_t size = 0;
    bool found = false;

    if (!frame->file || !frame->line)
        return false;
    excerpt.first_line = frame->line > context ? frame->line - context : 1;
    frame_source_path(frame, &path);
    buffer_putc(&path, 0);
    char *data = path.failed ? NULL : read_source(path.data, &size);
    if (data)
        found = cut_excerpt(data, size, &excerpt);
    free(data);
    buffer_free(&path);
    if (found)
        *ret_excerpt = excerpt;
    return found;
}

// The innermost frame whose source is there: the user's code rather than libc's.
static bool read_of_stack(const ReportStack *stack, Excerpt *ret_excerpt, const Frame **ret_frame)
{
    for (size_t i = 0; i < stack->count && i < 24; i++) {
        if (excerpt_read(&stack->frames[i], 2, ret_excerpt)) {
            *ret_frame = &stack->frames[i];
            return true;
        }
    }
    return false;
}

// As many bytes of `text` as are `width` characters, then blanks up to it.
static void put_cut(Buffer *out, const char *text, size_t width, bool pad)
{
    size_t done = 0;

    while (*text && done < width) {
        u32 point;
        size_t length = utf8_decode(text, strlen(text), &point);
        buffer_put(out, text, length ? length : 1);
        text += length ? length : 1;
        done++;
    }
    while (pad && done++ < width)
        buffer_putc(out, ' ');
}

static void put_row(TextWriter *text, const Excerpt *excerpt, u32 row, size_t width, bool pad)
{
    Buffer *out = &text->base.out;
    u32 line = excerpt->first_line + row;
    bool marked = line == excerpt->marked_line;

    if (row >= excerpt->count) {
        put_cut(out, "", pad ? width + 10 : 0, pad);
        return;
    }
    text_paint(text, marked ? PAINT_MARK : PAINT_PREFIX);
    buffer_printf(out, "%c %5u | ", marked ? '>' : ' ', line);
    text_paint(text, PAINT_NONE);
    if (marked)
        text_paint(text, PAINT_FUNCTION);
    put_cut(out, excerpt->text[row], width, pad);
    text_paint(text, PAINT_NONE);
}

static void put_title(TextWriter *text, const char *title, const Frame *frame, size_t width,
                      bool pad)
{
    Buffer line = {0};

    buffer_printf(&line, "%s ", title);
    buffer_puts_safe(&line, frame->file, READER_TERMINAL);
    buffer_printf(&line, ":%u", frame->line);
    buffer_putc(&line, 0);
    text_paint(text, PAINT_PLACE);
    if (!line.failed)
        put_cut(&text->base.out, line.data, width, pad);
    text_paint(text, PAINT_NONE);
    buffer_free(&line);
}

static void put_alone(TextWriter *text, const char *title, const Excerpt *excerpt,
                      const Frame *frame)
{
    size_t width = text->columns > 40 ? text->columns - 26 : 40;

    text_begin(text, '=');
    buffer_puts(&text->base.out, "   ");
    put_title(text, title, frame, width, false);
    text_end(text);
    for (u32 row = 0; row < excerpt->count; row++) {
        text_begin(text, '=');
        buffer_puts(&text->base.out, "   ");
        put_row(text, excerpt, row, width, false);
        text_end(text);
    }
}

static void put_beside(TextWriter *text, const Excerpt *place, const Frame *place_frame,
                       const char *title, const Excerpt *origin, const Frame *origin_frame)
{
    size_t width = (text->columns - 16 - 2 * 10 - 6) / 2;
    u32 rows = (u32)max_u64(place->count, origin->count);

    text_begin(text, '=');
    buffer_puts(&text->base.out, "   ");
    put_title(text, "here:", place_frame, width + 10, true);
    buffer_puts(&text->base.out, "   ");
    put_title(text, title, origin_frame, width + 10, false);
    text_end(text);
    for (u32 row = 0; row < rows; row++) {
        text_begin(text, '=');
        buffer_puts(&text->base.out, "   ");
        put_row(text, place, row, width, true);
        buffer_puts(&text->base.out, "   ");
        put_row(text, origin, row, width, false);
        text_end(text);
    }
}

static const char *origin_title(const FindingPart *part)
{
    return part->place ? part->place : "created at";
}

void terminal_put_excerpts(TextWriter *text, const Finding *finding)
{
    Excerpt place, origin;
    const Frame *place_frame = NULL, *origin_frame = NULL;
    bool has_place = read_of_stack(&finding->stack, &place, &place_frame);
    bool shown = false;

    for (size_t i = 0; i < finding->part_count; i++) {
        const FindingPart *part = &finding->parts[i];
        if (!read_of_stack(&part->stack, &origin, &origin_frame))
            continue;
        if (has_place && !shown && text->columns >= BESIDE_MIN_COLUMNS) {
            put_beside(text, &place, place_frame, origin_title(part), &origin, origin_frame);
        } else {
            if (has_place && !shown)
                put_alone(text, "here:", &place, place_frame);
            put_alone(text, origin_title(part), &origin, origin_frame);
        }
        shown = true;
    }
    if (has_place && !shown)
        put_alone(text, "here:", &place, place_frame);
}

// ---------------------------------------------------------------------- grouping

typedef struct Group {
    const Frame *frame;
    const Finding *finding; // the first one
    u64 count, contexts;
} Group;

static int compare_groups(const void *left, const void *right)
{
    const Group *a = left, *b = right;

    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->frame->file, b->frame->file);
}

static bool same_place(const Frame *a, const Frame *b)
{
    const char *left = a->directory ? a->directory : "", *right = b->directory ? b->directory : "";

    return a->line == b->line && strcmp(a->file, b->file) == 0 && strcmp(left, right) == 0;
}

// Where a finding is fixed: the first frame whose source is there, else the first
// whose line is known.
static const Frame *place_of(const Finding *finding)
{
    for (size_t i = 0; i < finding->stack.count && i < 24; i++) {
        const Frame *frame = &finding->stack.frames[i];
        Buffer path = {0};

        if (!frame->file || !frame->line)
            continue;
        frame_source_path(frame, &path);
        buffer_putc(&path, 0);
        bool is_there = !path.failed && access(path.data, R_OK) == 0;
        buffer_free(&path);
        if (is_there)
            return frame;
    }
    return stack_first_source(&finding->stack);
}

static size_t make_groups(const RunSummary *summary, Group *groups)
{
    size_t count = 0;

    for (size_t i = 0; i < summary->finding_count; i++) {
        const Finding *finding = summary->findings[i];
        const Frame *frame = place_of(finding);
        size_t at = 0;

        if (!frame)
            continue;
        while (at < count && !same_place(groups[at].frame, frame))
            at++;
        if (at == count)
            groups[count++] = (Group){frame, finding, 0, 0};
        groups[at].count += finding->count;
        groups[at].contexts++;
    }
    return count;
}

void terminal_put_groups(TextWriter *text, const RunSummary *summary)
{
    Group *groups = calloc(summary->finding_count + 1, sizeof(*groups));
    size_t count = groups ? make_groups(summary, groups) : 0;

    if (count) {
        qsort(groups, count, sizeof(*groups), compare_groups);
        text_put_line(text, '=', "\nFindings by source line:");
    }
    for (size_t i = 0; i < count && i < GROUPS_MAX; i++) {
        const Group *group = &groups[i];
        Buffer *out = &text->base.out;
        text_begin(text, '=');
        buffer_printf(out, "%7llu  ", (unsigned long long)group->count);
        text_paint(text, PAINT_PLACE);
        buffer_puts_safe(out, group->frame->file, text->reader);
        buffer_printf(out, ":%u", group->frame->line);
        text_paint(text, PAINT_NONE);
        buffer_puts(out, "  ");
        buffer_puts_safe(out, group->finding->what, text->reader);
        if (group->contexts > 1)
            buffer_printf(out, " and %llu more", (unsigned long long)group->contexts - 1);
        text_end(text);
    }
    if (count > GROUPS_MAX)
        text_printf_line(text, '=', "         and %zu more lines", count - GROUPS_MAX);
    free(groups);
}
