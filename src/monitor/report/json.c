// SPDX-License-Identifier: MIT
//
// The report for programs: one JSON document (docs/schema/report.schema.json), or
// JSON lines if the file's name ends in .jsonl. Each finding is one line in both.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/report/document.h"

typedef struct JsonWriter {
    Document document;
    Buffer extras; // members that tools add to the summary
    FatalSignal fatal;
} JsonWriter;

static const char running_tail[] = "\n  ],\n  \"status\": \"running\"\n}\n";

static void put_frame(Buffer *out, const Frame *frame)
{
    buffer_printf(out, "{\"pc\": \"0x%llx\"", (unsigned long long)frame->pc);
    json_put_member(out, "function", frame->function);
    if (frame->mangled && (!frame->function || strcmp(frame->mangled, frame->function) != 0))
        json_put_member(out, "mangled", frame->mangled);
    if (frame->function)
        buffer_printf(out, ", \"function_offset\": %llu",
                      (unsigned long long)frame->function_offset);
    if (frame->object) {
        json_put_member(out, "object", frame->object);
        buffer_printf(out, ", \"object_offset\": \"0x%llx\"",
                      (unsigned long long)frame->object_offset);
    }
    json_put_member(out, "directory", frame->directory);
    json_put_member(out, "file", frame->file);
    if (frame->line)
        buffer_printf(out, ", \"line\": %u", frame->line);
    if (frame->inlined)
        buffer_puts(out, ", \"inlined\": true");
    buffer_putc(out, '}');
}

static void put_stack(Buffer *out, const ReportStack *stack)
{
    buffer_putc(out, '[');
    for (size_t i = 0; i < stack->count; i++) {
        if (i)
            buffer_puts(out, ", ");
        put_frame(out, &stack->frames[i]);
    }
    buffer_putc(out, ']');
}

static void put_part(Buffer *out, const FindingPart *part)
{
    buffer_puts(out, "{\"kind\": ");
    json_put_string(out, part->kind->id);
    json_put_member(out, "text", part->text);
    if (part->file) {
        buffer_printf(out, ", \"declared\": {\"line\": %u", part->line);
        json_put_member(out, "directory", part->directory);
        json_put_member(out, "file", part->file);
        buffer_putc(out, '}');
    }
    if (part->stack.count) {
        buffer_puts(out, ", \"stack\": ");
        put_stack(out, &part->stack);
    }
    buffer_putc(out, '}');
}

// What nobody knows is left out.
static void put_known(Buffer *out, const char *name, u64 number)
{
    if (number)
        buffer_printf(out, ", \"%s\": %llu", name, (unsigned long long)number);
}

static void put_holding(Buffer *out, const LeakHolding *holding)
{
    static const char *const kinds[HOLDER_KIND_COUNT] = {
        [HOLDER_DATA] = "data",         [HOLDER_TLS] = "tls",           [HOLDER_STACK] = "stack",
        [HOLDER_MEMORY] = "memory",     [HOLDER_REGISTER] = "register", [HOLDER_RECORD] = "record",
        [HOLDER_OTHERS] = "others",     [HOLDER_GLOBAL] = "global",
    };

    buffer_printf(out, "{\"kind\": \"%s\", \"blocks\": %llu, \"bytes\": %llu",
                  kinds[holding->kind], (unsigned long long)holding->blocks,
                  (unsigned long long)holding->bytes);
    if (holding->kind == HOLDER_RECORD) {
        put_known(out, "record", holding->record);
        json_put_member(out, "leak", holding->record_kind->id);
        buffer_puts(out, ", \"stack\": ");
        put_stack(out, &holding->stack);
    }
    json_put_member(out, "name", holding->name);
    json_put_member(out, "object", holding->object);
    put_known(out, "thread", holding->thread);
    put_known(out, "holders", holding->holders);
    if (holding->address)
        buffer_printf(out, ", \"address\": \"0x%llx\"", (unsigned long long)holding->address);
    buffer_putc(out, '}');
}

static void put_leak(Buffer *out, const Finding *finding)
{
    buffer_printf(
        out, ", \"leak\": {\"bytes\": %llu, \"blocks\": %llu, \"record\": %llu, \"records\": %llu",
        (unsigned long long)finding->leaked_bytes, (unsigned long long)finding->leaked_blocks,
        (unsigned long long)finding->record, (unsigned long long)finding->record_count);
    buffer_printf(out, ", \"direct_bytes\": %llu", (unsigned long long)finding->direct_bytes);
    put_known(out, "check", finding->leak_check);
    buffer_puts(out, ", \"held_by\": [");
    for (size_t i = 0; i < finding->holding_count; i++) {
        if (i)
            buffer_puts(out, ", ");
        put_holding(out, &finding->holdings[i]);
    }
    buffer_puts(out, "]}");
}

