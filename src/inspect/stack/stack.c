// SPDX-License-Identifier: MIT
//
// Stacks of a recording. A context is a pc and its caller; with inlining a pc is several
// frames. What counts as a library is in the tables here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/stack/stack.h"
#include "recording/stacks.h"

static void push(Stack *stack, u32 context, u32 frame)
{
    if (stack->count == stack->capacity) {
        stack->capacity = stack->capacity * 2 + 32;
        stack->frames = realloc(stack->frames, stack->capacity * sizeof(*stack->frames));
        if (!stack->frames)
            abort();
    }
    stack->frames[stack->count++] = (StackFrame){context, frame};
}

void stack_read(Stack *stack, Recording *recording, u32 context)
{
    u32 context_count = recording_context_count(recording);

    stack->count = 0;
    while (context > 0 && context < context_count) {
        const RecordedContext *at = recording_context(recording, context);
        for (u32 i = 0; i < at->frame_count; i++)
            push(stack, context, at->first_frame + i);
        if (at->frame_count == 0)
            push(stack, context, UINT32_MAX);
        if (at->parent >= context)
            break;
        context = at->parent;
    }
}

void stack_free(Stack *stack)
{
    free(stack->frames);
    *stack = (Stack){0};
}

// ------------------------------------------------------------------- whose it is

static bool begins_with_one_of(const char *text, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; text && i < count; i++) {
        if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return false;
}

// `<u8 as alloc::…>::from_elem`: what a library does for a type without a path, one of the
// language's or any. Nobody else may implement its traits for these.
static bool is_rust_library(const char *function)
{
    static const char *const traits[] = {
        " as alloc::", " as core::", " as std::", " as hashbrown::",
    };

    if (!function || function[0] != '<')
        return false;
    const char *as = strstr(function, " as "), *path = strstr(function, "::");
    return as && path && as < path && begins_with_one_of(as, traits, ARRAY_LEN(traits));
}

bool frame_is_own(const RecordedFrame *frame, Recording *recording)
{
    static const char *const objects[] = {"/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib",
                                          "[v"};
    static const char *const directories[] = {"/usr/include", "/usr/lib", "/usr/src", "/rustc/"};
    static const char *const functions[] = {
        "std::", "__gnu_cxx::", "core::", "alloc::", "<alloc::", "<core::", "<std::",
        "hashbrown::", "void std::", "void __gnu_cxx::", "__libc_start", "_start",
    };
    const char *executable = recording_info(recording)->executable;

    if (!frame || is_allocator(frame->function))
        return false;
    bool is_program = frame->object && executable && strcmp(frame->object, executable) == 0;
    if (!is_program && begins_with_one_of(frame->object, objects, ARRAY_LEN(objects)))
        return false;
    return !begins_with_one_of(frame->directory, directories, ARRAY_LEN(directories)) &&
           !begins_with_one_of(frame->function, functions, ARRAY_LEN(functions)) &&
           !is_rust_library(frame->function);
}

const RecordedFrame *stack_frame(const StackFrame *at, Recording *recording)
{
    return at->frame < recording_frame_count(recording) ? recording_frame(recording, at->frame)
                                                        : NULL;
}

u32 stack_first_code(const Stack *stack, Recording *recording)
{
    for (u32 i = 0; i < stack->count; i++) {
        const RecordedFrame *frame = stack_frame(&stack->frames[i], recording);
        if (!frame || !is_allocator(frame->function))
            return i;
    }
    return stack->count ? stack->count - 1 : 0;
}

u32 stack_first_own(const Stack *stack, Recording *recording)
{
    for (u32 i = 0; i < stack->count; i++) {
        if (frame_is_own(stack_frame(&stack->frames[i], recording), recording))
            return i;
    }
    return stack_first_code(stack, recording);
}

// ------------------------------------------------------------------------- names

const char *path_last(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

const char *stack_function(const StackFrame *at, Recording *recording)
{
    const RecordedFrame *frame = stack_frame(at, recording);

    return frame && frame->function ? frame->function : "???";
}

static const char *object_of(const StackFrame *at, const RecordedFrame *frame,
                             Recording *recording)
{
    u32 module = recording_context(recording, at->context)->module;

    if (frame && frame->object)
        return frame->object;
    if (module == 0 || module >= recording_module_count(recording))
        return NULL;
    return recording_module(recording, module)->path;
}

const char *stack_label(const StackFrame *at, Recording *recording, char *text)
{
    const RecordedFrame *frame = stack_frame(at, recording);
    const char *object = object_of(at, frame, recording);
    u64 pc = frame && frame->pc ? frame->pc : recording_context(recording, at->context)->pc;
    const char *function = frame ? frame->function : NULL;

    if (function && frame->file && frame->line)
        snprintf(text, STACK_LABEL_MAX, "%.700s (%.250s:%u)", function, frame->file, frame->line);
    else if (function)
        snprintf(text, STACK_LABEL_MAX, "%.700s (%s%.250s)", function, object ? "in " : "",
                 object ? path_last(object) : "?");
    else
        snprintf(text, STACK_LABEL_MAX, "0x%llx: ??? (%s%.250s)", (unsigned long long)pc,
                 object ? "in " : "", object ? path_last(object) : "?");
    return text;
}

// "f.constprop.0.isra.1" and "f.llvm.123" are f; "f [clone .cold]" too; a Rust name ends in
// "::h" and 16 hexadecimal digits.
static size_t stable_length(const char *function)
{
    static const char *const clones[] = {".constprop", ".isra",     ".part", ".cold",
                                         ".lto_priv",  ".llvm.", " [clone"};
    size_t length = strlen(function);

    for (size_t i = 0; i < ARRAY_LEN(clones); i++) {
        const char *found = strstr(function, clones[i]);
        if (found && found != function)
            length = min_u64(length, (u64)(found - function));
    }
    if (length > 19 && strncmp(function + length - 19, "::h", 3) == 0 &&
        strspn(function + length - 16, "0123456789abcdef") >= 16)
        length -= 19;
    return length;
}

static const char *stable_name(const StackFrame *at, const char *place, size_t place_length,
                               Recording *recording, char *text)
{
    const char *function = stack_function(at, recording);

    snprintf(text, STACK_LABEL_MAX, "%.*s (%.*s)", (int)min_u64(stable_length(function), 700),
             function, (int)min_u64(place_length, 250), place);
    return text;
}

const char *stack_stable_name(const StackFrame *at, Recording *recording, char *text)
{
    const RecordedFrame *frame = stack_frame(at, recording);
    const char *object = object_of(at, frame, recording);
    const char *place = frame && frame->file ? frame->file : object ? path_last(object) : "?";

    return stable_name(at, place, strlen(place), recording, text);
}

const char *stack_matching_name(const StackFrame *at, Recording *recording, char *text)
{
    const RecordedFrame *frame = stack_frame(at, recording);
    const char *object = object_of(at, frame, recording);
    const char *executable = recording_info(recording)->executable;

    if (!object || (frame && frame->file))
        return stack_stable_name(at, recording, text);
    if (executable && strcmp(object, executable) == 0)
        object = "the program";
    object = path_last(object);
    const char *version = strstr(object, ".so.");
    size_t length = version ? (size_t)(version - object) + strlen(".so") : strlen(object);
    return stable_name(at, object, length, recording, text);
}
