// SPDX-License-Identifier: MIT
//
// How the value of an option is read and written. That depends on its kind
// alone, so a new option is a row in options.def and a field in struct Options.

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/option_table.h"

bool option_fail(Options *options, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(options->error, sizeof(options->error), format, args);
    va_end(args);
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Names the values that there are, and the one that was probably meant.
static bool fail_unknown_value(Options *options, const OptionRow *row, const char *typed,
                               size_t typed_len, const char *refusal)
{
    const char *nearest = suggest_value(row->values, typed, typed_len);
    char list[256] = "";

    if (refusal == NULL && nearest != NULL)
        return option_fail(options, "--%s: unknown name '%.*s'; did you mean %s?", row->name,
                           (int)typed_len, typed, nearest);
    for (const OptionValue *value = row->values; value->name != NULL; value++) {
        if (value->help == NULL)
            continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", value->name);
    }
    if (refusal != NULL)
        return option_fail(options, "--%s=%.*s: %s; there are: %s", row->name, (int)typed_len,
                           typed, refusal, list);
    return option_fail(options, "--%s: unknown name '%.*s'; there are: %s", row->name,
                       (int)typed_len, typed, list);
}

// ---------------------------------------------------------------- truth and numbers

static bool parse_bool(Options *options, const OptionRow *row, const char *value, void *field)
{
    bool yes = value == NULL || strcmp(value, "yes") == 0;

    if (!yes && strcmp(value, "no") != 0)
        return option_fail(options, "--%s=%s: the value must be yes or no", row->name, value);
    *(bool *)field = yes;
    return true;
}

static bool parse_bits(Options *options, const OptionRow *row, const char *value, void *field)
{
    bool yes;

    if (!parse_bool(options, row, value, &yes))
        return false;
    if (yes)
        *(u32 *)field |= (u32)row->min;
    else if ((*(u32 *)field & row->unless) == 0)
        *(u32 *)field &= ~(u32)row->max;
    return true;
}

static bool store_number(Options *options, const OptionRow *row, const char *value, long number,
                         i32 *field)
{
    if (number < row->min && row->kind == OPTION_FD)
        return option_fail(options, "--%s=%s: a file descriptor is not negative", row->name,
                           value);
    if (errno == 0 && (row->min > INT32_MIN || row->max < INT32_MAX) &&
        row->kind != OPTION_FD && (number < row->min || number > row->max))
        return option_fail(options,
                           row->kind == OPTION_HEX
                               ? "--%s=%s: the number must be between %llx and %llx"
                               : "--%s=%s: the number must be between %lld and %lld",
                           row->name, value, (long long)row->min, (long long)row->max);
    if (errno != 0 || number < row->min || number > row->max)
        return option_fail(options, "--%s=%s: the number is out of range", row->name, value);
    *field = (i32)number;
    return true;
}

static bool parse_int(Options *options, const OptionRow *row, const char *value, void *field)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || !(is_digit(value[0]) || value[0] == '-'))
        return option_fail(options, "--%s=%s: the value must be a whole number", row->name, value);
    return store_number(options, row, value, number, field);
}

static bool parse_hex(Options *options, const OptionRow *row, const char *value, void *field)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 16);
    if (end == value || *end != '\0' || strchr(" \t\n-+", value[0]) != NULL)
        return option_fail(options, "--%s=%s: the value must be a hexadecimal number", row->name,
                           value);
    return store_number(options, row, value, number, field);
}

static u32 size_unit_shift(const char *unit)
{
    static const struct {
        const char *text;
        u32 shift;
    } units[] = {{"", 0},   {"k", 10}, {"K", 10}, {"m", 20}, {"M", 20},
                 {"g", 30}, {"G", 30}, {"t", 40}, {"T", 40}};

    for (u32 i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(unit, units[i].text) == 0)
            return units[i].shift;
    return UINT32_MAX;
}

// As a person would write a limit.
static void format_limit(u64 size, char *out, size_t out_size)
{
    const char *unit = "";

    if (size != 0 && size % MiB == 0) {
        size /= MiB;
        unit = "m";
    } else if (size != 0 && size % KiB == 0) {
        size /= KiB;
        unit = "k";
    }
    snprintf(out, out_size, "%llu%s", (unsigned long long)size, unit);
}

