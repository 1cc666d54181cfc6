// SPDX-License-Identifier: MIT
//
// `muninn ms_print FILE`: a profile as text, a graph and trees, in the incumbent's words and
// columns, byte for byte. Reads massif.out of any producer, also compressed, and recordings.
//
// Files
//   ms_print.c  options, what kind of file it is
//   graph.c     the graph
//   snapshots.c the table of snapshots and the trees
//   recorded.c  a recording as massif.out
//   change.c    the difference of two of its moments
//   moments.c   what people call a moment, and what was live then
#ifndef MUNINN_INSPECT_MS_PRINT_MS_PRINT_H
#define MUNINN_INSPECT_MS_PRINT_MS_PRINT_H

#include <stdio.h>

#include "recording/recording.h"

int ms_print_main(int argc, char **argv);
// massif.out of a recording: a hundred snapshots over the run, and the peak. False: there is
// not enough memory, or the file cannot be written.
bool ms_print_write_massif(Recording *recording, FILE *out);

#endif
