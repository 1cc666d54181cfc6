// SPDX-License-Identifier: MIT
//
// A recorded context as a person reads it: the frames from the innermost out, which of them
// is the user's own, and names that hold across rebuilds.
#ifndef MUNINN_INSPECT_STACK_STACK_H
#define MUNINN_INSPECT_STACK_STACK_H

#include "recording/recording.h"

typedef struct StackFrame {
    u32 context;
    u32 frame; // in the recording; U32_MAX: nothing is known but the context's pc
} StackFrame;

// A zeroed Stack is a valid empty one; reading another context into it reuses its memory.
typedef struct Stack {
    StackFrame *frames; // innermost first
    u32 count, capacity;
} Stack;

void stack_read(Stack *stack, Recording *recording, u32 context);
void stack_free(Stack *stack);

// The first frame that is not of an allocator, and the first that is neither of one nor of a
// library; the outermost but one of these that there is. 0 in an empty stack.
u32 stack_first_code(const Stack *stack, Recording *recording);
u32 stack_first_own(const Stack *stack, Recording *recording);

// Never NULL: "???" where nothing is known.
const char *stack_function(const StackFrame *at, Recording *recording);
const RecordedFrame *stack_frame(const StackFrame *at, Recording *recording); // or NULL
// "main (app.c:12)", "0x401136: ??? (in app)". Cut to fit.
enum { STACK_LABEL_MAX = 1024 };
const char *stack_label(const StackFrame *at, Recording *recording, char *text);
// Function and file without what a rebuild changes: lines, addresses, the suffixes of clones,
// hashes in Rust's names.
const char *stack_stable_name(const StackFrame *at, Recording *recording, char *text);
// The same, not to be shown: for want of a file, the program is the same whatever it is called,
// and so is a library whatever its version.
const char *stack_matching_name(const StackFrame *at, Recording *recording, char *text);

bool frame_is_own(const RecordedFrame *frame, Recording *recording);
// The last component of a path.
const char *path_last(const char *path);

#endif
