// SPDX-License-Identifier: MIT
//
// Every string function against a loop over elements: its result, what memory holds afterwards,
// V bits included, and the first error of each kind.
#include "memcheck_strings_world.h"

typedef u64 Plain(Model *m, const u64 a[4], u32 element, const char *name);

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

// ------------------------------------------------------------------- plain loops

static u64 plain_length(Model *m, const u64 a[4], u32 element, const char *name)
{
    u64 limit = has(name, "nlen") ? a[1] : ~0ull, value, v, n;
    for (n = 0; n < limit; n++) {
        if (!model_read(m, a[0] + n * element, element, &value, &v))
            return 0;
        if (model_same(m, value, v, 0, 0))
            break;
    }
    return n;
}

static u64 plain_chr(Model *m, const u64 a[4], u32 element, const char *name)
{
    bool or_end = has(name, "nul"), raw = has(name, "raw");
    u64 needle = element == 1 ? (u8)a[1] : (u32)a[1], value, v;
    for (u64 at = a[0];; at += element) {
        if (!model_read(m, at, element, &value, &v))
            return 0;
        if (model_same(m, value, v, needle, 0))
            return at;
        if (!raw && needle && model_same(m, value, v, 0, 0))
            return or_end ? at : 0;
    }
}

static u64 plain_memchr(Model *m, const u64 a[4], u32 element, const char *name)
{
    (void)name;
    u64 needle = element == 1 ? (u8)a[1] : (u32)a[1], value, v;
    for (u64 i = 0; i < a[2]; i++) {
        if (!model_read(m, a[0] + i * element, element, &value, &v))
            return 0;
        if (model_same(m, value, v, needle, 0))
            return a[0] + i * element;
    }
    return 0;
}

static u64 plain_rchr(Model *m, const u64 a[4], u32 element, const char *name)
{
    (void)name;
    u64 needle = element == 1 ? (u8)a[1] : (u32)a[1], value, v, last = 0, at;
    for (at = a[0];; at += element) {
        if (!model_read(m, at, element, &value, &v))
            return 0;
        if (model_same(m, value, v, 0, 0))
            break;
    }
    // From the end down: what is undefined in front of the match does not matter again.
    for (;; at -= element) {
        model_read(m, at, element, &value, &v);
        if (model_same(m, value, v, needle, 0)) {
            last = at;
            break;
        }
        if (at == a[0])
            break;
    }
    return last;
}

static u64 plain_memrchr(Model *m, const u64 a[4], u32 element, const char *name)
{
    (void)name;
    u64 value, v;
    for (u64 i = a[2]; i-- > 0;) {
        if (!model_read(m, a[0] + i, element, &value, &v))
            return 0;
        if (model_same(m, value, v, (u8)a[1], 0))
            return a[0] + i;
    }
    return 0;
}

static u64 plain_span(Model *m, const u64 a[4], u32 element, const char *name)
{
    u64 value, v, member, i;
    bool accepts = has(name, "sspn") || has(name, "strspn");
    for (i = 0;; i++) { // all of the set is looked at first
        if (!model_read(m, a[1] + i * element, element, &member, &v))
            return 0;
        m->told.condition |= v != 0;
        if (member == 0)
            break;
    }
    for (i = 0;; i++) {
        if (!model_read(m, a[0] + i * element, element, &value, &v))
            return 0;
        m->told.condition |= v != 0;
        if (value == 0)
            break;
        bool found = false;
        for (u64 k = 0;; k++) {
            u64 ignored;
            model_read(m, a[1] + k * element, element, &member, &ignored);
            found |= member == value;
            if (member == 0)
                break;
        }
        if (found != accepts)
            break;
    }
    return !has(name, "brk") ? i : value ? a[0] + i * element : 0;
}

