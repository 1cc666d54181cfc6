// SPDX-License-Identifier: MIT
//
// What the user asked for. The launcher parses the command line into an
// Options, turns it back into a normalised command line for the engine, and the
// engine parses that with the same code: nothing is decided in two places.
// The rows are in options.def.
//
// Strings point into the argv (or the text) they were parsed from, which must
// live as long as the Options does. Nothing here allocates.
#ifndef MUNINN_LAUNCH_OPTIONS_H
#define MUNINN_LAUNCH_OPTIONS_H

#include "base/types.h"

enum {
#define TRACE(NAME, name, help) TRACE_INDEX_##NAME,
#include "launch/options.def"
};

enum {
#define STRESS(NAME, name, help) STRESS_INDEX_##NAME,
#include "launch/options.def"
};

enum TraceBits {
#define TRACE(NAME, name, help) TRACE_##NAME = 1 << TRACE_INDEX_##NAME,
#include "launch/options.def"
};

enum StressBits {
#define STRESS(NAME, name, help) STRESS_##NAME = 1 << STRESS_INDEX_##NAME,
#include "launch/options.def"
};

#define OPTIONS_CACHE_SIZE_MIN (256 * KiB)
#define OPTIONS_CACHE_SIZE_MAX (254 * MiB) // what the layout of the low 2 GiB leaves
#define OPTIONS_CACHE_SIZE_DEFAULT (192 * MiB)

typedef struct Options {
    const char *tool;                // one of the TOOL rows
    bool trace_children;             // follow execve
    const char *trace_children_skip; // patterns, or NULL
    i32 log_fd;                      // where messages go unless log_file is set
    const char *log_file;            // template for options_expand_path(), or NULL
    i32 verbosity;                   // 0; below 0 quiet, above 0 verbose
    bool version;                    // --version: print and exit
    const char *help;                // --help: "", or the topic after '='; NULL if not asked
    bool stats;
    u32 trace;  // TRACE_* bits
    u32 stress; // STRESS_* bits
    u64 cache_size_bytes;

    // From the launcher to the engine. The parser knows them only after
    // --muninn-exe, which the launcher puts first.
    const char *muninn_exe; // absolute path of the launcher
    const char *exe;        // absolute path, free of symbolic links, of the ELF file to load
    const char *script;     // the #! script that was asked for, or NULL
    const char *execfn;     // the path execve would have been given: AT_EXECFN, and the
                            // last component is the name of the process

    i32 seccomp_fd;         // what seccomp_across_exec() made, or -1

    char error[512]; // why the last call failed: one line without "muninn: "
} Options;

// Sets every default. Comes before any parsing.
void options_init(Options *options);

// Parses argv[1...] and returns the index of the program, which is argc if there
// is none; a "--" before it is skipped. Returns -EINVAL on an unknown option or
// value, with the reason in options->error.
int options_parse(int argc, char **argv, Options *options);

// Parses the options in `text` (the value of MUNINN_OPTS), separated by blanks;
// quotes and backslashes protect blanks. The text is cut up in place. Returns 0
// or -EINVAL.
int options_parse_text(char *text, Options *options);

// Writes every option that differs from its default as "--name=value" into
// `buffer` and points argv[0...] at them. Returns their number, or -ENOBUFS.
int options_to_argv(const Options *options, char *buffer, size_t buffer_size, char **argv,
                    int argv_max);

// Enough for argv_max above.
#define OPTIONS_ARGV_MAX 64

// True if --trace-children-skip names the executable `path`, or says it with
// wildcards: * is any text, slashes included, ? any one character.
bool options_child_is_skipped(const Options *options, const char *path);

// Expands %p, %n, %q{VAR} and %% of a --log-file template. `sequence` is %n.
// Returns 0; -EINVAL for an unknown % sequence or an unset VAR, -ENAMETOOLONG.
int options_expand_path(const char *template, i32 pid, u32 sequence, char *buffer,
                        size_t buffer_size);

#endif
