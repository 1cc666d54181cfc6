// SPDX-License-Identifier: MIT
//
// Reads what was appended to the file since the last question. Anyone may create a
// file in /tmp: it is read only if it is a plain file of the user's own or root's, and a
// wild one costs at most the limits below.
#include "monitor/symbols/perf_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP     (1 * MiB)
#define NAMES_MAX     4000000
#define LOOK_BACK_MAX 4096
#define NAME_BYTES    4096

void perf_map_init(PerfMap *map, i32 pid)
{
    *map = (PerfMap){ .pid = pid };
}

void perf_map_free(PerfMap *map)
{
    free(map->names);
    free(map->texts);
    *map = (PerfMap){ 0 };
}

static bool parse_hex(const char **text, const char *end, u64 *ret_value)
{
    u64 value = 0;
    const char *at = *text;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    const char *digits = at;
    for (; at < end && at - digits < 16; at++) {
        u8 c = (u8)*at, lower = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value << 4 | (u64)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (u64)(lower - 'a' + 10);
        else
            break;
    }
    if (at == digits || at == end || *at != ' ')
        return false;
    while (at < end && *at == ' ')
        at++;
    *text = at;
    *ret_value = value;
    return true;
}

static bool grow(void **list, size_t *capacity, size_t wanted, size_t element)
{
    if (wanted <= *capacity)
        return true;
    size_t larger = 2 * wanted + 64;
    void *grown = realloc(*list, larger * element);
    if (!grown)
        return false;
    *list = grown;
    *capacity = larger;
    return true;
}

static void add_line(PerfMap *map, const char *line, const char *end)
{
    u64 start, size;
    if (!parse_hex(&line, end, &start) || !parse_hex(&line, end, &size) || line == end ||
        size == 0 || start + size < start || map->count >= NAMES_MAX)
        return;
    size_t length = min_u64((u64)(end - line), NAME_BYTES);
    if (!grow((void **)&map->names, &map->capacity, map->count + 1, sizeof *map->names) ||
        !grow((void **)&map->texts, &map->texts_capacity, map->texts_size + length + 1, 1))
        return;
    map->names[map->count] = (PerfName){ start, start + size, map->count, map->texts_size };
    map->count++;
    map->longest = max_u64(map->longest, size);
    memcpy(map->texts + map->texts_size, line, length);
    map->texts[map->texts_size + length] = '\0';
    map->texts_size += length + 1;
}

size_t perf_map_parse(PerfMap *map, const char *text, size_t size)
{
    const char *at = text, *end = text + size;
    for (const char *newline; (newline = memchr(at, '\n', (size_t)(end - at)));) {
        add_line(map, at, newline);
        at = newline + 1;
    }
    return (size_t)(at - text);
}

static int open_file(const PerfMap *map, struct stat *ret_status)
{
    static const char *const forms[] = { "/tmp/perf-%d.map", "/proc/%d/root/tmp/perf-%d.map" };
    char path[96];

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        snprintf(path, sizeof path, i ? forms[1] : forms[0], map->pid, map->pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
            continue;
        if (fstat(fd, ret_status) == 0 && S_ISREG(ret_status->st_mode) &&
            (ret_status->st_uid == geteuid() || ret_status->st_uid == 0 || geteuid() == 0))
            return fd;
        close(fd);
    }
    return -1;
}

static int by_start(const void *left, const void *right)
{
    const PerfName *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void read_more(PerfMap *map)
{
    struct stat status;
    int fd = map->pid > 0 ? open_file(map, &status) : -1;
    if (fd < 0)
        return;
    if (status.st_ino != map->inode || (u64)status.st_size < map->read_bytes) {
        map->inode = status.st_ino;
        map->read_bytes = 0;
        map->count = map->sorted = map->texts_size = 0;
    }
    char *buffer = (u64)status.st_size > map->read_bytes ? malloc(READ_STEP) : NULL;
    while (buffer && map->count < NAMES_MAX) {
        ssize_t got = pread(fd, buffer, READ_STEP, (off_t)map->read_bytes);
        size_t used = got > 0 ? perf_map_parse(map, buffer, (size_t)got) : 0;
        if (!used)
            break;
        map->read_bytes += used;
    }
    free(buffer);
    close(fd);
    if (map->count > map->sorted)
        qsort(map->names, map->count, sizeof *map->names, by_start);
    map->sorted = map->count;
}

const char *perf_map_find(PerfMap *map, u64 address, u64 *ret_start)
{
    const PerfName *found = NULL;

    read_more(map);
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->names[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = 0; i < LOOK_BACK_MAX && low > 0; i++, low--) {
        const PerfName *name = &map->names[low - 1];
        if (address - name->start >= map->longest)
            break;
        if (address < name->end && (!found || name->order > found->order))
            found = name;
    }
    if (!found)
        return NULL;
    *ret_start = found->start;
    return map->texts + found->text;
}
