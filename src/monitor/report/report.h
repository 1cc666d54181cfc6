// SPDX-License-Identifier: MIT
//
// What people and programs read. One model, below; writers for text, terminal,
// XML, JSON and SARIF, of which several may be active at once.
#ifndef MUNINN_MONITOR_REPORT_REPORT_H
#define MUNINN_MONITOR_REPORT_REPORT_H

#include "base/types.h"
#include "launch/options.h"
#include "monitor/suppress/suppress.h"
#include "monitor/symbols/symbols.h"
#include "wire/wire.h"

// ------------------------------------------------------------------- the model

typedef struct ReportStack {
    const Frame *frames; // after --num-callers and --show-below-main
    size_t count;
} ReportStack;

// A further thing to say of a finding: "Address 0x… is 0 bytes after a block …",
// "Uninitialised value was created by a heap allocation", "by thread #2".
typedef struct FindingPart {
    const PartDescription *kind;
    const char *text;  // its sentence; NULL: only a stack
    const char *place; // over the source that the stack leads to: "freed at"; NULL: "created at"
    ReportStack stack; // count 0: only a text
    // Where a variable was declared (<xauxwhat>); NULL otherwise.
    const char *directory, *file;
    u32 line;
} FindingPart;

// Who points to blocks of a leak.
typedef struct LeakHolding {
    u32 kind; // HOLDER_ of the wire
    u64 blocks, bytes;
    u64 record;         // of HOLDER_RECORD: its number
    const KindDescription *record_kind;
    ReportStack stack;  // and the innermost frames of its stack
    u64 thread;         // of HOLDER_TLS, HOLDER_STACK, HOLDER_REGISTER
    u64 holders;        // of HOLDER_OTHERS: how many
    u64 address;        // of the first pointer; 0: none
    const char *name;   // of a variable or a register; NULL: none
    const char *object; // path; NULL: none
} LeakHolding;

typedef struct Finding {
    const KindDescription *kind;
    const FieldValues *values; // of a kind that is not in the table; else NULL
    u64 unique;              // the same in the error list and counts
    u32 tid;                 // 1 is the main thread
    const char *thread_name; // NULL: none
    const char *what;        // the headline, in the classic words
    bool has_leak;           // leaked_* hold (xwhat with leakedbytes, leakedblocks)
    u64 leaked_bytes, leaked_blocks;
    u64 record, record_count; // "loss record N of M"
    u64 direct_bytes;         // of leaked_bytes: without what is lost with them
    u64 leak_check;           // which search found it, from 1; 0: not known
    const LeakHolding *holdings; // the most bytes first
    size_t holding_count;
    i32 fd;                   // of Fd… kinds; -1 otherwise
    const char *path;         // of that descriptor, or NULL
    const char *param;        // of SyscallParam: "write(buf)"; else NULL
    ReportStack stack;        // where
    const FindingPart *parts;
    size_t part_count;
    const char *suppression; // text of a generated entry, when asked for; else NULL
    u64 count;               // times it happened, as far as known
} Finding;

typedef struct RunInfo {
    i32 pid, ppid;
    const struct Vocabulary *vocabulary; // what its findings can be; NULL: what the table has
    const char *tool;       // "memcheck"
    const char *tool_title; // "Memcheck, a memory error detector"
    const char *program;    // path of the client executable
    int argc;               // the client's command
    const char *const *argv;
    int option_count; // muninn's own arguments
    const char *const *options;
    const char *muninn_exe;
    i64 start_ms;       // CLOCK_MONOTONIC
    bool is_fork_child; // a client that began by fork
    bool log_is_open; // the log_fd of report_open() is the --log-file already
} RunInfo;

typedef struct SuppressionUse {
    const char *name, *file;
    u32 line;
    u64 count, leaked_bytes, leaked_blocks;
} SuppressionUse;

typedef struct RunSummary {
    u64 error_count, context_count; // shown
    u64 suppressed_count, suppressed_contexts;
    const Finding *const *findings; // every shown one, with final counts
    size_t finding_count;
    const SuppressionUse *suppressions; // used ones, and unused where count is 0
    size_t suppression_count;
    bool replaced; // the client has executed another program: its run is not over
    bool killed;   // the client died without saying so
    i32 signal;    // by which signal, if known; 0
    i32 exit_code; // if it ended by exit; else -1
    bool error_limit_hit;
    bool has_errors; // the tool makes findings: print ERROR SUMMARY
} RunSummary;

// A signal is about to end the client.
typedef struct FatalSignal {
    u32 tid;
    const char *thread_name;
    i32 signal, code;     // si_signo, si_code
    u64 address;          // si_addr, of a fault
    u64 stack_limit_bytes; // of the main thread
    u64 full_stack_bytes; // size of the thread's stack, which is used up; 0: it is not
    ReportStack stack;
} FatalSignal;