// Numbers that a program can count with stay numbers; what has a form of its own is a text.
static void put_field(Buffer *out, const FieldDescription *field, u64 word)
{
    Buffer text = {0};

    json_put_string(out, field->name);
    buffer_puts(out, ": ");
    switch (field->type) {
    case FIELD_NUMBER:
    case FIELD_AMOUNT: buffer_printf(out, "%llu", (unsigned long long)word); break;
    case FIELD_SIGNED:
    case FIELD_CHANGE: buffer_printf(out, "%lld", (long long)word); break;
    case FIELD_FLAG: buffer_puts(out, word ? "true" : "false"); break;
    default:
        field_put(field, word, &text);
        buffer_putc(&text, 0);
        json_put_string(out, text.failed ? NULL : text.data);
        buffer_free(&text);
        break;
    }
}

// A kind that no table has: what a reader would look up there, and its fields by name.
static void put_described(Buffer *out, const Finding *finding)
{
    const KindDescription *kind = finding->kind;
    const FieldValues *values = finding->values;

    json_put_member(out, "title", kind->title);
    json_put_member(out, "level", kind->level);
    json_put_member(out, "help", kind->help);
    buffer_puts(out, ", \"fields\": {");
    for (u32 i = 0; i < values->count; i++) {
        buffer_puts(out, i ? ", " : "");
        put_field(out, &values->shape->fields[i], values->any.words[i]);
    }
    buffer_putc(out, '}');
}

// What only some kinds have.
static void put_details(Buffer *out, const Finding *finding)
{
    if (finding->has_leak)
        put_leak(out, finding);
    if (finding_has_fd(finding)) {
        buffer_printf(out, ", \"fd\": {\"number\": %d", finding->fd);
        json_put_member(out, "path", finding->path);
        buffer_putc(out, '}');
    }
    json_put_member(out, "param", finding->param);
    if (finding->values)
        put_described(out, finding);
}

static void json_finding(Writer *writer, const Finding *finding, ReportVerdict verdict)
{
    Document *document = &((JsonWriter *)writer)->document;
    Buffer *out = &writer->out;
    char fingerprint[17];

    report_fingerprint(finding, fingerprint);
    buffer_puts(out, document->is_lines     ? "{\"type\": \"finding\", "
                     : document->item_count ? ",\n    {"
                                            : "\n    {");
    buffer_printf(out, "\"id\": %llu", (unsigned long long)finding->unique);
    json_put_member(out, "kind", finding->kind->id);
    json_put_member(out, "tool", finding->kind->family);
    json_put_member(out, "what", finding->what);
    json_put_member(out, "fingerprint", fingerprint);
    if (writer->report->baseline)
        json_put_member(out, "baseline", verdict == REPORT_KNOWN ? "known" : "new");
    buffer_puts(out, ", \"count\": ");
    size_t count_at = document_put_count(document, finding->count ? finding->count : 1);
    buffer_printf(out, ", \"thread\": {\"id\": %u", finding->tid);
    json_put_member(out, "name", finding->thread_name);
    buffer_putc(out, '}');
    put_details(out, finding);
    buffer_puts(out, ", \"stack\": ");
    put_stack(out, &finding->stack);
    buffer_puts(out, ", \"parts\": [");
    for (size_t i = 0; i < finding->part_count; i++) {
        if (i)
            buffer_puts(out, ", ");
        put_part(out, &finding->parts[i]);
    }
    buffer_putc(out, ']');
    json_put_member(out, "suppression", finding->suppression);
    buffer_puts(out, document->is_lines ? "}\n" : "}");
    document_add(document, finding->unique, count_at);
}

static void json_fatal(Writer *writer, const FatalSignal *fatal)
{
    ((JsonWriter *)writer)->fatal = *fatal;
}

static void json_extra(Writer *writer, const char *name, const char *xml, const char *json)
{
    (void)xml;
    if (json)
        buffer_printf(&((JsonWriter *)writer)->extras, ", \"%s\": %s", name, json);
}

static void put_baseline(Buffer *out, const Report *report)
{
    if (!report->baseline)
        return;
    buffer_printf(out, ", \"baseline\": {\"new\": %llu, \"known\": %llu, \"fixed\": %llu}",
                  (unsigned long long)report->new_count, (unsigned long long)report->known_count,
                  (unsigned long long)baseline_fixed(report->baseline));
}

