// SPDX-License-Identifier: MIT
//
// What the commands of `muninn heap` share: the words they were given, the recording they
// look at, sums by group, times, progress. A command is a row of commands.def and a function.
#ifndef MUNINN_INSPECT_HEAP_COMMAND_H
#define MUNINN_INSPECT_HEAP_COMMAND_H

#include "inspect/intern/intern.h"
#include "inspect/print/print.h"
#include "inspect/stack/stack.h"
#include "inspect/sums/sums.h"

typedef struct HeapCommand HeapCommand;

typedef enum GroupBy { BY_STACK, BY_FUNCTION, BY_LINE, BY_FILE, BY_OBJECT, BY_THREAD } GroupBy;

enum { LIMIT_NONE = UINT32_MAX, METRIC_UNSET = METRIC_COUNT };

// Which commands an option is for; a command names the sets it takes.
typedef enum OptionSet {
    FOR_RANGE = 1,   // --from --to --at
    FOR_FILTER = 2,
    FOR_ROWS = 4,    // --limit
    FOR_FORM = 8,    // --json --csv
    FOR_METRIC = 16,
    FOR_GROUPS = 32, // --by --depth
    FOR_TREE = 64,
    FOR_OUTPUT = 128,
    FOR_FORMAT = 256,
    FOR_SQL = 512,
    FOR_LEAKS = 1024,
    FOR_TWO_FILES = 2048, // no option: its function opens the recordings
} OptionSet;

typedef struct Arguments {
    const HeapCommand *command;
    char *words[3]; // files, and the text of a query
    u32 word_count;
    const char *from, *to, *at;
    Selection selection; // the filter; times are resolved once the file is open
    u32 limit;           // LIMIT_NONE: all
    bool has_limit;
    PrintForm form;
    u32 metric;          // Metric, or METRIC_UNSET
    u32 by;              // GroupBy
    u32 depth;
    double threshold;    // percent; negative: not given
    bool bottom_up, top_down, by_function, fold_libraries, keep_recursion, show_allocators;
    const char *only_code;
    const char *format;
    const char *output;
    bool show_tables;    // of SQL
    u64 time_limit_ns;
    bool show_all;       // leaks: also what does not grow
    bool help;
} Arguments;

// A recording that is open, and what is asked of it.
typedef struct Question {
    const Arguments *arguments;
    Recording *recording;
    Selection selection;
    bool has_time; // the user gave one
    Printer *out;
} Question;

// Returns the exit status.
typedef int HeapCommandFn(Question *question);

struct HeapCommand {
    const char *name;
    const char *words; // "FILE"
    u32 word_count;
    u32 sets;          // OptionSet
    HeapCommandFn *run;
    const char *help;
};

#define COMMAND(name, words, count, sets, help) HeapCommandFn heap_##name;
#include "inspect/heap/commands.def"

// `muninn heap export --format=NAME`, also for other commands.
int heap_export_as(Question *question, const char *format);

// ---------------------------------------------------------------- telling the user

// "muninn heap: …" on stderr; returns 1, for `return heap_error(…)`.
int heap_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same with a line that is to be freed.
int heap_error_line(char *line);

// On a terminal, what takes longer than half a second shows that it goes on. `permille` may be
// called from the work as often as wanted; without it the time is shown.
void progress_begin(const char *what);
void progress_set(u64 done, u64 total);
void progress_end(void);

// ----------------------------------------------------------------------- arguments

// False: told. `arguments` is filled as far as it went.
bool arguments_parse(Arguments *arguments, const HeapCommand *command, int argc, char **argv);
void arguments_help(const HeapCommand *command, FILE *out);
// "4k", "1.5M"; "1.5s", "200ms" and plain seconds.
bool parse_size(const char *text, u64 *ret_bytes);
bool parse_duration(const char *text, u64 *ret_ns);

// ------------------------------------------------------------------------ questions

// Opens the file; false: told.
bool question_open(Question *question, const Arguments *arguments, const char *path);
void question_close(Question *question);
u64 peak_ns(Recording *recording, const Selection *selection);
// The moment of a selection as people say it: "at the peak (1.5 s)". A buffer of 128.
const char *moment_text(const Question *question, char *text);

// Sums of what is selected, per site; NULL: told. To be freed.
SiteSums *question_sums(Question *question);
i64 *question_values(Question *question, Metric metric);
// The metric asked for: live bytes at the peak if neither a metric nor a time was given.
Metric question_metric(Question *question);
bool metric_is_bytes(Metric metric);
const char *metric_name(Metric metric);
const char *metric_title(Metric metric);

// --------------------------------------------------------------------------- groups

typedef struct Group {
    i64 value;    // of the metric
    SiteSums sums;
    u32 context;  // one that stands for it: the one with the most
    u32 thread;   // BY_THREAD
    i64 best;     // the value of `context`
    char *name;   // all but BY_STACK
} Group;

typedef struct Groups {
    Group *items; // largest value first
    u32 count;
    u32 *group_of; // by site; U32_MAX: nothing of it is selected
} Groups;

Groups *groups_build(Recording *recording, const SiteSums *sums, const i64 *values, GroupBy by);
void groups_free(Groups *groups);
const char *group_by_name(GroupBy by);

// Starts the answer: what was asked of which file.
void answer_begin(Question *question);
// Ends it; returns the exit status.
int answer_end(Question *question);
// The groups as a table, as many rows as the user wants, and what is left out.
void groups_print(Question *question, const Groups *groups, Metric metric, const char *key,
                  const char *title);
// The line above such a table: how much there is in all, and when.
void groups_print_moment(Question *question, Metric metric, i64 whole);

// The words of a group's row: its own frame, and the stack as a list.
typedef struct Where {
    char own[STACK_LABEL_MAX];
    char **labels; // innermost first
    u32 count;
    u32 own_index; // in labels
} Where;
void where_read(Where *where, Recording *recording, u32 context);
void where_free(Where *where);
// Below a row: the way from the own frame out to main, `depth` frames of it, and below which
// allocator it is. Nothing if depth is 0.
void where_print(const Where *where, Printer *out, u32 depth);

#endif
