// SPDX-License-Identifier: MIT
//
// SARIF 2.1.0, for code-scanning uploads: one rule per kind, one result per
// finding, its stacks, the way from origin to finding as a code flow, and a
// fingerprint that a rebuild does not change. Source paths below the working
// directory are relative to it, so that they match the repository's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/report/document.h"

typedef struct SarifWriter {
    Document document;
    u32 rule_count; // kinds that were described later have no rule
} SarifWriter;

static const char running_tail[] = "\n      ]\n    }\n  ]\n}\n";

// A URI has few characters of its own; every other byte becomes %XX.
static void put_uri(Buffer *out, const char *path)
{
    for (; *path; path++) {
        u8 c = (u8)*path;
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            strchr("-._~/+,=@", c))
            buffer_putc(out, (char)c);
        else
            buffer_printf(out, "%%%02X", c);
    }
}

// What remains of `path` below `directory`, or NULL.
static const char *path_below(const char *directory, const char *path)
{
    size_t length = strlen(directory);

    while (length > 1 && directory[length - 1] == '/')
        length--;
    if (length <= 1 || strncmp(path, directory, length) != 0 || path[length] != '/')
        return NULL;
    path += length;
    path += strspn(path, "/");
    return *path ? path : NULL;
}

static void put_artifact(Buffer *out, const Report *report, const char *path)
{
    const char *below = path_below(report->working_directory, path);

    buffer_puts(out, "\"artifactLocation\": {\"uri\": \"");
    if (below) {
        put_uri(out, below);
        buffer_puts(out, "\", \"uriBaseId\": \"SRCROOT\"}");
        return;
    }
    if (path[0] == '/')
        buffer_puts(out, "file://");
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    put_uri(out, path);
    buffer_puts(out, "\"}");
}

// A location object without its braces. Source if there is one, else the object.
static void put_location(Buffer *out, const Report *report, const Frame *frame)
{
    Buffer path = {0};
    bool has_source = frame->file && frame->file[0];

    if (has_source)
        frame_source_path(frame, &path);
    else if (frame->object)
        buffer_puts(&path, frame->object);
    buffer_putc(&path, 0);
    bool has_path = !path.failed && path.data[0];
    if (has_path) {
        buffer_puts(out, "\"physicalLocation\": {");
        put_artifact(out, report, path.data);
        buffer_printf(out, ", \"region\": {\"startLine\": %u}}",
                      has_source && frame->line ? frame->line : 1);
    }
    buffer_free(&path);
    if (frame->function) {
        buffer_puts(out, has_path ? ", " : "");
        buffer_puts(out, "\"logicalLocations\": [{\"kind\": \"function\", "
                         "\"fullyQualifiedName\": ");
        json_put_string(out, frame->function);
        buffer_puts(out, "}]");
    }
}

static void put_message(Buffer *out, const char *text)
{
    buffer_puts(out, "\"message\": {\"text\": ");
    json_put_string(out, text && *text ? text : "at");
    buffer_putc(out, '}');
}

// The frame that a person should look at: source in the working directory, else
// any source, else an object; NULL if there is none of these.
static const Frame *frame_to_show(const Report *report, const ReportStack *stack)
{
    for (size_t i = 0; i < stack->count; i++) {
        const Frame *frame = &stack->frames[i];
        Buffer path = {0};
        frame_source_path(frame, &path);
        buffer_putc(&path, 0);
        bool is_ours = !path.failed && path_below(report->working_directory, path.data);
        buffer_free(&path);
        if (is_ours)
            return frame;
    }
    const Frame *source = stack_first_source(stack);
    for (size_t i = 0; i < stack->count && !source; i++)
        if (stack->frames[i].object && stack->frames[i].object[0])
            source = &stack->frames[i];
    return source;
}

static void put_stack(Buffer *out, const Report *report, const ReportStack *stack,
                      const char *message, u32 tid)
{
    buffer_putc(out, '{');
    put_message(out, message);
    buffer_puts(out, ", \"frames\": [");
    for (size_t i = 0; i < stack->count; i++) {
        const Frame *frame = &stack->frames[i];
        buffer_puts(out, i ? ", {\"location\": {" : "{\"location\": {");
        put_location(out, report, frame);
        buffer_putc(out, '}');
        json_put_member(out, "module", frame->object);
        buffer_printf(out, ", \"threadId\": %u}", tid);
    }
    buffer_puts(out, "]}");
}

