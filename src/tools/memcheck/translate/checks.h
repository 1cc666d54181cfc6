// SPDX-License-Identifier: MIT
//
// plan_checks(): what is planned before an instruction for its accesses where nothing is undefined:
// a guard before a load, a check or a mark for a store. Each access is judged by itself.
#ifndef MUNINN_TOOLS_MEMCHECK_TRANSLATE_CHECKS_H
#define MUNINN_TOOLS_MEMCHECK_TRANSLATE_CHECKS_H

#include "tools/memcheck/translate/plan.h"

// What of an access lies below the stack pointer. True: it is also below the red zone.
bool check_below(Plan *plan, PlanInsn *at, const ToolAccess *access, PlanPlace place);

#endif