static u64 plain_find(Model *m, const u64 a[4], u32 element, const char *name)
{
    bool sized = has(name, "mem");
    u64 needle = sized ? a[2] : a[1], n = 0, x, x_v, y, y_v;
    if (sized && a[3] > a[1])
        return 0;
    for (; sized ? n < a[3] : true; n++) {
        if (sized)
            continue;
        if (!model_read(m, needle + n * element, element, &y, &y_v))
            return 0;
        if (model_same(m, y, y_v, 0, 0))
            break;
    }
    if (n == 0)
        return a[0];
    model_read(m, needle, element, &y, &y_v);
    m->told.condition |= y_v != 0;
    for (u64 at = a[0]; !sized || at + n <= a[0] + a[1]; at += element) {
        u64 i;
        for (i = 0; i < n; i++) {
            if (!model_read(m, at + i * element, element, &x, &x_v) ||
                !model_read(m, needle + i * element, element, &y, &y_v))
                return 0;
            // The first one of the needle has been told of.
            bool same = model_same(m, x, x_v, y, i ? y_v : 0);
            if (!same && !sized && (i || y != 0) && (i ? x == 0 : model_same(m, x, x_v, 0, 0)))
                return 0;
            if (!same)
                break;
        }
        if (i == n)
            return at;
    }
    return 0;
}

static u64 plain_compare(Model *m, const u64 a[4], u32 element, const char *name)
{
    bool text = !has(name, "mem") && !has(name, "bcmp");
    bool counted = !text || has(name, "ncmp");
    u64 x, x_v, y, y_v;
    for (u64 i = 0; !counted || i < a[2]; i++) {
        if (!model_read(m, a[0] + i * element, element, &x, &x_v) ||
            !model_read(m, a[1] + i * element, element, &y, &y_v))
            return 0;
        if (!model_same(m, x, x_v, y, y_v)) {
            u64 x_least = x & ~x_v, x_most = x | x_v, y_least = y & ~y_v, y_most = y | y_v;
            m->result_unknown = !m->told.condition && (x_v | y_v) && !has(name, "eq") &&
                                x_least <= y_most && y_least <= x_most;
            return element == 4 ? (u32)((i32)x < (i32)y ? -1 : 1) : (u32)(i32)(x - y);
        }
        if (text && model_same(m, x, x_v & y_v, 0, 0))
            return 0;
    }
    return 0;
}

static u64 plain_copy(Model *m, const u64 a[4], u32 element, const char *name)
{
    u64 to = has(name, "bcopy") ? a[1] : a[0], from = has(name, "bcopy") ? a[0] : a[1];
    u64 size = a[2] * element;
    if (!has(name, "move") && !has(name, "bcopy"))
        m->told.overlap = to - from < size || from - to < size;
    model_move(m, to, from, size, element);
    return has(name, "mempcpy") ? to + size : to;
}

static u64 plain_copy_until(Model *m, const u64 a[4], u32 element, const char *name)
{
    (void)name;
    u64 n = 0, value, v;
    bool found = false;
    for (; n < a[3] && !found; n++) {
        if (!model_read(m, a[1] + n, element, &value, &v))
            return 0;
        found = model_same(m, value, v, (u8)a[2], 0);
    }
    m->told.overlap = a[0] - a[1] < n || a[1] - a[0] < n;
    model_move(m, a[0], a[1], n, element);
    return found ? a[0] + n : 0;
}

static bool model_length(Model *m, u64 start, u64 limit, u32 element, u64 *ret_length)
{
    const u64 a[4] = {start, limit};
    *ret_length = plain_length(m, a, element, "nlen");
    return !m->fault;
}

static u64 plain_copy_sized(Model *m, const u64 a[4], u32 element, const char *name)
{
    u64 old = 0, n;
    if ((has(name, "lcat") && !model_length(m, a[0], a[2], element, &old)) ||
        !model_length(m, a[1], ~0ull, element, &n))
        return 0;
    if (old == a[2])
        return old + n;
    u64 copied = min_u64(n, a[2] - old - 1), to = a[0] + old * element;
    u64 size = (copied + 1) * element;
    m->told.overlap = to - a[1] < size || a[1] - to < size;
    model_move(m, to, a[1], copied * element, element);
    model_set(m, to + copied * element, 0, 0, 1, element);
    return old + n;
}

