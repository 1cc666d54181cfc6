// SPDX-License-Identifier: MIT
//
// Walks every row of the table of system calls, every sub-table and every layout, and
// refuses what cannot be right. What the rows say is held against the kernel in
// syscall_truth_test.c.
#include <stdlib.h>
#include <sys/syscall.h>

#include "engine/syscall/tables.h"
#include "unit.h"

static const SyscallSub *const all_subs[] = {
#define SUB_ADDRESS(name) &sub_##name,
    SUB_LIST(SUB_ADDRESS)
#undef SUB_ADDRESS
};

static const SyscallType *const all_types[] = {
#define TYPE_ADDRESS(name) &type_##name,
    TYPE_LIST(TYPE_ADDRESS)
#undef TYPE_ADDRESS
};

typedef struct Number {
    const char *name;
    u64 nr;
} Number;

static const Number numbers[] = {
#define NR(name, number) { #name, number },
#include "engine/syscall/numbers.def"
#undef NR
};

// ---- What every list of arguments or fields has to satisfy -----------------

static unsigned list_length(const SyscallArg *list, unsigned max)
{
    unsigned n = 0;
    while (n < max && list[n].kind != ARG_NONE)
        n++;
    return n;
}

static void check_len(const char *where, const SyscallLen *l, unsigned count)
{
    if (l->rule >= LEN_RULES)
        FAIL("%s: unknown length rule %d", where, l->rule);
    bool uses_arg = l->rule != LEN_UNSET && l->rule != LEN_RULE_CONST &&
                    l->rule != LEN_RULE_RESULT && l->rule != LEN_RULE_RESULT_FITS &&
                    l->rule != LEN_RULE_SPREAD && l->rule != LEN_RULE_INSIDE;
    if (uses_arg && l->arg >= count)
        FAIL("%s: a length by argument %d of %u", where, l->arg, count);
    if (l->rule == LEN_RULE_PRODUCT && l->other >= count)
        FAIL("%s: a length by argument %d of %u", where, l->other, count);
    if (l->rule != LEN_UNSET && l->rule != LEN_RULE_CONST && !l->scale)
        FAIL("%s: a length of 0 times something", where);
    if (l->rule == LEN_RULE_CONST && !l->plus)
        FAIL("%s: a constant length of 0", where);
}

static bool needs_length(u8 kind)
{
    return kind == ARG_IN || kind == ARG_OUT || kind == ARG_INOUT || kind == ARG_CMSG;
}

static void check_arg(const char *row, const SyscallArg *a, unsigned count)
{
    char where[128];
    snprintf(where, sizeof(where), "%s(%s)", row, a->name ? a->name : "?");
    if (!a->name || a->kind >= ARG_KINDS || a->on > ON_NEVER || a->index > INDEX_LETTER)
        FAIL("%s is no argument", where);
    if (needs_length(a->kind) != (a->len.rule != LEN_UNSET))
        FAIL("%s: a length where none belongs, or none where one does", where);
    if (a->wrote.rule != LEN_UNSET && a->kind != ARG_OUT && a->kind != ARG_INOUT)
        FAIL("%s: says what was written, and is no output", where);
    if (a->when.rule != WHEN_ALWAYS && a->when.arg >= count)
        FAIL("%s: depends on argument %d of %u", where, a->when.arg, count);
    check_len(where, &a->len, count);
    check_len(where, &a->wrote, count);
}

static void check_row(const char *name, const SyscallRow *row)
{
    unsigned count = list_length(row->args, SYSCALL_ARGS);
    for (unsigned i = 0; i < count; i++) {
        check_arg(name, &row->args[i], count);
        if (row->args[i].kind == ARG_STRUCT || row->args[i].kind == ARG_TEXT)
            FAIL("%s: a register holds no struct", name);
    }
    for (unsigned i = count; i < SYSCALL_ARGS; i++) {
        if (row->args[i].kind != ARG_NONE)
            FAIL("%s: a gap before argument %u", name, i);
    }
}

static void check_type(const SyscallType *type, unsigned depth)
{
    if (depth > 6)
        FAIL("%s contains itself", type->name);
    if (!type->size || type->size > TYPE_BYTES_MAX)
        FAIL("%s: size %u", type->name, type->size);
    unsigned count = list_length(type->fields, 64);
    if (!count || (type->variants && type->selector >= count) ||
        (type->has_budget && type->budget >= count))
        FAIL("%s: fields", type->name);
    for (unsigned i = 0; i < count; i++) {
        const SyscallArg *a = &type->fields[i];
        check_arg(type->name, a, count);
        if (!a->size || (a->size != FIELD_REST && !type->is_single &&
                         (u32)a->offset + a->size > type->size))
            FAIL("%s%s lies outside", type->name, a->name);
        if (syscall_kind_is_pointer(a->kind) && a->size != 8)
            FAIL("%s%s is a pointer of %u bytes", type->name, a->name, a->size);
        if (a->type)
            check_type(a->type, depth + 1);
    }
    for (const SyscallVariant *v = type->variants; v && v->type; v++)
        check_type(v->type, depth + 1);
}

// ---- The tests -------------------------------------------------------------

