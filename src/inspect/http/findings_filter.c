// SPDX-License-Identifier: MIT
//
// See findings_filter.h.
#include <fnmatch.h>
#include <string.h>

#include "inspect/http/findings_filter.h"

FindingFilter finding_filter(Call *call)
{
    return (FindingFilter){
        .kinds = request_text(call->request, "kind"),
        .module = request_text(call->request, "module"),
        .tool = request_text(call->request, "tool"),
        .search = request_text(call->request, "search"),
    };
}

static bool list_has(const char *list, const char *word)
{
    size_t size = strlen(word);

    while (list && *list) {
        size_t item = strcspn(list, ",");
        if (item == size && strncmp(list, word, size) == 0)
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

static bool stack_has_object(const FoundStack *stack, const char *pattern)
{
    for (u32 i = 0; i < stack->count; i++) {
        const char *object = stack->frames[i].object;
        const char *slash = object ? strrchr(object, '/') : NULL;
        if (object && (fnmatch(pattern, object, 0) == 0 ||
                       (slash && fnmatch(pattern, slash + 1, 0) == 0)))
            return true;
    }
    return false;
}

static bool text_has(const char *text, const char *search)
{
    return text && strcasestr(text, search);
}

static bool stack_has_text(const FoundStack *stack, const char *search)
{
    for (u32 i = 0; i < stack->count; i++) {
        const FoundFrame *frame = &stack->frames[i];
        if (text_has(frame->function, search) || text_has(frame->file, search) ||
            text_has(frame->object, search))
            return true;
    }
    return false;
}

bool finding_is_wanted(const FindingFilter *filter, const Found *found)
{
    if (filter->kinds && !list_has(filter->kinds, found->kind))
        return false;
    if (filter->tool && strcmp(filter->tool, found->tool) != 0)
        return false;
    if (filter->module && !stack_has_object(&found->stack, filter->module))
        return false;
    if (!filter->search || text_has(found->what, filter->search) ||
        text_has(found->kind, filter->search) || stack_has_text(&found->stack, filter->search))
        return true;
    for (u32 i = 0; i < found->part_count; i++) {
        if (text_has(found->parts[i].text, filter->search) ||
            stack_has_text(&found->parts[i].stack, filter->search))
            return true;
    }
    return false;
}
