// SPDX-License-Identifier: MIT
//
// What is inserted into blocks, as the engine asks for it: a plan of the whole block (plan.h), then
// the code before each instruction. In a clean block: a guard before each load, a check or a mark
// for each store, marks where the stack grows and shrinks. In a dirty one, also a step before each
// instruction that touches a member of the set.
#include "engine/trace/trace.h"
#include "tools/memcheck/translate/plan.h"
#include "tools/memcheck/translate/translate.h"

static Plan plan; // of the block that is being made, under the engine lock

static void put_line(const char *line)
{
    tool_log("plan: %s", line);
}

void instrument_block(ToolBlock *block, const ToolInsn *insns, unsigned count)
{
    plan_make(&plan, block, insns, count);
    if (UNLIKELY(trace_bits & TRACE_PLAN))
        plan_print(&plan, put_line);
}

void instrument_insn(ToolBlock *block, const ToolInsn *insn)
{
    (void)block;
    plan_emit(&plan, insn);
}

bool instrument_exit_version(ToolBlock *block, u32 *ret_version)
{
    (void)block;
    const PlanInsn *at = &plan.insns[plan.emitted];
    const ToolInsn *last = plan.insns[plan.count - 1].insn;
    *ret_version = version_of_exit(last->pc, at->exit_set);
    return at->exit_exact;
}
