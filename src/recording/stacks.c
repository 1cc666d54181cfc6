// SPDX-License-Identifier: MIT
//
// Patterns over frames. A stack's answer follows from its parent's, and a context's parent is
// older, so one pass over the contexts answers for all stacks.
#include "recording/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "recording/massif_out.h"

bool frame_pattern_init(FramePattern *matcher, const Recording *recording, FramePart part,
                        const char *text, char **ret_error)
{
    *matcher = (FramePattern){ .part = part };
    if (!pattern_compile(text, &matcher->pattern, ret_error))
        return false;
    if (!matcher->pattern.is_set)
        return true;
    matcher->said = calloc(recording->text_count + 1, 1);
    return matcher->said != NULL;
}

void frame_pattern_free(FramePattern *matcher)
{
    pattern_free(&matcher->pattern);
    free(matcher->said);
    matcher->said = NULL;
}

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path;
}

// A function also without its arguments, an object also without its directory.
static bool text_matches(const FramePattern *matcher, const char *text)
{
    if (!text)
        return false;
    if (pattern_matches(&matcher->pattern, text))
        return true;
    if (matcher->part == PART_OBJECT)
        return pattern_matches(&matcher->pattern, last_part(text));
    const char *arguments = matcher->part == PART_FUNCTION ? strchr(text, '(') : NULL;
    if (!arguments || arguments == text || matcher->pattern.is_regex)
        return false;
    char *name = strndup(text, (size_t)(arguments - text));
    bool matches = name && pattern_matches(&matcher->pattern, name);
    free(name);
    return matches;
}

// The file with its directory, which differs from frame to frame.
static bool path_matches(const FramePattern *matcher, const RecordedFrame *frame)
{
    if (!frame->directory || !frame->file)
        return false;
    size_t length = strlen(frame->directory) + strlen(frame->file) + 2;
    char *path = malloc(length);
    bool matches = false;
    if (path) {
        stpcpy(stpcpy(stpcpy(path, frame->directory), "/"), frame->file);
        matches = pattern_matches(&matcher->pattern, path);
    }
    free(path);
    return matches;
}

bool frame_pattern_matches(FramePattern *matcher, const Recording *recording, u32 frame)
{
    const FrameTexts *texts = &recording->frame_texts[frame];
    u32 number = matcher->part == PART_FUNCTION ? texts->function
                 : matcher->part == PART_FILE   ? texts->file
                                                : texts->object;

    if (!matcher->pattern.is_set)
        return true;
    if (number >= recording->text_count)
        return false;
    if (!matcher->said[number])
        matcher->said[number] = text_matches(matcher, recording->texts[number]) ? 2 : 1;
    return matcher->said[number] == 2 ||
           (matcher->part == PART_FILE && path_matches(matcher, &recording->frames[frame]));
}

bool frame_pattern_matches_bare(const FramePattern *matcher, const Recording *recording,
                                u32 context)
{
    const RecordedModule *module =
        recording_module(recording, recording->contexts[context].module);

    return !matcher->pattern.is_set ||
           (matcher->part == PART_OBJECT && module && text_matches(matcher, module->path));
}

void frame_pattern_select(FramePattern *matcher, const Recording *recording, u8 *selected)
{
    u8 *matches = matcher->pattern.is_set ? calloc(recording->context_count, 1) : NULL;

    if (!matches)
        return;
    for (u32 i = 1; i < recording->context_count; i++) {
        const RecordedContext *context = &recording->contexts[i];
        bool found = matches[context->parent];
        for (u32 k = 0; k < context->frame_count && !found; k++)
            found = frame_pattern_matches(matcher, recording, context->first_frame + k);
        if (context->frame_count == 0 && !found)
            found = frame_pattern_matches_bare(matcher, recording, i);
        matches[i] = found;
    }
    for (u32 i = 0; i < recording->context_count; i++)
        selected[i] &= matches[i] != matcher->pattern.is_negated;
    free(matches);
}

// Beside those of allocators.def: what allocates for the allocators, too. Whole names, or with a *
// what they begin with.
static const char *const allocators[] = {
    "cfree", "_Znwm*", "_Znam*", "tc_new*", "mi_malloc*", "mi_calloc*", "mi_realloc*", "mi_new*",
    "mi_zalloc*", "alloc::alloc::alloc", "alloc::alloc::alloc_zeroed", "alloc::alloc::realloc",
    "alloc::alloc::Global::alloc_impl", "mmap", "mmap64", "mremap", "brk", "sbrk", "__mmap",
    "__mmap64", "__GI___mmap*", "__mremap", "__GI___mremap", "__sbrk", "__GI___sbrk", "__brk",
    "__GI___brk", "__brk_call", "__shmat", "shmat", "__glibc_morecore", "sysmalloc*",
    "_int_malloc", "_int_realloc", "_int_memalign", "alloc_new_heap", "new_heap", "arena_get2*",
    "tcache_init*", "__minimal_malloc",
};

bool is_allocator(const char *function)
{
    if (massif_out_is_allocator(function, NULL, 0))
        return true;
    for (size_t i = 0; function && i < ARRAY_LEN(allocators); i++) {
        size_t length = strlen(allocators[i]);
        if (allocators[i][length - 1] == '*' ? strncmp(function, allocators[i], length - 1) == 0
                                             : strcmp(function, allocators[i]) == 0)
            return true;
    }
    return false;
}
