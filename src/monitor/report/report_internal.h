// SPDX-License-Identifier: MIT
//
// What the writers share: an output, and the shape of a writer.
//
// Invariants
//   P1  A writer composes a finding in its buffer and hands it to the sink in one
//       piece, so that no reader ever waits for the second half of one.
//   P2  Text that comes from the client goes through buffer_put_safe(), always.
//   P3  A failing output costs its own text, never another output or the run.
#ifndef MUNINN_MONITOR_REPORT_INTERNAL_H
#define MUNINN_MONITOR_REPORT_INTERNAL_H

#include "base/types.h"
#include "monitor/report/buffer.h"
#include "monitor/report/report.h"

// ------------------------------------------------------------------------ sinks

typedef struct Sink {
    int fd;
    bool owned;    // closed at the end
    bool seekable; // a regular file: earlier text can be replaced
    bool failed;   // said so once, silent since
    bool is_unnamed; // the file appears under its name with its first text, by sink_begin()
    char name[512];
} Sink;

typedef struct SinkFile {
    const char *template; // see options_expand_path()
    const char *what;     // "log", "XML", for the message if it cannot be opened
    bool share;           // text that parent and child may write into one file
    bool whole;           // nobody may see it without its first text
} SinkFile;

bool sink_open_file(Sink *sink, const SinkFile *file, const RunInfo *run);
// IP, IP:PORT, [IPv6]:PORT or a host name. Nobody listening is said on standard error.
bool sink_open_socket(Sink *sink, const char *spec, bool is_xml, i32 pid);
void sink_use_fd(Sink *sink, int fd, const char *name);
// The first text.
void sink_begin(Sink *sink, const void *data, size_t size);
void sink_write(Sink *sink, const void *data, size_t size);
// Replaces what is at `offset`, growing the file if need be. Only of a seekable sink.
void sink_write_at(Sink *sink, const void *data, size_t size, u64 offset);
void sink_close(Sink *sink);

// ---------------------------------------------------------------------- writers

typedef struct Writer Writer;

// NULL where a writer has nothing to say.
typedef struct WriterOps {
    void (*finding)(Writer *, const Finding *, ReportVerdict);
    void (*line)(Writer *, const char *text);
    void (*note)(Writer *, const char *text);
    void (*prompt)(Writer *, const char *text);
    void (*suppression)(Writer *, const char *entry);
    void (*client_text)(Writer *, u32 tid, const char *text, const ReportStack *);
    void (*thread)(Writer *, u32 tid, const char *name, const ReportStack *);
    void (*fatal)(Writer *, const FatalSignal *);
    void (*client_ended)(Writer *);
    void (*extra)(Writer *, const char *name, const char *xml, const char *json);
    void (*end)(Writer *, const RunSummary *); // also frees what is the writer's own
} WriterOps;

struct Writer {
    const WriterOps *ops;
    const Report *report;
    Sink sink;
    Buffer out;
};

// Each writes the beginning.
Writer *text_writer_new(const Report *report, const Sink *sink);
Writer *xml_writer_new(const Report *report, const Sink *sink);
Writer *json_writer_new(const Report *report, const Sink *sink);
Writer *sarif_writer_new(const Report *report, const Sink *sink);
// Hands the buffer to the sink.
void writer_flush(Writer *writer);

// --------------------------------------------------------------------- baseline

typedef struct Baseline Baseline;

// NULL, with a line on standard error, if the file is no report.
Baseline *baseline_load(const char *path);
bool baseline_has(const Baseline *baseline, const char *fingerprint);
// Notes that the finding happened; true if the baseline has it.
bool baseline_mark(Baseline *baseline, const char *fingerprint);
// How many of its findings did not happen.
u64 baseline_fixed(const Baseline *baseline);
void baseline_free(Baseline *baseline);

// ----------------------------------------------------------------------- report

enum { WRITERS_MAX = 5 };

struct Report {
    const Options *options;
    RunInfo run;
    Writer *writers[WRITERS_MAX];
    size_t writer_count;
    bool text_is_main;                          // the text carries findings; otherwise only notes
    Baseline *baseline;                         // NULL: none
    ReportListener *listener;
    void *listener_data;
    u64 new_count, known_count, filtered_count; // contexts
    char working_directory[4096]; // of the client, for relative paths; "" if not known
};

// "00:00:00:01.234 ": the age of the run as the incumbent writes it.
void report_age(const Report *report, char ret_text[32]);
// The banner's lines: title, copyright, version, command.
enum { BANNER_LINES = 4 };
void report_banner_line(const Report *report, int index, Buffer *out);
// "SIGSEGV"; "SIG77" for a number without a name.
const char *signal_name(i32 signal, char buffer[16]);
// "Access not within mapped region"; NULL if there is nothing to say.
const char *signal_event(i32 signal, i32 code);
bool signal_is_fault(i32 signal, i32 code);
// "(below main)" for the functions that call main, unless the user wants to see them.
const char *frame_function(const Options *options, const Frame *frame);
// The source file with its directory, or what --fullpath-after leaves of it.
void frame_put_file(const Options *options, const Frame *frame, Buffer *out);
// " (a.c:10)" or " (in /path)", what stands behind the function.
void frame_put_place(const Options *options, const Frame *frame, Buffer *out, Reader reader);
// "/dir/a.c"; empty if the file is not known. Raw.
void frame_source_path(const Frame *frame, Buffer *out);
// The first frame with a source line, or NULL.
const Frame *stack_first_source(const ReportStack *stack);
// The <kind> in the protocol that the user wants; NULL: it cannot say this kind.
const char *xml_kind(const Options *options, const KindDescription *kind);
// What is known of a descriptor belongs to the finding.
bool finding_has_fd(const Finding *finding);
// A value as words.c shows it.
void field_put(const FieldDescription *field, u64 word, Buffer *out);
// True if --only wants the finding.
bool only_wants(const Options *options, const Finding *finding);

// A block of source around a line, for a terminal. False if it cannot be read.
typedef struct Excerpt {
    u32 first_line, marked_line;
    u32 count;
    char text[5][256]; // made harmless, without line end
} Excerpt;
bool excerpt_read(const Frame *frame, u32 context, Excerpt *ret_excerpt);

#endif
