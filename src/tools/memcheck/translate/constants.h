// SPDX-License-Identifier: MIT
//
// Loads of constants: where an operand can lie, by what the block's own instructions say of its
// registers, is memory that nobody may write to, and all of it is defined. Such a load needs no
// guard: tables that switches jump by, strings, relocated pointers. The block goes when that memory
// is mapped anew, becomes writable or is marked by the client. plan_constants() finds the places.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_CONSTANTS_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_CONSTANTS_H

#include "tools/memcheck/translate/plan.h"

// Whether what the instruction loads by this access is such memory; then the block depends on it.
bool constants_has(Plan *plan, const PlanInsn *at, unsigned access);

#endif
