// SPDX-License-Identifier: MIT
//
// The texts that options.def gives: --help, --help=TOOL and the manual page.
#ifndef MUNINN_LAUNCH_HELP_H
#define MUNINN_LAUNCH_HELP_H

#include "base/types.h"

// Prints to stdout the help on `topic`: "" for all options, a tool, or "man" for
// the source of the manual page. False if there is no such topic.
bool help_print(const char *topic);

#endif
