// SPDX-License-Identifier: MIT
//
// The incumbent's XML, protocol 4, and 5 and 6 by option. Readers parse it as it
// comes over a socket, so each element is written whole. IDEs refuse a protocol or
// a kind they do not know: what a protocol cannot say is left to the text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/report/report_internal.h"

typedef struct XmlWriter {
    Writer base;
    bool finished; // the FINISHED status is out
    Buffer extras; // of the summary, protocol 6
} XmlWriter;

static void put_element(Buffer *out, const char *indent, const char *name, const char *text)
{
    buffer_printf(out, "%s<%s>", indent, name);
    buffer_puts_safe(out, text, READER_XML);
    buffer_printf(out, "</%s>\n", name);
}

static void put_frame(Writer *writer, const Frame *frame)
{
    Buffer *out = &writer->out;

    buffer_printf(out, "    <frame>\n      <ip>0x%llX</ip>\n", (unsigned long long)frame->pc);
    if (frame->object)
        put_element(out, "      ", "obj", frame->object);
    if (frame->function)
        put_element(out, "      ", "fn", frame_function(writer->report->options, frame));
    if (frame->directory)
        put_element(out, "      ", "dir", frame->directory);
    if (frame->file)
        put_element(out, "      ", "file", frame->file);
    if (frame->file && frame->line)
        buffer_printf(out, "      <line>%u</line>\n", frame->line);
    buffer_puts(out, "    </frame>\n");
}

static void put_stack(Writer *writer, const ReportStack *stack)
{
    buffer_puts(&writer->out, "  <stack>\n");
    for (size_t i = 0; i < stack->count; i++)
        put_frame(writer, &stack->frames[i]);
    buffer_puts(&writer->out, "  </stack>\n");
}

static void put_part(Writer *writer, const FindingPart *part)
{
    Buffer *out = &writer->out;

    if (part->file && part->text) {
        buffer_puts(out, "  <xauxwhat><text>");
        buffer_puts_safe(out, part->text, READER_XML);
        buffer_puts(out, "</text> <file>");
        buffer_puts_safe(out, part->file, READER_XML);
        buffer_printf(out, "</file> <line>%u</line> </xauxwhat>\n", part->line);
    } else if (part->text && part->text[0]) {
        put_element(out, "  ", "auxwhat", part->text);
    }
    if (part->stack.count)
        put_stack(writer, &part->stack);
}

// ------------------------------------------------- a generated suppression as XML

// The next line without the blanks before it; false at the end.
static bool next_line(const char **at, const char **ret_line, size_t *ret_length)
{
    if (!**at)
        return false;
    *at += strspn(*at, " \t");
    *ret_line = *at;
    *ret_length = strcspn(*at, "\n");
    *at += *ret_length + ((*at)[*ret_length] == '\n');
    return true;
}

static void put_piece(Buffer *out, const char *open, const char *text, size_t length,
                      const char *close)
{
    buffer_puts(out, open);
    buffer_put_safe(out, text, length, READER_XML);
    buffer_puts(out, close);
}

static void put_suppression_line(Buffer *out, u32 index, const char *line, size_t length)
{
    if (index == 0) {
        if (length >= 2 && line[0] == '<' && line[length - 1] == '>')
            line++, length -= 2;
        put_piece(out, "    <sname>", line, length, "</sname>\n");
    } else if (index == 1) {
        put_piece(out, "    <skind>", line, length, "</skind>\n");
    } else if (strncmp(line, "fun:", 4) == 0) {
        put_piece(out, "    <sframe> <fun>", line + 4, length - 4, "</fun> </sframe>\n");
    } else if (strncmp(line, "obj:", 4) == 0) {
        put_piece(out, "    <sframe> <obj>", line + 4, length - 4, "</obj> </sframe>\n");
    } else if (strncmp(line, "src:", 4) != 0 && strncmp(line, "...", 3) != 0) {
        put_piece(out, "    <skaux>", line, length, "</skaux>\n");
    }
}

