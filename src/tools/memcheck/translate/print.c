// SPDX-License-Identifier: MIT
//
// See plan.h: a plan as text, for --trace=plan and for tests. Nothing in it depends on where the
// engine or the tool lies in memory.
#include "base/text.h"
#include "engine/trace/trace.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/shadow/shadow.h"
#include "tools/memcheck/translate/often.h"
#include "tools/memcheck/translate/plan.h"
#include "tools/memcheck/translate/translate.h"

enum { TEXT_MAX = 400, NAME_MAX = 8 };

typedef struct Text {
    char bytes[TEXT_MAX];
    size_t size;
} Text;

__attribute__((format(printf, 2, 3))) static void put(Text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->size += text_format_list(text->bytes + text->size, sizeof(text->bytes) - text->size,
                                   format, arguments);
    va_end(arguments);
}

// ------------------------------------------------------------------------ names

static const char *const gpr_names[GPR_COUNT] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                 "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                 "r12", "r13", "r14", "r15"};

static void put_member(Text *text, unsigned member)
{
    if (member < GPR_COUNT)
        put(text, "%s", gpr_names[member]);
    else if (member >= 32)
        put(text, "zmm%u", member - 32);
    else if (member >= 20)
        put(text, "k%u", member - 20);
    else
        put(text, "%s", 1ull << member == MEMBER_FLAGS ? "flags"
                        : 1ull << member == MEMBER_X87 ? "x87"
                                                       : "mxcsr");
}

static void put_members(Text *text, MemberSet members)
{
    const char *between = "{";
    if (members == ~0ull) {
        put(text, "{all}");
        return;
    }
    for (MemberSet left = members; left; left &= left - 1) {
        put(text, "%s", between);
        put_member(text, (unsigned)__builtin_ctzll(left));
        between = ", ";
    }
    put(text, members ? "}" : "{}");
}

static void put_number(Text *text, i64 number)
{
    put(text, number < 0 ? "-0x%lx" : "0x%lx", (u64)(number < 0 ? -number : number));
}

static void put_address(Text *text, const ToolInsn *insn, const InsnAddress *a)
{
    const char *between = "";
    i64 disp = a->disp + (a->is_rip ? (i64)(insn->pc + insn->len) : 0);
    put(text, "%s%s[", a->is_hidden ? "hidden " : "",
        a->segment == 0x64 ? "fs:" : a->segment == 0x65 ? "gs:" : "");
    if (a->base != INSN_NO_REG) {
        put(text, "%s", gpr_names[a->base]);
        between = "+";
    }
    if (a->index != INSN_NO_REG) {
        put(text, "%s%s*%u", between, gpr_names[a->index], a->scale);
        between = "+";
    }
    if (disp || !*between) {
        put(text, "%s", disp < 0 ? "" : between);
        put_number(text, disp);
    }
    put(text, "]%s", a->is_one ? "" : " and others");
}

static void put_access(Text *text, const ToolInsn *insn, const ToolAccess *access)
{
    if (access->size_bytes)
        put(text, "%u bytes at ", access->size_bytes);
    else
        put(text, "what is at ");
    put_address(text, insn, &access->address);
}

// The functions that are called; what is none of these moves a value (access/moves_hot.c).
static const char *name_of(ToolCallFn *fn)
{
    static const struct {
        ToolCallFn *fn;
        const char *name;
    } names[] = {
        {access_step, "the step"},
        {access_lanes, "the check of lanes"},
        {access_state, "the check of processor state"},
        {access_string, "the step of a string"},
        {access_copy, "the copy"},
        {access_table, "the check of a table"},
        {access_tile, "the check of a tile"},
        {access_any, "the check of an odd size"},
        {access_load, "the check of a load"},
        {access_below, "the check below the stack"},
        {access_call, "what forgets dead registers"},
        {access_forget, "what forgets"},
        {access_forget_copies, "what forgets copies"},
        {stacks_enter_frame, "the opening of a red zone"},
        {stacks_leave_frame, "the mark of a frame"},
        {stacks_leave_by_rbp, "the mark of a frame by rbp"},
        {often_failed, "the count of failed guards"},
        {swapped_jump, "the step of a swapped test"},
    };
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i].fn == fn)
            return names[i].name;
    }
    return "the move";
}

