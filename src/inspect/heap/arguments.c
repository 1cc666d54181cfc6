// SPDX-License-Identifier: MIT
//
// The options of `muninn heap`, as a table: what reads them and what --help prints.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/heap/command.h"

typedef enum ValueKind {
    VALUE_FLAG,     // bool
    VALUE_TEXT,     // const char *
    VALUE_SIZE,     // u64
    VALUE_DURATION, // u64, ns
    VALUE_COUNT,    // u32
    VALUE_PERCENT,  // double
    VALUE_CHOICE,   // u32: the index of the word in `choices`
    VALUE_SPACES,   // u32: bits
} ValueKind;

typedef struct OptionRow {
    const char *name;
    char letter;
    u32 sets; // OptionSet
    ValueKind kind;
    size_t offset; // in Arguments
    const char *value;   // as --help shows it
    const char *choices; // words in order, between bars
    const char *help;
} OptionRow;

#define AT(field) offsetof(Arguments, field)
// clang-format off
static const OptionRow options[] = {
    {"from", 0, FOR_RANGE, VALUE_TEXT, AT(from), "TIME", NULL,
        "From this time on: 1.5s, 200ms, 50%, start, peak."},
    {"to", 0, FOR_RANGE, VALUE_TEXT, AT(to), "TIME", NULL,
        "Up to this time."},
    {"at", 0, FOR_RANGE, VALUE_TEXT, AT(at), "TIME", NULL,
        "What is live at this moment: a time, peak, or end."},
    {"function", 0, FOR_FILTER, VALUE_TEXT, AT(selection.function), "PATTERN", NULL,
        "Stacks with such a function: a shell pattern, or /regex/; !PATTERN: without."},
    {"file", 0, FOR_FILTER, VALUE_TEXT, AT(selection.file), "PATTERN", NULL,
        "Stacks with such a source file."},
    {"object", 0, FOR_FILTER, VALUE_TEXT, AT(selection.object), "PATTERN", NULL,
        "Stacks through such an executable or library."},
    {"thread", 0, FOR_FILTER, VALUE_COUNT, AT(selection.thread), "NUMBER", NULL,
        "What this thread allocated."},
    {"min-size", 0, FOR_FILTER, VALUE_SIZE, AT(selection.min_size), "SIZE", NULL,
        "Blocks of at least so many bytes: 4k, 1M."},
    {"max-size", 0, FOR_FILTER, VALUE_SIZE, AT(selection.max_size), "SIZE", NULL,
        "Blocks of at most so many."},
    {"min-lifetime", 0, FOR_FILTER, VALUE_DURATION, AT(selection.min_lifetime_ns), "TIME", NULL,
        "Blocks that lived at least so long."},
    {"max-lifetime", 0, FOR_FILTER, VALUE_DURATION, AT(selection.max_lifetime_ns), "TIME", NULL,
        "Blocks that lived at most so long."},
    {"space", 0, FOR_FILTER, VALUE_SPACES, AT(selection.spaces), "heap,mapped,stack,all", NULL,
        "Which kind of memory; without it the heap."},
    {"metric", 0, FOR_METRIC, VALUE_CHOICE, AT(metric), "METRIC",
        "live|peak|allocated|allocations|temporary|leaked|growth",
        "What is summed up; without it peak, and live if a time is given."},
    {"by", 0, FOR_GROUPS, VALUE_CHOICE, AT(by), "GROUP",
        "stack|function|line|file|object|thread",
        "What makes a row; without it stack."},
    {"depth", 0, FOR_GROUPS | FOR_TREE, VALUE_COUNT, AT(depth), "N", NULL,
        "How many frames of a stack, or levels of a tree, are shown."},
    {"limit", 'n', FOR_ROWS, VALUE_COUNT, AT(limit), "N", NULL,
        "So many rows; 0: all. Without it 20, and all with --json, --csv and of a query."},
    {"threshold", 0, FOR_TREE, VALUE_PERCENT, AT(threshold), "PERCENT", NULL,
        "What is below is summed up in one line; without it 1, and 0 with --json and --csv."},
    {"top-down", 0, FOR_TREE, VALUE_FLAG, AT(top_down), NULL, NULL,
        "From main inwards."},
    {"bottom-up", 0, FOR_TREE, VALUE_FLAG, AT(bottom_up), NULL, NULL,
        "From the allocation outwards."},
    {"by-function", 0, FOR_TREE, VALUE_FLAG, AT(by_function), NULL, NULL,
        "One node for a function, whatever the line."},
    {"fold-libraries", 0, FOR_TREE, VALUE_FLAG, AT(fold_libraries), NULL, NULL,
        "Frames of one object in a row become one."},
    {"only", 0, FOR_TREE, VALUE_TEXT, AT(only_code), "PATTERN", NULL,
        "Only frames of such objects or files."},
    {"keep-recursion", 0, FOR_TREE, VALUE_FLAG, AT(keep_recursion), NULL, NULL,
        "Show every level of a recursion."},
    {"show-allocators", 0, FOR_TREE, VALUE_FLAG, AT(show_allocators), NULL, NULL,
        "Show malloc, operator new and the like too."},
    {"all", 0, FOR_LEAKS, VALUE_FLAG, AT(show_all), NULL, NULL,
        "Also what is live at the end and does not grow."},
    {"tables", 0, FOR_SQL, VALUE_FLAG, AT(show_tables), NULL, NULL,
        "List the tables and their columns instead."},
    {"time-limit", 0, FOR_SQL, VALUE_DURATION, AT(time_limit_ns), "TIME", NULL,
        "Give up a query after this time."},
    {"format", 0, FOR_FORMAT, VALUE_TEXT, AT(format), "FORMAT", NULL,
        "pprof, folded, speedscope, svg, heaptrack, dhat or massif."},
    {"output", 'o', FOR_OUTPUT, VALUE_TEXT, AT(output), "FILE", NULL,
        "Where it is written; - is standard output."},
    {"json", 0, FOR_FORM, VALUE_FLAG, 0, NULL, NULL,
        "The answer as JSON: bytes, nanoseconds, percent as plain numbers."},
    {"csv", 0, FOR_FORM, VALUE_FLAG, 0, NULL, NULL,
        "The answer's table as CSV."},
    {"help", 'h', ~0u, VALUE_FLAG, AT(help), NULL, NULL,
        "This text."},
};
// clang-format on