static bool parse_size(Options *options, const OptionRow *row, const char *value, void *field)
{
    char *end, low[32], high[32];

    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    u32 shift = size_unit_shift(end);
    if (!is_digit(value[0]) || shift == UINT32_MAX)
        return option_fail(options, "--%s=%s: the value must be a size such as 64m", row->name,
                           value);
    if (errno != 0 || number > (UINT64_MAX >> shift) || number << shift < (u64)row->min ||
        number << shift > (u64)row->max) {
        format_limit((u64)row->min, low, sizeof(low));
        format_limit((u64)row->max, high, sizeof(high));
        return option_fail(options, "--%s=%s: the size must be between %s and %s", row->name,
                           value, low, high);
    }
    *(u64 *)field = number << shift;
    return true;
}

// Percent with up to four digits behind the point are millionths.
#define PPM_DIGITS 4
#define PPM_WHOLE 1000000u

static bool parse_percent(Options *options, const OptionRow *row, const char *value, void *field)
{
    const char *at = value;
    u64 number = 0;
    u32 fraction = 0;
    bool has_digits = false;

    for (; is_digit(*at); at++, has_digits = true)
        number = min_u64(number * 10 + (u64)(*at - '0'), PPM_WHOLE);
    if (*at == '.')
        at++;
    for (; is_digit(*at); at++, has_digits = true) {
        if (fraction == PPM_DIGITS)
            continue;
        number = number * 10 + (u64)(*at - '0');
        fraction++;
    }
    for (; fraction < PPM_DIGITS; fraction++)
        number *= 10;
    if (!has_digits || *at != '\0' || number > PPM_WHOLE)
        return option_fail(options, "--%s=%s: the value must be between 0 and 100, such as 1.5",
                           row->name, value);
    *(u32 *)field = (u32)number;
    return true;
}

// ---------------------------------------------------------------- text

static bool fail_empty(Options *options, const OptionRow *row)
{
    return option_fail(options, "--%s= needs a value: --%s=%s", row->name, row->name, row->arg);
}

static bool parse_string(Options *options, const OptionRow *row, const char *value, void *field)
{
    if (value[0] == '\0' && row->kind != OPTION_TEXT)
        return fail_empty(options, row);
    *(const char **)field = value;
    return true;
}

static bool parse_optional_string(Options *options, const OptionRow *row, const char *value,
                                  void *field)
{
    (void)options;
    (void)row;
    *(const char **)field = value != NULL ? value : "";
    return true;
}

static bool parse_constant(Options *options, const OptionRow *row, const char *value, void *field)
{
    (void)options;
    (void)value;
    *(const char **)field = row->accepted;
    return true;
}

static bool parse_list(Options *options, const OptionRow *row, const char *value, void *field)
{
    OptionList *list = field;

    if (value[0] == '\0' && row->kind != OPTION_TEXT_LIST)
        return fail_empty(options, row);
    if (list->count == OPTIONS_LIST_MAX)
        return option_fail(options, "--%s: there is room for %d of them, and this is one more",
                           row->name, OPTIONS_LIST_MAX);
    list->items[list->count++] = value;
    return true;
}

// Reads digits up to `limit`; false if there are none or they mean more.
static bool read_decimal(const char **at, u32 limit)
{
    u32 number = 0;

    if (!is_digit(**at))
        return false;
    for (; is_digit(**at); (*at)++) {
        number = number * 10 + (u32)(**at - '0');
        if (number > limit)
            return false;
    }
    return true;
}

static bool parse_socket(Options *options, const OptionRow *row, const char *value, void *field)
{
    const char *at = value;
    bool good = read_decimal(&at, 255);

    for (u32 i = 0; i < 3 && good; i++)
        good = *at++ == '.' && read_decimal(&at, 255);
    if (good && *at == ':') {
        at++;
        good = *at != '0' && read_decimal(&at, UINT16_MAX);
    }
    if (!good || *at != '\0')
        return option_fail(options,
                           "--%s=%s: the value must be an address such as 127.0.0.1:1500",
                           row->name, value);
    *(const char **)field = value;
    return true;
}

static bool read_number(const char **at, u64 *ret_number)
{
    char *end;

    if (!is_digit(**at))
        return false;
    errno = 0;
    *ret_number = strtoull(*at, &end, 0);
    *at = end;
    return errno == 0;
}