// ----------------------------------------------------------------- the writers

typedef struct Report Report;

// Opens every output that the options name and writes its beginning. A file that
// cannot be opened is said in one line on standard error and its output goes to
// descriptor `log_fd`; never NULL. What `options` and `run` point to must live
// until report_close(). SIGPIPE is ignored from here on: a reader may go away.
Report *report_open(const Options *options, const RunInfo *run, int log_fd);

// What the user's filters say of a finding. Ask before counting it as an error.
typedef enum ReportVerdict {
    REPORT_NEW,      // shown, counts
    REPORT_KNOWN,    // --baseline has it: in JSON and SARIF only, does not count
    REPORT_FILTERED, // --only does not want it: nowhere, does not count
} ReportVerdict;
ReportVerdict report_judge(const Report *report, const Finding *finding);

// Writes a finding, whole, to every output that wants it.
ReportVerdict report_finding(Report *report, const Finding *finding);
// Who hears the text as it is written; NULL: nobody.
typedef void ReportListener(void *data, const char *text, size_t size);
// Is told, in a line each, which outputs cannot be opened or have failed; else standard error is.
// Before report_open().
typedef void ReportAlarm(void *data, const char *line);
void report_on_alarm(ReportAlarm *fn, void *data);
// How many have.
u32 report_failures(void);

void report_set_listener(Report *report, ReportListener *listener, void *data);
// A line of the tool or the engine that is no finding ("HEAP SUMMARY:"). With the
// prefix, in the text only, and not with -q.
void report_line(Report *report, const char *text);
// A line that must be seen whatever the outputs are: with -q, and beside XML.
void report_note(Report *report, const char *text);
// A question to the user, in the text, without a line end; and the entry that the
// answer asked for.
void report_prompt(Report *report, const char *text);
void report_suppression(Report *report, const char *entry);
// What the client prints by request, with its stack if there is one.
void report_client_text(Report *report, u32 tid, const char *text, const ReportStack *stack);
void report_thread(Report *report, u32 tid, const char *name, const ReportStack *created_at);
void report_fatal_signal(Report *report, const FatalSignal *fatal);
// What is known of the heap of a client that was killed: how much was in use, and what was asked
// for in all. Nobody could search it for leaks.
typedef struct HeapOfKilled {
    u64 blocks, bytes;
    u64 allocs, frees, allocated_bytes;
} HeapOfKilled;
void report_heap_of_killed(Report *report, const HeapOfKilled *heap);
// The client has ended; what comes now are leaks and summaries. Optional.
void report_client_ended(Report *report);
// A piece of XML, JSON that a tool's summary adds (protocol 6: heap_summary …).
// Either may be NULL. `json` is a value; it becomes the member `name` of the summary.
void report_extra(Report *report, const char *name, const char *xml, const char *json);
// The end: counts, lists, summaries. Frees the report.
void report_close(Report *report, const RunSummary *summary);

// ------------------------------------------------------------------- the words

// The kinds and parts that the engine has described (wire/findings.h).
typedef struct Vocabulary Vocabulary;
Vocabulary *vocabulary_new(void); // of nothing; NULL: no memory
void vocabulary_free(Vocabulary *words);
// False: the record makes no sense, or describes what is not the next of its numbers.
bool vocabulary_add_kind(Vocabulary *words, const Wire_describe_kind *record);
bool vocabulary_add_part(Vocabulary *words, const Wire_describe_part *record);
// NULL if there is none of this number. Of the vocabulary NULL: from the table.
const KindDescription *vocabulary_kind(const Vocabulary *words, u64 number);
const PartDescription *vocabulary_part(const Vocabulary *words, u64 number);

// Fills in a template of wire/findings.def. Always terminates the buffer; what does not fit is
// cut. Returns the length.
size_t report_words(const char *words, const FieldValues *values, char *buffer, size_t buffer_size);

// A finding, a stack, in the classic text with its prefixes; to be freed. NULL: no memory.
char *report_finding_text(const Report *report, const Finding *finding);
char *report_stack_text(const Report *report, const ReportStack *stack);

// "main (a.c:10)", as at the end of a line of a stack.
size_t report_frame_text(const Report *report, const Frame *frame, char *buffer,
                         size_t buffer_size);

// How many of the frames are shown: --num-callers and --show-below-main.
size_t report_visible_frames(const Options *options, const Frame *frames, size_t count);

// What stays the same of a finding over rebuilds: kind and function names, neither
// addresses nor lines. 16 hexadecimal digits and a zero.
void report_fingerprint(const Finding *finding, char ret_text[17]);

#endif
