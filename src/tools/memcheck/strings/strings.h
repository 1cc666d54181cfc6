// SPDX-License-Identifier: MIT
//
// The functions of string.h, strings.h and wchar.h that the engine runs: their handlers, for the
// table of functions that strings.def fills.
#ifndef MUNINN_TOOLS_MEMCHECK_STRINGS_STRINGS_H
#define MUNINN_TOOLS_MEMCHECK_STRINGS_STRINGS_H

#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/strings/quick.h"

// ToolFunction.data of these functions.
enum {
    STRING_WIDE = 1,       // elements are wchar_t
    STRING_STOPS = 2,      // a zero element ends the string
    STRING_MATCHES = 4,    // argument 1 is an element to look for
    STRING_LENGTH = 8,     // the result is a number of elements, not a pointer
    STRING_OR_END = 0x10,  // where nothing is found the result is the end, not NULL
    STRING_LIMIT_1 = 0x20, // argument 1 or 2 is the greatest number of elements
    STRING_LIMIT_2 = 0x40,
    STRING_FOLDS = 0x80,   // the case of letters does not matter
    STRING_END = 0x100,    // the result is the end of what was written
    STRING_OVERLAP = 0x200, // source and destination must not overlap
    STRING_APPENDS = 0x400, // behind what is there
    STRING_PADS = 0x800,   // zeroes up to the limit
    STRING_SIZED = 0x1000, // the limit is the size of the destination, as BSD has it
    STRING_SWAPPED = 0x2000, // source first
    STRING_ZEROES = 0x4000, // without a value to set
    STRING_ACCEPTS = 0x8000, // a set of what to go over, not of what to stop at
    STRING_UNORDERED = 0x10000, // equal or not is all that counts
    STRING_LOCALE = 0x20000, // the last argument is a locale
};
// Which argument is the size of the destination, for the fortified forms; 0: none.
#define STRING_CHECKED(argument) ((u64)(argument) << 20)
#define STRING_CHECKED_ARGUMENT(data) ((data) >> 20 & 7)
// Arguments whose definedness matters at once.
#define STRING_POINTERS(count) ((u64)(count) << 24)
#define STRING_POINTER_COUNT(data) ((data) >> 24 & 3)

ToolReplaceFn string_scan, string_scan_back, string_span, string_find, string_compare, string_copy,
    string_copy_text, string_copy_until, string_fill;

#endif
