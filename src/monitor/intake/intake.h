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

// Serves the client behind INTAKE_WIRE until it has ended and no child of it can ask for
// a monitor any more. argv are the words of its command, option_words those of muninn's
// own options. Returns the exit status.
int intake_serve(const Options *options, int option_count, char **option_words, int argc,
                 char **argv);

#endif
