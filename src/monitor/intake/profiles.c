// SPDX-License-Identifier: MIT
//
// Profiles that the tool tells, address by address, and that become files of costs by file,
// function and line, as cg_annotate reads them ("Cachegrind output format" in the incumbent's
// manual).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output_file.h"
#include "monitor/intake/run.h"

enum { COSTS_MAX = 1 << 23 }; // of a profile

// One address, and its values behind it in Profile.values.
typedef struct Cost {
    CodePlace place;
    u64 pc;
    const char *file, *function; // once they are known
    const char *directory;
    u32 line;
    u32 values; // index of the first
} Cost;

typedef struct Profile {
    char *events; // as the file has them
    u32 event_count;
    Vec costs, values;
    bool has_failed; // there was no memory
} Profile;

static void profile_free(Profile *profile)
{
    if (!profile)
        return;
    vec_free(&profile->costs);
    vec_free(&profile->values);
    free(profile->events);
    free(profile);
}

void profiles_forget(Run *run)
{
    for (u32 i = 0; i < PROFILES_MAX; i++) {
        profile_free(run->profiles[i]);
        run->profiles[i] = NULL;
    }
}

static u32 count_words(const char *text)
{
    u32 count = 0;
    for (const char *at = text; *at; at++)
        count += *at != ' ' && (at == text || at[-1] == ' ');
    return count;
}

// Names go into a file of lines.
static bool are_plain(const char *text)
{
    for (; *text; text++) {
        if ((u8)*text < ' ' || (u8)*text > '~')
            return false;
    }
    return true;
}

void profiles_begin(Run *run, const Wire_profile *record)
{
    u32 count = count_words(record->events.data);
    if (record->number >= PROFILES_MAX || run->profiles[record->number] || count == 0 ||
        count > PROFILE_EVENTS_MAX || !are_plain(record->events.data))
        return;
    Profile *profile = calloc(1, sizeof(*profile));
    if (!profile)
        return;
    profile->events = strdup(record->events.data);
    profile->event_count = count;
    profile->has_failed = !profile->events;
    vec_init(&profile->costs, sizeof(Cost));
    vec_init(&profile->values, sizeof(u64));
    run->profiles[record->number] = profile;
}

// What the address means is asked now: its code may be unmapped when the profile is written.
void profiles_add(Run *run, const Wire_profile_cost *record)
{
    Profile *profile = record->number < PROFILES_MAX ? run->profiles[record->number] : NULL;
    if (!profile || record->values.count != profile->event_count)
        return;
    if (profile->costs.count == COSTS_MAX) {
        profile->has_failed = true;
        return;
    }
    Cost cost = {
        .place = symbols_place(run->symbols, record->pc),
        .pc = record->pc,
        .values = (u32)profile->values.count,
    };
    for (size_t i = 0; i < record->values.count; i++)
        profile->has_failed |= !vec_push(&profile->values, &record->values.data[i]);
    profile->has_failed |= !vec_push(&profile->costs, &cost);
}

static void ask_ahead(Run *run, const Profile *profile, size_t from, size_t *asked)
{
    while (*asked < profile->costs.count && *asked < from + SYMBOLS_AHEAD_MAX) {
        const Cost *cost = vec_at(&profile->costs, *asked);
        if (symbols_ask_ahead(run->symbols, cost->place, false) == SYMBOLS_TOO_MANY)
            break;
        ++*asked;
    }
    symbols_send_ahead(run->symbols);
}

// The line is that of the innermost inlined function, and the function the one that has the code,
// as the incumbent has it.
static void name_costs(Run *run, Profile *profile)
{
    enum { INLINED_MAX = 64 };
    Frame frames[INLINED_MAX];
    size_t asked = 0;
    for (size_t i = 0; i < profile->costs.count; i++) {
        if (asked <= i)
            ask_ahead(run, profile, i, &asked);
        Cost *cost = vec_at(&profile->costs, i);
        size_t count = symbols_frames(run->symbols, cost->place, cost->pc, false, frames,
                                      INLINED_MAX);
        const Frame *inner = &frames[0], *outer = &frames[count - 1];
        cost->file = inner->file ? inner->file : "???";
        cost->directory = inner->file && inner->directory ? inner->directory : "";
        cost->line = inner->line;
        cost->function = outer->function ? outer->function : "???";
    }
}

static int compare_places(const Cost *a, const Cost *b)
{
    int order = strcmp(a->directory, b->directory);
    if (!order)
        order = strcmp(a->file, b->file);
    return order ? order : strcmp(a->function, b->function);
}

