// SPDX-License-Identifier: MIT
//
// What the code of a block keeps in its thread while an instruction is carried out. Nothing here
// is in use at a boundary.
#ifndef MUNINN_ENGINE_TRANSLATE_TRANSLATE_STATE_H
#define MUNINN_ENGINE_TRANSLATE_TRANSLATE_STATE_H

#include "base/registers_x64.h"
#include "base/types.h"

typedef struct TranslateState {
    u64 spill[GPR_COUNT]; // client value of register r while an expansion uses r
    u64 vector_spill[2];  // client value of xmm0 while an expansion uses it
    GuestAddr branch_pc;  // with callstack_wanted: the last indirect branch, and the last return
                          // that the shadow stack missed
    u64 old_sp;           // rsp before an instruction that loads it
} TranslateState;

#endif