static u64 plain_copy_text(Model *m, const u64 a[4], u32 element, const char *name)
{
    bool counted = has(name, "ncpy") || has(name, "ncat"), pads = has(name, "ncpy");
    u64 limit = counted ? a[2] : ~0ull, old = 0, n, value, v = 0;
    if ((has(name, "cat") && !model_length(m, a[0], ~0ull, element, &old)) ||
        !model_length(m, a[1], limit, element, &n))
        return 0;
    u64 to = a[0] + old * element;
    u64 read = n < limit ? n + 1 : n, written = pads ? limit : n + 1;
    u64 to_size = (old + written) * element, from_size = read * element;
    m->told.overlap = a[0] - a[1] < from_size || a[1] - a[0] < to_size;
    model_move(m, to, a[1], n * element, element);
    if (read > n) // the end may have been written over: its V bits come from where it was read
        model_read(m, a[1] + n * element, element, &value, &v);
    if (written > n)
        model_set(m, to + n * element, 0, v, 1, element);
    if (written > n + 1)
        model_set(m, to + (n + 1) * element, 0, 0, written - n - 1, element);
    return has(name, "stp") || has(name, "wcp") ? to + n * element : a[0];
}

static u64 plain_fill(Model *m, const u64 a[4], u32 element, const char *name)
{
    bool zeroes = has(name, "zero");
    model_set(m, a[0], zeroes ? 0 : a[1], zeroes ? 0 : world_definedness->gpr[RSI],
              zeroes ? a[1] : a[2], element);
    return a[0];
}

// ---------------------------------------------------------------------- the table

// p a place, n a small number, c an element. With a capital: its arguments may overlap.
static const struct Row {
    const char *names, *arguments;
    Plain *plain;
} rows[] = {
    {"strlen wcslen", "p", plain_length},
    {"strnlen wcsnlen", "pn", plain_length},
    {"strchr strchrnul rawmemchr index wcschr wcschrnul", "pc", plain_chr},
    {"memchr wmemchr", "pcn", plain_memchr},
    {"strrchr rindex wcsrchr", "pc", plain_rchr},
    {"memrchr", "pcn", plain_memrchr},
    {"strspn strcspn strpbrk wcsspn wcscspn wcspbrk", "pp", plain_span},
    {"strstr wcsstr", "pp", plain_find},
    {"memmem", "pnpn", plain_find},
    {"memcmp __memcmpeq wmemcmp", "ppn", plain_compare},
    {"strcmp wcscmp", "pp", plain_compare},
    {"strncmp wcsncmp", "ppn", plain_compare},
    {"memmove memcpy mempcpy bcopy wmemmove wmemcpy wmempcpy", "ppn", plain_copy},
    {"memccpy", "ppcn", plain_copy_until},
    {"strcpy stpcpy strcat wcscpy wcpcpy wcscat", "pp", plain_copy_text},
    {"strncpy stpncpy strncat wcsncpy wcpncpy wcsncat", "ppn", plain_copy_text},
    {"strlcpy strlcat wcslcpy wcslcat", "ppn", plain_copy_sized},
    {"memset wmemset", "pcn", plain_fill},
    {"bzero explicit_bzero", "pn", plain_fill},
};

// Places that are near enough to each other to overlap now and then, and near page ends.
static u64 a_place(u32 element)
{
    static const u64 around[] = {100, 4096, 8192, ARENA_BYTES - 40, 1000};
    u64 at = ARENA_START + around[chance(ARRAY_LEN(around))] + chance(160) - 100;
    return chance(8) ? at & ~(u64)(element - 1) : at;
}

static void choose_arguments(const char *arguments, u32 element, u64 ret_args[4])
{
    memset(ret_args, 0, 4 * sizeof(*ret_args));
    for (unsigned i = 0; arguments[i]; i++) {
        switch (arguments[i]) {
        case 'p': ret_args[i] = a_place(element); break;
        case 'n': ret_args[i] = chance(20) ? chance(chance(8) ? 40 : 700) : 0; break;
        case 'c': ret_args[i] = "ab\0cAx"[chance(6)]; break;
        }
    }
}

static bool same_told(const Told *a, const Told *b)
{
    return a->read == b->read && a->write == b->write && a->condition == b->condition &&
           a->overlap == b->overlap;
}

