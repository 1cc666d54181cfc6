// SPDX-License-Identifier: MIT
//
// The table of allocation functions.
#include "tools/massif/massif.h"

#define AT(n) n, CALL_NO_FACTOR
#define PRODUCT(n, m) n, m

#define REPEATS(kind, form) ((kind) == CALL_ALLOC && (form) == FORM_RETURNED)
#define ROW(object_, name_, flags_, kind, form, old, size, factor, glibc)                \
    {.object = object_, .name = name_, .flags = TOOL_FUNCTION_FAST | (flags_),            \
     .lean_before = (kind) == CALL_FREE ? call_frees : NULL,                              \
     .lean_after = (kind) == CALL_FREE ? NULL                                             \
                   : REPEATS(kind, form) ? call_allocates                                 \
                                         : call_ends,                                     \
     .size_arg = REPEATS(kind, form) ? 1 + (size) : 0,                                    \
     .factor_arg = REPEATS(kind, form) && (factor) != CALL_NO_FACTOR ? 1 + (factor) : 0,  \
     .data = CALL_DATA(kind, form, old, size, factor, glibc)},
// Their arguments are AT() or PRODUCT(), which are two once they are expanded.
#define EXPANDED(...) ROW(__VA_ARGS__)

#define GLIBC_ALLOC(name, form, size) \
    EXPANDED("libc.so.6", name, 0, CALL_ALLOC, FORM_##form, 0, size, 1)
#define GLIBC_RESIZE(name, form, old, size) \
    EXPANDED("libc.so.6", name, 0, CALL_RESIZE, FORM_##form, old, size, 1)
#define ALLOC(name, form, size) EXPANDED(NULL, name, 0, CALL_ALLOC, FORM_##form, 0, size, 0)
#define RESIZE(name, form, old, size) \
    EXPANDED(NULL, name, 0, CALL_RESIZE, FORM_##form, old, size, 0)
#define FREE(name, argument) EXPANDED(NULL, name, 0, CALL_FREE, 0, argument, AT(0), 0)
#define LOCAL_ALLOC(name, form, size) \
    EXPANDED(NULL, name, TOOL_FUNCTION_LOCAL, CALL_ALLOC, FORM_##form, 0, size, 0)
#define LOCAL_RESIZE(name, form, old, size) \
    EXPANDED(NULL, name, TOOL_FUNCTION_LOCAL, CALL_RESIZE, FORM_##form, old, size, 0)
#define LOCAL_FREE(name, argument) \
    EXPANDED(NULL, name, TOOL_FUNCTION_LOCAL, CALL_FREE, 0, argument, AT(0), 0)

const ToolFunction massif_functions[MASSIF_FUNCTIONS] = {
#include "tools/heap/alloc_names.def"
};
