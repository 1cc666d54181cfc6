// SPDX-License-Identifier: MIT
#include "monitor/symbols/unwind_rules.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

static bool plain_cfa(Dwarf_Frame *frame, UnwindRules *rules)
{
    Dwarf_Op *ops;
    size_t count;

    if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count != 1)
        return false;
    if (ops[0].atom == DW_OP_bregx) {
        rules->cfa_register = (u32)ops[0].number;
        rules->cfa_offset = (i64)ops[0].number2;
        return true;
    }
    rules->cfa_register = (u32)ops[0].atom - DW_OP_breg0;
    rules->cfa_offset = (i64)ops[0].number;
    return ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31;
}

// Registers that the frame has saved: "the CFA and a number".
static void saved_registers(Dwarf_Frame *frame, UnwindRules *rules)
{
    Dwarf_Op room[3], *ops;
    size_t count;

    for (int number = 0; number < UNWIND_REGISTERS; number++) {
        if (dwarf_frame_register(frame, number, room, &ops, &count) != 0 || count == 0 ||
            ops[0].atom != DW_OP_call_frame_cfa || count > 2 ||
            (count == 2 && ops[1].atom != DW_OP_plus_uconst))
            continue;
        rules->saved[rules->saved_count++] = (SavedRegister){
            (u32)number, count == 2 ? (i64)ops[1].number : 0};
    }
}

bool unwind_rules_find(Elf *image, u64 pc, UnwindRules *ret_rules)
{
    UnwindRules rules = { 0 };
    Dwarf_Frame *frame = NULL;
    Dwarf_CFI *cfi = image ? dwarf_getcfi_elf(image) : NULL;
    bool found = cfi && dwarf_cfi_addrframe(cfi, pc, &frame) == 0 &&
                 dwarf_frame_info(frame, NULL, NULL, &rules.is_signal_frame) >= 0;

    // The kernel's own rule is an expression, and always the same.
    found = found && (rules.is_signal_frame || plain_cfa(frame, &rules));
    if (found && !rules.is_signal_frame)
        saved_registers(frame, &rules);
    free(frame);
    if (cfi)
        dwarf_cfi_end(cfi);
    if (found)
        *ret_rules = rules;
    return found;
}
