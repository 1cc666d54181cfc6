// SPDX-License-Identifier: MIT
//
// The names by which a frame's function may be called in a pattern. A person
// writes foo::bar, a generator wrote _ZN3foo3barEi, and both mean the same
// function; compilers and linkers add hashes, clone suffixes and versions that
// nobody means.
#ifndef MUNINN_MONITOR_SUPPRESS_NAMES_H
#define MUNINN_MONITOR_SUPPRESS_NAMES_H

#include "base/arena.h"
#include "monitor/symbols/symbols.h"

// What a function, or an object, is called when its name is not known.
#define NAME_UNKNOWN "???"

typedef struct NameForm {
    const char *text;
    size_t size;
} NameForm;

#define NAME_FORMS_MAX 10

typedef struct NameForms {
    NameForm forms[NAME_FORMS_MAX]; // no two equal
    size_t count;                   // at least 1
    bool has_version;               // one of them is f@VERSION
} NameForms;

// The forms live as long as the frame's strings and what is in the arena. If there is no
// memory some are missing.
void names_of_frame(const Frame *frame, Arena *arena, NameForms *ret_forms);

// The part of a demangled name that says which function: without return type,
// parameters and qualifiers. Lies in `name`.
NameForm name_without_parameters(NameForm name);

// Copies the name with each template argument list replaced by `filler`, to
// `buffer`, which has room for twice the name's size. Returns its size.
size_t name_replace_templates(NameForm name, const char *filler, char *buffer);

// Without a Rust hash (::h and 16 digits), a clone suffix (.part.0), a symbol version.
NameForm name_without_hash(NameForm name);
NameForm name_without_clone(NameForm name);
NameForm name_without_version(NameForm name);

// Where the 16 digits of a Rust hash are in a mangled name; NULL if there is none.
const char *name_mangled_hash(NameForm name);

// Functions under main that belong to the C library: "(below main)".
bool name_is_below_main(NameForm name);

#endif