static bool range_is_good(const OptionRow *row, u64 from, u64 to)
{
    if (row->kind == OPTION_FALLING_RANGE)
        return from > to && from - to <= (u64)row->max;
    return from < to;
}

static bool parse_ranges(Options *options, const OptionRow *row, const char *value, void *field)
{
    const char *at = value;
    u64 from, to;
    bool good;

    do {
        good = read_number(&at, &from) && *at++ == '-' && read_number(&at, &to) &&
               range_is_good(row, from, to);
    } while (good && row->kind == OPTION_RANGES && *at == ',' && *++at != '\0');
    if (!good || *at != '\0' || at[-1] == ',')
        return option_fail(options, "--%s=%s: the value must have the form %s", row->name, value,
                           row->arg);
    *(const char **)field = value;
    return true;
}

// ---------------------------------------------------------------- names

static bool name_is(const OptionValue *value, const char *name, size_t len)
{
    return strlen(value->name) == len && strncmp(value->name, name, len) == 0;
}

static const OptionValue *find_value(const OptionRow *row, const char *name, size_t len)
{
    for (const OptionValue *v = row->values; v->name != NULL; v++)
        if (name_is(v, name, len))
            return v;
    return NULL;
}

const char *(*options_tool_finder)(const char *name);

const char *option_tool_file(const char *name)
{
    for (const OptionValue *v = option_tools; v->name != NULL; v++)
        if (strcmp(v->name, name) == 0 && v->refusal == NULL)
            return NULL;
    return options_tool_finder != NULL ? options_tool_finder(name) : NULL;
}

static bool parse_choice(Options *options, const OptionRow *row, const char *value, void *field)
{
    const OptionValue *found = find_value(row, value, strlen(value));

    if (row->kind == OPTION_TOOL) {
        const char *known = *(const char **)field;

        *(const char **)field = value;
        if (options_tool_is_file(options))
            return true;
        *(const char **)field = known;
    }
    const char *file = row->kind == OPTION_TOOL ? option_tool_file(value) : NULL;
    if (file != NULL) {
        *(const char **)field = file;
        return true;
    }
    if (found == NULL || found->refusal != NULL)
        return fail_unknown_value(options, row, value, strlen(value),
                                  found != NULL ? found->refusal : NULL);
    if (row->kind == OPTION_TOOL)
        *(const char **)field = found->name;
    else
        *(u32 *)field = found->value;
    return true;
}

// The bits of one member of a set, all of them for "all"; 0 if it is unknown.
static u32 set_member_bits(const OptionRow *row, const char *name, size_t len)
{
    const OptionValue *found = find_value(row, name, len);
    u32 all = 0;

    if (found != NULL)
        return found->value;
    for (const OptionValue *v = row->values; v->name != NULL; v++)
        all |= v->value;
    return len == 3 && strncmp(name, "all", 3) == 0 ? all : 0;
}

static bool parse_set(Options *options, const OptionRow *row, const char *value, void *field)
{
    u32 set = 0;

    if (strcmp(value, "none") != 0) {
        for (const char *name = value;; name++) {
            size_t len = strcspn(name, ",");
            u32 bits = set_member_bits(row, name, len);

            if (bits == 0)
                return fail_unknown_value(options, row, name, len, NULL);
            set |= bits;
            name += len;
            if (*name == '\0')
                break;
        }
    }
    *(u32 *)field = set;
    return true;
}

static bool parse_less(Options *options, const OptionRow *row, const char *value, void *field)
{
    (void)options;
    (void)row;
    (void)value;
    if (*(i32 *)field > INT32_MIN)
        *(i32 *)field -= 1;
    return true;
}

static bool parse_more(Options *options, const OptionRow *row, const char *value, void *field)
{
    (void)options;
    (void)row;
    (void)value;
    if (*(i32 *)field < INT32_MAX)
        *(i32 *)field += 1;
    return true;
}

static bool parse_ignored(Options *options, const OptionRow *row, const char *value, void *field)
{
    (void)options;
    (void)row;
    (void)value;
    (void)field;
    return true;
}

