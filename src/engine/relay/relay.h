// SPDX-License-Identifier: MIT
//
// What the engine tells the monitor: starts it, keeps a ring of the wire for
// every thread, and passes on findings, code mappings and the end.
//
//   main ──▶ relay_start()        double fork; the monitor is nobody's child
//   fork ──▶ relay_fork_child()   the child is without a monitor until it has something
//                                 to say, then its parent's monitor divides for it
//
// What must stay true
//   M1  Without a monitor (not wanted, not to be had, or dead) every function here
//       is a cheap no-op, and the client runs on.
//   M2  A new finding is with the user before the client goes on: the thread waits
//       for the monitor's verdict. A repeated one costs a counter.
//   M3  The context of a finding is read by the thread whose stack it is.
#ifndef MUNINN_ENGINE_RELAY_RELAY_H
#define MUNINN_ENGINE_RELAY_RELAY_H

#include "engine/aspace/aspace.h"
#include "engine/ctx/ctx.h"
#include "launch/options.h"
#include "wire/wire.h"

// Starts the monitor. argv are the words of the client's command.
void relay_start(const Options *options, int argc, char **argv);
// The same for a program that dies and has had no monitor, so that it can be told what of.
void relay_start_late(const Options *options, int argc, char **argv);
// Before the program begins: the monitor has opened its outputs, and the report's first lines stand
// before the program's. Does not return if the run could not be judged.
void relay_await_ready(void);
// There was a monitor, and it has gone.
bool relay_is_lost(void);
// Says on standard error what the monitor cannot.
void relay_say_alarms(void);
// Where a tool's counts of the heap outlive the process, WIRE_HEAP_COUNTS of them; NULL: nowhere.
WireHeapCounts *relay_heap_counts(void);
// Whether there is one, or can be one for this fork's child.
bool relay_is_on(void);

// --- the turns of a thread's and a process's life
void relay_thread_create(ThreadCtx *ctx); // before `ctx` makes another thread
void relay_thread_start(ThreadCtx *ctx);
void relay_thread_end(ThreadCtx *ctx);
void relay_fork_prepare(void);
void relay_fork_child(void);
void relay_vfork_parent(ThreadCtx *ctx); // the child may have made the first error
void relay_code_mapped(const Mapping *mapping);
// `unloading`: the number that contexts have of it (context_mark_unloaded()), 0: none.
void relay_unmapped(GuestAddr start, GuestAddr end, u32 unloading);
void relay_exec(ThreadCtx *ctx, const char *path);
void relay_exec_failed(ThreadCtx *ctx, int error);
// A signal is about to end the process; context 0: the calls of the thread are not kept.
void relay_fatal_signal(ThreadCtx *ctx, const siginfo_t *info, u32 context);
// The process ends with `status`, or by `signal`: waits for the report. Returns the
// status to exit with.
int relay_end(ThreadCtx *ctx, int status, int signal);

// --- what is to be said
// What a finding or a part carries is the member that its kind has in wire/findings.def:
//   {.kind = KIND_INVALID_READ, .access = {.size = 4, .address = address}}
// or, of a kind that the tool has brought, `fields`, in the order of its description.
typedef struct RelayPart {
    u32 kind;    // PART_, or PART_COUNT + the index of one of Tool.parts
    u32 context; // 0: no stack
    union {
        AnyFields fields;
#define SHAPE(NAME, name, Name, ...) Fields##Name name;
#include "wire/findings.def"
    };
} RelayPart;

typedef struct RelayFinding {
    u32 kind; // KIND_, or KIND_COUNT + the index of one of Tool.kinds
    u32 context;
    u32 part_count;
    u32 flags; // FINDING_
    const RelayPart *parts;
    u64 key;   // findings with other keys are different ones, whatever their stacks
    union {
        AnyFields fields;
#define SHAPE(NAME, name, Name, ...) Fields##Name name;
#include "wire/findings.def"
    };
} RelayFinding;

// What a kind carries; NULL: there is no such kind. Callable from the cache.
const FieldShape *relay_kind_shape(u32 kind);
const FieldShape *relay_part_shape(u32 kind);

