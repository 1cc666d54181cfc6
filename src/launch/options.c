// SPDX-License-Identifier: MIT
//
// The parser that options.def describes, and its inverse. How a value is read
// and written depends on its kind alone (kind_rows), so a new option is a row in
// options.def and a field in struct Options.

#include "launch/options.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/option_table.h"

const OptionValue option_tools[] = {
#define TOOL(name, summary) {name, summary},
#include "launch/options.def"
    {NULL, NULL},
};

const OptionValue option_traces[] = {
#define TRACE(NAME, name, help) {name, help},
#include "launch/options.def"
    {NULL, NULL},
};

const OptionValue option_stresses[] = {
#define STRESS(NAME, name, help) {name, help},
#include "launch/options.def"
    {NULL, NULL},
};

const OptionRow option_rows[] = {
#define OPTION(group_, name_, letter_, kind_, field_, arg_, help_)                                 \
    {                                                                                              \
        .name = name_,                                                                             \
        .arg = arg_,                                                                               \
        .help = help_,                                                                             \
        .field = offsetof(Options, field_),                                                        \
        .group = GROUP_##group_,                                                                   \
        .kind = KIND_##kind_,                                                                      \
        .letter = letter_,                                                                         \
    },
#include "launch/options.def"
};

const u32 option_row_count = ARRAY_LEN(option_rows);

_Static_assert(ARRAY_LEN(option_rows) <= OPTIONS_ARGV_MAX, "options_to_argv() needs room");

const OptionValue *option_values(u8 kind)
{
    switch (kind) {
    case KIND_CHOICE_TOOL:
        return option_tools;
    case KIND_SET_TRACE:
        return option_traces;
    case KIND_SET_STRESS:
        return option_stresses;
    default:
        return NULL;
    }
}

void options_init(Options *options)
{
    *options = (Options){
        .tool = option_tools[0].name,
        .log_fd = 2,
        .seccomp_fd = -1,
        .cache_size_bytes = OPTIONS_CACHE_SIZE_DEFAULT,
    };
}

__attribute__((format(printf, 2, 3))) static bool fail(Options *options, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(options->error, sizeof(options->error), format, args);
    va_end(args);
    return false;
}

// ---------------------------------------------------------------- suggestions

#define SUGGEST_NAME_MAX 31

// How many single-letter insertions, deletions, substitutions and swaps of
// neighbours turn a into b.
static u32 edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    u8 cost[SUGGEST_NAME_MAX + 1][SUGGEST_NAME_MAX + 1];

    for (size_t i = 0; i <= a_len; i++)
        cost[i][0] = (u8)i;
    for (size_t j = 0; j <= b_len; j++)
        cost[0][j] = (u8)j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            u64 best = min_u64(cost[i - 1][j], cost[i][j - 1]) + 1u;
            best = min_u64(best, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = min_u64(best, cost[i - 2][j - 2] + 1u);
            cost[i][j] = (u8)best;
        }
    }
    return cost[a_len][b_len];
}

// Keeps the candidate in *best if it is nearer than what is there. A name that
// starts with what was typed is as near as one slip.
static void suggest_consider(const char *typed, size_t typed_len, const char *candidate,
                             const char **best, u32 *best_distance)
{
    size_t len = strlen(candidate);

    if (typed_len == 0 || typed_len > SUGGEST_NAME_MAX || len > SUGGEST_NAME_MAX)
        return;
    u32 distance = edit_distance(typed, typed_len, candidate, len);
    if (typed_len >= 3 && strncmp(typed, candidate, typed_len) == 0)
        distance = (u32)min_u64(distance, 1);
    if (distance < *best_distance && distance <= max_u64(1, min_u64(typed_len, len) / 3)) {
        *best = candidate;
        *best_distance = distance;
    }
}

static const char *suggest_option(const char *typed, size_t typed_len)
{
    const char *best = NULL;
    u32 distance = UINT32_MAX;

    for (u32 i = 0; i < option_row_count; i++)
        if (option_rows[i].group != GROUP_INTERNAL)
            suggest_consider(typed, typed_len, option_rows[i].name, &best, &distance);
    return best;
}