// CDATA ends at the first "]]>", so one inside is split between two sections.
static void put_cdata(Buffer *out, const char *text)
{
    Buffer safe = {0};
    size_t begin = 0;

    for (size_t i = 0; text[i]; i++) {
        char c = text[i];
        u32 point;
        size_t length = utf8_decode(text + i, strnlen(text + i, 4), &point);
        if (length == 0 || (length == 1 && (u8)c < 0x20 && c != '\n' && c != '\t') ||
            (length > 1 && (point < 0xa0 || (point & 0xfffe) == 0xfffe))) {
            buffer_printf(&safe, "\\x%02x", (u8)c);
        } else {
            buffer_put(&safe, text + i, length);
            i += length - 1;
        }
    }
    buffer_puts(out, "<![CDATA[\n");
    for (size_t i = 0; i + 2 < safe.size; i++) {
        if (memcmp(safe.data + i, "]]>", 3) == 0) {
            buffer_put(out, safe.data + begin, i + 2 - begin);
            buffer_puts(out, "]]><![CDATA[");
            begin = i + 2;
        }
    }
    buffer_put(out, safe.data + begin, safe.size - begin);
    if (safe.size == 0 || safe.data[safe.size - 1] != '\n')
        buffer_putc(out, '\n');
    buffer_puts(out, "]]>\n");
    buffer_free(&safe);
}

static void put_suppression(Writer *writer, const char *text)
{
    Buffer *out = &writer->out;
    const char *at = text, *line;
    size_t length;
    u32 index = 0;

    buffer_puts(out, "  <suppression>\n");
    while (next_line(&at, &line, &length)) {
        if (length == 0 || line[0] == '{' || line[0] == '}' || line[0] == '#')
            continue;
        put_suppression_line(out, index++, line, length);
    }
    buffer_puts(out, "    <rawtext>\n");
    put_cdata(out, text);
    buffer_puts(out, "    </rawtext>\n  </suppression>\n");
}

// ---------------------------------------------------------------------- findings

static void put_what(Writer *writer, const Finding *finding)
{
    Buffer *out = &writer->out;

    if (!finding->has_leak) {
        put_element(out, "  ", "what", finding->what);
        return;
    }
    buffer_puts(out, "  <xwhat>\n");
    put_element(out, "    ", "text", finding->what);
    buffer_printf(out,
                  "    <leakedbytes>%llu</leakedbytes>\n"
                  "    <leakedblocks>%llu</leakedblocks>\n"
                  "  </xwhat>\n",
                  (unsigned long long)finding->leaked_bytes,
                  (unsigned long long)finding->leaked_blocks);
}

static void xml_finding(Writer *writer, const Finding *finding, ReportVerdict verdict)
{
    Buffer *out = &writer->out;
    const char *kind = xml_kind(writer->report->options, finding->kind);

    if (verdict != REPORT_NEW || !kind)
        return;
    buffer_printf(out, "<error>\n  <unique>0x%llx</unique>\n  <tid>%u</tid>\n",
                  (unsigned long long)finding->unique, finding->tid);
    if (finding->thread_name)
        put_element(out, "  ", "threadname", finding->thread_name);
    put_element(out, "  ", "kind", kind);
    if (finding_has_fd(finding)) {
        buffer_printf(out, "  <fd>%d</fd>\n", finding->fd);
        if (finding->path)
            put_element(out, "  ", "path", finding->path);
    }
    put_what(writer, finding);
    put_stack(writer, &finding->stack);
    for (size_t i = 0; i < finding->part_count; i++)
        put_part(writer, &finding->parts[i]);
    if (finding->suppression)
        put_suppression(writer, finding->suppression);
    buffer_puts(out, "</error>\n\n");
    writer_flush(writer);
}

static void xml_client_text(Writer *writer, u32 tid, const char *text, const ReportStack *stack)
{
    Buffer *out = &writer->out;

    buffer_printf(out, "<clientmsg>\n  <tid>%u</tid>\n  <text>", tid);
    buffer_puts_safe(out, text, READER_XML);
    buffer_puts(out, "  </text>\n");
    if (stack && stack->count)
        put_stack(writer, stack);
    buffer_puts(out, "</clientmsg>\n");
    writer_flush(writer);
}

