// SPDX-License-Identifier: MIT
//
// Reads .muninnrc files and MUNINN_OPTS. A file in the working directory may have
// been put there by someone else, and options can make muninn write files: it
// counts only if it is the user's own and nobody else may write to it.

#include "launch/option_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/options.h"

// More than anyone writes by hand.
#define FILE_SIZE_MAX (1 * MiB)

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL) {
        dprintf(STDERR_FILENO, "muninn: out of memory\n");
        exit(1);
    }
    return memory;
}

// ---------------------------------------------------------------- files

static bool is_trusted(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() &&
           (status->st_mode & S_IWOTH) == 0;
}

static bool fail(OptionSources *sources, const char *path, const char *why)
{
    snprintf(sources->problem, sizeof(sources->problem), "%s: %s", path, why);
    sources->failed = true;
    return false;
}

static char *read_all(OptionSources *sources, const char *path, int fd, size_t size)
{
    char *text = allocate(size + 1);
    size_t used = 0;

    while (used < size) {
        ssize_t n = read(fd, text + used, size - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            fail(sources, path, strerror(errno));
            free(text);
            return NULL;
        }
        if (n == 0)
            break;
        used += (size_t)n;
    }
    if (memchr(text, '\0', used) != NULL) {
        fail(sources, path, "there is a zero byte in it; options are text");
        free(text);
        return NULL;
    }
    return text;
}

static void add_source(OptionSources *sources, const char *name, char *text, bool is_file)
{
    OptionSource *source = &sources->sources[sources->count++];

    snprintf(source->name, sizeof(source->name), "%s", name);
    source->words_text = text;
    if (is_file) {
        source->text = allocate(strlen(text) + 1);
        strcpy(source->text, text);
    }
}

// A file that is not there is not missed. `seen` is the home directory's file,
// which is not read again if it is the working directory's as well.
static void read_file(OptionSources *sources, const char *path, bool is_here, struct stat *seen)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            sources->warn("warning: %s was not read: %s", path, strerror(errno));
    } else if (is_here && status.st_dev == seen->st_dev && status.st_ino == seen->st_ino) {
        // Read already.
    } else if (is_here && !is_trusted(&status)) {
        sources->warn("warning: %s was not read: it is not a regular file, or everybody may "
                      "write to it, or it is not yours", path);
    } else if (!S_ISREG(status.st_mode)) {
        sources->warn("warning: %s was not read: it is not a regular file", path);
    } else if (status.st_size > (off_t)FILE_SIZE_MAX) {
        fail(sources, path, "it is larger than 1 MiB, and no list of options is");
    } else {
        char *text = read_all(sources, path, fd, (size_t)status.st_size);
        if (text != NULL)
            add_source(sources, path, text, true);
        *seen = status;
    }
    if (fd >= 0)
        close(fd);
}

// ---------------------------------------------------------------- all of them

// A question is answered even if a file is wrong.
static bool is_question(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--version") == 0 ||
           strncmp(word, "--help", strlen("--help")) == 0;
}

static bool is_command_line_only(int argc, char **argv)
{
    bool only = false;

    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0;
         i = options_next(argc, argv, i)) {
        if (is_question(argv[i]))
            return true;
        if (strcmp(argv[i], "--command-line-only=yes") == 0)
            only = true;
        else if (strcmp(argv[i], "--command-line-only=no") == 0)
            only = false;
    }
    return only;
}

static void read_variable(OptionSources *sources, const char *name)
{
    const char *value = getenv(name);

    if (value == NULL)
        return;
    char *copy = allocate(strlen(value) + 1);
    strcpy(copy, value);
    add_source(sources, name, copy, false);
}

static void read_sources(OptionSources *sources, bool is_compat)
{
    static const struct {
        const char *file, *variable;
    } names[] = {{".valgrindrc", "VALGRIND_OPTS"}, {".muninnrc", "MUNINN_OPTS"}};
    struct stat seen[ARRAY_LEN(names)] = {0};
    const char *home = getenv("HOME");
    u32 first = is_compat ? 0 : 1;
    char path[PATH_MAX];

    // A service may have a home directory that it cannot enter: no reason for a word.
    bool has_home = home != NULL && home[0] != '\0' && access(home, X_OK) == 0;

    for (u32 i = first; i < ARRAY_LEN(names) && has_home; i++) {
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", home, names[i].file) < sizeof(path))
            read_file(sources, path, false, &seen[i]);
    }
    for (u32 i = first; i < ARRAY_LEN(names); i++)
        read_variable(sources, names[i].variable);
    for (u32 i = first; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "./%s", names[i].file);
        read_file(sources, path, true, &seen[i]);
    }
}

// Splits a source into argv from `at` on. False if it is no list of options.
static bool split_source(OptionSources *sources, OptionSource *source, int at, u32 room)
{
    char place[4300];
    bool is_open;

    source->first = at;
    source->count =
        (int)options_split_text(source->words_text, sources->argv + at, room, &is_open);
    for (int i = at; i < at + source->count; i++) {
        const char *word = sources->argv[i];

        if (word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0)
            continue;
        option_sources_locate(sources, i, place, sizeof(place));
        snprintf(sources->problem, sizeof(sources->problem), "%s'%.200s' is not an option", place,
                 word);
        sources->failed = true;
        return false;
    }
    if (is_open) {
        option_sources_locate(sources, at + source->count - 1, place, sizeof(place));
        snprintf(sources->problem, sizeof(sources->problem), "%sa quote is never closed", place);
        sources->failed = true;
    }
    return !is_open;
}

bool option_sources_read(OptionSources *sources, int argc, char **argv, bool is_compat,
                         void (*warn)(const char *format, ...))
{
    size_t room = 0;
    int at = 1;

    *sources = (OptionSources){.warn = warn};
    if (!is_command_line_only(argc, argv))
        read_sources(sources, is_compat);
    // A word takes a byte and a blank at least.
    for (u32 i = 0; i < sources->count; i++)
        room += strlen(sources->sources[i].words_text) + 1;
    sources->argv = allocate((room + (size_t)argc + 2) * sizeof(char *));
    sources->argv[0] = argc > 0 ? argv[0] : NULL;
    for (u32 i = 0; i < sources->count && !sources->failed; i++) {
        if (split_source(sources, &sources->sources[i], at, (u32)room))
            at += sources->sources[i].count;
    }
    sources->added = at - 1;
    sources->argc = at;
    for (int i = 1; i < argc; i++)
        sources->argv[sources->argc++] = argv[i];
    return !sources->failed;
}

void option_sources_locate(const OptionSources *sources, int index, char *out, size_t size)
{
    out[0] = '\0';
    for (u32 i = 0; i < sources->count; i++) {
        const OptionSource *source = &sources->sources[i];

        if (index < source->first || index >= source->first + source->count)
            continue;
        if (source->text == NULL) {
            snprintf(out, size, "%s: ", source->name);
            return;
        }
        size_t offset = (size_t)(sources->argv[index] - source->words_text);
        u32 line = 1;
        for (size_t j = 0; j < offset; j++)
            line += source->text[j] == '\n';
        snprintf(out, size, "%s:%u: ", source->name, line);
    }
}
