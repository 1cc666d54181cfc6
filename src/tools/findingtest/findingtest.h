// SPDX-License-Identifier: MIT
//
// A tool for the tests of findings and reports, shown in no help: makes whatever
// finding the program asks for by calling a function of its own.
#ifndef MUNINN_TOOLS_FINDINGTEST_FINDINGTEST_H
#define MUNINN_TOOLS_FINDINGTEST_FINDINGTEST_H

#include "engine/toolapi/toolapi.h"

// muninn_test_finding(kind, value0, value1, value2, text, part): runs outside the cache,
// muninn_test_finding_fast() inside it. `part` is the number of a kind of part plus 1
// that stands on the same stack; 0: none.
u64 findingtest_make(ToolThread *thread, ToolCall *call);

#endif
