// SPDX-License-Identifier: MIT
//
// The kinds of definitions, and the fields that follow each, all varints:
#ifndef MUNINN_RECORDING_NAMES_H
#define MUNINN_RECORDING_NAMES_H

typedef enum NameKind {
    NAME_TEXT = 1, // length + 1, bytes. Texts are numbered from 1; number 0 is "not known"
    NAME_MODULE,   // text of its path, start, size, offset, length of the build id, its bytes
    NAME_CONTEXT,  // own number - parent's, module << 1 | is_return, pc
    NAME_FRAMES,   // context, count; of each: texts of function, file, directory, object; pc,
                   // offset in the object, line << 1 | inlined
    NAME_THREAD,   // number, tid (zigzag), text of its name, start ns, end ns
    NAME_SITE,     // space and kind of pages, context, thread
} NameKind;

#endif
