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

// The values of choices.def: a choice is COLOR_AUTO and so on, a member of a set
// is a bit, TRACE_SYSCALLS.
// clang-format off
#define CHOICES(S)                  enum {
#define CHOICE(S, NAME, name, help) S##_##NAME,
#define END_CHOICES                 };
#include "launch/choices.def"

#define MEMBERS(S)                  enum {
#define MEMBER(S, NAME, name, help) S##_INDEX_##NAME,
#define END_MEMBERS                 };
#include "launch/choices.def"

#define MEMBERS(S)                  enum {
#define MEMBER(S, NAME, name, help) S##_##NAME = 1 << S##_INDEX_##NAME,
#define END_MEMBERS                 };
#include "launch/choices.def"
// clang-format on

#define LEAK_ALL (LEAK_DEFINITE | LEAK_INDIRECT | LEAK_POSSIBLE | LEAK_REACHABLE)
#define HEURISTIC_ALL                                                                              \
    (HEURISTIC_STDSTRING | HEURISTIC_LENGTH64 | HEURISTIC_NEWARRAY | HEURISTIC_MULTIPLE_INHERITANCE)

#define OPTIONS_CACHE_SIZE_MIN (256 * KiB)
#define OPTIONS_CACHE_SIZE_MAX (254 * MiB) // what the layout of the low 2 GiB leaves
#define OPTIONS_CACHE_SIZE_DEFAULT (192 * MiB)

// An option that may be given several times. One more than there is room for is
// refused, never dropped.
#define OPTIONS_LIST_MAX 256

// Begins what stands for a file that could be read only once: a pipe, a terminal.
#define OPTIONS_READ '\n'

typedef struct OptionList {
    u32 count;
    const char *items[OPTIONS_LIST_MAX];
} OptionList;

// Of --alloc-fns, all together.
enum { ALLOC_FNS_MAX = 256, ALLOC_FNS_BYTES_MAX = 8192 };

// One bit for every row of options.def.
#define OPTIONS_ROWS_MAX 256

