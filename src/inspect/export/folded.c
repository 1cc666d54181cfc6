// SPDX-License-Identifier: MIT
//
// Folded stacks, "main;read;malloc 4096" a line, as flame graph programs read them, and
// speedscope's JSON. What separates frames may not stand in a name.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/export/formats.h"

static void put_folded_name(FILE *out, const char *name)
{
    for (; *name; name++) {
        u8 c = (u8)*name;
        fputc(c == ';' ? ':' : c < ' ' || c == 0x7f ? '?' : c, out);
    }
}

bool folded_write(const ExportJob *job, char **ret_error)
{
    u32 count;
    StackSums *stacks = stack_sums(job, &count, ret_error);
    Stack stack = {0};

    if (!stacks)
        return false;
    for (u32 i = 0; i < count; i++) {
        char text[STACK_LABEL_MAX];
        if (stacks[i].value <= 0)
            continue; // of a growth: what shrank has no place in a flame graph
        stack_read(&stack, job->recording, stacks[i].context);
        for (u32 f = stack.count; f-- > 0;) {
            put_folded_name(job->out, frame_name(&stack.frames[f], job->recording, text));
            fputs(f ? ";" : "", job->out);
        }
        fprintf(job->out, "%s %lld\n", stack.count ? "" : "(no stack)",
                (long long)stacks[i].value);
        if (job->progress)
            job->progress(i, count);
    }
    stack_free(&stack);
    free(stacks);
    return true;
}

// ------------------------------------------------------------------------ speedscope

typedef struct Speedscope {
    const ExportJob *job;
    const StackSums *stacks;
    u32 count;
    Interner *frames; // "name\nfile\nline"
} Speedscope;

static u32 frame_id(Speedscope *scope, const StackFrame *at)
{
    Recording *recording = scope->job->recording;
    const RecordedFrame *frame = stack_frame(at, recording);
    char text[STACK_LABEL_MAX];
    char *key = NULL;

    if (asprintf(&key, "%s\n%s\n%u", frame_name(at, recording, text),
                 frame && frame->file ? frame->file : "", frame ? frame->line : 0) < 0)
        abort();
    // The separators are the last two line ends; a name that has some is still one key.
    u32 id = intern(scope->frames, key);
    free(key);
    return id;
}

static void put_frames(Speedscope *scope)
{
    for (u32 i = 0; i < interned_count(scope->frames); i++) {
        char *name = strdup(interned(scope->frames, i));
        if (!name)
            abort();
        char *line = strrchr(name, '\n');
        *line++ = 0;
        char *file = strrchr(name, '\n');
        *file++ = 0;
        fputs(i ? ",\n  {\"name\":" : "\n  {\"name\":", scope->job->out);
        json_string(scope->job->out, name);
        if (*file) {
            fputs(",\"file\":", scope->job->out);
            json_string(scope->job->out, file);
        }
        if (strcmp(line, "0") != 0)
            fprintf(scope->job->out, ",\"line\":%s", line);
        fputc('}', scope->job->out);
        free(name);
    }
}

typedef struct ScopeMetric {
    const char *name, *unit;
    size_t offset; // in SiteSums
} ScopeMetric;

static u64 metric_of(const StackSums *stack, const ScopeMetric *metric)
{
    return *(const u64 *)((const char *)&stack->sums + metric->offset);
}

static void put_samples(Speedscope *scope, const ScopeMetric *metric)
{
    Stack stack = {0};
    const char *between = "";

    for (u32 i = 0; i < scope->count; i++) {
        if (metric_of(&scope->stacks[i], metric) == 0)
            continue;
        stack_read(&stack, scope->job->recording, scope->stacks[i].context);
        fprintf(scope->job->out, "%s\n   [", between);
        for (u32 f = stack.count; f-- > 0;)
            fprintf(scope->job->out, "%u%s", frame_id(scope, &stack.frames[f]), f ? "," : "");
        fputc(']', scope->job->out);
        between = ",";
    }
    stack_free(&stack);
}

static void put_scope_profile(Speedscope *scope, const ScopeMetric *metric)
{
    FILE *out = scope->job->out;
    const char *between = "";
    u64 total = 0;

    for (u32 i = 0; i < scope->count; i++)
        saturate_grow_u64(&total, metric_of(&scope->stacks[i], metric));
    fputs("\n {\"type\":\"sampled\",\"name\":", out);
    json_string(out, metric->name);
    fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%llu,\"samples\":[",
            metric->unit, (unsigned long long)total);
    put_samples(scope, metric);
    fputs("],\"weights\":[", out);
    for (u32 i = 0; i < scope->count; i++) {
        u64 value = metric_of(&scope->stacks[i], metric);
        if (value == 0)
            continue;
        fprintf(out, "%s%llu", between, (unsigned long long)value);
        between = ",";
    }
    fputs("]}", out);
}

bool speedscope_write(const ExportJob *job, char **ret_error)
{
    static const ScopeMetric metrics[] = {
        {"live bytes", "bytes", offsetof(SiteSums, live_bytes)},
        {"live blocks", "none", offsetof(SiteSums, live_blocks)},
        {"allocated bytes", "bytes", offsetof(SiteSums, allocated_bytes)},
        {"allocations", "none", offsetof(SiteSums, allocations)},
        {"temporary allocations", "none", offsetof(SiteSums, temporary)},
    };
    const RecordingInfo *info = recording_info(job->recording);
    Speedscope scope = {.job = job};

    StackSums *stacks = stack_sums(job, &scope.count, ret_error);
    if (!stacks)
        return false;
    scope.stacks = stacks;
    scope.frames = interner_new();
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"name\":",
          job->out);
    json_string(job->out, info->command ? info->command : "recording");
    fputs(",\n\"exporter\":\"muninn\",\n\"activeProfileIndex\":0,\n\"profiles\":[", job->out);
    for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
        fputs(i ? "," : "", job->out);
        put_scope_profile(&scope, &metrics[i]);
    }
    fputs("],\n\"shared\":{\"frames\":[", job->out);
    put_frames(&scope);
    fputs("]}}\n", job->out);
    interner_free(scope.frames);
    free(stacks);
    return true;
}
