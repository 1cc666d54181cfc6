// SPDX-License-Identifier: MIT
//
// The classic text. Its wording and spacing are an interface: CTest, Redis and
// thousands of scripts match these lines, so nothing may be added to them, and no
// line that they do not expect may appear, unless a terminal shows it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/report/text_writer.h"

static const char *const paints[PAINT_COUNT] = {
    [PAINT_NONE] = "\033[0m",    [PAINT_PREFIX] = "\033[2m",   [PAINT_HEADLINE] = "\033[1;31m",
    [PAINT_ADDRESS] = "\033[2m", [PAINT_FUNCTION] = "\033[1m", [PAINT_PLACE] = "\033[36m",
    [PAINT_PART] = "\033[33m",   [PAINT_MARK] = "\033[1;31m",
};

void text_paint(TextWriter *text, Paint paint)
{
    if (text->terminal)
        buffer_puts(&text->base.out, paints[paint]);
}

void text_begin(TextWriter *text, char mark)
{
    const Report *report = text->base.report;
    char age[32] = "";

    if (report->options->time_stamp)
        report_age(report, age);
    text_paint(text, PAINT_PREFIX);
    buffer_printf(&text->base.out, "%c%c%s%d%c%c ", mark, mark, age, report->run.pid, mark, mark);
    text_paint(text, PAINT_NONE);
}

void text_end(TextWriter *text)
{
    buffer_putc(&text->base.out, '\n');
}

static void put_safe(TextWriter *text, const char *string)
{
    buffer_puts_safe(&text->base.out, string, text->reader);
}

// Lines with the prefix, one for each in `lines`.
void text_put_line(TextWriter *text, char mark, const char *lines)
{
    do {
        size_t length = strcspn(lines, "\n");
        text_begin(text, mark);
        buffer_put_safe(&text->base.out, lines, length, text->reader);
        text_end(text);
        lines += length + (lines[length] == '\n');
    } while (*lines);
}

void text_printf_line(TextWriter *text, char mark, const char *format, ...)
{
    va_list arguments;

    buffer_clear(&text->line);
    va_start(arguments, format);
    buffer_vprintf(&text->line, format, arguments);
    va_end(arguments);
    buffer_putc(&text->line, 0);
    if (!text->line.failed)
        text_put_line(text, mark, text->line.data);
}

static void put_frame(TextWriter *text, const Frame *frame, bool is_first)
{
    const Options *options = text->base.report->options;
    Buffer *out = &text->base.out;

    text_begin(text, '=');
    text_paint(text, PAINT_ADDRESS);
    buffer_printf(out, "   %s 0x%llX: ", is_first ? "at" : "by", (unsigned long long)frame->pc);
    text_paint(text, PAINT_NONE);
    text_paint(text, PAINT_FUNCTION);
    put_safe(text, frame_function(options, frame));
    if (options->sym_offsets && frame->function && frame->function_offset)
        buffer_printf(out, "+%llu", (unsigned long long)frame->function_offset);
    text_paint(text, PAINT_NONE);
    text_paint(text, PAINT_PLACE);
    frame_put_place(options, frame, out, text->reader);
    text_paint(text, PAINT_NONE);
    text_end(text);
}

static void put_stack(TextWriter *text, const ReportStack *stack)
{
    for (size_t i = 0; i < stack->count; i++)
        put_frame(text, &stack->frames[i], i == 0);
}

static void put_thread(TextWriter *text, u32 tid, const char *name)
{
    if (tid == text->last_tid)
        return;
    text->last_tid = tid;
    text_begin(text, '=');
    buffer_printf(&text->base.out, "Thread %u%s", tid, name ? " " : "");
    if (name)
        put_safe(text, name);
    buffer_putc(&text->base.out, ':');
    text_end(text);
}

static void put_part(TextWriter *text, const FindingPart *part)
{
    if (part->text && part->text[0]) {
        text_begin(text, '=');
        text_paint(text, PAINT_PART);
        buffer_putc(&text->base.out, ' ');
        put_safe(text, part->text);
        text_paint(text, PAINT_NONE);
        text_end(text);
    }
    put_stack(text, &part->stack);
}

