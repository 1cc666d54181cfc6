// SPDX-License-Identifier: MIT
//
// What the endpoints share: the open files, a call that is being answered, and the sums,
// names and groups that several answers need.
#ifndef MUNINN_INSPECT_HTTP_VIEWER_H
#define MUNINN_INSPECT_HTTP_VIEWER_H

#include <pthread.h>
#include <stdatomic.h>

#include "inspect/http/json.h"
#include "inspect/http/memo.h"
#include "inspect/http/request.h"
#include "recording/query.h"

typedef struct Findings Findings; // findings.h
typedef struct Parts Parts;       // parts.h

// A recording is read by two lanes, each with a reader of its own, so that a walk through
// all events does not hold up what follows the mouse.
typedef enum Lane { LANE_QUICK, LANE_SLOW, LANE_COUNT } Lane;

typedef struct View {
    pthread_mutex_t lock; // for all below
    Recording *recording; // NULL in the slow lane until it is needed
    u64 version;          // of the file, when the memo was begun
    Memo memo;
    Parts *parts; // of the slow lane; NULL: not yet
} View;

typedef enum FileKind { FILE_UNREADABLE, FILE_HEAP, FILE_FINDINGS } FileKind;

enum { WARNINGS_MAX = 20 };
typedef struct OpenFile {
    u32 id;
    char *path;
    const char *name;   // the last component of path
    const char *format; // "muninn", "massif", …
    FileKind kind;
    char *error;        // of an unreadable one
    char *warnings[WARNINGS_MAX];
    u32 warning_count;
    u64 bytes;
    i32 pid;
    _Atomic bool live;    // the program runs
    _Atomic u64 version;  // grows with the file
    View views[LANE_COUNT];
    Findings *findings;   // replaced under the quick view's lock
} OpenFile;

enum { FILES_MAX = 64 };
typedef struct Viewer {
    OpenFile *files[FILES_MAX];
    u32 file_count;
    bool is_export;
} Viewer;

// Opens a file of any kind; one that cannot be read is kept with its error.
OpenFile *file_open(Viewer *viewer, const char *path);
void file_free(OpenFile *file);
// Takes in what has been added. True: there was something. Under no lock.
bool file_refresh(OpenFile *file);
// The view of a lane, locked and up to date; NULL: the file cannot be read any more.
View *file_lock_view(OpenFile *file, Lane lane);

// ------------------------------------------------------------------------ a call

typedef struct Call {
    Viewer *viewer;
    Request *request;
    OpenFile *file, *base_file; // base_file NULL: no base was asked for
    View *view, *base_view;     // of a heap recording; locked
    Json out;
    unsigned status;  // of HTTP
    const char *code; // of a failure: its word, else NULL
    const char *type; // of the content
    char message[512];
    u64 deadline_ns;       // CLOCK_MONOTONIC
    _Atomic u32 *progress; // in thousandths
} Call;

