// SPDX-License-Identifier: MIT
//
// Documents into findings: our JSON, and the XML protocol of the incumbent.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/dom/dom.h"
#include "inspect/http/findings.h"
#include "monitor/report/report.h"

enum { FRAMES_MAX = 4096, PARTS_MAX = 256 };

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static u32 count_items(const Dom *list, u32 most)
{
    u32 count = 0;

    for (const Dom *item = list ? list->first : NULL; item && count < most; item = item->next)
        count++;
    return count;
}

// ----------------------------------------------------------------------------- JSON

static FoundStack read_stack(Findings *findings, const Dom *list)
{
    FoundStack stack = {0};
    u32 room = count_items(list, FRAMES_MAX);

    stack.frames = room ? arena_alloc(&findings->arena, room * sizeof(FoundFrame), 8) : NULL;
    for (const Dom *item = list ? list->first : NULL; stack.frames && item && stack.count < room;
         item = item->next) {
        const char *inlined = dom_text(item, "inlined");
        FoundFrame *frame = &stack.frames[stack.count++];
        *frame = (FoundFrame){
            .pc = dom_number(item, "pc"), .object_offset = dom_number(item, "object_offset"),
            .function = dom_text(item, "function"), .mangled = dom_text(item, "mangled"),
            .file = dom_text(item, "file"), .directory = dom_text(item, "directory"),
            .object = dom_text(item, "object"), .line = (u32)dom_number(item, "line"),
            .inlined = inlined && strcmp(inlined, "true") == 0, .source = UINT32_MAX,
        };
        if (frame->file)
            frame->source = findings_source(findings, frame->directory, frame->file);
    }
    return stack;
}

static void read_parts(Findings *findings, Found *found, const Dom *list)
{
    u32 room = count_items(list, PARTS_MAX);

    found->parts = room ? calloc(room, sizeof(FoundPart)) : NULL;
    for (const Dom *item = list ? list->first : NULL;
         found->parts && item && found->part_count < room; item = item->next) {
        found->parts[found->part_count++] = (FoundPart){
            or_empty(dom_text(item, "kind")), dom_text(item, "text"),
            read_stack(findings, dom_child(item, "stack")),
        };
    }
}

// Records of a search come in order: one that does not begins another search.
static u64 guess_check(const Findings *findings, const Found *found)
{
    for (u32 i = findings->count - 1; i-- > 0;) {
        const Found *before = &findings->found[i];
        if (before->has_leak)
            return before->check + (found->record <= before->record);
    }
    return 1;
}

static void read_holders(Findings *findings, Found *found, const Dom *list)
{
    u32 room = count_items(list, PARTS_MAX);

    found->holders =
        room ? arena_alloc(&findings->arena, room * sizeof(FoundHolder), 8) : NULL;
    for (const Dom *item = list ? list->first : NULL;
         found->holders && item && found->holder_count < room; item = item->next) {
        found->holders[found->holder_count++] = (FoundHolder){
            .kind = or_empty(dom_text(item, "kind")), .blocks = dom_number(item, "blocks"),
            .bytes = dom_number(item, "bytes"), .record = dom_number(item, "record"),
            .stack = read_stack(findings, dom_child(item, "stack")),
            .name = dom_text(item, "name"), .object = dom_text(item, "object"),
            .thread = dom_number(item, "thread"), .address = dom_number(item, "address"),
        };
    }
}

static void read_finding(Findings *findings, const Dom *item)
{
    Found *found = item->kind == DOM_OBJECT && item->is_whole ? findings_add(findings) : NULL;

    if (!found)
        return;
    const Dom *leak = dom_child(item, "leak"), *thread = dom_child(item, "thread");
    const char *fingerprint = dom_text(item, "fingerprint");
    found->id = dom_number(item, "id");
    found->kind = or_empty(dom_text(item, "kind"));
    found->tool = or_empty(dom_text(item, "tool"));
    found->what = or_empty(dom_text(item, "what"));
    found->suppression = dom_text(item, "suppression");
    found->param = dom_text(item, "param");
    found->title = dom_text(item, "title");
    found->level = dom_text(item, "level");
    found->count = max_u64(1, dom_number(item, "count"));
    found->thread = dom_number(thread, "id");
    found->thread_name = dom_text(thread, "name");
    found->has_leak = leak && leak->kind == DOM_OBJECT;
    found->leaked_bytes = dom_number(leak, "bytes");
    found->leaked_blocks = dom_number(leak, "blocks");
    found->record = dom_number(leak, "record");
    found->check = dom_number(leak, "check");
    if (found->has_leak && !found->check)
        found->check = guess_check(findings, found);
    read_holders(findings, found, dom_child(leak, "held_by"));
    found->stack = read_stack(findings, dom_child(item, "stack"));
    read_parts(findings, found, dom_child(item, "parts"));
    found->fingerprint =
        fingerprint ? strtoull(fingerprint, NULL, 16) : finding_fingerprint(found);
}

