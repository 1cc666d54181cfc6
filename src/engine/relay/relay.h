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
//   M1  If there is no monitor (not wanted, refused by the system, or dead), every
//       function here does nothing at little cost, and the client runs on.
//   M2  A new finding reaches the user before the client goes on: the thread waits
//       for the monitor's verdict. A repeated finding costs a counter.
//   M3  The context of a finding is read by the thread to which the stack belongs.
#ifndef MUNINN_ENGINE_RELAY_RELAY_H
#define MUNINN_ENGINE_RELAY_RELAY_H

#include "engine/aspace/aspace.h"
#include "engine/ctx/ctx.h"
#include "launch/options.h"
#include "wire/wire.h"

// Starts the monitor. argv are the words of the client's command.
void relay_start(const Options *options, int argc, char **argv);
// The same for a program that dies without having had a monitor, so that the user learns the cause.
void relay_start_late(const Options *options, int argc, char **argv);
// Waits before the program begins until the monitor has opened its outputs, so that the report's
// first lines stand before the program's. Does not return if the run could not be judged.
void relay_await_ready(void);
// Whether there was a monitor that has died.
bool relay_is_lost(void);
// Prints on standard error the lines that the monitor could not bring to the user
// (WireHeader.alarm).
void relay_say_alarms(void);
// Memory in which WIRE_HEAP_COUNTS counts of the heap outlive the process; NULL: there is none.
WireHeapCounts *relay_heap_counts(void);
// Whether there is a monitor, or can be one for this fork's child.
bool relay_is_on(void);

// --- the turns of a thread's and a process's life
void relay_thread_create(ThreadCtx *ctx); // before `ctx` makes another thread
void relay_thread_start(ThreadCtx *ctx);
void relay_thread_end(ThreadCtx *ctx);
void relay_fork_prepare(void);
void relay_fork_child(void);
void relay_vfork_parent(ThreadCtx *ctx); // the child may have made the first error
void relay_code_mapped(const Mapping *mapping);
// `unloading` is the number that contexts got for this unloading (context_mark_unloaded()), or 0.
void relay_unmapped(GuestAddr start, GuestAddr end, u32 unloading);
void relay_exec(ThreadCtx *ctx, const char *path);
void relay_exec_failed(ThreadCtx *ctx, int error);
// Reports that a signal is about to end the process. context 0: no call stack of the thread is
// kept.
void relay_fatal_signal(ThreadCtx *ctx, const siginfo_t *info, u32 context);
// To be called when the process ends with `status`, or by `signal`: waits for the report. Returns
// the status to exit with.
int relay_end(ThreadCtx *ctx, int status, int signal);

// --- findings and other words for the user
// The fields of a finding or a part are the member that its kind has in wire/findings.def:
//   {.kind = KIND_INVALID_READ, .access = {.size = 4, .address = address}}
// For a kind that the tool has brought, they are `fields`, in the order of its description.
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
    u64 key;   // findings with different keys are different, even if their stacks are the same
    union {
        AnyFields fields;
#define SHAPE(NAME, name, Name, ...) Fields##Name name;
#include "wire/findings.def"
    };
} RelayFinding;

// The fields of a kind; NULL: there is no such kind. Callable from the cache.
const FieldShape *relay_kind_shape(u32 kind);
const FieldShape *relay_part_shape(u32 kind);

// Sends a finding and waits for the verdict. Callable from the cache. Does not return if the user
// wants the run to end at the first error.
WireVerdict relay_finding(ThreadCtx *ctx, const RelayFinding *finding);
// The same in two steps, for a caller with many findings: it sends them all, and waits afterwards.
u32 relay_finding_tell(ThreadCtx *ctx, const RelayFinding *finding);
WireVerdict relay_finding_verdict(ThreadCtx *ctx, u32 id);
// Whether this process or an ancestor adopts orphans (PR_SET_CHILD_SUBREAPER).
extern bool relay_adopts_orphans;
// The process between the monitor and this one, or 0.
i32 relay_guard(void);
// The number of errors so far: those shown, with their repetitions.
u64 relay_error_count(void);
// True if so many different findings were shown that the monitor wants no more (--error-limit). A
// tool may stop making findings then; the report calls its counts inaccurate.
bool relay_is_closed(struct ThreadCtx *ctx);

// This thread's end of the wire, for tools with records of their own; NULL: there is no
// monitor. Callable from the cache.
WireProducer *relay_wire(ThreadCtx *ctx);

// Runs `fn`, which need not be compiled for general registers only. If the caller is called from
// the cache, `fn` must not wait for the engine lock: the thread that holds the lock may be waiting
// for this one to leave the cache.
void relay_outside(ThreadCtx *ctx, void (*fn)(ThreadCtx *ctx, void *data), void *data);

// relay_line() adds a line to the report, unless the user wants no text (-q, XML). relay_note()
// adds one in any case. Both return when the line is written.
void relay_line(ThreadCtx *ctx, const char *text);
void relay_note(ThreadCtx *ctx, const char *text);
// Adds the words of a part and its stack to the report, or to the answer to the command that this
// thread runs.
void relay_remark(ThreadCtx *ctx, const RelayPart *part);
// relay_tree_node() sends the values of a context in a tree (WireTree). relay_tree_done() says that
// the tree is complete, and returns when the monitor has written it to the file that the options
// name. A tree that was asked for while the program runs has a number.
void relay_tree_node(ThreadCtx *ctx, u32 tree, const u64 *values, size_t count, u32 context);
void relay_tree_done(ThreadCtx *ctx, u32 tree, u32 number);
// relay_profile() begins a profile, costs of addresses by these events (names, separated by
// spaces). relay_profile_done() returns when the monitor has written it to the file that
// --profile-file names.
void relay_profile(ThreadCtx *ctx, u32 number, const char *events);
void relay_profile_cost(ThreadCtx *ctx, u32 number, GuestAddr pc, const u64 *values, size_t count);
void relay_profile_done(ThreadCtx *ctx, u32 number);
// Tells the monitor that the client has ended: leaks and summaries follow.
void relay_client_ended(ThreadCtx *ctx);
// Prints a text of the client's (a client request); context 0: without a stack.
void relay_client_text(ThreadCtx *ctx, const char *text, u32 context);

// --- commands (control.c): from `muninn ctl` by way of the monitor, or from the client
// Lets the monitor interrupt threads from now on. Our handler of the signal must be in place.
void relay_accept_kicks(void);
// At a safe point, after the monitor has interrupted the thread: does what the monitor asks for.
void relay_poll(ThreadCtx *ctx);
// Runs a command for the client; the answer goes to the report. False: the command is unknown.
bool relay_run_command(ThreadCtx *ctx, const char *command);
// Tells the monitor that `word` has changed an option. Returns when the monitor knows it.
void relay_option(ThreadCtx *ctx, const Options *options, const char *word);
// Finds "file:line" of a code address; "" if it is not known.
void relay_place(ThreadCtx *ctx, GuestAddr pc, char ret_text[WIRE_PLACE_BYTES]);
// The same with the function, as in the stacks of reports: "main (file.c:12)".
void relay_name(ThreadCtx *ctx, GuestAddr pc, char ret_text[WIRE_NAME_BYTES]);
// Adds whole lines to the answer to the command that runs now.
void relay_answer(ThreadCtx *ctx, const char *text);
void relay_answer_format(ThreadCtx *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Nanoseconds since the time stamp counter was `stamp`.
u64 relay_elapsed_ns(u64 stamp);

#endif