static const char *suggest_value(const OptionValue *values, const char *typed, size_t typed_len)
{
    const char *best = NULL;
    u32 distance = UINT32_MAX;

    for (; values->name != NULL; values++)
        suggest_consider(typed, typed_len, values->name, &best, &distance);
    return best;
}

static bool fail_unknown_option(Options *options, const char *argument)
{
    const char *name = argument + strspn(argument, "-");
    const char *nearest = suggest_option(name, strcspn(name, "="));

    if (nearest != NULL)
        return fail(options, "unknown option %s; did you mean --%s?", argument, nearest);
    return fail(options, "unknown option %s; muninn --help lists them", argument);
}

// Names the values that there are, and the one that was probably meant.
static bool fail_unknown_value(Options *options, const OptionRow *row, const char *typed,
                               size_t typed_len)
{
    const OptionValue *values = option_values(row->kind);
    const char *nearest = suggest_value(values, typed, typed_len);
    char list[256] = "";

    if (nearest != NULL)
        return fail(options, "--%s: unknown name '%.*s'; did you mean %s?", row->name,
                    (int)typed_len, typed, nearest);
    for (const OptionValue *value = values; value->name != NULL; value++) {
        if (value->help == NULL)
            continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", value->name);
    }
    return fail(options, "--%s: unknown name '%.*s'; there are: %s", row->name, (int)typed_len,
                typed, list);
}

// ---------------------------------------------------------------- values

static bool parse_bool(Options *options, const OptionRow *row, const char *value, void *field)
{
    bool yes = value == NULL || strcmp(value, "yes") == 0;

    if (!yes && strcmp(value, "no") != 0)
        return fail(options, "--%s=%s: the value must be yes or no", row->name, value);
    *(bool *)field = yes;
    return true;
}

static bool parse_int(Options *options, const OptionRow *row, const char *value, void *field)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0')
        return fail(options, "--%s=%s: the value must be a number", row->name, value);
    if (errno != 0 || number < INT_MIN || number > INT_MAX)
        return fail(options, "--%s=%s: the number is out of range", row->name, value);
    if (row->kind == KIND_FD && number < 0)
        return fail(options, "--%s=%s: a file descriptor is not negative", row->name, value);
    *(i32 *)field = (i32)number;
    return true;
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

static bool parse_size(Options *options, const OptionRow *row, const char *value, void *field)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    u32 shift = size_unit_shift(end);
    if (value[0] < '0' || value[0] > '9' || shift == UINT32_MAX)
        return fail(options, "--%s=%s: the value must be a size such as 64m", row->name, value);
    if (errno != 0 || number > (UINT64_MAX >> shift) ||
        number << shift < OPTIONS_CACHE_SIZE_MIN || number << shift > OPTIONS_CACHE_SIZE_MAX)
        return fail(options, "--%s=%s: the size must be between %lluk and %llum", row->name, value,
                    OPTIONS_CACHE_SIZE_MIN / KiB, OPTIONS_CACHE_SIZE_MAX / MiB);
    *(u64 *)field = number << shift;
    return true;
}

