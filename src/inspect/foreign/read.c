// SPDX-License-Identifier: MIT
//
// A file of any origin into memory. A few bytes of gzip or zstd can stand for terabytes,
// so what comes out is limited, not what goes in.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "inspect/foreign/foreign.h"

enum { FIRST_BYTES = 64 * 1024 };
#define TEXT_BYTES_MAX (2 * GiB)

typedef struct Growing {
    char *data;
    size_t size, capacity;
    const char *error; // NULL: none
} Growing;

// Room for at least one byte and the zero behind it. False: error is set.
static bool make_room(Growing *out)
{
    if (out->size + 1 < out->capacity)
        return true;
    size_t capacity = out->capacity ? out->capacity * 2 : FIRST_BYTES;
    if (capacity > TEXT_BYTES_MAX) {
        out->error = "it is larger than 2 GiB";
        return false;
    }
    char *data = realloc(out->data, capacity);
    if (!data) {
        out->error = "there is not enough memory for it";
        return false;
    }
    out->data = data;
    out->capacity = capacity;
    return true;
}

static bool read_plain(int fd, Growing *out)
{
    for (;;) {
        if (!make_room(out))
            return false;
        ssize_t n = read(fd, out->data + out->size, out->capacity - out->size - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            out->error = strerror(errno);
        if (n <= 0)
            return n == 0;
        out->size += (size_t)n;
    }
}

// Members one after the other, as gzip(1) allows. What is cut off is kept.
static bool inflate_all(const Growing *in, Growing *out)
{
    z_stream stream = {.next_in = (u8 *)in->data};
    size_t left = in->size;
    int state = inflateInit2(&stream, 15 + 16); // a gzip header, whatever window

    if (state != Z_OK) {
        out->error = "zlib does not start";
        return false;
    }
    while (make_room(out)) {
        if (stream.avail_in == 0) {
            stream.avail_in = (uInt)min_u64(left, 1 << 30);
            left -= stream.avail_in;
        }
        size_t room = min_u64(out->capacity - out->size - 1, 1 << 30);
        stream.next_out = (u8 *)out->data + out->size;
        stream.avail_out = (uInt)room;
        state = inflate(&stream, Z_NO_FLUSH);
        out->size += room - stream.avail_out;
        bool is_all_read = stream.avail_in == 0 && left == 0;
        if (state == Z_STREAM_END && !is_all_read && *stream.next_in == 0x1f)
            state = inflateReset(&stream);
        if (state == Z_STREAM_END)
            break;
        if (state != Z_OK || (is_all_read && stream.avail_out > 0)) {
            out->error = "its gzip data is damaged or cut off";
            break;
        }
    }
    inflateEnd(&stream);
    return !out->error;
}

static bool unzstd_all(const Growing *in, Growing *out)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer source = {in->data, in->size, 0};
    size_t state = 1;

    while (stream && make_room(out)) {
        ZSTD_outBuffer target = {out->data + out->size, out->capacity - out->size - 1, 0};
        state = ZSTD_decompressStream(stream, &target, &source);
        out->size += target.pos;
        if (ZSTD_isError(state)) {
            out->error = "its zstd data is damaged";
            break;
        }
        if (source.pos == source.size && target.pos < target.size)
            break;
    }
    if (!out->error && state != 0)
        out->error = "its zstd data is cut off";
    ZSTD_freeDStream(stream);
    return !out->error;
}

static char *format_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *format_error(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return text;
}

static int open_file(const char *path)
{
    struct stat st;
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        errno = EISDIR;
        return -1;
    }
    return fd;
}

// What came out of damaged data is used if it is anything at all: the parser stops where the
// text does.
static void decompress(Growing *text)
{
    static const u8 gzip_magic[] = {0x1f, 0x8b}, zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    Growing out = {0};
    bool is_gzip = text->size >= 2 && memcmp(text->data, gzip_magic, 2) == 0;
    bool is_zstd = text->size >= 4 && memcmp(text->data, zstd_magic, 4) == 0;

    if (!is_gzip && !is_zstd)
        return;
    if (is_gzip)
        inflate_all(text, &out);
    else
        unzstd_all(text, &out);
    free(text->data);
    *text = out;
}

bool foreign_read(const char *path, ForeignText *ret_text, char **ret_error)
{
    Growing text = {0};
    int fd = open_file(path);

    if (fd < 0) {
        *ret_error = format_error("cannot open %s: %s", path, strerror(errno));
        return false;
    }
    if (read_plain(fd, &text))
        decompress(&text);
    close(fd);
    if (text.error && text.size == 0) {
        *ret_error = format_error("cannot read %s: %s", path, text.error);
        free(text.data);
        return false;
    }
    if (!text.data && !make_room(&text))
        return false;
    text.data[text.size] = '\0';
    ret_text->data = text.data;
    ret_text->size = text.size;
    ret_text->problem = text.error;
    return true;
}

void foreign_free(ForeignText *text)
{
    free(text->data);
    text->data = NULL;
    text->size = 0;
}