static bool parse_refused(Options *options, const OptionRow *row, const char *value, void *field)
{
    (void)field;
    if (row->accepted != NULL && strcmp(value, row->accepted) == 0)
        return true;
    return option_fail(options, "--%s=%s: %s", row->name, value, row->help);
}

// ---------------------------------------------------------------- values, written

static int format_bool(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%s", *(const bool *)field ? "yes" : "no");
}

static int format_int(const OptionRow *row, const void *field, char *out, size_t size)
{
    return snprintf(out, size, row->kind == OPTION_HEX ? "%x" : "%d", *(const i32 *)field);
}

static int format_size(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%llu", (unsigned long long)*(const u64 *)field);
}

static int format_percent(const OptionRow *row, const void *field, char *out, size_t size)
{
    u32 unit = PPM_WHOLE / 100;
    u32 ppm = *(const u32 *)field;

    (void)row;
    return snprintf(out, size, "%u.%04u", ppm / unit, ppm % unit);
}

static int format_string(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%s", *(const char *const *)field);
}

static int format_choice(const OptionRow *row, const void *field, char *out, size_t size)
{
    const OptionValue *v = row->values;

    while (v->value != *(const u32 *)field || v->refusal != NULL)
        v++;
    return snprintf(out, size, "%s", v->name);
}

static int format_set(const OptionRow *row, const void *field, char *out, size_t size)
{
    u32 set = *(const u32 *)field;
    size_t used = 0;

    for (const OptionValue *v = row->values; v->name != NULL; v++) {
        if (set & v->value)
            used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0,
                                     "%s%s", used ? "," : "", v->name);
        set &= ~v->value;
    }
    return used ? (int)used : snprintf(out, size, "none");
}

// clang-format off
const OptionKindRow option_kinds[OPTION_KIND_COUNT] = {
    [OPTION_FLAG]            = {parse_bool,     format_bool,    VALUE_OPTIONAL, 1, false},
    [OPTION_BOOL]            = {parse_bool,     format_bool,    VALUE_REQUIRED, 1, false},
    [OPTION_BITS]            = {parse_bits,     NULL,           VALUE_REQUIRED, 4, false},
    [OPTION_INT]             = {parse_int,      format_int,     VALUE_REQUIRED, 4, false},
    [OPTION_FD]              = {parse_int,      format_int,     VALUE_REQUIRED, 4, false},
    [OPTION_HEX]             = {parse_hex,      format_int,     VALUE_REQUIRED, 4, false},
    [OPTION_SIZE]            = {parse_size,     format_size,    VALUE_REQUIRED, 8, false},
    [OPTION_PERCENT]         = {parse_percent,  format_percent, VALUE_REQUIRED, 4, false},
    [OPTION_STRING]          = {parse_string,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_TEXT]            = {parse_string,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_OPTIONAL_STRING] = {parse_optional_string, NULL,    VALUE_OPTIONAL, 8, false},
    [OPTION_CONSTANT]        = {parse_constant, NULL,           VALUE_NEVER,    8, false},
    [OPTION_SOCKET]          = {parse_socket,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_RANGES]          = {parse_ranges,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_FALLING_RANGE]   = {parse_ranges,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_PATH]            = {parse_string,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_PATH_TEMPLATE]   = {parse_string,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_LIST]            = {parse_list,     format_string,  VALUE_REQUIRED, 4, true},
    [OPTION_TEXT_LIST]       = {parse_list,     format_string,  VALUE_REQUIRED, 4, true},
    [OPTION_PATH_LIST]       = {parse_list,     format_string,  VALUE_REQUIRED, 4, true},
    [OPTION_TOOL]            = {parse_choice,   format_string,  VALUE_REQUIRED, 8, false},
    [OPTION_CHOICE]          = {parse_choice,   format_choice,  VALUE_REQUIRED, 4, false},
    [OPTION_SET]             = {parse_set,      format_set,     VALUE_REQUIRED, 4, false},
    [OPTION_LESS]            = {parse_less,     NULL,           VALUE_NEVER,    4, false},
    [OPTION_MORE]            = {parse_more,     NULL,           VALUE_NEVER,    4, false},
    [OPTION_IGNORED]         = {parse_ignored,  NULL,           VALUE_REQUIRED, 0, false},
    [OPTION_REFUSED]         = {parse_refused,  NULL,           VALUE_REQUIRED, 0, false},
};
// clang-format on
