// SPDX-License-Identifier: MIT
//
// The state of one run; private to intake/.
#ifndef MUNINN_MONITOR_INTAKE_RUN_H
#define MUNINN_MONITOR_INTAKE_RUN_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "monitor/intake/intake.h"
#include "monitor/report/report.h"
#include "monitor/suppress/suppress.h"
#include "monitor/symbols/symbols.h"
#include "wire/wire.h"

// A finding, from its record to the summary.
typedef struct RunFinding {
    Finding finding;            // shown form; strings and frames in run->arena
    u32 id;                     // its slot on the wire
    u32 parts_missing;          // PART records that have not come
    FindingPart *parts;
    WireVerdict verdict;
    Suppression *suppression;   // that matched, or NULL
    const char *suppression_kind; // "Addr4"
} RunFinding;

typedef struct Run {
    const Options *options;
    int option_count;
    char **option_words;
    int argc;
    char **argv;
    WireShared *shared;
    WireConsumer *consumer;
    int life, attach, pidfd;

    Symbols *symbols;
    SuppressSet *suppressions;
    Report *report; // NULL before START
    RunInfo info;

    Arena arena;        // what findings consist of
    Vec findings;       // RunFinding *, in order of arrival
    Map finding_by_id;  // slot → RunFinding *
    Map thread_tids;    // number → tid of the living
    u32 shown, suppressed; // different ones
    bool error_limit_hit;
    bool asks;          // --gen-suppressions=yes, and the user has not stopped it

    // Told the answer to a request; NULL while there is none under way.
    void (*command_done)(struct Run *run, u32 sequence, const char *text);

    bool ended;         // END has come: status and signal hold
    bool replaced;      // the last that came is that another program is executed
    bool finished;      // the report is written
    i32 status, signal;
} Run;

void run_take(void *run, const WireRecord *record); // a WireRecordFn

// findings.c
void findings_add(Run *run, const Wire_finding *record);
void findings_add_part(Run *run, const Wire_part *record);
// Frames for a list of pcs as the call stack has them.
ReportStack findings_stack(Run *run, WireWords pcs);
const char *findings_thread_name(Run *run, u64 number);
// Counts and closes the report. Returns the exit code for the client, -1: its own.
i32 findings_close(Run *run);

#endif
