// SPDX-License-Identifier: MIT
//
// Walks the option table for values that name files.

#include "launch/option_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"
#include "launch/option_table.h"

// A percent sign in the name of the directory is no part of a template.
static const char *make_absolute(const char *path, bool is_template)
{
    char directory[PATH_MAX];

    if (path[0] == '/' || getcwd(directory, sizeof(directory)) == NULL)
        return path;
    char *absolute = malloc(2 * strlen(directory) + strlen(path) + 2);
    if (absolute == NULL)
        return path;
    char *at = absolute;
    for (const char *c = directory; *c != '\0'; c++) {
        *at++ = *c;
        if (*c == '%' && is_template)
            *at++ = '%';
    }
    *at++ = '/';
    strcpy(at, path);
    return absolute;
}

// ---------------------------------------------------------------- files to be written

// The number that follows a name of our descriptors, or -1.
static int named_descriptor(const char *path)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const prefixes[] = {"/dev/fd/", "/proc/self/fd/"};
    int number, length = 0;

    for (int i = 0; i < (int)ARRAY_LEN(standard); i++)
        if (strcmp(path, standard[i]) == 0)
            return i;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t prefix = strlen(prefixes[i]);
        if (strncmp(path, prefixes[i], prefix) == 0 &&
            sscanf(path + prefix, "%d%n", &number, &length) == 1 && path[prefix + length] == '\0')
            return number;
    }
    return -1;
}

// By what name the monitor, whose own descriptors are others, finds one of the client's.
static const char *descriptor_of_client(int number)
{
    char *path = NULL;
    return asprintf(&path, "/proc/%%p/fd/%d", number) < 0 ? NULL : path;
}

static bool settle_output(Options *options, const OptionRow *row, const char **path)
{
    char expanded[PATH_MAX];

    int error = options_expand_path(*path, getpid(), 0, expanded, sizeof(expanded));
    if (error == -EINVAL)
        return option_fail(options,
                           "--%s=%s: %% is followed by p, n, %% or q{VAR}, and VAR must be set",
                           row->name, *path);
    // A recording is read again while it is written.
    struct stat status;
    bool is_device = error == 0 && stat(expanded, &status) == 0 && !S_ISREG(status.st_mode);
    if (error == 0) {
        error = output_probe(expanded);
        options->cannot_write = error != 0;
    }
    if (error != 0)
        return option_fail(options, "--%s=%.300s: %s", row->name, *path, output_error(error));
    if (is_device && options->recording && row->field == offsetof(Options, recording_file))
        return option_fail(options, "--%s=%.300s: a file is needed here; --recording=no makes none",
                           row->name, *path);
    int number = named_descriptor(*path);
    *path = number < 0 ? make_absolute(*path, true) : descriptor_of_client(number);
    return *path != NULL;
}

// ---------------------------------------------------------------- files to be read

// What is read by others, in another process and perhaps several times, cannot be a pipe, nor be
// named by a descriptor of ours.
static bool is_read_once(const char *path)
{
    static const char *const ours[] = {"/dev/fd/", "/dev/std", "/proc/self/fd/"};
    struct stat status;

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strncmp(path, ours[i], strlen(ours[i])) == 0)
            return true;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static bool settle_input(Options *options, const OptionRow *row, const char **path)
{
    if (access(*path, R_OK) != 0)
        return option_fail(options, "--%s=%.300s: %s", row->name, *path, strerror(errno));
    if (row->kind == OPTION_PATH && is_read_once(*path))
        return option_fail(options, "--%s=%.300s: a file is needed here, not a pipe or a device",
                           row->name, *path);
    *path = make_absolute(*path, false);
    return true;
}

// Takes the text itself, which then goes where the name would have gone: as an argument, which
// limits its size.
static bool read_input(Options *options, const OptionRow *row, const char **path)
{
    enum { TEXT_MAX = 120 * 1024 };
    int fd = open(*path, O_RDONLY | O_CLOEXEC);
    char *item = malloc(strlen(*path) + TEXT_MAX + 3);
    ssize_t n = -1;

    if (fd < 0 || item == NULL)
        return option_fail(options, "--%s=%.300s: %s", row->name, *path, strerror(errno));
    char *text = item + sprintf(item, "%c%s\n", OPTIONS_READ, *path), *at = text;
    do {
        n = read(fd, at, (size_t)(text + TEXT_MAX + 1 - at));
        at += n > 0 ? n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    close(fd);
    if (n < 0)
        return option_fail(options, "--%s=%.300s: %s", row->name, *path, strerror(errno));
    if (at > text + TEXT_MAX || memchr(text, '\0', (size_t)(at - text)) != NULL)
        return option_fail(options, "--%s=%.300s: what is not a file may have 120 KiB of text",
                           row->name, *path);
    *at = '\0';
    *path = item;
    return true;
}

static bool settle_inputs(Options *options, const OptionRow *row, OptionList *list)
{
    bool is_text = row->field == offsetof(Options, suppressions);

    for (u32 i = 0; i < list->count; i++) {
        bool once = is_text && is_read_once(list->items[i]);

        if (once ? !read_input(options, row, &list->items[i])
                 : !settle_input(options, row, &list->items[i]))
            return false;
    }
    return true;
}

// ---------------------------------------------------------------- descriptors

// Standard error may be closed: then messages are not to be seen, and that is all.
static bool settle_descriptor(Options *options, const OptionRow *row, i32 fd)
{
    if (fd < 0 || fd == STDERR_FILENO || fcntl(fd, F_GETFD) >= 0)
        return true;
    // Only answers to questions are read from there.
    if (row->field == offsetof(Options, input_fd) &&
        options->gen_suppressions != GEN_SUPPRESSIONS_YES)
        return true;
    return option_fail(options, "--%s=%d: no such descriptor is open", row->name, fd);
}

bool option_files_settle(Options *options)
{
    for (u32 i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        void *field = (u8 *)options + row->field;
        bool good = true;

        if ((options->given[i / 32] & (1u << i % 32)) == 0)
            continue;
        // A destination that a later one has replaced is empty again.
        if (row->kind == OPTION_PATH_TEMPLATE && *(const char **)field != NULL)
            good = settle_output(options, row, field);
        else if (row->kind == OPTION_PATH)
            good = settle_input(options, row, field);
        else if (row->kind == OPTION_PATH_LIST)
            good = settle_inputs(options, row, field);
        else if (row->kind == OPTION_FD)
            good = settle_descriptor(options, row, *(const i32 *)field);
        if (!good)
            return false;
    }
    return true;
}