// Words with spaces between them.
static const char *join(Findings *findings, const Dom *list)
{
    size_t size = 1;

    for (const Dom *item = list ? list->first : NULL; item; item = item->next)
        size += strlen(item->text) + 1;
    char *text = arena_alloc(&findings->arena, size, 1);
    char *at = text;
    for (const Dom *item = list ? list->first : NULL; text && item; item = item->next) {
        if (at != text)
            *at++ = ' ';
        at = stpcpy(at, item->text);
    }
    return or_empty(text);
}

static void read_run(Findings *findings, const Dom *run)
{
    findings->pid = (i32)dom_number(run, "pid");
    findings->tool = or_empty(dom_text(run, "tool"));
    findings->command = join(findings, dom_child(run, "command"));
}

// On a stream counts come last, by id.
static void correct_counts(Findings *findings, const Dom *counts)
{
    for (const Dom *item = counts ? counts->first : NULL; item; item = item->next) {
        u64 id = item->name ? strtoull(item->name, NULL, 10) : UINT64_MAX;
        for (u32 i = 0; i < findings->count; i++) {
            if (findings->found[i].id == id)
                findings->found[i].count = max_u64(1, strtoull(item->text, NULL, 10));
        }
    }
}

static void read_document(Findings *findings, const Dom *document)
{
    const Dom *list = dom_child(document, "findings");

    read_run(findings, dom_child(document, "run"));
    findings->status = or_empty(dom_text(document, "status"));
    for (const Dom *item = list ? list->first : NULL; item; item = item->next)
        read_finding(findings, item);
    if (!document->is_whole)
        findings_note(findings, "the report is cut off; what was there is shown");
}

static void read_line(Findings *findings, const Dom *line)
{
    const char *type = or_empty(dom_text(line, "type"));

    if (strcmp(type, "run") == 0) {
        read_run(findings, line);
    } else if (strcmp(type, "finding") == 0) {
        read_finding(findings, line);
    } else if (strcmp(type, "summary") == 0) {
        findings->status = "finished";
        correct_counts(findings, dom_child(line, "counts"));
    }
}

bool findings_read_json(Findings *findings, const char *text, size_t size)
{
    size_t at = 0, used = 0;
    bool any = false;

    findings->format = "muninn-report";
    findings->status = "running";
    while (at < size) {
        Dom *dom = dom_read_json(&findings->arena, text + at, size - at, &used);
        if (!dom || dom->kind != DOM_OBJECT || used == 0) {
            findings_note(findings, "the end of the report cannot be read");
            break;
        }
        any = true;
        if (dom_child(dom, "type"))
            read_line(findings, dom);
        else
            read_document(findings, dom);
        at += used;
        if (!dom->is_whole)
            break;
    }
    return any;
}

// ------------------------------------------------------------------------------ XML

static FoundStack read_xml_stack(Findings *findings, const Dom *element)
{
    FoundStack stack = {0};
    u32 room = count_items(element, FRAMES_MAX);

    stack.frames = room ? arena_alloc(&findings->arena, room * sizeof(FoundFrame), 8) : NULL;
    for (const Dom *item = element ? element->first : NULL;
         stack.frames && item && stack.count < room; item = item->next) {
        FoundFrame *frame = &stack.frames[stack.count++];
        *frame = (FoundFrame){
            .pc = dom_number(item, "ip"), .function = dom_text(item, "fn"),
            .file = dom_text(item, "file"), .directory = dom_text(item, "dir"),
            .object = dom_text(item, "obj"), .line = (u32)dom_number(item, "line"),
            .source = UINT32_MAX,
        };
        // The incumbent gives frames of one address the same ip: all but the last are inlined.
        if (stack.count > 1 && frame->pc == frame[-1].pc)
            frame[-1].inlined = true;
        if (frame->file)
            frame->source = findings_source(findings, frame->directory, frame->file);
    }
    return stack;
}