static void xml_thread(Writer *writer, u32 tid, const char *name, const ReportStack *created_at)
{
    Buffer *out = &writer->out;

    buffer_printf(out, "<announcethread>\n  <hthreadid>%u</hthreadid>\n", tid);
    if (name && writer->report->options->xml_protocol >= 5)
        put_element(out, "  ", "threadname", name);
    if (tid == 1)
        buffer_puts(out, "  <isrootthread></isrootthread>\n");
    else if (created_at)
        put_stack(writer, created_at);
    buffer_puts(out, "</announcethread>\n\n");
    writer_flush(writer);
}

static void xml_fatal(Writer *writer, const FatalSignal *fatal)
{
    Buffer *out = &writer->out;
    const char *event = signal_event(fatal->signal, fatal->code);
    char name[16];

    buffer_printf(out, "<fatal_signal>\n  <tid>%u</tid>\n", fatal->tid);
    if (fatal->thread_name)
        put_element(out, "  ", "threadname", fatal->thread_name);
    buffer_printf(out, "  <signo>%d</signo>\n  <signame>%s</signame>\n  <sicode>%d</sicode>\n",
                  fatal->signal, signal_name(fatal->signal, name), fatal->code);
    if (event)
        buffer_printf(out, "  <event>%s</event>\n  <siaddr>0x%llX</siaddr>\n", event,
                      (unsigned long long)fatal->address);
    put_stack(writer, &fatal->stack);
    buffer_puts(out, "</fatal_signal>\n\n");
    writer_flush(writer);
}

static void put_status(Writer *writer, const char *state)
{
    char age[32];

    report_age(writer->report, age);
    buffer_printf(&writer->out, "<status>\n  <state>%s</state>\n  <time>%s</time>\n</status>\n\n",
                  state, age);
}

static void xml_client_ended(Writer *writer)
{
    XmlWriter *xml = (XmlWriter *)writer;

    if (xml->finished)
        return;
    xml->finished = true;
    buffer_putc(&writer->out, '\n');
    put_status(writer, "FINISHED");
    writer_flush(writer);
}

static void xml_extra(Writer *writer, const char *name, const char *xml, const char *json)
{
    (void)json;
    if (xml && writer->report->options->xml_protocol >= 6)
        buffer_printf(&((XmlWriter *)writer)->extras, "<%s>\n%s%s</%s>\n\n", name, xml,
                      *xml && xml[strlen(xml) - 1] == '\n' ? "" : "\n", name);
}

// ----------------------------------------------------------------------- the end

typedef struct Counted {
    u64 count, unique;
    size_t order;
} Counted;

static int compare_counted(const void *left, const void *right)
{
    const Counted *a = left, *b = right;

    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->order > b->order ? -1 : 1;
}

static void put_error_counts(Writer *writer, const RunSummary *summary)
{
    Counted *list = calloc(summary->finding_count + 1, sizeof(*list));
    size_t count = 0;

    for (size_t i = 0; list && i < summary->finding_count; i++) {
        const Finding *finding = summary->findings[i];
        if (!finding->kind->leak_kind && xml_kind(writer->report->options, finding->kind))
            list[count++] = (Counted){finding->count, finding->unique, i};
    }
    buffer_puts(&writer->out, "<errorcounts>\n");
    for (size_t i = count; i-- > 0;) // the newest first
        buffer_printf(&writer->out,
                      "  <pair>\n    <count>%llu</count>\n    <unique>0x%llx</unique>\n  </pair>\n",
                      (unsigned long long)list[i].count, (unsigned long long)list[i].unique);
    buffer_puts(&writer->out, "</errorcounts>\n\n");
    free(list);
}

static void put_suppression_counts(Writer *writer, const RunSummary *summary)
{
    Counted *list = calloc(summary->suppression_count + 1, sizeof(*list));
    size_t count = 0;

    for (size_t i = 0; list && i < summary->suppression_count; i++)
        if (summary->suppressions[i].count)
            list[count++] = (Counted){summary->suppressions[i].count, i, i};
    if (count)
        qsort(list, count, sizeof(*list), compare_counted);
    buffer_puts(&writer->out, "<suppcounts>\n");
    for (size_t i = 0; i < count; i++) {
        buffer_printf(&writer->out, "  <pair>\n    <count>%llu</count>\n",
                      (unsigned long long)list[i].count);
        put_element(&writer->out, "    ", "name", summary->suppressions[list[i].unique].name);
        buffer_puts(&writer->out, "  </pair>\n");
    }
    buffer_puts(&writer->out, "</suppcounts>\n\n");
    free(list);
}

