// SPDX-License-Identifier: MIT
//
// See swapped.h: which way the other test goes.
#include "engine/aspace/aspace.h"
#include "tools/memcheck/access/access.h"
#include "tools/memcheck/definedness/definedness.h"
#include "tools/memcheck/shadow/shadow.h"

// Registers as the client has them, and those that its loads would have written.
typedef struct Registers {
    u64 value[16];
    u64 undefined; // bits: of its value something is
} Registers;

static u64 low_bytes(u64 value, u32 size)
{
    return size >= 8 ? value : value & ((1ull << 8 * size) - 1);
}

static u64 extended(u64 value, u32 size)
{
    u32 unused = 64 - 8 * size;
    return (u64)((i64)(value << unused) >> unused);
}

static bool take_register(const Registers *r, u8 number, u64 *value)
{
    *value = number == INSN_NO_REG ? 0 : r->value[number];
    return number == INSN_NO_REG || !(r->undefined >> number & 1);
}

// False: it is undefined, or not there.
static bool take_value(const Registers *r, const SwappedOperand *operand, u64 *ret_value)
{
    u64 base, index;
    *ret_value = 0;
    if (operand->kind == SWAPPED_CONSTANT) {
        *ret_value = low_bytes(operand->constant, operand->size);
        return true;
    }
    if (!take_register(r, operand->reg, &base))
        return false;
    if (operand->kind == SWAPPED_REGISTER) {
        *ret_value = low_bytes(base, operand->size);
        return true;
    }
    if (!take_register(r, operand->index, &index))
        return false;
    GuestAddr address = base + index * operand->scale + operand->constant;
    return operand->size <= sizeof(*ret_value) && shadow_is_mapped(address, operand->size) &&
           shadow_first_undefined(address, operand->size) == address + operand->size &&
           guest_read(address, ret_value, operand->size);
}

static u64 flags_of(const SwappedOp *op, u64 a, u64 b)
{
    enum { CF = 1, PF = 4, ZF = 0x40, SF = 0x80, OF = 0x800 };
    u32 size = op->first.size, sign = 8 * size - 1;
    u64 result = low_bytes(op->action == SWAPPED_TEST ? a & b : a - b, size);
    u64 flags = (result == 0 ? ZF : 0) | (result >> sign & 1 ? SF : 0) |
                (__builtin_parity((u32)result & 0xff) ? 0 : PF);
    if (op->action == SWAPPED_CMP)
        flags |= (a < b ? CF : 0) | (((a ^ b) & (a ^ result)) >> sign & 1 ? OF : 0);
    return flags;
}

static bool gets_there(const Swapped *s, Registers *r)
{
    u64 a, b;
    for (u32 i = 0; i < s->count; i++) {
        const SwappedOp *op = &s->ops[i];
        if (!take_value(r, &op->first, &a))
            return false;
        if (op->action == SWAPPED_LOAD) {
            u64 whole = op->extends ? extended(a, op->first.size) : a;
            r->value[op->to] = low_bytes(whole, op->to_size);
            r->undefined &= ~(1ull << op->to);
        } else {
            return take_value(r, &op->second, &b) &&
                   definedness_holds(flags_of(op, a, b), s->condition);
        }
    }
    return false;
}

void swapped_jump(ToolThread *thread, u64 arg, GuestAddr address)
{
    const Swapped *s = (const Swapped *)arg;
    Definedness *d = definedness_of(thread);
    Registers r = {.undefined = 0};
    for (u32 i = 0; i < 16; i++) {
        r.value[i] = thread->gpr[i];
        r.undefined |= d->gpr[i] ? 1ull << i : 0;
    }
    if (gets_there(s, &r))
        definedness_forget_condition(s->step, d);
    else
        access_step(thread, (u64)s->step, address);
}
