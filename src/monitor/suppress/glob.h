// SPDX-License-Identifier: MIT
//
// Patterns over characters: * is any number of them, ? is exactly one byte,
// everything else is itself.
#ifndef MUNINN_MONITOR_SUPPRESS_GLOB_H
#define MUNINN_MONITOR_SUPPRESS_GLOB_H

#include "base/types.h"

// Whether the whole text matches. Without ? it takes time linear in both sizes; a
// piece between stars that has a ? costs its size times that of the text.
bool glob_match(const char *pattern, size_t pattern_size, const char *text, size_t text_size);

bool glob_is_literal(const char *pattern, size_t size);

#endif