void text_put_finding(TextWriter *text, const Finding *finding, bool with_source)
{
    if (text->marker_begin[0])
        text_put_line(text, '=', text->marker_begin);
    put_thread(text, finding->tid, finding->thread_name);
    text_begin(text, '=');
    text_paint(text, PAINT_HEADLINE);
    put_safe(text, finding->what);
    text_paint(text, PAINT_NONE);
    text_end(text);
    put_stack(text, &finding->stack);
    for (size_t i = 0; i < finding->part_count; i++)
        put_part(text, &finding->parts[i]);
    if (text->terminal && with_source)
        terminal_put_excerpts(text, finding);
    text_put_line(text, '=', "");
    if (text->marker_end[0])
        text_put_line(text, '=', text->marker_end);
}

// For those who ask while the program runs; the main thread needs no line of its own.
static TextWriter writer_for_text(const Report *report)
{
    return (TextWriter){.base = {.report = report}, .reader = READER_TERMINAL, .last_tid = 1};
}

static char *take_text(TextWriter *text)
{
    buffer_putc(&text->base.out, 0);
    buffer_free(&text->line);
    if (!text->base.out.failed)
        return text->base.out.data;
    buffer_free(&text->base.out);
    return NULL;
}

char *report_finding_text(const Report *report, const Finding *finding)
{
    TextWriter text = writer_for_text(report);

    text_put_finding(&text, finding, false);
    return take_text(&text);
}

char *report_stack_text(const Report *report, const ReportStack *stack)
{
    TextWriter text = writer_for_text(report);

    put_stack(&text, stack);
    return take_text(&text);
}

// An IDE gives up on a kind that it does not know. What the protocol cannot say is said in the
// text.
static bool xml_cannot_say(const Report *report, const Finding *finding)
{
    return report->options->xml && !xml_kind(report->options, finding->kind);
}

// As it will stand in a file: without prefix, and line by line harmless.
static void put_entry(TextWriter *text, const char *entry)
{
    while (*entry) {
        size_t length = strcspn(entry, "\n");
        buffer_put_safe(&text->base.out, entry, length, text->reader);
        text_end(text);
        entry += length + (entry[length] == '\n');
    }
}

static void text_finding(Writer *writer, const Finding *finding, ReportVerdict verdict)
{
    TextWriter *text = (TextWriter *)writer;
    const Report *report = writer->report;

    if (verdict != REPORT_NEW || (!report->text_is_main && !xml_cannot_say(report, finding)))
        return;
    text_put_finding(text, finding, true);
    if (finding->suppression)
        put_entry(text, finding->suppression);
    writer_flush(writer);
}

static void text_prompt(Writer *writer, const char *question)
{
    TextWriter *text = (TextWriter *)writer;

    text_put_line(text, '=', "");
    text_begin(text, '=');
    put_safe(text, question);
    writer_flush(writer);
}

static void text_suppression(Writer *writer, const char *entry)
{
    put_entry((TextWriter *)writer, entry);
    writer_flush(writer);
}

static void text_line(Writer *writer, const char *line)
{
    if (!writer->report->text_is_main || writer->report->options->verbosity < 0)
        return;
    text_put_line((TextWriter *)writer, '=', line);
    writer_flush(writer);
}

static void text_note(Writer *writer, const char *line)
{
    text_put_line((TextWriter *)writer, '=', line);
    writer_flush(writer);
}

static void text_client(Writer *writer, u32 tid, const char *string, const ReportStack *stack)
{
    (void)tid;
    if (!writer->report->text_is_main)
        return;
    text_put_line((TextWriter *)writer, '*', string);
    if (stack)
        put_stack((TextWriter *)writer, stack);
    writer_flush(writer);
}

static void text_thread(Writer *writer, u32 tid, const char *name, const ReportStack *created_at)
{
    TextWriter *text = (TextWriter *)writer;

    (void)name;
    if (!writer->report->text_is_main)
        return;
    text_put_line(text, '=', "---Thread-Announcement------------------------------------------");
    text_put_line(text, '=', "");
    if (tid == 1)
        text_put_line(text, '=', "Thread #1 is the program's root thread");
    else
        text_printf_line(text, '=', "Thread #%u was created", tid);
    if (created_at)
        put_stack(text, created_at);
    text_put_line(text, '=', "");
    writer_flush(writer);
}

static const char overflow_advice[] = " If you believe this happened as a result of a stack\n"
                                      " overflow in your program's main thread (unlikely but\n"
                                      " possible), you can try to increase the size of the\n"
                                      " main thread stack using the --main-stacksize= flag.";

