// SPDX-License-Identifier: MIT
//
// The findings of an earlier run, by fingerprint. The reader looks only for the
// members "format" and "fingerprint", so it takes a document, JSON lines, and what
// a killed run left behind; being strict about strings is enough to be sure that
// what looks like a member is one.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/report/report_internal.h"

enum { BASELINE_MAX_BYTES = 1 << 30 };

typedef struct Known {
    u64 fingerprint;
    bool seen;
} Known;

struct Baseline {
    Known *known; // sorted
    size_t count, capacity;
    bool is_report;
};

static bool parse_fingerprint(const char *text, u64 *ret_value)
{
    u64 value = 0;

    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    value = strtoull(text, NULL, 16);
    *ret_value = value;
    return true;
}

static bool add_known(Baseline *baseline, u64 fingerprint)
{
    if (baseline->count == baseline->capacity) {
        size_t capacity = baseline->capacity ? 2 * baseline->capacity : 256;
        Known *known = realloc(baseline->known, capacity * sizeof(*known));
        if (!known)
            return false;
        baseline->known = known;
        baseline->capacity = capacity;
    }
    baseline->known[baseline->count++] = (Known){fingerprint, false};
    return true;
}

// Reads the string whose opening quote is at *at, as far as it fits. Escapes stay as
// they are: the members that matter have none. False if the file ends in it.
static bool read_string(const char *data, size_t size, size_t *at, char *ret_text, size_t room)
{
    size_t length = 0;

    for (++*at; *at < size && data[*at] != '"'; ++*at) {
        if (data[*at] == '\\' && *at + 1 < size)
            ++*at;
        if (length + 1 < room)
            ret_text[length++] = data[*at];
    }
    ret_text[length] = 0;
    return (*at)++ < size;
}

static void skip_blanks(const char *data, size_t size, size_t *at)
{
    while (*at < size && strchr(" \t\r\n", data[*at]) && data[*at])
        ++*at;
}

static void read_members(Baseline *baseline, const char *data, size_t size)
{
    char key[32], value[32];
    u64 fingerprint;

    for (size_t at = 0; at < size;) {
        if (data[at] != '"') {
            at++;
            continue;
        }
        if (!read_string(data, size, &at, key, sizeof(key)))
            return;
        skip_blanks(data, size, &at);
        if (at >= size || data[at] != ':')
            continue;
        at++;
        skip_blanks(data, size, &at);
        if (at >= size || data[at] != '"')
            continue;
        if (!read_string(data, size, &at, value, sizeof(value)))
            return;
        if (strcmp(key, "format") == 0 && strcmp(value, "muninn-report") == 0)
            baseline->is_report = true;
        else if (strcmp(key, "fingerprint") == 0 && parse_fingerprint(value, &fingerprint))
            add_known(baseline, fingerprint);
    }
}

static int compare_known(const void *left, const void *right)
{
    const Known *a = left, *b = right;

    return a->fingerprint < b->fingerprint ? -1 : a->fingerprint > b->fingerprint;
}

static void sort_known(Baseline *baseline)
{
    size_t kept = 0;

    if (baseline->count == 0)
        return;
    qsort(baseline->known, baseline->count, sizeof(Known), compare_known);
    for (size_t i = 0; i < baseline->count; i++)
        if (i == 0 || baseline->known[i].fingerprint != baseline->known[kept - 1].fingerprint)
            baseline->known[kept++] = baseline->known[i];
    baseline->count = kept;
}

static char *read_file(const char *path, size_t *ret_size, const char **ret_why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat stat;
    char *data = NULL;
    size_t size = 0;

    if (fd < 0) {
        *ret_why = strerror(errno);
        return NULL;
    }
    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size > BASELINE_MAX_BYTES)
        *ret_why = "not a file of a sane size";
    else if (!(data = malloc((size_t)stat.st_size + 1)))
        *ret_why = strerror(ENOMEM);
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

Baseline *baseline_load(const char *path)
{
    const char *why = "not a JSON report of muninn (--json-file writes one)";
    Baseline *baseline = calloc(1, sizeof(*baseline));
    size_t size = 0;
    char *data = baseline ? read_file(path, &size, &why) : NULL;

    if (data) {
        read_members(baseline, data, size);
        sort_known(baseline);
    }
    free(data);
    if (baseline && !baseline->is_report) {
        fprintf(stderr, "muninn: cannot use the baseline %s: %s; every finding counts as new\n",
                path, why);
        baseline_free(baseline);
        return NULL;
    }
    return baseline;
}

static Known *find_known(const Baseline *baseline, const char *fingerprint)
{
    Known key = {0};

    if (baseline->count == 0 || !parse_fingerprint(fingerprint, &key.fingerprint))
        return NULL;
    return bsearch(&key, baseline->known, baseline->count, sizeof(key), compare_known);
}

bool baseline_has(const Baseline *baseline, const char *fingerprint)
{
    return find_known(baseline, fingerprint) != NULL;
}

bool baseline_mark(Baseline *baseline, const char *fingerprint)
{
    Known *known = find_known(baseline, fingerprint);

    if (known)
        known->seen = true;
    return known != NULL;
}

u64 baseline_fixed(const Baseline *baseline)
{
    u64 fixed = 0;

    for (size_t i = 0; i < baseline->count; i++)
        fixed += !baseline->known[i].seen;
    return fixed;
}

void baseline_free(Baseline *baseline)
{
    if (!baseline)
        return;
    free(baseline->known);
    free(baseline);
}
