// SPDX-License-Identifier: MIT
//
// The writer. Names are compressed per kind: objects, files and functions are numbered apart, as
// the format has it, and a number is valid from the line on that introduced it.
#include "monitor/callgrind/callgrind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/callgrind/names.h"

typedef enum NameKind { NAME_OBJECT, NAME_FILE, NAME_FUNCTION, NAME_KINDS } NameKind;

struct CallgrindWriter {
    FILE *out;
    const CallgrindConfig *config;
    NameTable names[NAME_KINDS];
    u32 written[NAME_KINDS]; // names with a number up to this one have been introduced
    bool has_memory;
};

// ---------------------------------------------------------------- names

// A line break would end the line: control characters are left out.
static void put_text(CallgrindWriter *w, const char *text)
{
    for (; *text; text++) {
        if ((u8)*text >= ' ' && (u8)*text != 0x7f)
            putc(*text, w->out);
    }
}

static void put_name(CallgrindWriter *w, const char *word, NameKind kind, const char *name)
{
    const char *text = name && name[0] ? name : "???";
    u32 number = w->config->compresses ? names_number(&w->names[kind], text) : 0;

    fprintf(w->out, "%s=", word);
    if (!number) {
        w->has_memory &= !w->config->compresses;
        put_text(w, text);
    } else if (number <= w->written[kind]) {
        fprintf(w->out, "(%u)", number);
    } else {
        fprintf(w->out, "(%u) ", number);
        put_text(w, text);
        w->written[kind] = number;
    }
    putc('\n', w->out);
}

// ---------------------------------------------------------------- lines

static void put_position(CallgrindWriter *w, CallgrindPosition at)
{
    if (w->config->has_instructions)
        fprintf(w->out, "0x%" PRIx64 " ", at.address);
    fprintf(w->out, "%u", at.line);
}

// Zeros at the end may be left out.
static void put_values(CallgrindWriter *w, const u64 *values)
{
    u32 count = w->config->event_count;

    while (count > 1 && values[count - 1] == 0)
        count--;
    for (u32 i = 0; i < count; i++)
        fprintf(w->out, " %" PRIu64, values[i]);
    putc('\n', w->out);
}

CallgrindWriter *callgrind_open(FILE *out, const CallgrindConfig *config)
{
    CallgrindWriter *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->out = out;
    w->config = config;
    w->has_memory = true;
    fprintf(out, "# callgrind format\nversion: 1\ncreator: ");
    put_text(w, config->creator);
    fprintf(out, "\npid: %d\ncmd: ", config->pid);
    put_text(w, config->command);
    fprintf(out, "\n\npositions:%s line\n", config->has_instructions ? " instr" : "");
    for (u32 i = 0; i < config->event_count; i++) {
        if (config->events[i].meaning)
            fprintf(out, "event: %s : %s\n", config->events[i].name, config->events[i].meaning);
    }
    fprintf(out, "events:");
    for (u32 i = 0; i < config->event_count; i++)
        fprintf(out, " %s", config->events[i].name);
    putc('\n', out);
    return w;
}

void callgrind_function(CallgrindWriter *w, const CallgrindPlace *function)
{
    putc('\n', w->out);
    if (function->object)
        put_name(w, "ob", NAME_OBJECT, function->object);
    put_name(w, "fl", NAME_FILE, function->file);
    put_name(w, "fn", NAME_FUNCTION, function->function);
}

void callgrind_cost(CallgrindWriter *w, CallgrindPosition at, const u64 *values)
{
    put_position(w, at);
    put_values(w, values);
}

void callgrind_call(CallgrindWriter *w, const CallgrindPlace *callee, CallgrindPosition target,
                    u64 calls, CallgrindPosition at, const u64 *inclusive)
{
    if (callee->object)
        put_name(w, "cob", NAME_OBJECT, callee->object);
    put_name(w, "cfi", NAME_FILE, callee->file);
    put_name(w, "cfn", NAME_FUNCTION, callee->function);
    fprintf(w->out, "calls=%" PRIu64 " ", calls);
    put_position(w, target);
    putc('\n', w->out);
    put_position(w, at);
    put_values(w, inclusive);
}

bool callgrind_close(CallgrindWriter *w, const u64 *totals)
{
    fprintf(w->out, "\ntotals:");
    for (u32 i = 0; i < w->config->event_count; i++)
        fprintf(w->out, " %" PRIu64, totals[i]);
    putc('\n', w->out);
    bool ok = w->has_memory && fflush(w->out) == 0 && !ferror(w->out);
    for (u32 i = 0; i < NAME_KINDS; i++)
        names_free(&w->names[i]);
    free(w);
    return ok;
}