static void put_stacks(Buffer *out, const Report *report, const Finding *finding)
{
    buffer_puts(out, ", \"stacks\": [");
    put_stack(out, report, &finding->stack, finding->what, finding->tid);
    for (size_t i = 0; i < finding->part_count; i++) {
        const FindingPart *part = &finding->parts[i];
        if (!part->stack.count)
            continue;
        buffer_puts(out, ", ");
        put_stack(out, report, &part->stack, part->text, finding->tid);
    }
    buffer_putc(out, ']');
}

static void put_related(Buffer *out, const Report *report, const Finding *finding)
{
    u32 id = 0;

    for (size_t i = 0; i < finding->part_count; i++) {
        const FindingPart *part = &finding->parts[i];
        const Frame *frame = frame_to_show(report, &part->stack);
        if (!frame)
            continue;
        buffer_printf(out, "%s{\"id\": %u, ", id ? ", " : ", \"relatedLocations\": [", id + 1);
        put_message(out, part->text);
        Buffer location = {0};
        put_location(&location, report, frame);
        if (location.size) {
            buffer_puts(out, ", ");
            buffer_put(out, location.data, location.size);
        }
        buffer_free(&location);
        buffer_putc(out, '}');
        id++;
    }
    if (id)
        buffer_putc(out, ']');
}

static void put_step(Buffer *out, const Report *report, const Frame *frame, const char *message)
{
    buffer_puts(out, "{\"location\": {");
    put_message(out, message);
    Buffer location = {0};
    put_location(&location, report, frame);
    if (location.size) {
        buffer_puts(out, ", ");
        buffer_put(out, location.data, location.size);
    }
    buffer_free(&location);
    buffer_puts(out, "}}");
}

// In order of time: parts tell the latest first (freed, then allocated).
static void put_code_flow(Buffer *out, const Report *report, const Finding *finding)
{
    const Frame *here = frame_to_show(report, &finding->stack);
    u32 steps = 0;

    for (size_t i = finding->part_count; here && i-- > 0;) {
        const FindingPart *part = &finding->parts[i];
        const Frame *frame = frame_to_show(report, &part->stack);
        if (!frame)
            continue;
        buffer_puts(out, steps++ ? ", " : ", \"codeFlows\": [{\"threadFlows\": [{\"locations\": [");
        put_step(out, report, frame, part->text);
    }
    if (steps) {
        buffer_puts(out, ", ");
        put_step(out, report, here, finding->what);
        buffer_puts(out, "]}]}]");
    }
}

static void put_result_text(Buffer *out, const Finding *finding)
{
    Buffer text = {0};

    buffer_puts(&text, finding->what);
    for (size_t i = 0; i < finding->part_count; i++) {
        if (finding->parts[i].text && finding->parts[i].text[0])
            buffer_printf(&text, "\n%s", finding->parts[i].text);
    }
    buffer_putc(&text, 0);
    put_message(out, text.failed ? finding->what : text.data);
    buffer_free(&text);
}

