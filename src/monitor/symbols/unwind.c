// SPDX-License-Identifier: MIT
//
// The stack of a thread whose calls nobody has kept: from its registers and a copy of what lies
// above its stack pointer, by the unwind tables of the files that are mapped.
#include <string.h>

#include "monitor/symbols/unwind_rules.h"

// Of the kernel's frame for a signal: where struct ucontext has r8 and those behind it, from the
// stack pointer that the handler returns with; and their numbers, in the kernel's order.
enum { UCONTEXT_REGISTERS = 40 };
static const u8 kernel_order[UNWIND_REGISTERS] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0,
                                                  2, UNWIND_RSP, UNWIND_RETURN};

static bool read_word(const UnwindStart *start, u64 address, u64 *ret_word)
{
    u64 offset = address - start->stack_address;

    if (address < start->stack_address || offset % 8 || offset / 8 >= start->word_count)
        return false;
    *ret_word = start->words[offset / 8];
    return true;
}

static bool leave_signal_frame(const UnwindStart *start, u64 registers[UNWIND_REGISTERS])
{
    u64 at = registers[UNWIND_RSP] + UCONTEXT_REGISTERS;

    for (u32 i = 0; i < UNWIND_REGISTERS; i++) {
        if (!read_word(start, at + 8ull * i, &registers[kernel_order[i]]))
            return false;
    }
    return true;
}

// registers[UNWIND_RETURN] is the pc, before and after.
static bool leave_frame(const UnwindStart *start, const UnwindRules *rules,
                        u64 registers[UNWIND_REGISTERS])
{
    u64 caller[UNWIND_REGISTERS], before = registers[UNWIND_RSP];
    bool has_return = false;

    if (rules->is_signal_frame)
        return leave_signal_frame(start, registers);
    u64 cfa = registers[rules->cfa_register % UNWIND_REGISTERS] + (u64)rules->cfa_offset;
    memcpy(caller, registers, sizeof caller);
    for (u32 i = 0; i < rules->saved_count; i++) {
        u32 number = rules->saved[i].number % UNWIND_REGISTERS;
        if (!read_word(start, cfa + (u64)rules->saved[i].distance, &caller[number]))
            return false;
        has_return |= number == UNWIND_RETURN;
    }
    caller[UNWIND_RSP] = cfa;
    memcpy(registers, caller, sizeof caller);
    return has_return && cfa > before;
}

// A jump to where no code is: the call has pushed its return address, and nothing else.
static bool leave_nowhere(const UnwindStart *start, u64 registers[UNWIND_REGISTERS])
{
    bool found = read_word(start, registers[UNWIND_RSP], &registers[UNWIND_RETURN]);

    registers[UNWIND_RSP] += 8;
    return found;
}

size_t symbols_unwind(Symbols *symbols, const UnwindStart *start, u64 *ret_pcs, size_t max)
{
    u64 registers[UNWIND_REGISTERS];
    bool is_exact = true, goes_on = true;
    size_t count = 0;

    memcpy(registers, start->registers, sizeof registers);
    while (goes_on && count < max) {
        u64 pc = registers[UNWIND_RETURN];
        UnwindRules rules;
        if (pc == 0 && count > 0)
            break;
        ret_pcs[count] = pc | (is_exact && count > 0 ? UNWIND_EXACT_PC : 0);
        count++;
        CodePlace place = symbols_place(symbols, is_exact ? pc : pc - 1);
        if (symbols_rules(symbols, place, &rules)) {
            goes_on = leave_frame(start, &rules, registers);
            is_exact = rules.is_signal_frame;
            // The handler's caller is whoever was interrupted, not the code that leads back there.
            count -= is_exact && count > 1;
        } else {
            goes_on = count == 1 && place.module == 0 && leave_nowhere(start, registers);
            is_exact = false;
        }
    }
    return count;
}
