// SPDX-License-Identifier: MIT
//
// See source_text.h.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/http/source_text.h"

enum {
    SOURCE_BYTES_MAX = 4 << 20,
    LINE_BYTES_MAX = 2000,
};

static const char *const endings[] = {
    "c",  "h",   "cc",  "hh",    "cpp", "hpp", "cxx", "hxx", "c++", "h++", "inc", "inl", "ipp",
    "tcc", "def", "m",  "mm",    "rs",  "go",  "d",   "di",  "zig", "nim", "f",   "for", "f90",
    "f95", "f03", "adb", "ads",  "pas", "s",   "asm", "y",   "l",   "py",  "pyx", "pxd", "java",
    "kt", "swift", "ml", "mli",  "hs",  "lua", "js",  "ts",  "rb",  "pl",  "php", "cu",  "cl",
    "vala", "cr", "jl",  "cs",
};

static bool ends_as_source(const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *dot = strrchr(slash ? slash : file, '.');

    for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++) {
        if (strcasecmp(dot + 1, endings[i]) == 0)
            return true;
    }
    // The headers of C++ have no ending.
    return !dot && (strstr(file, "/include/c++/") != NULL);
}

// Opens if it may be shown. -1: *ret_why.
static int open_source(const char *directory, const char *file, struct stat *ret_stat,
                       const char **ret_why)
{
    char path[PATH_MAX];
    bool is_whole = file && file[0] == '/';

    *ret_why = "the recording does not say where the file is";
    if (!file || (!is_whole && (!directory || directory[0] != '/')))
        return -1;
    *ret_why = "its path is too long";
    if (snprintf(path, sizeof(path), "%s%s%s", is_whole ? "" : directory, is_whole ? "" : "/",
                 file) >= (int)sizeof(path))
        return -1;
    *ret_why = "its name is not that of a source file";
    if (!ends_as_source(path))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    *ret_why = errno == ENOENT ? "it is not on this machine" : "it cannot be opened";
    if (fd < 0)
        return -1;
    *ret_why = "it is not a file of at most 4 MiB";
    if (fstat(fd, ret_stat) == 0 && S_ISREG(ret_stat->st_mode) &&
        ret_stat->st_size <= SOURCE_BYTES_MAX)
        return fd;
    close(fd);
    return -1;
}

bool source_is_readable(const char *directory, const char *file)
{
    const char *why;
    struct stat stat;
    int fd = open_source(directory, file, &stat, &why);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool source_read(const char *directory, const char *file, SourceText *ret_text,
                 const char **ret_why)
{
    struct stat stat;
    int fd = open_source(directory, file, &stat, ret_why);
    SourceText text = {0};
    ssize_t n = 1;

    if (fd < 0)
        return false;
    text.data = malloc((size_t)stat.st_size + 1);
    while (text.data && text.size < (size_t)stat.st_size && n > 0) {
        n = read(fd, text.data + text.size, (size_t)stat.st_size - text.size);
        if (n > 0)
            text.size += (size_t)n;
    }
    close(fd);
    *ret_why = "it is not text";
    if (!text.data || memchr(text.data, '\0', text.size)) {
        free(text.data);
        return false;
    }
    text.changed_ns = (u64)stat.st_mtim.tv_sec * 1000000000u + (u64)stat.st_mtim.tv_nsec;
    *ret_text = text;
    *ret_why = NULL;
    return true;
}

void source_free(SourceText *text)
{
    free(text->data);
    *text = (SourceText){0};
}

void json_source_lines(Json *out, const SourceText *text, u32 first, u32 count)
{
    const char *at = text->data, *end = text->data + text->size;
    u32 line = 1;

    json_open(out, '[');
    for (; at < end && line < first + count; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at);
        if (size && at[size - 1] == '\r')
            size--;
        if (line >= first)
            json_text_size(out, at, size < LINE_BYTES_MAX ? size : LINE_BYTES_MAX);
        if (!stop)
            break;
        at = stop + 1;
    }
    json_close(out, ']');
}