static int compare(const void *a, const void *b)
{
    const Cost *x = a, *y = b;
    int order = compare_places(x, y);
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static void add_values(const Profile *profile, const Cost *cost, u64 *sums)
{
    for (u32 i = 0; i < profile->event_count; i++)
        sums[i] += *(const u64 *)vec_at(&profile->values, cost->values + i);
}

static void put_values(FILE *out, const Profile *profile, const u64 *values)
{
    for (u32 i = 0; i < profile->event_count; i++)
        fprintf(out, " %llu", (unsigned long long)values[i]);
    fputc('\n', out);
}

// A name in a line of its own.
static void put_name(FILE *out, const char *key, const char *directory, const char *name)
{
    fprintf(out, "%s=", key);
    const char *parts[] = {directory, directory[0] ? "/" : "", name};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        for (const char *at = parts[i]; *at; at++)
            fputc((u8)*at < ' ' ? '?' : *at, out);
    }
    fputc('\n', out);
}

static void put_profile(FILE *out, const Run *run, const Profile *profile)
{
    u64 totals[PROFILE_EVENTS_MAX] = {0};
    const Cost *before = NULL;
    fprintf(out, "desc: muninn-" MUNINN_VERSION " --tool=%s\ncmd:", run->tool.name);
    for (int i = 0; i < run->info.argc; i++) {
        fputc(' ', out);
        for (const char *at = run->info.argv[i]; *at; at++)
            fputc((u8)*at < ' ' ? ' ' : *at, out);
    }
    fprintf(out, "\nevents: %s\n", profile->events);
    for (size_t i = 0; i < profile->costs.count;) {
        const Cost *cost = vec_at(&profile->costs, i);
        u64 sums[PROFILE_EVENTS_MAX] = {0};
        if (!before || strcmp(before->directory, cost->directory) != 0 ||
            strcmp(before->file, cost->file) != 0)
            put_name(out, "fl", cost->directory, cost->file);
        if (!before || compare_places(before, cost) != 0)
            put_name(out, "fn", "", cost->function);
        before = cost;
        for (; i < profile->costs.count; i++) {
            const Cost *same = vec_at(&profile->costs, i);
            if (compare(cost, same) != 0)
                break;
            add_values(profile, same, sums);
        }
        for (u32 e = 0; e < profile->event_count; e++)
            totals[e] += sums[e];
        fprintf(out, "%u", cost->line);
        put_values(out, profile, sums);
    }
    fputs("summary:", out);
    put_values(out, profile, totals);
}

// The whole path, as the user may use it anywhere. What the client's process says of files is not
// listened to: the options name them.
static bool place_file(const Run *run, u64 number, char *path, size_t size)
{
    char name[2048], here[2048] = "", suffix[24] = "", fallback[64];
    const char *template = run->options->profile_file;
    if (!template) {
        snprintf(fallback, sizeof(fallback), "%s.out.%%p", run->tool.name);
        for (char *at = fallback; *at; at++)
            *at = *at == '/' ? '_' : *at;
        template = fallback;
    }
    if (options_expand_path(template, run->info.pid, 1, name, sizeof(name)) != 0)
        return false;
    if (name[0] != '/' && !getcwd(here, sizeof(here)))
        here[0] = '\0';
    if (number)
        snprintf(suffix, sizeof(suffix), ".%llu", (unsigned long long)number);
    return (size_t)snprintf(path, size, "%s%s%s%s", here, here[0] ? "/" : "", name, suffix) < size;
}

static int write_file(Run *run, Profile *profile, const char *path)
{
    int error = 0;
    name_costs(run, profile);
    if (profile->costs.count)
        qsort(profile->costs.data, profile->costs.count, sizeof(Cost), compare);
    FILE *out = output_stream(path, &error);
    if (!out)
        return error;
    errno = 0;
    put_profile(out, run, profile);
    if (fflush(out) != 0 || ferror(out))
        error = errno ? -errno : -EIO;
    if (fclose(out) != 0 && !error)
        error = -errno;
    return error;
}

void profiles_write(Run *run, const Wire_profile_done *done)
{
    char path[4200], line[4400];
    Profile *profile = done->number < PROFILES_MAX ? run->profiles[done->number] : NULL;
    if (!profile || !run->report)
        return;
    run->profiles[done->number] = NULL;
    int error = profile->has_failed ? -ENOMEM : 0;
    if (!place_file(run, done->number, path, sizeof(path)))
        error = -ENAMETOOLONG;
    if (!error)
        error = write_file(run, profile, path);
    if (error) {
        snprintf(line, sizeof(line), "the profile cannot be written to %s: %s", path,
                 output_error(error));
        report_note(run->report, line);
        run->output_failed = true;
    } else {
        snprintf(line, sizeof(line), "Profile: %s", path);
        report_line(run->report, line);
    }
    profile_free(profile);
}