static void xml_end(Writer *writer, const RunSummary *summary)
{
    XmlWriter *xml = (XmlWriter *)writer;
    const Options *options = writer->report->options;

    xml_client_ended(writer);
    put_error_counts(writer, summary);
    if (options->verbosity >= 0)
        put_suppression_counts(writer, summary);
    if (options->xml_protocol >= 6) {
        buffer_put(&writer->out, xml->extras.data, xml->extras.size);
        buffer_printf(&writer->out,
                      "<error_summary>\n  <errors>%llu</errors>\n"
                      "  <error_contexts>%llu</error_contexts>\n"
                      "  <suppressed>%llu</suppressed>\n"
                      "  <suppressed_contexts>%llu</suppressed_contexts>\n</error_summary>\n\n",
                      (unsigned long long)summary->error_count,
                      (unsigned long long)summary->context_count,
                      (unsigned long long)summary->suppressed_count,
                      (unsigned long long)summary->suppressed_contexts);
    }
    if (options->verbosity < 0)
        buffer_putc(&writer->out, '\n');
    buffer_puts(&writer->out, "</valgrindoutput>\n\n");
    writer_flush(writer);
    buffer_free(&xml->extras);
}

static const WriterOps xml_ops = {
    .finding = xml_finding,
    .client_text = xml_client_text,
    .thread = xml_thread,
    .fatal = xml_fatal,
    .client_ended = xml_client_ended,
    .extra = xml_extra,
    .end = xml_end,
};

// ------------------------------------------------------------------ the beginning

static void put_preamble(Writer *writer)
{
    Buffer line = {0};

    buffer_puts(&writer->out, "<preamble>\n");
    for (int i = 0; i < BANNER_LINES; i++) {
        buffer_clear(&line);
        report_banner_line(writer->report, i, &line);
        put_piece(&writer->out, "  <line>", line.data, line.size, "</line>\n");
    }
    buffer_puts(&writer->out, "</preamble>\n\n");
    buffer_free(&line);
}

static void put_arguments(Writer *writer)
{
    const RunInfo *run = &writer->report->run;
    Buffer *out = &writer->out;

    buffer_puts(out, "<args>\n  <vargv>\n");
    put_element(out, "    ", "exe", run->muninn_exe ? run->muninn_exe : "muninn");
    for (int i = 0; i < run->option_count; i++)
        put_element(out, "    ", "arg", run->options[i]);
    buffer_puts(out, "  </vargv>\n  <argv>\n");
    put_element(out, "    ", "exe", run->argc > 0 ? run->argv[0] : run->program);
    for (int i = 1; i < run->argc; i++)
        put_element(out, "    ", "arg", run->argv[i]);
    buffer_puts(out, "  </argv>\n</args>\n\n");
}

Writer *xml_writer_new(const Report *report, const Sink *sink)
{
    XmlWriter *xml = calloc(1, sizeof(*xml));

    if (!xml)
        return NULL;
    Writer *writer = &xml->base;
    *writer = (Writer){.ops = &xml_ops, .report = report, .sink = *sink};
    Buffer *out = &writer->out;
    buffer_printf(out,
                  "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n"
                  "<protocolversion>%d</protocolversion>\n",
                  report->options->xml_protocol);
    put_element(out, "", "protocoltool", report->run.tool);
    buffer_putc(out, '\n');
    put_preamble(writer);
    buffer_printf(out, "<pid>%d</pid>\n<ppid>%d</ppid>\n", report->run.pid, report->run.ppid);
    put_element(out, "", "tool", report->run.tool);
    // The manual promises that this is copied as it is, markup included.
    if (report->options->xml_user_comment)
        buffer_printf(out, "<usercomment>%s</usercomment>\n", report->options->xml_user_comment);
    buffer_putc(out, '\n');
    put_arguments(writer);
    put_status(writer, "RUNNING");
    writer_flush(writer);
    return writer;
}
