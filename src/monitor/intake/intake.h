// SPDX-License-Identifier: MIT
//
// One run of a client in the monitor's eyes: takes the records from its wire in
// order, keeps what they say, judges findings, and ends with the report.
//
//   serve.c     waits: for records, for the end, for children that want a monitor
//   intake.c    a record at a time
//   findings.c  names, suppressions, limits; the summary
#ifndef MUNINN_MONITOR_INTAKE_INTAKE_H
#define MUNINN_MONITOR_INTAKE_INTAKE_H

#include "base/types.h"
#include "launch/options.h"

// Descriptors that the engine has put in place; relay.c has the same list.
enum { INTAKE_LOG = 2, INTAKE_WIRE = 3, INTAKE_LIFE = 4, INTAKE_ATTACH = 5 };
enum { INTAKE_INPUT = 6, INTAKE_XML = 7, INTAKE_FDS = 8 };

// How muninn was called.
typedef struct IntakeCommand {
    Options *options; // changed when the client changes one
    int option_count; // the same in words
    const char *const *option_words;
    int argc; // the client's command
    const char *const *argv;
} IntakeCommand;

// Serves the client behind INTAKE_WIRE until it has ended and no child of it can ask for
// a monitor any more. Returns the exit status.
int intake_serve(const IntakeCommand *command);

#endif