static void check_one(const char *name, const struct Row *row, u64 round)
{
    static Model m, after;
    u32 element = world_function(name)->data & STRING_WIDE ? 4 : 1;
    u64 args[4];
    ToolCall call;
    choose_arguments(row->arguments, element, args);
    world_to_model(&m);
    world_definedness->set = 0;
    memset(world_definedness->gpr, 0, sizeof(world_definedness->gpr));
    if (row->plain == plain_fill && chance(4) == 0) {
        world_definedness->gpr[RSI] = chance(0x100000000);
        world_definedness->set = MEMBER_GPR(RSI);
    }
    if (has(name, "zero"))
        world_definedness->gpr[RSI] = world_definedness->set = 0;

    u64 wanted = row->plain(&m, args, element, name);
    u64 got = world_call(name, args, &call);
    world_to_model(&after);
    if (m.fault || call.run_original) {
        if (m.fault != call.run_original)
            FAIL("%s, round %llu: fault %d, declined %d", name, (unsigned long long)round, m.fault,
                 call.run_original);
        return;
    }
    if (got != wanted)
        FAIL("%s(%#llx, %#llx, %#llx), round %llu: result %#llx, not %#llx", name,
             (unsigned long long)args[0], (unsigned long long)args[1], (unsigned long long)args[2],
             (unsigned long long)round, (unsigned long long)got, (unsigned long long)wanted);
    if (!same_told(&told, &m.told))
        FAIL("%s, round %llu: told %llx %llx %d %d, not %llx %llx %d %d", name,
             (unsigned long long)round, (unsigned long long)told.read,
             (unsigned long long)told.write, told.condition, told.overlap,
             (unsigned long long)m.told.read, (unsigned long long)m.told.write, m.told.condition,
             m.told.overlap);
    bool unknown = world_definedness->set & MEMBER_GPR(RAX);
    if (unknown != m.result_unknown)
        FAIL("%s, round %llu: result unknown: %d", name, (unsigned long long)round, unknown);
    if (memcmp(m.data, after.data, ARENA_BYTES) != 0)
        FAIL("%s, round %llu: other data", name, (unsigned long long)round);
    if (memcmp(m.v, after.v, ARENA_BYTES) != 0)
        FAIL("%s, round %llu: other V bytes", name, (unsigned long long)round);
    if (memcmp(m.u, after.u, ARENA_BYTES) != 0)
        FAIL("%s, round %llu: other U bits", name, (unsigned long long)round);
}

static void check_row(const struct Row *row, const Mixture *base, u64 rounds)
{
    char names[128];
    snprintf(names, sizeof(names), "%s", row->names);
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
        Mixture mix = *base;
        mix.element = world_function(name)->data & STRING_WIDE ? 4 : 1;
        for (u64 round = 0; round < rounds; round++) {
            if (round % 8 == 0) {
                mix.from = 0;
                mix.to = ARENA_BYTES;
                world_fill(&mix);
            }
            check_one(name, row, round);
        }
    }
}

static void check_all(Mixture mix)
{
    world_start();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(&rows[i], &mix, 600);
}

TEST(defined_memory_is_as_the_loop_leaves_it)
{
    world_quick_count = 0;
    check_all((Mixture){.end_per_1000 = 40});
    CHECK(world_quick_count > 3000); // of 15 names that have a quick form, 600 times each
}

TEST(undefined_bits_move_and_are_told_of_where_they_decide)
{
    check_all((Mixture){.end_per_1000 = 40, .undefined_per_1000 = 15});
}

TEST(the_first_byte_that_may_not_be_touched_is_told_of)
{
    check_all((Mixture){.end_per_1000 = 40, .bad_per_1000 = 15});
}

TEST(all_states_together)
{
    check_all((Mixture){.end_per_1000 = 60, .undefined_per_1000 = 10, .bad_per_1000 = 10});
}

TEST(every_function_of_the_table_is_in_the_test_or_an_alias)
{
    for (u32 i = HEAP_FUNCTIONS; i < MEMCHECK_FUNCTIONS; i++) {
        const ToolFunction *f = &memcheck_functions[i];
        bool same = f->data & STRING_FOLDS || STRING_CHECKED_ARGUMENT(f->data);
        for (size_t r = 0; r < ARRAY_LEN(rows) && !same; r++) {
            char names[128];
            snprintf(names, sizeof(names), "%s", rows[r].names);
            for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
                const ToolFunction *tested = world_function(name);
                same |= tested->replace == f->replace && tested->data == f->data;
            }
        }
        if (!same)
            FAIL("%s is tried by nothing", f->name);
    }
}