// The first failure counts.
void call_fail(Call *call, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// "bad-parameter" with these words, which are freed; "no-events" if that is what they say.
void call_fail_selection(Call *call, char *error);
bool call_failed(const Call *call);
// False: the time is over, and the call has failed. Cheap.
bool call_goes_on(Call *call, double progress);
void *call_alloc(Call *call, size_t count, size_t size); // zeroed; NULL: failed
u64 clock_ns(void);

// --------------------------------------------------------------------- selections

typedef struct Chosen {
    View *view;
    OpenFile *file;
    Selection selection;
    char key[640]; // equal selections have equal keys
} Chosen;

// Makes the key anew after a change.
void chosen_make_key(Chosen *chosen);
// The call's selection, or that of its base.
bool chosen_parse(Call *call, bool is_base, Chosen *ret_chosen);
bool chosen_needs_blocks(const Selection *selection);
// What has leaked is known without a walk through all events.
bool chosen_knows_leaked(const Chosen *chosen);
// By size and lifetime.
bool block_is_chosen(const Selection *selection, const RecordedBlock *block, u64 end_ns);
// Its range with nothing left open.
void chosen_range(const Chosen *chosen, u64 *ret_from, u64 *ret_to);

extern const char *const metric_names[METRIC_COUNT];
bool metric_in_bytes(Metric metric);
Metric call_metric(Call *call);

// Sums of every site; the memo's. NULL: the call has failed.
const SiteSums *chosen_sums(Call *call, const Chosen *chosen);
const i64 *chosen_values(Call *call, const Chosen *chosen, Metric metric);
// Blocks, or allocations, behind the values.
const u64 *chosen_counts(Call *call, const Chosen *chosen, Metric metric);

// -------------------------------------------------------------------------- names

// FNV-1a, of several texts one after the other; NULL and "" differ.
#define HASH_SEED 14695981039346656037ull
u64 hash_text(u64 hash, const char *text);

// A place is a level of a stack: a frame of the recording or, where a context has none because
// nothing is known of its pc, the number of frames plus the context.
enum { PLACE_NONE = -1 }; // as u32

typedef struct Named {
    const char *function, *file, *directory, *object;
    u32 line; // the first that was seen
    u32 place;
    u64 identity; // of a function: the same in recordings of other builds
} Named;

// A number for each function, source file and object. A function is what `muninn heap` calls
// one: its name without what a rebuild changes, in a source file or, without one, an object.
// Those of an object that have no name are one.
typedef struct Names {
    u32 *function_of; // place → index in functions
    u32 *file_of;     // place → index in files; PLACE_NONE: no file
    u32 *object_of;   // place → index in objects
    u32 *owner_of;    // context → its innermost place of the user's own code, else inner_of
    u32 *inner_of;    // context → its innermost place that is no allocator's
    Named *functions, *files, *objects;
    u32 function_count, file_count, object_count;
    u32 place_count, context_count;
} Names;

const Names *view_names(Call *call, View *view);
// The frame of a place; `room` is for one that the recording does not have.
const RecordedFrame *place_frame(const Recording *recording, u32 place, RecordedFrame *room);
// "main (app.c:12)"; "0x401136: ??? (in app)" for one without a name; as `muninn heap` has it.
void place_put_label(Recording *recording, u32 place, bool with_line, char *text, size_t size);
// function, file, line, object of one of Names.functions, as members.
void json_function(Json *out, const Recording *recording, const Named *function);
// The same of a place.
void json_place(Json *out, const Recording *recording, u32 place);
// The name, or the address of one without.
const char *frame_shown_name(const RecordedFrame *frame, char buffer[32]);

// Places of a context from innermost to outermost.
typedef struct StackWalk {
    const Recording *recording;
    u32 context, index; // index: of the next frame in this context
} StackWalk;
StackWalk stack_walk(const Recording *recording, u32 context);
u32 stack_walk_next(StackWalk *walk); // PLACE_NONE: the end

// ------------------------------------------------------------------------- groups

typedef enum Group {
    GROUP_CONTEXT,
    GROUP_FUNCTION,
    GROUP_FILE,
    GROUP_LIBRARY,
    GROUP_THREAD,
    GROUP_NONE,
    GROUP_COUNT,
} Group;
extern const char *const group_names[GROUP_COUNT];

typedef struct Groups {
    Group group;
    u32 count;
    u32 *of_site;  // site → group
    u32 *id;       // group → context, index in Names, or thread number
    u32 *contexts; // how many contexts it has
    u32 *place;    // one of its places, for the name; PLACE_NONE: none
} Groups;

const Groups *view_groups(Call *call, View *view, Group group);
void group_put_name(const View *view, const Names *names, const Groups *groups, u32 index,
                    char *text, size_t size);
// name, function, file, line, object, context, thread.
void json_group(Json *out, const View *view, const Names *names, const Groups *groups, u32 index);

// ---------------------------------------------------------------------- endpoints

typedef void EndpointFn(Call *call);
EndpointFn answer_files, answer_info, answer_timeline, answer_tree, answer_contexts, answer_stack,
    answer_functions, answer_function, answer_histogram, answer_map, answer_blocks,
    answer_threads, answer_sources, answer_source, answer_sql, answer_sql_tables,
    answer_findings, answer_leaks;

// Finds the endpoint, locks, answers. The call has viewer, request, deadline_ns, progress.
void call_run(Call *call);
// For an endpoint that needs its recording no longer, before it waits for something else.
void call_unlock_views(Call *call);
// The lane that the request belongs to.
Lane call_lane(const Request *request);

#endif