// ------------------------------------------------------------------------ values

bool parse_size(const char *text, u64 *ret_bytes)
{
    static const char units[] = "kmgtKMGT";
    char *end;
    double value = strtod(text, &end);

    if (end == text || !isfinite(value) || value < 0)
        return false;
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        value *= (double)(1ull << (10 * ((unit - units) % 4 + 1)));
        end++;
        if (*end == 'i')
            end++;
    }
    if (*end == 'b' || *end == 'B')
        end++;
    if (*end || value >= 1.8e19)
        return false;
    *ret_bytes = (u64)value;
    return true;
}

bool parse_duration(const char *text, u64 *ret_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1},    {"us", 1e3},    {"ms", 1e6},   {"s", 1e9},
                 {"", 1e9},    {"min", 60e9},  {"m", 60e9},   {"h", 3600e9}};
    char *end;
    double value = strtod(text, &end);

    if (end == text || !isfinite(value) || value < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(end, units[i].name) == 0 && value * units[i].ns < 1.8e19) {
            *ret_ns = (u64)(value * units[i].ns);
            return true;
        }
    }
    return false;
}

static bool parse_count(const char *text, u32 *ret_count)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end || *text == '-' || value > UINT32_MAX)
        return false;
    *ret_count = (u32)value;
    return true;
}

// The index of the word among "a|b|c".
static bool parse_choice(const char *choices, const char *word, u32 *ret_index)
{
    size_t length = strlen(word);

    for (u32 index = 0; choices && *choices; index++) {
        size_t span = strcspn(choices, "|");
        if (span == length && memcmp(choices, word, length) == 0) {
            *ret_index = index;
            return true;
        }
        choices += span + (choices[span] == '|');
    }
    return false;
}

static bool parse_spaces(const char *text, u32 *ret_spaces)
{
    u32 spaces = 0;

    while (*text) {
        size_t span = strcspn(text, ",");
        char word[16];
        u32 index;
        if (span == 0 || span >= sizeof(word))
            return false;
        memcpy(word, text, span);
        word[span] = 0;
        if (!parse_choice("heap|mapped|stack|all", word, &index))
            return false;
        spaces |= index == SPACE_COUNT ? (1u << SPACE_COUNT) - 1 : 1u << index;
        text += span + (text[span] == ',');
    }
    *ret_spaces = spaces;
    return spaces != 0;
}

// 0 stands for "not given" in a selection, and would select everything.
static bool selects_nothing(const OptionRow *row, const char *text)
{
    const char *name = text[0] == '!' ? text + 1 : text;

    if (!(row->sets & FOR_FILTER) || strncmp(row->name, "min-", 4) == 0)
        return false;
    return row->kind == VALUE_TEXT ? *name == '\0' : strtod(text, NULL) == 0;
}

static bool set_value(Arguments *arguments, const OptionRow *row, char *text)
{
    void *field = (char *)arguments + row->offset;

    switch (row->kind) {
    case VALUE_FLAG: return false;
    case VALUE_TEXT: *(const char **)field = text; return true;
    case VALUE_SIZE: return parse_size(text, field);
    case VALUE_DURATION: return parse_duration(text, field);
    case VALUE_COUNT: return parse_count(text, field);
    case VALUE_CHOICE: return parse_choice(row->choices, text, field);
    case VALUE_SPACES: return parse_spaces(text, field);
    case VALUE_PERCENT: {
        char *end;
        double value = strtod(text, &end);
        if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0 && value <= 100))
            return false;
        *(double *)field = value;
        return true;
    }
    }
    return false;
}

// ------------------------------------------------------------------------- words