typedef struct Options {
    const char *tool;                // one of the TOOL rows, or the path of a shared object
    OptionList tool_options;         // of that one, as they were given
    OptionList eval;                 // scripts that are the tool, or part of it
    bool trace_children;             // follow execve
    OptionList inject;               // faults in system calls, as strace words them
    OptionList alloc_fns;            // NAME=FUNCTION or PREFIX*, by commas
    const char *soname_synonyms;
    const char *trace_children_skip; // patterns for the path, or NULL
    const char *trace_children_skip_by_arg; // patterns for the arguments, or NULL
    bool child_silent_after_fork;    // a child says nothing until it calls execve
    i32 verbosity;                   // 0; below 0 quiet, above 0 verbose
    bool version;                    // --version: print and exit
    const char *help;                // --help: "", or the topic after '='; NULL if not asked
    bool command_line_only;          // no options from files or the environment
    u32 vgdb;                        // VGDB_: serve `muninn ctl`
    u32 track_fds;                   // TRACK_FDS_
    u32 modify_fds;                  // MODIFY_FDS_
    i32 progress_interval_s;         // 0: no progress is printed
    bool time_stamp;                 // each line begins with the time since the start
    u32 color;                       // COLOR_

    // Where messages go: the last of these that was given, standard error otherwise.
    i32 log_fd;             // unless log_file or log_socket is set
    const char *log_file;   // template for options_expand_path(), or NULL
    const char *log_socket; // "a.b.c.d:port", or NULL

    // Reports for programs. Those that are set are all written.
    bool xml;               // --xml=yes; one of the three below is set, too
    i32 xml_fd;             // -1: none
    const char *xml_file;   // template, or NULL
    const char *xml_socket; // "a.b.c.d:port", or NULL
    i32 xml_protocol;       // 4, 5 or 6
    const char *xml_user_comment;
    const char *json_file;  // template, or NULL
    const char *sarif_file; // template, or NULL

    // Findings: which, and how they are shown.
    OptionList only;         // paths or globs that a stack must pass through
    const char *baseline;    // a JSON report: only what is not in it counts
    i32 num_callers;
    i32 merge_recursive_frames; // 0: none
    bool error_limit;
    i32 error_exitcode;      // 0: the exit status stays the program's
    bool exit_on_first_error;
    u32 summary;             // SUMMARY_
    const char *error_markers; // "BEGIN,END" or NULL
    u32 show_error_list;     // ERROR_LIST_
    OptionList suppressions; // files, absolute; or OPTIONS_READ, a name, a newline, and its text
    u32 gen_suppressions;    // GEN_SUPPRESSIONS_
    i32 input_fd;            // where --gen-suppressions=yes reads the answers
    bool show_below_main;
    OptionList fullpath_after; // "" shows whole paths
    bool sym_offsets;          // name+offset

    // Names.
    bool demangle;
    bool keep_debuginfo; // of objects that were unloaded
    bool read_inline_info;
    bool read_var_info;
    OptionList extra_debuginfo_path;
    bool allow_mismatched_debuginfo;
    bool enable_debuginfod;

    // The program and its libraries.
    bool run_libc_freeres;
    bool run_cxx_freeres;

    // Tools that replace malloc.
    i32 redzone_size_bytes;
    bool realloc_zero_bytes_frees;
    i32 alignment;                 // of malloc's blocks
    bool trace_malloc;
    u32 xtree_memory;              // XTREE_MEMORY_
    const char *xtree_memory_file; // template
    bool xtree_compress_strings;

    // The engine.
    u64 main_stack_bytes; // 0: as the limit says
    i32 aspace_minaddr;   // 0: no matter
    OptionList require_text_symbol; // ":SONAME:FUNCTION", for options_text_symbol()
    bool stats;
    u32 trace;  // TRACE_* bits
    u32 stress; // STRESS_* bits
    u64 cache_size_bytes;

    // Memcheck.
    u32 leak_check;             // LEAK_CHECK_
    u32 leak_resolution;        // LEAK_RESOLUTION_
    u32 show_leak_kinds;        // LEAK_ bits
    u32 errors_for_leak_kinds;  // LEAK_ bits
    u32 leak_check_heuristics;  // HEURISTIC_ bits
    bool xtree_leak;
    const char *xtree_leak_file;      // template
    bool undef_value_errors;
    bool track_origins;
    bool partial_loads_ok;
    u32 keep_stacktraces;             // KEEP_STACKS_
    u64 freelist_vol_bytes;
    u32 quarantine;                   // QUARANTINE_
    u64 freelist_big_blocks_bytes;
    bool workaround_gcc296_bugs;
    const char *ignore_range_below_sp; // "HIGH-LOW", or NULL
    const char *ignore_ranges;         // "0xA-0xB,...", or NULL
    bool show_mismatched_frees;
    bool show_realloc_size_zero;
    i32 malloc_fill; // a byte, or -1
    i32 free_fill;   // a byte, or -1

    // Massif.
    bool heap;
    u64 heap_admin_bytes;
    u32 stacks; // STACKS_
    bool pages_as_heap;
    i32 depth;
    OptionList alloc_fn;
    OptionList ignore_fn;
    u32 threshold_ppm;       // --threshold=1.0, in percent, is 10000
    u32 peak_inaccuracy_ppm;
    u32 time_unit;           // TIME_UNIT_
    i32 detailed_freq;
    i32 max_snapshots;
    const char *massif_out_file; // template
    const char *profile_file;    // likewise; NULL: TOOL.out.PID
    bool recording;
    const char *recording_file;  // template
    u64 max_recording_bytes;
    i32 snapshot_every_s;        // 0: never
    OptionList snapshot_when;    // for options_trigger()

    // From the launcher to the engine. The parser knows them only after
    // --muninn-exe, which the launcher puts first.
    const char *muninn_exe; // absolute path of the launcher
    bool as_valgrind;       // the launcher was called by that name: reports have its words
    const char *exe;        // absolute path, free of symbolic links, of the ELF file to load
    const char *script;     // the #! script that was asked for, or NULL
    const char *execfn;     // the path execve would have been given: AT_EXECFN, and the
                            // last component is the name of the process

    i32 guard;              // muninn-guard of the program that this one replaces, or 0
    bool under_reaper;      // a process above has made itself the parent of all orphans
    i32 seccomp_fd;         // what seccomp_across_exec() made, or -1

    u32 given[OPTIONS_ROWS_MAX / 32]; // by row: the user said something about it
    int error_index; // the word of argv that the last call failed on, or 0
    char error[512]; // why the last call failed: one line without "muninn: "
    bool cannot_write; // it was an output that cannot be opened
} Options;