// ------------------------------------------------------------------------- items

static void put_copy(Text *text, const Plan *plan, const PlanInsn *at, const PlanItem *item)
{
    put(text, "copy up to %lx, unless all of this is defined:", plan->insns[item->last].insn->pc);
    for (u32 i = 0; i < item->copied_count; i++) {
        put(text, "%s", i ? ", " : " ");
        put_access(text, at->insn, &plan->copied[item->copied + i]);
    }
    if (item->members) {
        put(text, ", ");
        put_members(text, item->members);
    }
}

static void put_call(Text *text, const PlanInsn *at, const PlanItem *item)
{
    if (item->kind == PLAN_STEP_IF_STATE) {
        put_members(text, item->members);
        put(text, " is undefined, call ");
    }
    put(text, "%s", name_of(item->step.fn));
    if (item->has_access) {
        put(text, " for ");
        put_access(text, at->insn, &item->access);
    }
}

static void put_item(Text *text, const Plan *plan, const PlanInsn *at, const PlanItem *item)
{
    static const char *const verbs[] = {
        [PLAN_NOTHING] = "",
        [PLAN_COUNT] = "count",
        [PLAN_PREFETCH] = "prefetch the shadow of ",
        [PLAN_FILL] = "mark as left ",
        [PLAN_CALL] = "call ",
        [PLAN_STEP] = "call ",
        [PLAN_GUARD] = "guard ",
        [PLAN_GUARD_EARLY] = "guard early ",
        [PLAN_GUARD_BITS] = "guard bits ",
        [PLAN_GUARD_LOAD] = "check the load of ",
        [PLAN_GUARD_STORE] = "check the store of ",
        [PLAN_CLEAR] = "define ",
        [PLAN_STEP_IF] = "unless it is defined, call ",
        [PLAN_STEP_IF_STATE] = "if any of ",
        [PLAN_JOIN] = "steps go on here",
        [PLAN_LEAVE_IF_STATE] = "leave if any is undefined of ",
        [PLAN_COPY] = "",
        [PLAN_FORGET] = "forget ",
        [PLAN_FORGET_COPIES] = "forget what is no scalar in ",
        [PLAN_MASK] = "keep V bits ",
    };
    put(text, "    %s", verbs[item->kind]);
    switch ((PlanKind)item->kind) {
    case PLAN_NOTHING:
    case PLAN_COUNT:
    case PLAN_JOIN: return;
    case PLAN_COPY: put_copy(text, plan, at, item); return;
    case PLAN_FILL:
        put(text, "%u bytes at [rsp%s", item->size, item->disp > 0 ? "+" : "");
        if (item->disp)
            put_number(text, item->disp);
        put(text, "]");
        return;
    case PLAN_GUARD_BITS:
    case PLAN_MASK: put(text, "0x%lx of ", item->bits); break;
    case PLAN_CALL:
    case PLAN_STEP:
    case PLAN_STEP_IF:
    case PLAN_STEP_IF_STATE:
        put_call(text, at, item);
        return;
    default: break;
    }
    if (item->members)
        put_members(text, item->members);
    if (item->has_access)
        put_access(text, at->insn, &item->access);
}

void plan_print(const Plan *plan, PlanLine *put_line)
{
    Text text = {.size = 0};
    MemberSet set = version_set(plan->version);
    put(&text, "%lx: %u instructions, ", plan->insns[0].insn->pc, plan->count);
    if (!plan->is_clean)
        put_members(&text, set);
    put(&text, "%s", plan->is_clean ? "clean" : plan->insns[0].is_first ? ", first" : "");
    put_line(text.bytes);
    for (u32 i = 0; i < plan->count; i++) {
        const PlanInsn *at = &plan->insns[i];
        for (u32 left = at->places; left; left &= left - 1) {
            u16 next = at->first[__builtin_ctz(left)];
            for (; next; next = plan->items[next - 1].next) {
                text.size = 0;
                put_item(&text, plan, at, &plan->items[next - 1]);
                if (plan->items[next - 1].kind != PLAN_NOTHING)
                    put_line(text.bytes);
            }
        }
        trace_guest(at->insn, put_line);
    }
}
