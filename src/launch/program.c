// SPDX-License-Identifier: MIT
//
// What execve would make of a path: permissions, #! lines and ELF headers are
// judged as the kernel judges them, but with a sentence that says what is wrong.

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "launch/launch.h"

__attribute__((format(printf, 3, 4))) static int refuse(Program *program, int error,
                                                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(program->problem, sizeof(program->problem), format, args);
    va_end(args);
    return -error;
}

// Sandboxes older than faccessat2(2) refuse it with EPERM, which no file does; then the older call
// must do, which asks for the real user instead of the effective one.
static bool may_execute(const char *path)
{
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ||
           (errno == EPERM && access(path, X_OK) == 0);
}

// Opens a file that the kernel would execute. `what` and `path` name it in the
// sentence: "" for the program, else what it is needed for.
static int open_executable(Program *program, const char *what, const char *path, int *ret_fd)
{
    struct stat status;

    if (strlen(path) >= PATH_MAX)
        return refuse(program, ENAMETOOLONG, "%s%.40s...: the name is too long", what, path);
    if (stat(path, &status) != 0)
        return refuse(program, errno, "%s%s: %s", what, path, strerror(errno));
    if (what[0] == '\0')
        program->found = true;
    if (S_ISDIR(status.st_mode))
        return refuse(program, EACCES, "%s%s is a directory", what, path);
    if (!S_ISREG(status.st_mode))
        return refuse(program, EACCES, "%s%s is not a regular file", what, path);
    if (!may_execute(path)) {
        if (errno == EACCES && (status.st_mode & 0111) == 0)
            return refuse(program, EACCES, "%s%s is not executable; chmod +x would make it so",
                          what, path);
        return refuse(program, errno, "%s%s cannot be executed: %s", what, path, strerror(errno));
    }

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        program->is_unreadable = errno == EACCES;
        return refuse(program, errno, "%s%s cannot be read: %s", what, path, strerror(errno));
    }
    *ret_fd = fd;
    return 0;
}

// ---------------------------------------------------------------- ELF files

static int probe_elf_interpreter(Program *program, const char *path)
{
    char what[PATH_MAX + 64];
    ElfInfo info;
    int fd;

    snprintf(what, sizeof(what), "%s needs the program interpreter ", path);
    int error = open_executable(program, what, program->elf.interp, &fd);
    if (error != 0)
        return error;
    ElfFault fault = elf_check(fd, &info);
    close(fd);
    if (fault != ELF_FAULT_NONE)
        return refuse(program, ELIBBAD, "%s%s, which %s", what, program->elf.interp,
                      elf_fault_text(fault));
    return 0;
}

// A privilege that the caller has already, or that the mount does not grant, is
// not lost.
static void note_privileges(Program *program, int fd)
{
    struct stat status;
    struct statvfs mount;

    if (fstat(fd, &status) != 0 || (fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_NOSUID)))
        return;
    // Without group execution the set-group-ID bit means mandatory locking.
    const mode_t setgid_exec = S_ISGID | S_IXGRP;
    if ((status.st_mode & S_ISUID) && status.st_uid != geteuid())
        program->lost |= PRIVILEGE_SETUID;
    if ((status.st_mode & setgid_exec) == setgid_exec && status.st_gid != getegid())
        program->lost |= PRIVILEGE_SETGID;
    if (geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        program->lost |= PRIVILEGE_CAPABILITIES;
    program->lost_uid = status.st_uid;
    program->lost_gid = status.st_gid;
}

static int probe_elf(Program *program, const char *path, int fd)
{
    ElfFault fault = elf_check(fd, &program->elf);

    program->is_foreign = fault == ELF_FAULT_CLASS_32 || fault == ELF_FAULT_MACHINE;
    if (fault != ELF_FAULT_NONE)
        return refuse(program, elf_fault_errno(fault), "%s %s", path, elf_fault_text(fault));
    if (program->elf.has_interp) {
        int error = probe_elf_interpreter(program, path);
        if (error != 0)
            return error;
    }
    note_privileges(program, fd);
    // A memfd or a deleted file reached through /proc has no other name.
    if (realpath(path, program->exe) == NULL)
        snprintf(program->exe, sizeof(program->exe), "%s", path);
    return 0;
}

