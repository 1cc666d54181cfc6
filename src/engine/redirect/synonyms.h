// SPDX-License-Identifier: MIT
//
// What the user has said of the names of functions: --alloc-fns and --soname-synonyms. Private to
// redirect/.
#ifndef MUNINN_ENGINE_REDIRECT_SYNONYMS_H
#define MUNINN_ENGINE_REDIRECT_SYNONYMS_H

#include "launch/options.h"

void synonyms_init(const Options *options);
// The function that one of this name is to be taken for, or NULL.
const char *synonyms_find(const char *name);
// --soname-synonyms=somalloc=nouserintercepts: allocators of others are left alone.
bool synonyms_only_libraries(void);
// somalloc=PATTERN: the user wants the allocator in an object of this soname replaced ("NONE": it
// has no soname).
bool synonyms_names_object(const char *soname);

#endif
