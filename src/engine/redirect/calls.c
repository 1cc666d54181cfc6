// SPDX-License-Identifier: MIT
//
// --trace-malloc: a line for each call of a function that allocates or frees, when it has returned.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/log/log.h"
#include "engine/redirect/redirect_internal.h"

static bool is_traced;

void calls_trace(bool traced)
{
    is_traced = traced;
}

bool calls_is_traced_anywhere(void)
{
    return is_traced;
}

bool calls_is_traced(const ToolFunction *function)
{
    return is_traced && function && function < tool->functions + tool->allocation_count;
}

// How the arguments of the incumbent's lines look.
typedef enum CallForm {
    FORM_SIZE,        // f(size)
    FORM_TWO_SIZES,   // f(count,size)
    FORM_POINTER,     // f(pointer), without a result
    FORM_RESIZE,      // f(pointer,size)
    FORM_ALIGNED,     // f(al alignment, size size)
    FORM_ALIGNED_NEW, // the same, the size first
    FORM_STORED,      // f(al alignment, size size), through a pointer, with the result of a call
} CallForm;

static CallForm form_of(const char *name)
{
    static const struct {
        const char *name;
        CallForm form;
    } forms[] = {
        {"calloc", FORM_TWO_SIZES},      {"realloc", FORM_RESIZE},
        {"reallocf", FORM_RESIZE},       {"posix_memalign", FORM_STORED},
        {"memalign", FORM_ALIGNED},      {"aligned_alloc", FORM_ALIGNED},
        {"free", FORM_POINTER},          {"cfree", FORM_POINTER},
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const char *found = strstr(name, forms[i].name);
        if (found && strcmp(found, forms[i].name) == 0)
            return forms[i].form;
    }
    if (strncmp(name, "_Zd", 3) == 0)
        return FORM_POINTER;
    return strstr(name, "St11align_val_t") ? FORM_ALIGNED_NEW : FORM_SIZE;
}

void calls_print(const ToolCall *call, u64 result)
{
    const char *name = call->function->name;
    const u64 *a = call->args;
    char text[160];
    size_t n = (size_t)snprintf(text, sizeof(text), "--%d-- %s", (int)getpid(), name);
    char *end = text + n;
    size_t room = sizeof(text) - n;

    if (n >= sizeof(text))
        return;
    switch (form_of(name)) {
    case FORM_SIZE: snprintf(end, room, "(%lu) = 0x%lX", a[0], result); break;
    case FORM_TWO_SIZES: snprintf(end, room, "(%lu,%lu) = 0x%lX", a[0], a[1], result); break;
    case FORM_POINTER: snprintf(end, room, "(0x%lX)", a[0]); break;
    case FORM_RESIZE: snprintf(end, room, "(0x%lX,%lu) = 0x%lX", a[0], a[1], result); break;
    case FORM_ALIGNED:
        snprintf(end, room, "(al %lu, size %lu) = 0x%lX", a[0], a[1], result);
        break;
    case FORM_ALIGNED_NEW:
        snprintf(end, room, "(al %lu, size %lu) = 0x%lX", a[1], a[0], result);
        break;
    case FORM_STORED:
        guest_read(a[0], &result, sizeof(result));
        snprintf(end, room, "(al %lu, size %lu) = 0x%lX", a[1], a[2], result);
        break;
    }
    log_line("%s", text);
}