static const OptionRow *find_option(const Arguments *arguments, const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        bool is_name = strlen(options[i].name) == length &&
                       memcmp(options[i].name, name, length) == 0;
        if (is_name && options[i].sets & arguments->command->sets)
            return &options[i];
    }
    return NULL;
}

static const OptionRow *find_letter(const Arguments *arguments, char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (options[i].letter == letter && options[i].sets & arguments->command->sets)
            return &options[i];
    }
    return NULL;
}

static bool set_form(Arguments *arguments, PrintForm form)
{
    if (arguments->form != PRINT_TEXT && arguments->form != form)
        return heap_error("--json or --csv, not both"), false;
    arguments->form = form;
    return true;
}

static bool set_flag(Arguments *arguments, const OptionRow *row)
{
    if (strcmp(row->name, "json") == 0)
        return set_form(arguments, PRINT_JSON);
    if (strcmp(row->name, "csv") == 0)
        return set_form(arguments, PRINT_CSV);
    *(bool *)((char *)arguments + row->offset) = true;
    return true;
}

// Takes the option at *at, and the word behind it if that is its value.
static bool take_option(Arguments *arguments, int argc, char **argv, int *at)
{
    char *word = argv[*at];
    bool is_long = word[1] == '-';
    char *value = is_long ? strchr(word, '=') : word[2] ? word + 2 : NULL;
    size_t length = is_long ? strcspn(word, "=") - 2 : 1;
    const OptionRow *row =
        is_long ? find_option(arguments, word + 2, length) : find_letter(arguments, word[1]);

    if (!row) {
        heap_error("%s has no option %.*s; muninn heap %s --help lists them",
                   arguments->command->name, (int)(is_long ? length + 2 : 2), word,
                   arguments->command->name);
        return false;
    }
    if (row->kind == VALUE_FLAG) {
        if (value)
            return heap_error("--%s takes no value", row->name), false;
        return set_flag(arguments, row);
    }
    if (is_long && value)
        value++;
    if (!value && *at + 1 < argc)
        value = argv[++*at];
    if (!value)
        return heap_error("--%s needs a value: %s", row->name, row->value), false;
    if (row->kind != VALUE_SPACES && selects_nothing(row, value)) {
        heap_error("--%s=%s would select nothing%s", row->name, value,
                   strcmp(row->name, "max-size") == 0
                       ? "; blocks of no bytes are found by query, WHERE size = 0"
                       : "");
        return false;
    }
    if (!set_value(arguments, row, value))
        return heap_error("--%s=%s: that is not a %s%s%s", row->name, value, row->value,
                          row->choices ? ": " : "", row->choices ? row->choices : ""), false;
    if (row->offset == AT(limit))
        arguments->has_limit = true;
    return true;
}

static bool check(Arguments *arguments)
{
    enum { LIMIT_FOR_PEOPLE = 20 };
    const HeapCommand *command = arguments->command;
    bool needs_all = !(command->sets & FOR_SQL && arguments->show_tables);

    if (arguments->help)
        return true;
    if (arguments->word_count < (needs_all ? command->word_count : 1))
        return heap_error("%s needs %s; muninn heap %s --help tells more", command->name,
                          command->words, command->name), false;
    if (arguments->at && (arguments->from || arguments->to))
        return heap_error("--at names a moment, --from and --to a range: give one of both"), false;
    if (!arguments->has_limit)
        arguments->limit = arguments->form == PRINT_TEXT ? LIMIT_FOR_PEOPLE : LIMIT_NONE;
    else if (arguments->limit == 0)
        arguments->limit = LIMIT_NONE;
    return true;
}

// SQL may begin with one.
static bool is_comment(const char *word)
{
    return word[0] == '-' && word[1] == '-' && (word[2] == ' ' || word[2] == '\n');
}

bool arguments_parse(Arguments *arguments, const HeapCommand *command, int argc, char **argv)
{
    bool only_words = false;

    *arguments = (Arguments){.command = command, .metric = METRIC_UNSET, .threshold = -1,
                             .depth = UINT32_MAX};
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] && !is_comment(argv[i])) {
            if (!take_option(arguments, argc, argv, &i))
                return false;
        } else if (arguments->word_count == command->word_count) {
            heap_error("%s takes %s: what is %s?", command->name, command->words, argv[i]);
            return false;
        } else {
            arguments->words[arguments->word_count++] = argv[i];
        }
    }
    return check(arguments);
}

void arguments_help(const HeapCommand *command, FILE *out)
{
    fprintf(out, "usage: muninn heap %s %s [OPTION...]\n\n%s\n\n", command->name, command->words,
            command->help);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        char name[64];
        if (!(options[i].sets & command->sets))
            continue;
        snprintf(name, sizeof(name), "%s%c%s--%s%s%s", options[i].letter ? "-" : "",
                 options[i].letter ? options[i].letter : ' ', options[i].letter ? ", " : "   ",
                 options[i].name, options[i].value ? "=" : "",
                 options[i].value ? options[i].value : "");
        fprintf(out, "  %-34s %s\n", name, options[i].help);
        if (options[i].choices)
            fprintf(out, "  %-34s %s\n", "", options[i].choices);
    }
}
