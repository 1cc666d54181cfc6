// SPDX-License-Identifier: MIT
//
// Opens the outputs, judges findings by the user's filters, and hands everything
// to the writers. What a text says is the writers' affair.
#include "monitor/report/report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "monitor/report/report_internal.h"

void writer_flush(Writer *writer)
{
    sink_write(&writer->sink, writer->out.data, writer->out.size);
    const Report *report = writer->report;
    if (report->listener && report->writer_count && writer == report->writers[0])
        report->listener(report->listener_data, writer->out.data, writer->out.size);
    buffer_clear(&writer->out);
}

static void add_writer(Report *report, Writer *writer)
{
    ASSERT(report->writer_count < WRITERS_MAX);
    if (writer)
        report->writers[report->writer_count++] = writer;
}

static void open_text(Report *report, int log_fd)
{
    const Options *options = report->options;
    SinkFile file = {options->log_file, "log", true, false};
    Sink sink;

    if (options->log_file && !report->run.log_is_open) {
        if (!sink_open_file(&sink, &file, &report->run))
            sink_use_fd(&sink, log_fd, "the log");
    } else if (options->log_socket && !options->log_file) {
        if (!sink_open_socket(&sink, options->log_socket, false, report->run.pid))
            sink_use_fd(&sink, STDERR_FILENO, "standard error");
    } else {
        sink_use_fd(&sink, log_fd, options->log_file ? options->log_file : "the log");
    }
    report->text_is_main = !options->xml || options->log_file;
    add_writer(report, text_writer_new(report, &sink));
}

static void open_xml(Report *report, int log_fd)
{
    const Options *options = report->options;
    SinkFile file = {options->xml_file, "XML", false, false};
    Sink sink;

    if (!options->xml)
        return;
    if (options->xml_file) {
        if (!sink_open_file(&sink, &file, &report->run))
            sink_use_fd(&sink, log_fd, "the log");
    } else if (options->xml_socket) {
        if (!sink_open_socket(&sink, options->xml_socket, true, report->run.pid))
            sink_use_fd(&sink, STDERR_FILENO, "standard error");
    } else {
        sink_use_fd(&sink, options->xml_fd >= 0 ? options->xml_fd : log_fd, "the XML output");
    }
    add_writer(report, xml_writer_new(report, &sink));
}

static void open_document(Report *report, const char *template, const char *what, int log_fd,
                          Writer *(*writer_new)(const Report *, const Sink *))
{
    SinkFile file = {template, what, false, true};
    Sink sink;

    if (!template)
        return;
    if (!sink_open_file(&sink, &file, &report->run))
        sink_use_fd(&sink, log_fd, "the log");
    add_writer(report, writer_new(report, &sink));
}

Report *report_open(const Options *options, const RunInfo *run, int log_fd)
{
    Report *report = calloc(1, sizeof(*report));

    ASSERT(report);
    signal(SIGPIPE, SIG_IGN);
    report->options = options;
    report->run = *run;
    // Until it calls execve, such a child has nothing to say to anybody.
    if (run->is_fork_child && options->child_silent_after_fork)
        return report;
    if (!getcwd(report->working_directory, sizeof(report->working_directory)))
        report->working_directory[0] = 0;
    if (options->baseline)
        report->baseline = baseline_load(options->baseline);
    open_text(report, log_fd);
    open_xml(report, log_fd);
    open_document(report, options->json_file, "JSON", log_fd, json_writer_new);
    open_document(report, options->sarif_file, "SARIF", log_fd, sarif_writer_new);
    return report;
}

ReportVerdict report_judge(const Report *report, const Finding *finding)
{
    char fingerprint[17];

    if (!only_wants(report->options, finding))
        return REPORT_FILTERED;
    if (!report->baseline)
        return REPORT_NEW;
    report_fingerprint(finding, fingerprint);
    return baseline_has(report->baseline, fingerprint) ? REPORT_KNOWN : REPORT_NEW;
}

ReportVerdict report_finding(Report *report, const Finding *finding)
{
    ReportVerdict verdict = report_judge(report, finding);

    switch (verdict) {
    case REPORT_FILTERED:
        report->filtered_count++;
        return verdict;
    case REPORT_KNOWN:
        report->known_count++;
        break;
    case REPORT_NEW:
        report->new_count++;
        break;
    }
    if (report->baseline) {
        char fingerprint[17];
        report_fingerprint(finding, fingerprint);
        baseline_mark(report->baseline, fingerprint);
    }
    for (size_t i = 0; i < report->writer_count; i++) {
        Writer *writer = report->writers[i];
        if (writer->ops->finding)
            writer->ops->finding(writer, finding, verdict);
    }
    return verdict;
}

void report_line(Report *report, const char *text)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->line)
            report->writers[i]->ops->line(report->writers[i], text);
}

void report_set_listener(Report *report, ReportListener *listener, void *data)
{
    report->listener = listener;
    report->listener_data = data;
}

void report_note(Report *report, const char *text)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->note)
            report->writers[i]->ops->note(report->writers[i], text);
}

void report_prompt(Report *report, const char *text)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->prompt)
            report->writers[i]->ops->prompt(report->writers[i], text);
}

void report_suppression(Report *report, const char *entry)
{
    for (size_t i = 0; i < report->writer_count && entry; i++)
        if (report->writers[i]->ops->suppression)
            report->writers[i]->ops->suppression(report->writers[i], entry);
}

void report_client_text(Report *report, u32 tid, const char *text, const ReportStack *stack)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->client_text)
            report->writers[i]->ops->client_text(report->writers[i], tid, text, stack);
}

void report_thread(Report *report, u32 tid, const char *name, const ReportStack *created_at)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->thread)
            report->writers[i]->ops->thread(report->writers[i], tid, name, created_at);
}

void report_fatal_signal(Report *report, const FatalSignal *fatal)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->fatal)
            report->writers[i]->ops->fatal(report->writers[i], fatal);
}

void report_client_ended(Report *report)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->client_ended)
            report->writers[i]->ops->client_ended(report->writers[i]);
}

static const char *with_commas(char text[32], u64 number)
{
    char *end = text + 31, *at = end;
    *end = 0;
    for (u32 digits = 0; digits == 0 || number; digits++, number /= 10) {
        if (digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + number % 10);
    }
    return at;
}

void report_heap_of_killed(Report *report, const HeapOfKilled *heap)
{
    char line[160], a[32], b[32], c[32];
    report_line(report, "");
    report_line(report, "HEAP SUMMARY:");
    snprintf(line, sizeof(line), "    in use at exit: %s bytes in %s blocks",
             with_commas(a, heap->bytes), with_commas(b, heap->blocks));
    report_line(report, line);
    snprintf(line, sizeof(line), "  total heap usage: %s allocs, %s frees, %s bytes allocated",
             with_commas(a, heap->allocs), with_commas(b, heap->frees),
             with_commas(c, heap->allocated_bytes));
    report_line(report, line);
    report_line(report, "");
    report_line(report, "Leaks could not be searched: the process did not live to its end");
}

void report_extra(Report *report, const char *name, const char *xml, const char *json)
{
    for (size_t i = 0; i < report->writer_count; i++)
        if (report->writers[i]->ops->extra)
            report->writers[i]->ops->extra(report->writers[i], name, xml, json);
}

void report_close(Report *report, const RunSummary *summary)
{
    for (size_t i = 0; i < report->writer_count; i++) {
        Writer *writer = report->writers[i];
        writer->ops->end(writer, summary);
        sink_close(&writer->sink);
        buffer_free(&writer->out);
        free(writer);
    }
    baseline_free(report->baseline);
    free(report);
}