// ---------------------------------------------------------------- scripts

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char *skip_blanks(char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static char *find_blank_or_nul(char *at, const char *end)
{
    while (at < end && !is_blank(*at) && *at != '\0')
        at++;
    return at;
}

// Splits a #! line in place, as the kernel does: the interpreter, then all the
// rest as one argument. `line` has SCRIPT_LINE_MAX bytes, zeros behind the end
// of the file. False if the kernel would not take it for a script.
static bool split_script_line(char *line, char **ret_name, char **ret_arg)
{
    char *end = memchr(line, '\n', SCRIPT_LINE_MAX);

    if (end == NULL) {
        // Too long: fine while it is the argument that is cut, not the name.
        end = line + SCRIPT_LINE_MAX - 1;
        char *name = skip_blanks(line + 2, end);
        if (name == end || find_blank_or_nul(name, end) == end)
            return false;
    }
    while (end > line + 2 && is_blank(end[-1]))
        end--;

    char *name = skip_blanks(line + 2, end);
    if (name == end || *name == '\0')
        return false;
    char *name_end = find_blank_or_nul(name, end);
    char *arg = name_end < end && *name_end != '\0' ? skip_blanks(name_end, end) : end;
    *end = '\0';
    *name_end = '\0';
    *ret_name = name;
    *ret_arg = arg < end ? arg : NULL;
    return true;
}

// Puts one more level of interpreter before the words there are.
static void prepend_words(Program *program, const char *name, const char *arg)
{
    u32 added = arg != NULL ? 2 : 1;

    memmove(program->words + added, program->words, program->word_count * sizeof(char *));
    program->words[0] = name;
    if (arg != NULL)
        program->words[1] = arg;
    program->word_count += added;
}

// What execvp would hand to /bin/sh, unless it is plainly binary: a zero byte
// in the first line is what shells look for.
static bool looks_like_text(const char *head, size_t size)
{
    const char *newline = memchr(head, '\n', size);

    return memchr(head, '\0', newline != NULL ? (size_t)(newline - head) : size) == NULL;
}

static ssize_t read_head(int fd, char *head)
{
    ssize_t n;

    memset(head, 0, SCRIPT_LINE_MAX);
    do {
        n = pread(fd, head, SCRIPT_LINE_MAX, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

// `head` starts with "#!". Returns 1 and the interpreter, or -errno.
static int probe_script(Program *program, const char *path, const char *head, u32 level,
                        const char **ret_next)
{
    char *name, *arg;

    if (level == SCRIPT_LEVELS_MAX)
        return refuse(program, ELOOP, "%s: too many scripts interpret each other", path);
    char *line = program->lines[level];
    memcpy(line, head, SCRIPT_LINE_MAX);
    if (!split_script_line(line, &name, &arg)) {
        program->is_text = true;
        return refuse(program, ENOEXEC, "%s has a #! line without a usable interpreter", path);
    }
    prepend_words(program, name, arg);
    *ret_next = name;
    return 1;
}

static int probe_contents(Program *program, const char *path, int fd, u32 level,
                          const char **ret_next)
{
    char head[SCRIPT_LINE_MAX];
    ssize_t size = read_head(fd, head);

    if (size < 0)
        return refuse(program, errno, "%s cannot be read: %s", path, strerror(errno));
    if (memcmp(head, "#!", 2) == 0)
        return probe_script(program, path, head, level, ret_next);
    if (memcmp(head, "\177ELF", 4) == 0)
        return probe_elf(program, path, fd);
    program->is_text = looks_like_text(head, (size_t)size);
    return refuse(program, ENOEXEC, "%s %s", path, elf_fault_text(ELF_FAULT_NOT_ELF));
}

// One file on the way from the path to the ELF file. Returns 1 and the next
// path if this one was a script, else 0 or -errno.
static int probe_level(Program *program, const char *what, const char *path, u32 level,
                       const char **ret_next)
{
    int fd;
    int result = open_executable(program, what, path, &fd);

    if (result == 0) {
        result = probe_contents(program, path, fd, level, ret_next);
        close(fd);
    }
    return result;
}

int program_probe(const char *path, Program *program)
{
    char what[PATH_MAX + 64] = "";
    const char *next = path;

    program->lost = 0;
    program->word_count = 0;
    program->found = false;
    program->is_text = false;
    program->is_unreadable = false;
    program->is_foreign = false;
    program->problem[0] = '\0';
    program->exe[0] = '\0';
    program->elf.has_interp = false;

    for (u32 level = 0;; level++) {
        const char *current = next;
        int result = probe_level(program, what, current, level, &next);

        if (result < 0 && level > 0) {
            // /bin/sh is asked to help with the file that was named, never with
            // the interpreter of its #! line.
            program->is_text = false;
            if (current[0] != '\0' && current[strlen(current) - 1] == '\r')
                refuse(program, -result,
                       "%s has a #! line that ends in a carriage return; remove it", path);
        }
        if (result <= 0)
            return result;
        snprintf(what, sizeof(what), "%s needs the interpreter ", current);
    }
}
