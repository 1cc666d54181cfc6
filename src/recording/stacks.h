// SPDX-License-Identifier: MIT
//
// What selections and trees ask of the frames of a stack: does a pattern match them, and are
// they an allocator's. Answers are kept by text, because 100,000 contexts share few names.
#ifndef MUNINN_RECORDING_STACKS_H
#define MUNINN_RECORDING_STACKS_H

#include "recording/pattern.h"
#include "recording/reader.h"

typedef enum FramePart { PART_FUNCTION, PART_FILE, PART_OBJECT } FramePart;

// A pattern of one part of frames, and what it said of texts so far.
typedef struct FramePattern {
    FramePart part;
    Pattern pattern;
    u8 *said; // of every text: 0 not asked, 1 no, 2 yes
} FramePattern;

bool frame_pattern_init(FramePattern *matcher, const Recording *recording, FramePart part,
                        const char *text, char **ret_error);
void frame_pattern_free(FramePattern *matcher);
bool frame_pattern_matches(FramePattern *matcher, const Recording *recording, u32 frame);
// For a context without frames: only its object is known.
bool frame_pattern_matches_bare(const FramePattern *matcher, const Recording *recording,
                                u32 context);
// Of every context whether its stack is selected: some frame matches or, negated, none does.
void frame_pattern_select(FramePattern *matcher, const Recording *recording, u8 *selected);

// malloc, operator new, and so on.
bool is_allocator(const char *function);

#endif
