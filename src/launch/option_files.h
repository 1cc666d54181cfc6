// SPDX-License-Identifier: MIT
//
// The files and descriptors that options name, checked before the program runs:
// a report that cannot be written is no use hours later.
#ifndef MUNINN_LAUNCH_OPTION_FILES_H
#define MUNINN_LAUNCH_OPTION_FILES_H

#include "launch/options.h"

// Checks each of them and makes paths absolute, so that a child that has changed
// its directory finds the same files. False if one cannot be used, with the reason
// in options->error. What it allocates lives as long as the process.
bool option_files_settle(Options *options);

#endif
