// SPDX-License-Identifier: MIT
//
// The nodes of a tree in words.
#include <stdio.h>
#include <string.h>

#include "recording/query.h"

// Takes back the part of a character that did not fit.
static void cut_at_character(char *text)
{
    size_t length = strlen(text), start = length;

    while (start && ((u8)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0 || (u8)text[start - 1] < 0xc0)
        return;
    u8 lead = (u8)text[start - 1];
    size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (length - (start - 1) < wanted)
        text[start - 1] = '\0';
}

static int write_label(Recording *recording, const TreeNode *node, char *text, size_t size)
{
    const RecordedFrame *frame = recording_frame(recording, node->frame);
    const RecordedContext *context = recording_context(recording, node->context);

    if (!frame) {
        if (!context || node->context == 0)
            return snprintf(text, size, "all");
        const RecordedModule *module = recording_module(recording, context->module);
        const char *path = module && module->path ? module->path : "???";
        return snprintf(text, size, "0x%llx: ??? (in %s)", (unsigned long long)context->pc, path);
    }
    const char *object = frame->object ? frame->object : "???";
    if (node->is_folded) {
        const char *slash = strrchr(object, '/');
        return snprintf(text, size, "[%s]", slash ? slash + 1 : object);
    }
    if (!frame->function)
        return snprintf(text, size, "0x%llx: ??? (in %s)", (unsigned long long)frame->pc, object);
    if (!frame->file)
        return snprintf(text, size, "%s (in %s)", frame->function, object);
    if (node->any_line || !frame->line)
        return snprintf(text, size, "%s (%s)", frame->function, frame->file);
    return snprintf(text, size, "%s (%s:%u)", frame->function, frame->file, frame->line);
}

void tree_node_label(Recording *recording, const TreeNode *node, char *text, size_t size)
{
    if (size && write_label(recording, node, text, size) >= (int)size)
        cut_at_character(text);
}
