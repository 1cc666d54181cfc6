// SPDX-License-Identifier: MIT
//
// --trace-children: an execve() of the client becomes an execve() of the engine
// on the new program.
#ifndef MUNINN_ENGINE_RUN_FOLLOW_H
#define MUNINN_ENGINE_RUN_FOLLOW_H

#include "launch/options.h"

// Call early: remembers where the engine's own executable is.
void follow_init(const Options *options);

#endif