// Callable from the cache. Does not come back when the user wants the run to end at
// the first error.
WireVerdict relay_finding(ThreadCtx *ctx, const RelayFinding *finding);
// The same in two steps, for who has many at once: all are told, then the monitor is waited for.
u32 relay_finding_tell(ThreadCtx *ctx, const RelayFinding *finding);
WireVerdict relay_finding_verdict(ThreadCtx *ctx, u32 id);
// This process, or one above it, is the parent of all orphans below it: PR_SET_CHILD_SUBREAPER.
extern bool relay_adopts_orphans;
// The process between the monitor and this one, or 0.
i32 relay_guard(void);
// The errors counted so far: shown ones, repetitions included.
u64 relay_error_count(void);
// True: so many different findings were shown that no more are wanted (--error-limit). Who makes
// them all the time can spare himself the trouble: counts are "inaccurate" from then on.
bool relay_is_closed(struct ThreadCtx *ctx);

// This thread's end of the wire, for tools with records of their own; NULL: there is no
// monitor. Callable from the cache.
WireProducer *relay_wire(ThreadCtx *ctx);

// Runs `fn`, which is compiled as it comes, also from the cache. There it must not wait for
// the engine lock: whoever holds it may be waiting for the thread to leave the cache.
void relay_outside(ThreadCtx *ctx, void (*fn)(ThreadCtx *ctx, void *data), void *data);

// A line of the report, left out where the user wants no text (-q, XML); and one that is not.
// The caller goes on when it is written.
void relay_line(ThreadCtx *ctx, const char *text);
void relay_note(ThreadCtx *ctx, const char *text);
// The words of a part and its stack, as lines of the report, or in the answer to the command
// that this thread runs.
void relay_remark(ThreadCtx *ctx, const RelayPart *part);
// The cost of a context in a tree (WireTree), and: the tree is whole, and goes to the file that the
// options name; one that was asked for while the program runs has a number. The caller of the
// latter goes on when it is written.
void relay_tree_node(ThreadCtx *ctx, u32 tree, const u64 *values, size_t count, u32 context);
void relay_tree_done(ThreadCtx *ctx, u32 tree, u32 number);
// A profile: costs of addresses by these events (names by spaces), and: it is whole, and goes to
// the file that --profile-file names. The caller of the latter goes on when it is written.
void relay_profile(ThreadCtx *ctx, u32 number, const char *events);
void relay_profile_cost(ThreadCtx *ctx, u32 number, GuestAddr pc, const u64 *values, size_t count);
void relay_profile_done(ThreadCtx *ctx, u32 number);
// The client has ended; what is told from here on are leaks and summaries.
void relay_client_ended(ThreadCtx *ctx);
// What the client prints by request; context 0: without a stack.
void relay_client_text(ThreadCtx *ctx, const char *text, u32 context);

// --- commands (control.c): from `muninn ctl` by way of the monitor, or from the client
// From now on the monitor may interrupt threads: our handler of the signal is in place.
void relay_accept_kicks(void);
// At a safe point, after the monitor has interrupted the thread: runs what it asks for.
void relay_poll(ThreadCtx *ctx);
// Runs a command for the client, which finds the answer in its report. False: it is unknown.
bool relay_run_command(ThreadCtx *ctx, const char *command);
// An option has been changed by this word. The caller goes on when the monitor knows.
void relay_option(ThreadCtx *ctx, const Options *options, const char *word);
// "file:line" of a code address; "" if that is not known.
void relay_place(ThreadCtx *ctx, GuestAddr pc, char ret_text[WIRE_PLACE_BYTES]);
// The same with the function, as in the stacks of reports: "main (file.c:12)".
void relay_name(ThreadCtx *ctx, GuestAddr pc, char ret_text[WIRE_NAME_BYTES]);
// A piece of the answer, of whole lines, to whoever has given the command that runs now.
void relay_answer(ThreadCtx *ctx, const char *text);
void relay_answer_format(ThreadCtx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Nanoseconds since the time stamp counter was `stamp`.
u64 relay_elapsed_ns(u64 stamp);

#endif