static void put_suppressions(Buffer *out, const RunSummary *summary)
{
    buffer_puts(out, ", \"suppressions\": [");
    for (size_t i = 0; i < summary->suppression_count; i++) {
        const SuppressionUse *use = &summary->suppressions[i];
        buffer_printf(out, "%s{\"count\": %llu", i ? ", " : "", (unsigned long long)use->count);
        json_put_member(out, "name", use->name);
        json_put_member(out, "file", use->file);
        buffer_printf(out, ", \"line\": %u", use->line);
        if (use->leaked_blocks)
            buffer_printf(out, ", \"leaked_bytes\": %llu, \"leaked_blocks\": %llu",
                          (unsigned long long)use->leaked_bytes,
                          (unsigned long long)use->leaked_blocks);
        buffer_putc(out, '}');
    }
    buffer_putc(out, ']');
}

static void put_ending(Buffer *out, const JsonWriter *json, const RunSummary *summary)
{
    i32 number = summary->signal ? summary->signal : json->fatal.signal;
    char name[16];

    if (summary->exit_code >= 0)
        buffer_printf(out, ", \"exit_code\": %d", summary->exit_code);
    if (number)
        json_put_member(out, "signal", signal_name(number, name));
    buffer_printf(out, ", \"killed\": %s, \"error_limit_hit\": %s",
                  summary->killed && !summary->replaced ? "true" : "false",
                  summary->error_limit_hit ? "true" : "false");
}

static void put_summary(const JsonWriter *json, Buffer *out, const RunSummary *summary)
{
    const Report *report = json->document.base.report;

    buffer_printf(out,
                  "\"errors\": %llu, \"contexts\": %llu, \"suppressed\": %llu, "
                  "\"suppressed_contexts\": %llu, \"filtered\": %llu",
                  (unsigned long long)summary->error_count,
                  (unsigned long long)summary->context_count,
                  (unsigned long long)summary->suppressed_count,
                  (unsigned long long)summary->suppressed_contexts,
                  (unsigned long long)report->filtered_count);
    put_ending(out, json, summary);
    put_baseline(out, report);
    buffer_puts(out, ", \"counts\": {");
    for (size_t i = 0; i < summary->finding_count; i++)
        buffer_printf(out, "%s\"%llu\": %llu", i ? ", " : "",
                      (unsigned long long)summary->findings[i]->unique,
                      (unsigned long long)summary->findings[i]->count);
    buffer_putc(out, '}');
    put_suppressions(out, summary);
    buffer_put(out, json->extras.data, json->extras.size);
}

static void json_end(Writer *writer, const RunSummary *summary)
{
    JsonWriter *json = (JsonWriter *)writer;
    bool is_lines = json->document.is_lines;

    buffer_puts(&writer->out, is_lines ? "{\"type\": \"summary\", "
                                       : "\n  ],\n  \"status\": \"finished\",\n  \"summary\": {");
    put_summary(json, &writer->out, summary);
    buffer_puts(&writer->out, is_lines ? "}\n" : "}\n}\n");
    document_end(&json->document, summary);
    buffer_free(&json->extras);
}

static const WriterOps json_ops = {
    .finding = json_finding,
    .fatal = json_fatal,
    .extra = json_extra,
    .end = json_end,
};

static void put_strings(Buffer *out, const char *name, int count, const char *const *strings)
{
    buffer_printf(out, ", \"%s\": [", name);
    for (int i = 0; i < count; i++) {
        if (i)
            buffer_puts(out, ", ");
        json_put_string(out, strings[i]);
    }
    buffer_putc(out, ']');
}

static void put_run(Buffer *out, const Report *report)
{
    const RunInfo *run = &report->run;

    buffer_printf(out, "\"pid\": %d, \"ppid\": %d", run->pid, run->ppid);
    json_put_member(out, "tool", run->tool);
    json_put_member(out, "program", run->program);
    put_strings(out, "command", run->argc, run->argv);
    put_strings(out, "options", run->option_count, run->options);
    if (report->working_directory[0])
        json_put_member(out, "working_directory", report->working_directory);
    json_put_member(out, "muninn", MUNINN_VERSION);
}

Writer *json_writer_new(const Report *report, const Sink *sink)
{
    JsonWriter *json = calloc(1, sizeof(*json));
    size_t length = strlen(sink->name);

    if (!json)
        return NULL;
    Writer *writer = &json->document.base;
    *writer = (Writer){.ops = &json_ops, .report = report, .sink = *sink};
    json->document.is_lines = length > 6 && strcmp(sink->name + length - 6, ".jsonl") == 0;
    if (json->document.is_lines) {
        buffer_puts(&writer->out, "{\"type\": \"run\", \"format\": \"muninn-report\", "
                                  "\"version\": 1, ");
        put_run(&writer->out, report);
        buffer_puts(&writer->out, "}\n");
    } else {
        buffer_puts(&writer->out, "{\n  \"format\": \"muninn-report\",\n  \"version\": 1,\n"
                                  "  \"run\": {");
        put_run(&writer->out, report);
        buffer_puts(&writer->out, "},\n  \"findings\": [");
    }
    document_begin(&json->document, running_tail);
    return writer;
}