static const char *kind_id(const char *xml)
{
    const KindDescription *kind;

    for (u32 number = 0; (kind = kind_in_table(number)); number++) {
        if (strcmp(kind->xml, xml) == 0)
            return kind->id;
    }
    return xml; // of another tool: its own word
}

// What follows the first stack: sentences, each perhaps with a stack.
static void read_xml_parts(Findings *findings, Found *found, const Dom *error)
{
    u32 room = count_items(error, PARTS_MAX);
    bool had_stack = false;

    found->parts = room ? calloc(room, sizeof(FoundPart)) : NULL;
    for (const Dom *item = error->first; found->parts && item; item = item->next) {
        FoundPart *last = found->part_count ? &found->parts[found->part_count - 1] : NULL;
        bool is_stack = strcmp(item->name, "stack") == 0;
        bool is_words = strcmp(item->name, "auxwhat") == 0 || strcmp(item->name, "xauxwhat") == 0;
        const char *text = is_words && item->first ? dom_text(item, "text") : item->text;
        if (is_stack && !had_stack) {
            had_stack = true;
            found->stack = read_xml_stack(findings, item);
        } else if (is_stack && last && last->stack.count == 0) {
            last->stack = read_xml_stack(findings, item);
        } else if ((is_stack || is_words) && found->part_count < room) {
            found->parts[found->part_count++] = (FoundPart){
                "note", is_words ? text : NULL,
                is_stack ? read_xml_stack(findings, item) : (FoundStack){0}};
        }
    }
}

static void read_error(Findings *findings, const Dom *error)
{
    const Dom *xwhat = dom_child(error, "xwhat");
    Found *found = error->is_whole ? findings_add(findings) : NULL;

    if (!found)
        return;
    found->id = dom_number(error, "unique");
    found->kind = kind_id(or_empty(dom_text(error, "kind")));
    found->tool = findings->tool;
    found->what = or_empty(xwhat ? dom_text(xwhat, "text") : dom_text(error, "what"));
    found->thread = dom_number(error, "tid");
    found->thread_name = dom_text(error, "threadname");
    found->suppression = dom_text(dom_child(error, "suppression"), "rawtext");
    found->has_leak = dom_child(xwhat, "leakedbytes") != NULL;
    found->leaked_bytes = dom_number(xwhat, "leakedbytes");
    found->leaked_blocks = dom_number(xwhat, "leakedblocks");
    read_xml_parts(findings, found, error);
    found->fingerprint = finding_fingerprint(found);
}

static void read_xml_counts(Findings *findings, const Dom *counts)
{
    for (const Dom *pair = counts->first; pair; pair = pair->next) {
        u64 id = dom_number(pair, "unique"), count = dom_number(pair, "count");
        for (u32 i = 0; count && i < findings->count; i++) {
            if (findings->found[i].id == id)
                findings->found[i].count = count;
        }
    }
}

static void read_xml_command(Findings *findings, const Dom *arguments)
{
    const Dom *words = dom_child(arguments, "argv");

    if (words)
        findings->command = join(findings, words);
}

bool findings_read_xml(Findings *findings, const char *text, size_t size)
{
    const Dom *root = dom_read_xml(&findings->arena, text, size);

    if (!root || strcmp(root->name, "valgrindoutput") != 0)
        return false;
    findings->format = "valgrind-xml";
    findings->status = "running";
    findings->tool = or_empty(dom_text(root, "protocoltool"));
    findings->pid = (i32)dom_number(root, "pid");
    for (const Dom *item = root->first; item; item = item->next) {
        if (strcmp(item->name, "args") == 0)
            read_xml_command(findings, item);
        else if (strcmp(item->name, "error") == 0)
            read_error(findings, item);
        else if (strcmp(item->name, "errorcounts") == 0)
            read_xml_counts(findings, item);
        else if (strcmp(item->name, "status") == 0 &&
                 strcmp(or_empty(dom_text(item, "state")), "FINISHED") == 0)
            findings->status = "finished";
    }
    if (!root->is_whole)
        findings_note(findings, "the report is cut off; what was there is shown");
    return true;
}
