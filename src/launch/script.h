// SPDX-License-Identifier: MIT
//
// Scripts as tools: --tool=FILE.lua and -e CODE become the plugin that runs them, with options that
// say what the scripts are.
#ifndef MUNINN_LAUNCH_SCRIPT_H
#define MUNINN_LAUNCH_SCRIPT_H

#include "launch/options.h"

// `plugin` is the path of muninn-lua.so. True, or false with the reason in options->error. What the
// options point to afterwards is never freed.
bool script_settle(Options *options, const char *plugin);

#endif
