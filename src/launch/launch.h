// SPDX-License-Identifier: MIT
//
// What the launcher shares with the engine besides the options: how a name
// becomes an ELF file to load, and how environment variables that would steer
// the engine's own ld.so and libc are kept from it and given back to the client.
#ifndef MUNINN_LAUNCH_LAUNCH_H
#define MUNINN_LAUNCH_LAUNCH_H

#include <limits.h>

#include "base/elf_check.h"
#include "base/types.h"

// ---------------------------------------------------------------- programs

// As many #! lines as the kernel follows from one execve.
#define SCRIPT_LEVELS_MAX 5

// The kernel reads this much of a #! line.
#define SCRIPT_LINE_MAX 256

// What the kernel would grant to the program and we cannot: a process that is
// traced by its own user must not gain privileges.
enum Privilege {
    PRIVILEGE_SETUID = 1 << 0,
    PRIVILEGE_SETGID = 1 << 1,
    PRIVILEGE_CAPABILITIES = 1 << 2,
};

typedef struct Program {
    char exe[PATH_MAX]; // the ELF file, absolute, free of symbolic links where there is a path
    ElfInfo elf;        // what elf_check() found in it
    u32 lost;           // PRIVILEGE_* bits
    u32 lost_uid;       // owner of a set-user-ID file
    u32 lost_gid;       // group of a set-group-ID file

    // For a #! script these words go before the path of the script, in place of
    // argv[0]: the interpreter and its argument, innermost level first.
    u32 word_count;
    const char *words[2 * SCRIPT_LEVELS_MAX];
    char lines[SCRIPT_LEVELS_MAX][SCRIPT_LINE_MAX];

    // Why it cannot be run; meaningful when program_probe() has failed.
    bool found;         // the file asked for exists: exit status 126, not 127
    bool is_text;       // -ENOEXEC, but execvp and shells would give it to /bin/sh
    bool is_unreadable; // -EACCES, but the kernel could run it: execute-only
    bool is_foreign;    // an ELF file of another kind, which the kernel may know how to run
    char problem[PATH_MAX + 256]; // a sentence that starts with the name of a file
} Program;

// Finds out what execve(path) would run. Returns 0 or the errno, negative, that
// execve would give: -ENOENT, -EACCES, -ENOEXEC, -ELOOP, -ELIBBAD... Headers that
// the kernel would accept only to kill the process are -ENOEXEC too. Does not
// allocate. `program` is filled in as far as the answer was known.
int program_probe(const char *path, Program *program);

// ---------------------------------------------------------------- environment

// LD_*, MALLOC_* and GLIBC_TUNABLES are handed to the engine under this prefix.
// So are names that have the prefix already, which makes it reversible.
#define ENVIRONMENT_PREFIX "MUNINN_KEEP_"

// How much room environment_hide() needs for the hidden forms; may be 0.
size_t environment_hidden_size(char *const *envp);

// Replaces, in place and keeping the order, every entry that must be hidden by
// its hidden form, which is written to `buffer`. The buffer has
// environment_hidden_size(envp) bytes and lives as long as the entries do.
void environment_hide(char **envp, char *buffer);

// Undoes environment_hide(): in place, without allocating.
void environment_restore(char **envp);
// Takes those out that are the client's alone, whatever they are called now.
void environment_drop_hidden(char **envp);

#endif