static void put_fatal(TextWriter *text, const FatalSignal *fatal)
{
    const char *event = signal_event(fatal->signal, fatal->code);
    char name[16];

    put_thread(text, fatal->tid, fatal->thread_name);
    text_put_line(text, '=', "");
    text_printf_line(text, '=', "Process terminating with default action of signal %d (%s)",
                     fatal->signal, signal_name(fatal->signal, name));
    if (event && fatal->code == SI_KERNEL)
        text_printf_line(text, '=', " %s", event);
    else if (event)
        text_printf_line(text, '=', " %s at address 0x%llX", event,
                         (unsigned long long)fatal->address);
    if (fatal->full_stack_bytes)
        text_printf_line(text, '=', "Stack overflow in thread #%u: can't grow stack to 0x%llx",
                         fatal->tid, (unsigned long long)PAGE_DOWN(fatal->address));
    put_stack(text, &fatal->stack);
}

static void text_fatal(Writer *writer, const FatalSignal *fatal)
{
    TextWriter *text = (TextWriter *)writer;
    bool is_quiet = writer->report->options->verbosity < 0;

    text->tells_death =
        writer->report->text_is_main && (!is_quiet || signal_is_fault(fatal->signal, fatal->code));
    if (text->tells_death)
        put_fatal(text, fatal);
    // Also beside XML: cargo-valgrind looks for it there. The incumbent gives the advice whenever
    // memory is not there, though we know whether the stack is full.
    bool may_be_full = writer->report->options->as_valgrind && fatal->signal == SIGSEGV &&
                       fatal->code == SEGV_MAPERR;
    if (fatal->tid == 1 && (fatal->full_stack_bytes || may_be_full)) {
        text_put_line(text, '=', overflow_advice);
        text_printf_line(text, '=', " The main thread stack size used in this run was %llu.",
                         (unsigned long long)fatal->stack_limit_bytes);
    }
    writer_flush(writer);
}

static void text_close(Writer *writer, const RunSummary *summary)
{
    TextWriter *text = (TextWriter *)writer;

    // A program that was executed instead goes on; the sum is its to make.
    if (writer->report->text_is_main && !summary->replaced)
        text_put_summary(text, summary);
    // Of other tools a summary begins so.
    if (text->tells_death && !summary->has_errors)
        text_put_line(text, '=', "");
    writer_flush(writer);
    buffer_free(&text->line);
}

static const WriterOps text_ops = {
    .finding = text_finding,
    .line = text_line,
    .note = text_note,
    .prompt = text_prompt,
    .suppression = text_suppression,
    .client_text = text_client,
    .thread = text_thread,
    .fatal = text_fatal,
    .end = text_close,
};

static bool wants_terminal(const Options *options, int fd)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    if (options->color != COLOR_AUTO)
        return options->color == COLOR_YES;
    return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static void put_banner(TextWriter *text)
{
    const Report *report = text->base.report;
    Buffer line = {0};

    for (int i = 0; i < BANNER_LINES; i++) {
        buffer_clear(&line);
        report_banner_line(report, i, &line);
        text_begin(text, '=');
        buffer_put_safe(&text->base.out, line.data, line.size, text->reader);
        text_end(text);
    }
    buffer_free(&line);
    if (report->options->log_file)
        text_printf_line(text, '=', "Parent PID: %d", report->run.ppid);
    text_put_line(text, '=', "");
}

Writer *text_writer_new(const Report *report, const Sink *sink)
{
    const Options *options = report->options;
    TextWriter *text = calloc(1, sizeof(*text));

    if (!text)
        return NULL;
    text->base = (Writer){.ops = &text_ops, .report = report, .sink = *sink};
    text->terminal = wants_terminal(options, sink->fd);
    text->reader = text->terminal || isatty(sink->fd) ? READER_TERMINAL : READER_LOG;
    text->columns = terminal_columns(sink->fd);
    text->last_tid = 1;
    if (options->error_markers) {
        size_t length = strcspn(options->error_markers, ",");
        snprintf(text->marker_begin, sizeof(text->marker_begin), "%.*s", (int)length,
                 options->error_markers);
        if (options->error_markers[length])
            snprintf(text->marker_end, sizeof(text->marker_end), "%s",
                     options->error_markers + length + 1);
    }
    // A child of fork that writes on in its parent's text begins without a banner,
    // as the incumbent's child does.
    bool goes_on =
        report->run.is_fork_child && !(options->log_file && strstr(options->log_file, "%p"));
    if (options->verbosity >= 0 && report->text_is_main && !goes_on) {
        put_banner(text);
        writer_flush(&text->base);
    }
    return &text->base;
}
