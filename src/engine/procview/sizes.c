// SPDX-License-Identifier: MIT
//
// How large the client is, in the words of /proc/self/{statm,stat,status}: sums over
// its maps, and over what smaps says of its own. The peaks are those of the moments at
// which somebody looked.
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "base/text.h"
#include "engine/procview/procview_internal.h"

#define PAGE_KIB ((u64)(PAGE_SIZE / KiB))

// In KiB.
typedef struct Sizes {
    u64 total, resident, anonymous, data, code, swapped;
} Sizes;

static u64 peak_total, peak_resident; // a race loses a peak that nobody saw

static const char *line_end(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline + 1 : end;
}

// "start-end perms …": as the kernel counts data and code.
static void add_maps_line(const char *line, Sizes *sizes)
{
    char *next;
    u64 start = strtoull(line, &next, 16);
    if (next == line || *next != '-' || start >> 63) // the vsyscall page counts for nobody
        return;
    u64 kib = (strtoull(next + 1, &next, 16) - start) / KiB;
    bool writes = next[2] == 'w', executes = next[3] == 'x', is_private = next[4] == 'p';
    sizes->total += kib;
    if (writes && is_private)
        sizes->data += kib;
    if (executes && !writes)
        sizes->code += kib;
}

static void add_smaps_line(const char *line, Sizes *sizes)
{
    const struct {
        const char *key;
        u64 *sum;
    } keys[] = {
        { "Rss:", &sizes->resident },
        { "Anonymous:", &sizes->anonymous },
        { "Swap:", &sizes->swapped },
    };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strncmp(line, keys[i].key, strlen(keys[i].key)) == 0)
            *keys[i].sum += strtoull(line + strlen(keys[i].key), NULL, 10);
}

static void add_lines(const ProcText *text, void (*add)(const char *, Sizes *), Sizes *sizes)
{
    const char *end = text->data + text->len;

    for (const char *line = text->data; line < end; line = line_end(line, end))
        add(line, sizes);
}

static Sizes sum_up(const ProcText *maps, const ProcText *smaps)
{
    Sizes sizes = { 0 };

    add_lines(maps, add_maps_line, &sizes);
    add_lines(smaps, add_smaps_line, &sizes);
    peak_total = max_u64(peak_total, sizes.total);
    peak_resident = max_u64(peak_resident, sizes.resident);
    return sizes;
}

// The number behind `key` in a text like status; 0 without.
static u64 value_of(const ProcText *text, const char *key)
{
    const char *at = memmem(text->data, text->len, key, strlen(key));
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void write_status(Sizes s, const ProcText *status, ProcText *ret_text)
{
    u64 shmem = value_of(status, "RssShmem:"), exe = value_of(status, "VmExe:");
    u64 stack = value_of(status, "VmStk:"), done = 0, max = ret_text->size;
    char *dst = ret_text->data;
    const struct {
        const char *key;
        u64 value;
    } keys[] = {
        { "VmPeak:", peak_total },      { "VmSize:", s.total },
        { "VmHWM:", peak_resident },    { "VmRSS:", s.resident },
        { "RssAnon:", s.anonymous },    { "VmSwap:", s.swapped },
        { "VmData:", s.data > stack ? s.data - stack : s.data },
        { "VmLib:", s.code > exe ? s.code - exe : 0 },
        { "RssFile:", s.resident > s.anonymous + shmem ? s.resident - s.anonymous - shmem : 0 },
    };
    const char *end = status->data + status->len;

    for (const char *line = status->data, *next; line < end; line = next) {
        next = line_end(line, end);
        const char *key = NULL;
        u64 value = 0;
        for (size_t i = 0; i < ARRAY_LEN(keys) && !key; i++) {
            if (strncmp(line, keys[i].key, strlen(keys[i].key)) == 0) {
                key = keys[i].key;
                value = keys[i].value;
            }
        }
        if (done + (u64)(next - line) + 64 > max)
            break;
        if (key) {
            done += text_format(dst + done, max - done, "%s\t%8lu kB\n", key, value);
        } else {
            memcpy(dst + done, line, (size_t)(next - line));
            done += (u64)(next - line);
        }
    }
    ret_text->len = done;
}

static void write_statm(Sizes s, const ProcText *statm, ProcText *ret_text)
{
    u64 field[7] = { 0 };
    char *at = statm->data;

    for (size_t i = 0; i < ARRAY_LEN(field); i++)
        field[i] = strtoull(at, &at, 10);
    u64 shared = s.resident - min_u64(s.anonymous, s.resident);
    ret_text->len = text_format(ret_text->data, ret_text->size, "%lu %lu %lu %lu %lu %lu %lu\n",
                                s.total / PAGE_KIB, s.resident / PAGE_KIB, shared / PAGE_KIB,
                                field[3], field[4], s.data / PAGE_KIB, field[6]);
}

// Fields 23 and 24 of stat, counted from 1: vsize in bytes, rss in pages. The name in brackets
// may hold anything.
static void write_stat(Sizes s, const ProcText *stat, ProcText *ret_text)
{
    enum { VSIZE = 23, BEHIND_NAME = 3 };
    const char *end = stat->data + stat->len, *at = memrchr(stat->data, ')', stat->len);
    char *dst = ret_text->data;

    for (unsigned field = BEHIND_NAME; at && field <= VSIZE; field++)
        at = memchr(at + 1, ' ', (size_t)(end - at - 1));
    const char *rest = at ? memchr(at + 1, ' ', (size_t)(end - at - 1)) : NULL;
    rest = rest ? memchr(rest + 1, ' ', (size_t)(end - rest - 1)) : NULL;
    if (!rest) {
        memcpy(dst, stat->data, stat->len);
        ret_text->len = stat->len;
        return;
    }
    u64 done = (u64)(at + 1 - stat->data);
    memcpy(dst, stat->data, done);
    done += text_format(dst + done, ret_text->size - done, "%lu %lu", (u64)(s.total * KiB),
                        s.resident / PAGE_KIB);
    memcpy(dst + done, rest, (size_t)(end - rest));
    ret_text->len = done + (u64)(end - rest);
}

void sizes_write(ProcFile file, const ProcText *maps, const ProcText *smaps,
                 const ProcText *kernels, ProcText *ret_text)
{
    Sizes sizes = sum_up(maps, smaps);

    if (file == PROC_STATM)
        write_statm(sizes, kernels, ret_text);
    else if (file == PROC_STAT)
        write_stat(sizes, kernels, ret_text);
    else
        write_status(sizes, kernels, ret_text);
}