static bool parse_string(Options *options, const OptionRow *row, const char *value, void *field)
{
    if (value[0] == '\0')
        return fail(options, "--%s= needs a value: --%s=%s", row->name, row->name, row->arg);
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

static bool parse_choice(Options *options, const OptionRow *row, const char *value, void *field)
{
    for (const OptionValue *v = option_values(row->kind); v->name != NULL; v++) {
        if (strcmp(value, v->name) == 0) {
            *(const char **)field = v->name;
            return true;
        }
    }
    return fail_unknown_value(options, row, value, strlen(value));
}

// The bits of one member of a set, all of them for "all"; 0 if it is unknown.
static u32 set_member_bits(const OptionValue *values, const char *name, size_t len)
{
    u32 all = 0;

    for (u32 i = 0; values[i].name != NULL; i++) {
        if (strlen(values[i].name) == len && strncmp(values[i].name, name, len) == 0)
            return 1u << i;
        all |= 1u << i;
    }
    return len == 3 && strncmp(name, "all", 3) == 0 ? all : 0;
}

static bool parse_set(Options *options, const OptionRow *row, const char *value, void *field)
{
    const OptionValue *values = option_values(row->kind);
    u32 set = 0;

    if (strcmp(value, "none") != 0) {
        for (const char *name = value;; name++) {
            size_t len = strcspn(name, ",");
            u32 bits = set_member_bits(values, name, len);

            if (bits == 0)
                return fail_unknown_value(options, row, name, len);
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
    *(i32 *)field -= 1;
    return true;
}

static bool parse_more(Options *options, const OptionRow *row, const char *value, void *field)
{
    (void)options;
    (void)row;
    (void)value;
    *(i32 *)field += 1;
    return true;
}

// ---------------------------------------------------------------- values, written

// Each writes the value as parse_* reads it, as snprintf does.
static int format_bool(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%s", *(const bool *)field ? "yes" : "no");
}

static int format_int(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%d", *(const i32 *)field);
}

static int format_size(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%llu", (unsigned long long)*(const u64 *)field);
}

static int format_string(const OptionRow *row, const void *field, char *out, size_t size)
{
    (void)row;
    return snprintf(out, size, "%s", *(const char *const *)field);
}

static int format_set(const OptionRow *row, const void *field, char *out, size_t size)
{
    const OptionValue *values = option_values(row->kind);
    u32 set = *(const u32 *)field;
    size_t used = 0;

    for (u32 i = 0; values[i].name != NULL; i++) {
        if (set & (1u << i))
            used += (size_t)snprintf(used < size ? out + used : NULL, used < size ? size - used : 0,
                                     "%s%s", used ? "," : "", values[i].name);
    }
    return used ? (int)used : snprintf(out, size, "none");
}

// ---------------------------------------------------------------- kinds

typedef enum ValueForm {
    VALUE_NEVER,
    VALUE_OPTIONAL,
    VALUE_REQUIRED,
} ValueForm;

typedef struct KindRow {
    // `value` is NULL when the option stood alone, which `form` must allow.
    bool (*parse)(Options *options, const OptionRow *row, const char *value, void *field);
    // NULL: not handed on to the engine under this name.
    int (*format)(const OptionRow *row, const void *field, char *out, size_t size);
    ValueForm form;
    u8 field_size;
} KindRow;

// clang-format off
static const KindRow kind_rows[KIND_COUNT] = {
    [KIND_FLAG]            = {parse_bool,            format_bool,   VALUE_OPTIONAL, sizeof(bool)},
    [KIND_BOOL]            = {parse_bool,            format_bool,   VALUE_REQUIRED, sizeof(bool)},
    [KIND_INT]             = {parse_int,             format_int,    VALUE_REQUIRED, sizeof(i32)},
    [KIND_FD]              = {parse_int,             format_int,    VALUE_REQUIRED, sizeof(i32)},
    [KIND_SIZE]            = {parse_size,            format_size,   VALUE_REQUIRED, sizeof(u64)},
    [KIND_STRING]          = {parse_string,          format_string, VALUE_REQUIRED, sizeof(char *)},
    [KIND_OPTIONAL_STRING] = {parse_optional_string, NULL,          VALUE_OPTIONAL, sizeof(char *)},
    [KIND_PATH_TEMPLATE]   = {parse_string,          format_string, VALUE_REQUIRED, sizeof(char *)},
    [KIND_CHOICE_TOOL]     = {parse_choice,          format_string, VALUE_REQUIRED, sizeof(char *)},
    [KIND_SET_TRACE]       = {parse_set,             format_set,    VALUE_REQUIRED, sizeof(u32)},
    [KIND_SET_STRESS]      = {parse_set,             format_set,    VALUE_REQUIRED, sizeof(u32)},
    [KIND_LESS]            = {parse_less,            NULL,          VALUE_NEVER,    sizeof(i32)},
    [KIND_MORE]            = {parse_more,            NULL,          VALUE_NEVER,    sizeof(i32)},
};
// clang-format on

static const OptionRow *find_by_name(const char *name, size_t len)
{
    for (u32 i = 0; i < option_row_count; i++)
        if (strlen(option_rows[i].name) == len && strncmp(option_rows[i].name, name, len) == 0)
            return &option_rows[i];
    return NULL;
}

static const OptionRow *find_by_letter(char letter)
{
    for (u32 i = 0; i < option_row_count; i++)
        if (option_rows[i].letter == letter)
            return &option_rows[i];
    return NULL;
}

// `argument` starts with '-'. Internal options exist only between launcher and
// engine.
static const OptionRow *find_row(const Options *options, const char *argument)
{
    const OptionRow *row = NULL;

    if (argument[1] == '-')
        row = find_by_name(argument + 2, strcspn(argument + 2, "="));
    else if (argument[1] != '\0' && argument[2] == '\0')
        row = find_by_letter(argument[1]);
    if (row != NULL && row->group == GROUP_INTERNAL && options->muninn_exe == NULL &&
        row->field != offsetof(Options, muninn_exe))
        row = NULL;
    return row;
}

static bool parse_argument(const char *argument, Options *options)
{
    const OptionRow *row = find_row(options, argument);

    if (row == NULL)
        return fail_unknown_option(options, argument);

    const KindRow *kind = &kind_rows[row->kind];
    const char *value = argument[1] == '-' ? strchr(argument, '=') : NULL;
    if (value != NULL)
        value++;
    if (value == NULL && kind->form == VALUE_REQUIRED)
        return fail(options, "%s needs a value: --%s=%s", argument, row->name, row->arg);
    if (value != NULL && kind->form == VALUE_NEVER)
        return fail(options, "--%s takes no value", row->name);
    return kind->parse(options, row, value, (u8 *)options + row->field);
}

int options_parse(int argc, char **argv, Options *options)
{
    int i = 1;

    for (; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return i + 1;
        if (argv[i][0] != '-')
            break;
        if (!parse_argument(argv[i], options))
            return -EINVAL;
    }
    return i < argc ? i : argc;
}

// Cuts the first word off *text, in place, without its quotes. Returns NULL at
// the end of the text. A quote that is never closed reaches to the end.
static char *next_word(char **text)
{
    char *in = *text + strspn(*text, " \t\n");
    char *word = in, *out = in;
    char quote = 0;

    if (*in == '\0')
        return NULL;
    for (; *in != '\0' && (quote || strchr(" \t\n", *in) == NULL); in++) {
        if (*in == quote)
            quote = 0;
        else if (!quote && (*in == '\'' || *in == '"'))
            quote = *in;
        else if (*in == '\\' && quote != '\'' && in[1] != '\0')
            *out++ = *++in;
        else
            *out++ = *in;
    }
    *text = *in != '\0' ? in + 1 : in;
    *out = '\0';
    return word;
}

int options_parse_text(char *text, Options *options)
{
    for (char *word; (word = next_word(&text)) != NULL;) {
        if (word[0] != '-' || word[1] == '\0') {
            fail(options, "'%s' is not an option", word);
            return -EINVAL;
        }
        if (!parse_argument(word, options))
            return -EINVAL;
    }
    return 0;
}

static bool is_default(const OptionRow *row, const Options *options, const Options *defaults)
{
    return memcmp((const u8 *)options + row->field, (const u8 *)defaults + row->field,
                  kind_rows[row->kind].field_size) == 0;
}

// Where options_to_argv() writes.
typedef struct ArgvWriter {
    char *at;    // the next free byte of the text
    size_t room; // bytes left there
    char **argv;
    int count;
    int max;
} ArgvWriter;

static bool write_row(ArgvWriter *writer, const OptionRow *row, const Options *options)
{
    size_t prefix = (size_t)snprintf(writer->at, writer->room, "--%s=", row->name);

    if (prefix >= writer->room || writer->count >= writer->max)
        return false;
    const void *field = (const u8 *)options + row->field;
    size_t len = prefix + (size_t)kind_rows[row->kind].format(row, field, writer->at + prefix,
                                                              writer->room - prefix);
    if (len >= writer->room)
        return false;
    writer->argv[writer->count++] = writer->at;
    writer->at += len + 1;
    writer->room -= len + 1;
    return true;
}

int options_to_argv(const Options *options, char *buffer, size_t buffer_size, char **argv,
                    int argv_max)
{
    ArgvWriter writer = {.at = buffer, .room = buffer_size, .argv = argv, .max = argv_max};
    Options defaults;

    options_init(&defaults);
    // --muninn-exe has to come first: it makes the other internal options known.
    for (int pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < option_row_count; i++) {
            const OptionRow *row = &option_rows[i];
            bool is_first = row->field == offsetof(Options, muninn_exe);

            if (is_first != (pass == 0) || kind_rows[row->kind].format == NULL ||
                is_default(row, options, &defaults))
                continue;
            if (!write_row(&writer, row, options))
                return -ENOBUFS;
        }
    }
    return writer.count;
}

// ---------------------------------------------------------------- --trace-children-skip

// Matches all of `text`. When a star fails to match, only the last one is
// widened: an earlier star never has to give back what a later one can take.
static bool pattern_matches(const char *pattern, size_t pattern_len, const char *text)
{
    const char *end = pattern + pattern_len;
    const char *star = NULL, *star_text = NULL;

    while (*text != '\0') {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            star_text = text;
        } else if (pattern < end && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool options_child_is_skipped(const Options *options, const char *path)
{
    const char *pattern = options->trace_children_skip;

    while (pattern != NULL && *pattern != '\0') {
        size_t len = strcspn(pattern, ",");

        if (pattern_matches(pattern, len, path))
            return true;
        pattern += len + (pattern[len] == ',');
    }
    return false;
}

// ---------------------------------------------------------------- --log-file

// Appends to *at, which never passes `end`. False if there is no room.
static bool append(char **at, const char *end, const char *text, size_t len)
{
    if ((size_t)(end - *at) <= len)
        return false;
    memcpy(*at, text, len);
    *at += len;
    **at = '\0';
    return true;
}

// `text` stands behind "%q". Returns the value of the variable named in braces
// and, in ret_len, how much of the text that was; NULL if it makes no sense.
static const char *expand_variable(const char *text, size_t *ret_len)
{
    char name[256];
    const char *end = text[0] == '{' ? strchr(text, '}') : NULL;

    if (end == NULL || end == text + 1 || (size_t)(end - text) > sizeof(name))
        return NULL;
    size_t len = (size_t)(end - text - 1);
    memcpy(name, text + 1, len);
    name[len] = '\0';
    *ret_len = len + 2;
    return getenv(name);
}

int options_expand_path(const char *template, i32 pid, u32 sequence, char *buffer,
                        size_t buffer_size)
{
    char *at = buffer;
    const char *end = buffer + buffer_size;

    while (*template != '\0') {
        char number[16];
        const char *text = number;
        size_t taken = strcspn(template, "%");

        if (taken != 0) {
            if (!append(&at, end, template, taken))
                return -ENAMETOOLONG;
            template += taken;
            continue;
        }
        taken = 2;
        if (template[1] == 'p') {
            snprintf(number, sizeof(number), "%d", pid);
        } else if (template[1] == 'n') {
            snprintf(number, sizeof(number), "%u", sequence);
        } else if (template[1] == '%') {
            text = "%";
        } else if (template[1] == 'q') {
            text = expand_variable(template + 2, &taken);
            taken += 2;
        } else {
            text = NULL;
        }
        if (text == NULL)
            return -EINVAL;
        if (!append(&at, end, text, strlen(text)))
            return -ENAMETOOLONG;
        template += taken;
    }
    return at == buffer ? -EINVAL : 0;
}
