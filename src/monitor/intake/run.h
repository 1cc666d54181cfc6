// SPDX-License-Identifier: MIT
//
// The state of one run; private to intake/.
#ifndef MUNINN_MONITOR_INTAKE_RUN_H
#define MUNINN_MONITOR_INTAKE_RUN_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "monitor/callgrind/callgrind.h"
#include "monitor/control/control.h"
#include "monitor/heap/heap.h"
#include "monitor/intake/intake.h"
#include "monitor/report/report.h"
#include "monitor/suppress/suppress.h"
#include "monitor/symbols/symbols.h"
#include "wire/wire.h"

// A finding, from its record to the summary.
typedef struct RunFinding {
    Finding finding;            // shown form; strings and frames in run->arena
    u32 id;                     // its slot on the wire
    u32 flags;                  // FINDING_
    u32 parts_missing;          // PART records that have not come
    FindingPart *parts;
    LeakHolding *holdings;      // room for one for each part
    WireVerdict verdict;
    Suppression *suppression;   // that matched, or NULL
    const char *suppression_kind; // "Addr4"
    const char *suppression_extra; // "write(buf)", "malloc(size)"; or NULL
} RunFinding;

typedef struct Run {
    const IntakeCommand *command;
    Options *options; // of it
    WireShared *shared;
    WireTool tool; // what it says of itself
    Vocabulary *vocabulary; // what its findings can be
    WireConsumer *consumer;
    int life, attach, pidfd;
    i32 os_pid; // of the client in our namespace, where it may be another than it knows itself by

    Symbols *symbols;
    SuppressSet *suppressions;
    Report *report; // NULL before START
    RunInfo info;

    Arena arena;        // what findings consist of
    Vec findings;       // RunFinding *, in order of arrival
    Map finding_by_id;  // slot → RunFinding *
    Map thread_tids;    // number → tid of the living
    i32 comm_tid;       // whose name `comm` reads; 0: it is not open
    int comm;
    u32 shown, suppressed; // different ones
    bool output_failed; // one that is not the report's
    bool error_limit_hit;
    bool client_ended;    // what is told from now on are leaks and summaries
    bool first_error_hit; // and the user wants to see no other: --exit-on-first-error
    struct Profile *profiles[PROFILES_MAX]; // those that are being told
    CallTree *trees[TREE_COUNT]; // likewise
    bool trees_failed;  // something of them had no memory
    u64 progress_ms;    // when progress was told last; 0: never
    bool has_input;     // INTAKE_INPUT is where the answers are read
    bool asks;          // --gen-suppressions=yes, and the user has not stopped it

    u64 *fatal_words; // of the last FATAL_STACK; NULL: none has come
    size_t fatal_word_count;

    HeapModel *heap; // NULL: the tool has no events of the heap
    HeapModel *ended_heap; // what was live at the end, for children that are still to attach

    struct Commands *commands; // NULL: no socket
    u64 records;               // taken so far

    bool client_left;   // its end of the life line is closed, after END
    bool ended;         // END has come: status and signal hold
    bool replaced;      // the last that came is that another program is executed
    bool finished;      // the report is written
    i32 status, signal;
} Run;

void run_take(void *run, const WireRecord *record); // a WireRecordFn
WireStreamFn run_take_stream;

// change.c: an option has been changed while the program runs
// profiles.c
struct Profile;
void profiles_begin(Run *run, const Wire_profile *profile);
void profiles_add(Run *run, const Wire_profile_cost *cost);
void profiles_write(Run *run, const Wire_profile_done *done);
void profiles_forget(Run *run);

// trees.c
void trees_add(Run *run, const Wire_tree_node *node);
void trees_write(Run *run, const Wire_tree_done *done);

void run_say_progress(Run *run); // --progress-interval, when it is time
void run_change_option(Run *run, const char *word);
// False when one of the files from the one numbered `first` on is not what it should be; the error
// is in *ret_error.
bool run_load_suppressions(Run *run, u32 first, const char **ret_error);

// findings.c
void findings_add(Run *run, const Wire_finding *record);
void findings_add_part(Run *run, const Wire_part *record);
// Frames for a list of pcs as the call stack has them.
ReportStack findings_stack(Run *run, WireWords pcs);
char *findings_keep_text(Run *run, const char *text); // as long as the run
// A template that is filled in; NULL: that leaves nothing.
const char *findings_words(Run *run, const char *words, const FieldValues *values);
const char *findings_thread_name(Run *run, u64 number);
// Counts and closes the report. Returns the exit code for the client, -1: its own.
i32 findings_close(Run *run);

// commands.c: `muninn ctl`, and commands of the client's
void commands_open(Run *run);
void commands_end(Run *run);    // the program has ended: says so to whoever waits
void commands_forget(Run *run); // in a twin
void commands_stop(Run *run);   // serves nobody any more
// The descriptors to wait for beside the others, for how long at most, and what came of it.
size_t commands_fds(const Run *run, struct pollfd *fds);
int commands_wait_ms(const Run *run, int wait_ms);
void commands_turn(Run *run, const struct pollfd *fds, size_t count);
// Of the records that answer a request; and the client's own command.
void commands_text(Run *run, const Wire_command_text *text);
// What the report says while a command runs is part of its answer. A ReportListener.
void commands_hear(void *run, const char *text, size_t size);
void commands_done(Run *run, const Wire_command_done *done);
void commands_stack(Run *run, const Wire_thread_stack *stack);
WireCommandStatus commands_from_client(Run *run, const char *line);
// Has the program's threads look at the alarm now, though none of them waits for us.
void commands_kick_all(Run *run);

// core_commands.c: those that the monitor answers from what it knows
typedef struct CommandAnswer {
    Run *run;
    ControlCall *call; // NULL: the client's own; the answer goes into the report
} CommandAnswer;
void answer_say(const CommandAnswer *answer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Returns the exit status; below 0: the call will be ended later.
int core_command(const CommandAnswer *answer, ControlCommandId id, const char *arguments);
// The state of a process or thread of it as /proc has it: 'R', 'S', 'T'; '?' if there is none.
char process_state(i32 pid, i32 tid);
u64 now_ms(void);

// holders.c: who holds the blocks of a leak
void holders_add(Run *run, RunFinding *finding, const FieldsHolder *holder, WireWords pcs);
void holders_sort(RunFinding *finding); // when all are there

// parts.c
// Says what a part has to say, line by line.
void parts_remark(Run *run, const Wire_remark *remark);
// Names what a part is about; `before` is the part before it, or NULL. Returns how many
// parts it has become: one or two.
size_t parts_name(Run *run, const FieldValues *values, FindingPart *before, FindingPart *part);

#endif
