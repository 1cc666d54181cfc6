// SPDX-License-Identifier: MIT
//
// options.def as arrays, for the parser and for the help text.
#ifndef MUNINN_LAUNCH_OPTION_TABLE_H
#define MUNINN_LAUNCH_OPTION_TABLE_H

#include "base/types.h"

// The form of an option's value, which fixes the type of its field.
typedef enum OptionKind {
    KIND_FLAG,            // bool: --name, or --name=yes|no
    KIND_BOOL,            // bool: --name=yes|no
    KIND_INT,             // i32
    KIND_FD,              // i32, not negative
    KIND_SIZE,            // u64: digits and k, m or g
    KIND_STRING,          // const char *
    KIND_OPTIONAL_STRING, // const char *: "" for --name alone
    KIND_PATH_TEMPLATE,   // const char *: see options_expand_path()
    KIND_CHOICE_TOOL,     // const char *: a TOOL row
    KIND_SET_TRACE,       // u32: comma-separated TRACE rows, all or none
    KIND_SET_STRESS,      // u32: comma-separated STRESS rows, all or none
    KIND_LESS,            // i32: each use subtracts one
    KIND_MORE,            // i32: each use adds one
    KIND_COUNT
} OptionKind;

typedef enum OptionGroup {
    GROUP_CORE,
    GROUP_DEBUG,
    GROUP_INTERNAL,
} OptionGroup;

typedef struct OptionRow {
    const char *name;
    const char *arg; // how the value is shown; "" if there is none
    const char *help;
    u16 field; // offset in struct Options
    u8 group;
    u8 kind;
    char letter; // of the short form, or 0
} OptionRow;

// A value that an option may have, and what it means.
typedef struct OptionValue {
    const char *name;
    const char *help; // NULL: shown nowhere
} OptionValue;

extern const OptionRow option_rows[];
extern const u32 option_row_count;

// Each ends with a row whose name is NULL.
extern const OptionValue option_tools[];
extern const OptionValue option_traces[];
extern const OptionValue option_stresses[];

// The values an option of this kind chooses from, or NULL if any will do.
const OptionValue *option_values(u8 kind);

#endif
