// SPDX-License-Identifier: MIT
//
// The names of functions that the user has given: --alloc-fns and --soname-synonyms. Private to
// redirect/.
#ifndef MUNINN_ENGINE_REDIRECT_SYNONYMS_H
#define MUNINN_ENGINE_REDIRECT_SYNONYMS_H

#include "launch/options.h"

void synonyms_init(const Options *options);
// The function for which one of this name must be taken, or NULL.
const char *synonyms_find(const char *name);
// --soname-synonyms=somalloc=nouserintercepts: only libraries' allocators are replaced.
bool synonyms_only_libraries(void);
// somalloc=PATTERN: the user wants the allocator in an object of this soname replaced ("NONE": it
// has no soname).
bool synonyms_names_object(const char *soname);

#endif
