// SPDX-License-Identifier: MIT
//
// Writes NAME/NAME.c, NAME/Makefile and NAME/README.md. What stands in newtool_files.def has @NAME@
// for the name, @MUNINN@ for the command that was called and @INCLUDE@ for where its header is.
#include "inspect/newtool/newtool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"

typedef struct Skeleton {
    const char *name, *text;
} Skeleton;

static const Skeleton skeleton[] = {
#include "inspect/newtool/newtool_files.def"
};

static char include_dir[PATH_MAX], command[PATH_MAX];

// The header is installed in PREFIX/include, beside PREFIX/libexec/muninn, where this program is;
// in a build tree it is in include, beside the folder that this program is in.
static void find_installation(void)
{
    static const char *const headers[] = {"../../include", "../include", "../../../include"};
    static const char *const commands[] = {"../../bin/muninn", "muninn", "muninn"};
    char exe[PATH_MAX], path[2 * PATH_MAX];

    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';
    const char *folder = dirname(exe);
    strcpy(include_dir, "/usr/include");
    strcpy(command, "muninn");
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        snprintf(path, sizeof(path), "%s/%s/muninn/tool.h", folder, headers[i]);
        if (access(path, R_OK) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, headers[i]);
        if (!realpath(path, include_dir))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, commands[i]);
        if (!realpath(path, command))
            strcpy(command, "muninn");
        return;
    }
}

static const char *value_of(const char *word, const char *name)
{
    return strncmp(word, "@NAME@", 6) == 0      ? name
           : strncmp(word, "@MUNINN@", 8) == 0  ? command
           : strncmp(word, "@INCLUDE@", 9) == 0 ? include_dir
                                                : NULL;
}

static void write_text(FILE *out, const char *text, const char *name)
{
    while (*text) {
        const char *value = *text == '@' ? value_of(text, name) : NULL;
        if (!value) {
            fputc(*text++, out);
            continue;
        }
        fputs(value, out);
        text = strchr(text + 1, '@') + 1;
    }
}

static bool write_file(const Skeleton *file, const char *name)
{
    char path[PATH_MAX];
    const char *end = file->name[0] == '.' ? name : "";

    snprintf(path, sizeof(path), "%s/%s%s", name, end, file->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out)
        write_text(out, file->text, name);
    if (!out || fclose(out) != 0) {
        fprintf(stderr, "muninn new-tool: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    printf("%s\n", path);
    return true;
}

static bool is_good(const char *name)
{
    bool good = isalpha((unsigned char)name[0]) && strlen(name) <= 64;
    for (const char *c = name; *c; c++)
        good &= isalnum((unsigned char)*c) || *c == '_' || *c == '-';
    return good;
}

int newtool_main(int argc, char **argv)
{
    if (argc != 1 || argv[0][0] == '-') {
        fprintf(argc == 1 && strcmp(argv[0], "--help") == 0 ? stdout : stderr,
                "usage: muninn new-tool NAME\n"
                "Writes a folder NAME with a tool that builds and runs: NAME.c and a Makefile.\n");
        return argc == 1 && strcmp(argv[0], "--help") == 0 ? 0 : 1;
    }
    const char *name = argv[0];
    if (!is_good(name)) {
        fprintf(stderr, "muninn new-tool: '%s' is no name for a tool: a letter, then letters, "
                        "digits, - and _\n", name);
        return 1;
    }
    find_installation();
    if (mkdir(name, 0777) != 0) {
        fprintf(stderr, "muninn new-tool: cannot make the folder %s: %s\n", name, strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(skeleton); i++) {
        if (!write_file(&skeleton[i], name))
            return 1;
    }
    printf("Now: cd %s && make run\n", name);
    return 0;
}
