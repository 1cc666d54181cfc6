// SPDX-License-Identifier: MIT
//
// From the plan of a block to code.
#include "tools/plugin/plugin_internal.h"

u32 emit_insertions(ToolBlock *block, const ToolInsn *insn)
{
    (void)block;
    return plan.insns[insn - plan.insns[0].insn].insertions + 1; // and a counter's
}

static void emit_call(ToolBlock *block, const PluginCall *call, u8 flags)
{
    bool stores = flags & (MUNINN_CALL_READS_REGISTERS | MUNINN_CALL_WRITES_REGISTERS);
    if (stores)
        tool_store_gprs(block);
    tool_call(block, flags & MUNINN_CALL_HOT ? gate_call_hot : gate_call, (u64)call);
    if (flags & MUNINN_CALL_WRITES_REGISTERS && !(flags & MUNINN_CALL_AFTER))
        tool_load_gprs(block);
}

// Where the call's address is to come from.
static void emit_value(ToolBlock *block, const Insertion *i)
{
    switch ((CallValue)i->value) {
    case VALUE_NONE: break;
    case VALUE_ADDRESS:
        if (i->is_after)
            tool_call_with_slot(block, SLOT_ADDRESSES + i->access);
        else
            tool_call_with_access(block, &plan.insns[i->insn].accesses[i->access]);
        break;
    case VALUE_TAKEN: tool_call_with_taken(block); break;
    case VALUE_TARGET: tool_call_with_target(block); break;
    }
}

static struct {
    ToolHold hold;
    bool is_held; // at this place of the block that is being made
} holding;

static void release(ToolBlock *block)
{
    if (holding.is_held)
        tool_release(block, holding.hold);
    holding.is_held = false;
}

// A block that ends before its plan does.
void emit_cut_insertions(ToolBlock *block)
{
    release(block);
}

static void emit_record(ToolBlock *block, const Insertion *i, const ToolAccess *access)
{
    u64 size = access->size_bytes <= UINT16_MAX ? access->size_bytes : 0;
    u64 info = (u32)i->constant | size << 32 | (u64)access->writes << 48;
    i32 bytes = sizeof(MuninnRecord);
    bool is_first = i->record == 0;
    if (!i->is_held) {
        tool_record_access(block, i->slot, access, info,
                           is_first ? 0 : (i->record - i->records) * bytes,
                           is_first ? i->records * bytes : 0);
        return;
    }
    if (is_first) {
        holding.hold = i->hold;
        holding.is_held = true;
        tool_hold(block, i->hold, i->slot, i->records * bytes);
    }
    tool_record_held(block, i->hold, access, info, i->record * bytes);
    if (i->record + 1 == i->records)
        release(block);
}

static void emit_one(ToolBlock *block, const Insertion *i)
{
    const ToolAccess *access = &plan.insns[i->insn].accesses[i->access];
    ToolTest test = {0};
    switch ((InsertionKind)i->kind) {
    case INSERT_UPDATE:
        tool_slot_update(block, i->slot, (ToolUpdate)i->update, (ToolSource)i->source, i->operand,
                         access);
        break;
    case INSERT_RECORD: emit_record(block, i, access); break;
    case INSERT_CALL:
        if (i->is_conditional)
            test = tool_slot_if(block, i->slot, (ToolCondition)i->condition, i->constant);
        emit_value(block, i);
        emit_call(block, i->call, i->flags);
        if (i->is_conditional)
            tool_end_if(block, test);
        break;
    }
}

// Room for all records of the block is made at its beginning.
static void emit_room_for_records(ToolBlock *block)
{
    for (u32 n = 0; n < BUFFERS_MAX; n++) {
        if (!plan.records[n])
            continue;
        i32 bytes = (i32)(plan.records[n] * sizeof(MuninnRecord));
        ToolTest test = tool_slot_if_full(block, SLOT_BUFFERS + 2 * n, bytes);
        emit_call(block, buffer_numbered(n)->flush, 0);
        tool_end_if(block, test);
    }
}

// An access with a call behind it: where it is, is known before it only.
static void emit_save_address(ToolBlock *block, const Insertion *i)
{
    if (i->kind == INSERT_CALL && i->is_after && i->value == VALUE_ADDRESS)
        tool_slot_update(block, SLOT_ADDRESSES + i->access, TOOL_STORE, TOOL_ADDRESS, 0,
                         &plan.insns[i->insn].accesses[i->access]);
}

void emit_insn_insertions(ToolBlock *block, const ToolInsn *insn)
{
    u32 index = (u32)(insn - plan.insns[0].insn);
    if (index == 0)
        emit_room_for_records(block);
    for (u32 n = plan.insns[index].first; n != NO_INSERTION; n = plan.insertions[n].next) {
        if (!plan.insertions[n].is_after)
            emit_one(block, &plan.insertions[n]);
    }
    for (u32 n = plan.insns[index].first; n != NO_INSERTION; n = plan.insertions[n].next)
        emit_save_address(block, &plan.insertions[n]);
    counters_emit(block, index);
}

void emit_done_insertions(ToolBlock *block, const ToolInsn *insn)
{
    u32 index = (u32)(insn - plan.insns[0].insn);
    for (u32 n = plan.insns[index].first; n != NO_INSERTION; n = plan.insertions[n].next) {
        if (plan.insertions[n].is_after)
            emit_one(block, &plan.insertions[n]);
    }
    counters_emit_done(block, index);
}