// The release of Valgrind whose words reports have, and that `valgrind --version` names, when
// muninn is called so: the newest whose XML has the version that is our default.
#define COMPAT_VERSION "3.25.1"

bool options_have(const char *name); // an option of this name, without its dashes
// Finds the file of a tool that is not built in; NULL: there is none. Set where that can be.
extern const char *(*options_tool_finder)(const char *name);
// Sets every default. Comes before any parsing.
void options_init(Options *options);

// The tool is a file to be loaded, not one that is built in: a shared object, or a script.
bool options_tool_is_file(const Options *options);
// Scripts in Lua are the tool: FILE.lua, or only those of -e, which OPTIONS_NO_FILE stands for.
bool options_tool_is_script(const Options *options);
#define OPTIONS_NO_FILE ".lua"

// The index of the next word that may be an option: `index` is that of an option, which may have
// its value in a word of its own.
int options_next(int argc, char **argv, int index);

// Parses argv[1...] and returns the index of the program, which is argc if there
// is none; a "--" before it is skipped. Returns -EINVAL on an unknown option or
// value, with the reason in options->error.
int options_parse(int argc, char **argv, Options *options);

// Cuts the options in `text` (of an environment variable or a file) up in place:
// blanks separate them, quotes and backslashes protect blanks, a word that starts
// with # is a comment to the end of the line. Returns their number, of which as
// many as fit stand in words. A quote that is never closed reaches to the end, and
// *ret_is_open is true then.
u32 options_split_text(char *text, char **words, u32 words_max, bool *ret_is_open);

// Changes one option of a program that runs, as a word of the command line would. Returns 0, and in
// *ret_keeps_word whether `word` must live as long as *options; or -EINVAL, with the reason in
// options->error and nothing changed. Not for several threads at once.
int options_change(Options *options, char *word, bool *ret_keeps_word);

// What follows from several options together: to be called once, when all are
// parsed. Returns 0, or -EINVAL for what makes no sense together.
int options_settle(Options *options);

// Writes every option that differs from its default as "--name=value" into
// `buffer` and points argv[0...] at them. Returns their number, or -ENOBUFS.
int options_to_argv(const Options *options, char *buffer, size_t buffer_size, char **argv,
                    int argv_max);

// Enough for argv_max above, however many options were repeated.
#define OPTIONS_ARGV_MAX (OPTIONS_ROWS_MAX + 8 * OPTIONS_LIST_MAX)

// True for a word of those that no user has written.
bool options_is_internal(const char *word);
// How large a buffer options_to_argv() needs.
size_t options_text_size(const Options *options);

// True if --trace-children-skip names the executable `path`, or says it with
// wildcards: * is any text, slashes included, ? any one character.
bool options_child_is_skipped(const Options *options, const char *path);

// The same for --trace-children-skip-by-arg, which looks at each word of argv.
bool options_child_is_skipped_by_arg(const Options *options, char *const *argv);

// A limit of --snapshot-when.
typedef enum TriggerOf { TRIGGER_HEAP, TRIGGER_MAPPED, TRIGGER_STACKS, TRIGGER_RSS } TriggerOf;
typedef struct OptionTrigger {
    TriggerOf of;
    u64 limit_bytes;
} OptionTrigger;
// False if "heap>1G" and the like is not what it is.
bool options_trigger(const char *text, OptionTrigger *ret_trigger);

// The two patterns of --require-text-symbol. False if `text` is not two that one character
// introduces and separates, or too long.
typedef struct OptionTextSymbol {
    char soname[256], function[256];
} OptionTextSymbol;
bool options_text_symbol(const char *text, OptionTextSymbol *ret_symbol);

// Expands %p, %n, %q{VAR} and %% of a --log-file template. `sequence` is %n.
// Returns 0; -EINVAL for an unknown % sequence or an unset VAR, -ENAMETOOLONG.
int options_expand_path(const char *template, i32 pid, u32 sequence, char *buffer,
                        size_t buffer_size);

#endif