static void sarif_finding(Writer *writer, const Finding *finding, ReportVerdict verdict)
{
    Document *document = &((SarifWriter *)writer)->document;
    const Report *report = writer->report;
    const KindDescription *kind = finding->kind;
    const Frame *frame = frame_to_show(report, &finding->stack);
    Buffer *out = &writer->out;
    char fingerprint[17];

    report_fingerprint(finding, fingerprint);
    buffer_puts(out, document->item_count ? ",\n        {\"ruleId\": " : "\n        {\"ruleId\": ");
    json_put_string(out, kind->id);
    if (kind->number < ((SarifWriter *)writer)->rule_count)
        buffer_printf(out, ", \"ruleIndex\": %u", kind->number);
    buffer_printf(out, ", \"level\": \"%s\", ", kind->level);
    put_result_text(out, finding);
    // Services refuse a result without a place: then it is the program as a whole.
    Frame program = {.object = report->run.program ? report->run.program : "unknown"};
    buffer_puts(out, ", \"locations\": [{");
    put_location(out, report, frame ? frame : &program);
    buffer_puts(out, "}]");
    put_stacks(out, report, finding);
    put_related(out, report, finding);
    put_code_flow(out, report, finding);
    buffer_printf(out, ", \"partialFingerprints\": {\"muninnStack/v1\": \"%s\"}", fingerprint);
    if (report->baseline)
        json_put_member(out, "baselineState", verdict == REPORT_KNOWN ? "unchanged" : "new");
    buffer_puts(out, ", \"occurrenceCount\": ");
    size_t count_at = document_put_count(document, finding->count ? finding->count : 1);
    buffer_putc(out, '}');
    document_add(document, finding->unique, count_at);
}

static void sarif_end(Writer *writer, const RunSummary *summary)
{
    const RunInfo *run = &writer->report->run;
    Buffer *out = &writer->out;
    char name[16];

    buffer_puts(out, "\n      ],\n      \"invocations\": [{\"executionSuccessful\": ");
    buffer_puts(out, summary->killed && !summary->replaced ? "false" : "true");
    if (summary->exit_code >= 0)
        buffer_printf(out, ", \"exitCode\": %d", summary->exit_code);
    if (summary->signal) {
        buffer_printf(out, ", \"exitSignalNumber\": %d", summary->signal);
        json_put_member(out, "exitSignalName", signal_name(summary->signal, name));
    }
    buffer_printf(out, ", \"processId\": %d, \"arguments\": [", run->pid);
    for (int i = 0; i < run->argc; i++) {
        buffer_puts(out, i ? ", " : "");
        json_put_string(out, run->argv[i]);
    }
    buffer_puts(out, "]}]\n    }\n  ]\n}\n");
    document_end(&((SarifWriter *)writer)->document, summary);
}

static const WriterOps sarif_ops = {
    .finding = sarif_finding,
    .end = sarif_end,
};

static u32 put_rules(Buffer *out, const Vocabulary *vocabulary)
{
    const KindDescription *kind;
    u32 count = 0;

    for (; (kind = vocabulary_kind(vocabulary, count)); count++) {
        buffer_puts(out, count ? ",\n            {\"id\": " : "\n            {\"id\": ");
        json_put_string(out, kind->id);
        json_put_member(out, "name", kind->xml);
        buffer_puts(out, ", \"shortDescription\": {\"text\": ");
        json_put_string(out, kind->title);
        buffer_printf(out, "}, \"defaultConfiguration\": {\"level\": \"%s\"}", kind->level);
        json_put_member(out, "helpUri", kind->help);
        buffer_putc(out, '}');
    }
    return count;
}

Writer *sarif_writer_new(const Report *report, const Sink *sink)
{
    SarifWriter *sarif = calloc(1, sizeof(*sarif));

    if (!sarif)
        return NULL;
    Writer *writer = &sarif->document.base;
    *writer = (Writer){.ops = &sarif_ops, .report = report, .sink = *sink};
    Buffer *out = &writer->out;
    buffer_puts(out, "{\n  \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
                     "  \"version\": \"2.1.0\",\n  \"runs\": [\n    {\n      \"tool\": {\n"
                     "        \"driver\": {\n          \"name\": \"Muninn\",\n"
                     "          \"semanticVersion\": \"" MUNINN_VERSION "\",\n"
                     "          \"rules\": [");
    sarif->rule_count = put_rules(out, report->run.vocabulary);
    buffer_puts(out, "\n          ]\n        }\n      },\n");
    if (report->working_directory[0] == '/') {
        buffer_puts(out, "      \"originalUriBaseIds\": {\"SRCROOT\": {\"uri\": \"file://");
        put_uri(out, report->working_directory);
        buffer_puts(out, report->working_directory[1] ? "/\"}},\n" : "\"}},\n");
    }
    buffer_puts(out, "      \"results\": [");
    document_begin(&sarif->document, running_tail);
    return writer;
}