TEST(every_number_has_a_row_and_every_row_a_number)
{
    bool known[NR_LIMIT] = { false };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const SyscallRow *row = syscall_row(numbers[i].nr);
        if (!row)
            FAIL("%s has no row", numbers[i].name);
        CHECK_STR(row->name, numbers[i].name);
        known[numbers[i].nr] = true;
    }
    for (u64 nr = 0; nr < NR_LIMIT; nr++) {
        if (!known[nr] && syscall_row(nr))
            FAIL("%s has no number", syscall_row(nr)->name);
    }
    for (u64 nr = 0; nr <= NR_uprobe; nr++)
        CHECK(known[nr]);
    for (u64 nr = NR_pidfd_send_signal; nr < NR_LIMIT; nr++)
        CHECK(known[nr]);
}

TEST(numbers_outside_the_table_have_no_row)
{
    char buf[32];
    CHECK(!syscall_row(NR_LIMIT));
    CHECK(!syscall_row(400));
    CHECK(!syscall_row(~0ull));
    CHECK_STR(syscall_name(400, buf, sizeof(buf)), "sys_400");
    CHECK_STR(syscall_name(0, buf, sizeof(buf)), "read");
}

TEST(numbers_agree_with_the_headers)
{
    CHECK_EQ(NR_read, SYS_read);
    CHECK_EQ(NR_execve, SYS_execve);
    CHECK_EQ(NR_futex, SYS_futex);
    CHECK_EQ(NR_rseq, SYS_rseq);
    CHECK_EQ(NR_clone3, SYS_clone3);
    CHECK_EQ(NR_futex_waitv, SYS_futex_waitv);
}

TEST(names_of_calls_are_unique)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        for (size_t j = i + 1; j < ARRAY_LEN(numbers); j++) {
            if (!strcmp(numbers[i].name, numbers[j].name) || numbers[i].nr == numbers[j].nr)
                FAIL("%s twice", numbers[i].name);
        }
    }
}

TEST(every_row_is_well_formed)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        check_row(numbers[i].name, syscall_row(numbers[i].nr));
}

TEST(every_row_of_every_sub_table_is_well_formed)
{
    for (size_t i = 0; i < ARRAY_LEN(all_subs); i++) {
        const SyscallSub *sub = all_subs[i];
        CHECK(sub->name && sub->count && sub->arg < SYSCALL_ARGS);
        for (u32 j = 0; j < sub->count; j++) {
            char where[96];
            snprintf(where, sizeof(where), "%s %s", sub->name, sub->rows[j].row.name);
            check_row(where, &sub->rows[j].row);
        }
    }
}

TEST(sub_tables_are_sorted_and_find_each_of_their_rows)
{
    for (size_t i = 0; i < ARRAY_LEN(all_subs); i++) {
        const SyscallSub *sub = all_subs[i];
        for (u32 j = 0; j < sub->count; j++) {
            u64 key = sub->rows[j].key;
            if (j && syscall_key_order(sub->rows[j - 1].key) >= syscall_key_order(key))
                FAIL("%s: %s is out of order", sub->name, sub->rows[j].row.name);
            CHECK(syscall_sub_row(sub, key) == &sub->rows[j].row);
        }
        CHECK(!syscall_sub_row(sub, 0xdeadbeefcafeull));
    }
}

TEST(every_sub_table_is_reached_from_a_row)
{
    for (size_t i = 0; i < ARRAY_LEN(all_subs); i++) {
        bool reached = all_subs[i] == &sub_ioctl_other && sub_ioctl.other == &sub_ioctl_other;
        for (u64 nr = 0; nr < NR_LIMIT; nr++)
            reached |= syscall_row(nr) && syscall_row(nr)->sub == all_subs[i];
        if (!reached)
            FAIL("nothing leads to %s", all_subs[i]->name);
    }
}

// Descriptors are guarded and paths rewritten by the row that was resolved, so a
// sub-row may not lose what its call's row knows.
TEST(sub_rows_keep_the_descriptors_of_their_call)
{
    for (u64 nr = 0; nr < NR_LIMIT; nr++) {
        const SyscallRow *row = syscall_row(nr);
        if (!row || !row->sub)
            continue;
        for (u32 j = 0; j < row->sub->count; j++) {
            for (unsigned k = 0; k < SYSCALL_ARGS; k++) {
                if (row->args[k].kind == ARG_FD &&
                    row->sub->rows[j].row.args[k].kind != ARG_FD)
                    FAIL("%s %s: argument %u", row->name, row->sub->rows[j].row.name, k);
            }
        }
    }
}

TEST(every_layout_is_well_formed)
{
    for (size_t i = 0; i < ARRAY_LEN(all_types); i++)
        check_type(all_types[i], 0);
}

TEST(layouts_used_by_rows_are_well_formed)
{
    for (size_t i = 0; i < ARRAY_LEN(all_subs); i++) {
        for (u32 j = 0; j < all_subs[i]->count; j++) {
            for (unsigned k = 0; k < SYSCALL_ARGS; k++) {
                if (all_subs[i]->rows[j].row.args[k].type)
                    check_type(all_subs[i]->rows[j].row.args[k].type, 0);
            }
        }
    }
}
