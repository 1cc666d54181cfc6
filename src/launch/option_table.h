// SPDX-License-Identifier: MIT
//
// options.def as arrays, for the parser, the help texts and the completions.
#ifndef MUNINN_LAUNCH_OPTION_TABLE_H
#define MUNINN_LAUNCH_OPTION_TABLE_H

#include <stddef.h>

#include "launch/options.h"

// The form of an option's value, which fixes the type of its field.
typedef enum OptionKind {
    OPTION_FLAG,            // bool: --name, or --name=yes|no
    OPTION_BOOL,            // bool: --name=yes|no
    OPTION_BITS,            // u32: yes sets the bits `min`, no clears the bits `max`, but not
                            // while one of the bits `unless` is set
    OPTION_INT,             // i32 from min to max
    OPTION_FD,              // i32, not negative
    OPTION_HEX,             // i32 from min to max, hexadecimal with or without 0x
    OPTION_SIZE,            // u64 from min to max: digits and k, m or g
    OPTION_PERCENT,         // u32 in millionths: 0 to 100 with a fraction
    OPTION_STRING,          // const char *
    OPTION_TEXT,            // const char *, may be empty
    OPTION_OPTIONAL_STRING, // const char *: "" for --name alone
    OPTION_CONSTANT,        // const char *: --name means `accepted`
    OPTION_SOCKET,          // const char *: a.b.c.d or a.b.c.d:port
    OPTION_RANGES,          // const char *: numbers that rise in pairs, "0x10-0x20,30-40"
    OPTION_FALLING_RANGE,   // const char *: a pair of numbers that falls, by `max` at most
    OPTION_PATH,            // const char *: a file to be read
    OPTION_PATH_TEMPLATE,   // const char *: a file to be written, see options_expand_path()
    OPTION_LIST,            // OptionList of strings
    OPTION_TEXT_LIST,       // OptionList of strings that may be empty
    OPTION_PATH_LIST,       // OptionList of files to be read
    OPTION_TOOL,            // const char *: a TOOL row
    OPTION_CHOICE,          // u32: one of `values`
    OPTION_SET,             // u32: comma-separated `values`, all or none
    OPTION_LESS,            // i32: each use subtracts one
    OPTION_MORE,            // i32: each use adds one
    OPTION_IGNORED,         // no field: has no effect, whatever the value
    OPTION_REFUSED,         // no field: only the value `accepted`, if that is not NULL
    OPTION_KIND_COUNT
} OptionKind;

typedef enum OptionGroup {
    GROUP_CORE,
    GROUP_OUTPUT,
    GROUP_FINDINGS,
    GROUP_NAMES,
    GROUP_HEAP,
    GROUP_RARE,
    GROUP_DEBUG,
    GROUP_MEMCHECK, // the first that belongs to a tool
    GROUP_MASSIF,
    GROUP_IGNORED,  // accepted, without effect
    GROUP_REFUSED,
    GROUP_INTERNAL,
    GROUP_COUNT
} OptionGroup;

// A value that an option may have, and what it means.
typedef struct OptionValue {
    const char *name;
    const char *help;    // NULL: shown nowhere
    const char *refusal; // why it cannot be had; NULL if it can
    u32 value;           // what the field becomes, or the bit that is set in it
} OptionValue;

typedef struct OptionRow {
    const char *name;
    const char *arg;      // how the value is shown; "" if there is none
    const char *help;     // for OPTION_REFUSED, the reason
    const char *accepted; // for OPTION_REFUSED and OPTION_CONSTANT
    const OptionValue *values;
    i64 min, max;
    u32 unless;
    u16 field; // offset in struct Options
    u8 group;
    u8 kind;
    char letter; // of the short form, or 0
} OptionRow;

typedef struct Subcommand {
    const char *name, *arguments, *help;
} Subcommand;

extern const Subcommand option_subcommands[]; // ends with a row whose name is NULL
extern const OptionRow option_rows[];
extern const u32 option_row_count;
extern const OptionValue option_tools[]; // ends with a row whose name is NULL
// The file of a tool that is not built in but can be found by its name; NULL: there is none.
const char *option_tool_file(const char *name);

// The tool that a group's options belong to, or NULL: they are for all.
const char *option_group_tool(u8 group);

// The heading of a group in a help text; NULL if it is shown nowhere, as that of
// a tool that is not there.
const char *option_group_title(u8 group);

// ---------------------------------------------------------------- values

typedef enum ValueForm {
    VALUE_NEVER,
    VALUE_OPTIONAL,
    VALUE_REQUIRED,
} ValueForm;

typedef struct OptionKindRow {
    // `value` is NULL when the option stood alone, which `form` must allow. False
    // if it is wrong, with the reason in options->error.
    bool (*parse)(Options *options, const OptionRow *row, const char *value, void *field);
    // Writes the value as `parse` reads it, as snprintf does. Lists are written
    // item by item. NULL: not handed on to the engine under this name.
    int (*format)(const OptionRow *row, const void *field, char *out, size_t size);
    ValueForm form;
    u8 field_size; // of what a default is compared by
    bool is_list;  // OptionList
} OptionKindRow;

extern const OptionKindRow option_kinds[OPTION_KIND_COUNT];

extern const Options option_defaults;

// Whether it can be changed while the program runs.
bool option_is_changeable(const OptionRow *row);

// Sets options->error; returns false.
__attribute__((format(printf, 2, 3))) bool option_fail(Options *options, const char *format, ...);

// ---------------------------------------------------------------- suggestions

// What was probably meant, or NULL.
const char *suggest_option(const char *typed, size_t typed_len);
const char *suggest_value(const OptionValue *values, const char *typed, size_t typed_len);

#endif
