// SPDX-License-Identifier: MIT
//
// The parser that options.def describes, and its inverse. What a value may be
// is in option_values.c.

#include "launch/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "launch/option_table.h"

void options_init(Options *options)
{
    *options = option_defaults;
}

static bool fail_unknown_option(Options *options, const char *argument)
{
    const char *name = argument + strspn(argument, "-");
    const char *nearest = suggest_option(name, strcspn(name, "="));

    if (nearest != NULL)
        return option_fail(options, "unknown option %s; did you mean --%s?", argument, nearest);
    return option_fail(options, "unknown option %s; muninn --help lists them", argument);
}

// ---------------------------------------------------------------- one option

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

bool options_is_internal(const char *word)
{
    if (word[0] != '-' || word[1] != '-')
        return false;
    const OptionRow *row = find_by_name(word + 2, strcspn(word + 2, "="));
    return row != NULL && row->group == GROUP_INTERNAL;
}

bool options_have(const char *name)
{
    return find_by_name(name, strlen(name)) != NULL;
}

// Of several places for the same output the last one holds. What the launcher
// has settled stays: the engine hands a descriptor on beside the file's name.
static void settle_destination(Options *options, const OptionRow *row)
{
    static const u16 places[][3] = {
        {offsetof(Options, log_fd), offsetof(Options, log_file), offsetof(Options, log_socket)},
        {offsetof(Options, xml_fd), offsetof(Options, xml_file), offsetof(Options, xml_socket)},
    };

    for (u32 i = 0; i < ARRAY_LEN(places) && options->muninn_exe == NULL; i++) {
        if (row->field != places[i][0] && row->field != places[i][1] && row->field != places[i][2])
            continue;
        for (u32 j = 0; j < 3; j++)
            if (places[i][j] != row->field)
                memcpy((u8 *)options + places[i][j], (const u8 *)&option_defaults + places[i][j],
                       j == 0 ? sizeof(i32) : sizeof(char *));
    }
}

// `value` is NULL if the argument has none.
static bool parse_value(Options *options, const OptionRow *row, const char *argument,
                        const char *value)
{
    const OptionKindRow *kind = &option_kinds[row->kind];
    const char *tool = option_group_tool(row->group);

    if (tool != NULL && strcmp(tool, options->tool) != 0)
        return option_fail(options, "--%s is an option of --tool=%s, and this is --tool=%s",
                           row->name, tool, options->tool);
    if (value == NULL && kind->form == VALUE_REQUIRED)
        return option_fail(options, "%s needs a value: --%s=%s", argument, row->name, row->arg);
    if (value != NULL && kind->form == VALUE_NEVER)
        return option_fail(options, "--%s takes no value", row->name);
    if (!kind->parse(options, row, value, (u8 *)options + row->field))
        return false;
    if (kind->field_size != 0)
        settle_destination(options, row);
    size_t index = (size_t)(row - option_rows);
    options->given[index / 32] |= 1u << index % 32;
    return true;
}

static const char *value_behind(const char *name)
{
    const char *equals = strchr(name, '=');

    return equals != NULL ? equals + 1 : NULL;
}

// The length of the tool's name in "--memcheck:leak-check=yes"; 0 if the
// argument has no such form.
static size_t tool_prefix_len(const char *argument)
{
    if (strncmp(argument, "--", 2) != 0)
        return 0;
    size_t len = strcspn(argument + 2, ":=");
    return argument[2 + len] == ':' ? len : 0;
}

bool options_tool_is_script(const Options *options)
{
    size_t length = strlen(options->tool), suffix = strlen(OPTIONS_NO_FILE);

    return length >= suffix && strcmp(options->tool + length - suffix, OPTIONS_NO_FILE) == 0;
}

bool options_tool_is_file(const Options *options)
{
    return strchr(options->tool, '/') != NULL || options_tool_is_script(options);
}

// What nobody here knows may be an option of a tool that is loaded: that tool judges it.
static bool keep_for_tool(Options *options, const char *argument)
{
    OptionList *list = &options->tool_options;

    if (list->count == OPTIONS_LIST_MAX)
        return option_fail(options, "more than %d options for the tool", OPTIONS_LIST_MAX);
    list->items[list->count++] = argument;
    return true;
}

static bool parse_argument(const char *argument, Options *options)
{
    size_t prefix = tool_prefix_len(argument);
    const OptionRow *row;

    if (prefix != 0) {
        const char *name = argument + 2 + prefix + 1;

        // What is said to another tool is nothing to this one.
        if (strlen(options->tool) != prefix || strncmp(argument + 2, options->tool, prefix) != 0)
            return true;
        row = find_by_name(name, strcspn(name, "="));
        if (row == NULL || row->group == GROUP_INTERNAL)
            return fail_unknown_option(options, name);
        return parse_value(options, row, argument, value_behind(name));
    }
    row = find_row(options, argument);
    if (row == NULL && options_tool_is_file(options))
        return keep_for_tool(options, argument);
    if (row == NULL)
        return fail_unknown_option(options, argument);
    if (argument[1] == '-')
        return parse_value(options, row, argument, value_behind(argument));
    // The letter of an option that has a value means yes.
    bool needs_value = option_kinds[row->kind].form == VALUE_REQUIRED;
    return parse_value(options, row, argument, needs_value ? "yes" : NULL);
}

// ---------------------------------------------------------------- command lines

// The only option whose value may be the next word.
static bool is_eval(const char *word)
{
    return strcmp(word, "-e") == 0;
}

int options_next(int argc, char **argv, int index)
{
    return is_eval(argv[index]) && index + 1 < argc ? index + 2 : index + 1;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && strcmp(word, "--") != 0;
}

// The tool decides what other options mean, so it is known before they are
// parsed. Returns the value of the last --tool, valid or not, or NULL.
static const char *find_tool(int argc, char **argv)
{
    const char *tool = NULL;
    bool has_code = false;

    for (int i = 1; i < argc && is_option(argv[i]); i = options_next(argc, argv, i)) {
        if (strncmp(argv[i], "--tool=", strlen("--tool=")) == 0)
            tool = argv[i] + strlen("--tool=");
        has_code |= is_eval(argv[i]) || strncmp(argv[i], "--eval=", strlen("--eval=")) == 0;
    }
    if (tool == NULL && has_code)
        tool = OPTIONS_NO_FILE;
    const char *file = tool != NULL ? option_tool_file(tool) : NULL;
    return file != NULL ? file : tool;
}

// Of "-e CODE", which are two words.
static bool parse_eval(int argc, char **argv, int index, Options *options)
{
    if (index + 1 == argc)
        return option_fail(options, "-e needs a script: -e CODE");
    return parse_value(options, find_by_letter('e'), "-e", argv[index + 1]);
}

int options_parse(int argc, char **argv, Options *options)
{
    const char *tool = find_tool(argc, argv);
    int i = 1;

    if (tool != NULL)
        options->tool = tool;
    tool = options->tool;
    for (; i < argc && is_option(argv[i]); i = options_next(argc, argv, i)) {
        if (!(is_eval(argv[i]) ? parse_eval(argc, argv, i, options)
                               : parse_argument(argv[i], options))) {
            options->error_index = i;
            return -EINVAL;
        }
        options->tool = tool;
    }
    // Every --tool has been found valid: keep the table's own spelling.
    for (const OptionValue *v = option_tools; v->name != NULL; v++)
        if (strcmp(v->name, tool) == 0)
            options->tool = v->name;
    if (i < argc && argv[i][0] == '-')
        i++;
    return i < argc ? i : argc;
}

// Cuts the first word off *text, in place, without its quotes. Returns NULL at
// the end of the text.
static char *next_word(char **text, bool *ret_is_open)
{
    static const char blanks[] = " \t\r\n";
    char *in = *text + strspn(*text, blanks);

    while (*in == '#') {
        in += strcspn(in, "\n");
        in += strspn(in, blanks);
    }
    char *word = in, *out = in;
    char quote = 0;

    if (*in == '\0')
        return NULL;
    for (; *in != '\0' && (quote || strchr(blanks, *in) == NULL); in++) {
        if (*in == quote)
            quote = 0;
        else if (!quote && (*in == '\'' || *in == '"'))
            quote = *in;
        else if (*in == '\\' && quote != '\'' && in[1] != '\0')
            *out++ = *++in;
        else
            *out++ = *in;
    }
    *ret_is_open = quote != 0;
    *text = *in != '\0' ? in + 1 : in;
    *out = '\0';
    return word;
}

u32 options_split_text(char *text, char **words, u32 words_max, bool *ret_is_open)
{
    u32 count = 0;

    *ret_is_open = false;
    for (char *word; (word = next_word(&text, ret_is_open)) != NULL; count++)
        if (count < words_max)
            words[count] = word;
    return count;
}

// ---------------------------------------------------------------- all together

static bool was_given(const Options *options, size_t field)
{
    for (u32 i = 0; i < option_row_count; i++)
        if (option_rows[i].field == field && (options->given[i / 32] & (1u << i % 32)))
            return true;
    return false;
}

// Of --alloc-fns: a name, and what it stands for, or a prefix.
static bool is_synonym(const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length), *star = memchr(word, '*', length);
    if (equals)
        return equals != word && equals + 1 < word + length && !star;
    return star && star != word && star + 1 == word + length;
}

static bool names_are_told(const OptionList *list)
{
    size_t count = 0, bytes = 0;
    for (u32 i = 0; i < list->count; i++) {
        const char *word = list->items[i];
        for (;; word++) {
            size_t length = strcspn(word, ",");
            bytes += length + 1;
            if (!is_synonym(word, length) || ++count > ALLOC_FNS_MAX || bytes > ALLOC_FNS_BYTES_MAX)
                return false;
            word += length;
            if (!*word)
                break;
        }
    }
    return true;
}

static bool triggers_are_known(const Options *options)
{
    OptionTrigger trigger;

    for (u32 i = 0; i < options->snapshot_when.count; i++) {
        if (!options_trigger(options->snapshot_when.items[i], &trigger))
            return false;
    }
    return true;
}

static bool text_symbols_are_patterns(const Options *options)
{
    OptionTextSymbol symbol;

    for (u32 i = 0; i < options->require_text_symbol.count; i++) {
        if (!options_text_symbol(options->require_text_symbol.items[i], &symbol))
            return false;
    }
    return true;
}

// What would be a number, or a file, of another kind.
static bool numbers_fit(Options *options)
{
    const char *dot = strrchr(options->xtree_memory_file, '.');
    if (options->xtree_memory != XTREE_MEMORY_NONE && dot && strcmp(dot, ".ms") == 0)
        return option_fail(options, "--xtree-memory-file=%s: the file is in callgrind's format; "
                                    "massif's is what --tool=massif writes",
                           options->xtree_memory_file);
    if (options->alignment & (options->alignment - 1))
        return option_fail(options, "--alignment=%d: that is no power of two", options->alignment);
    if (options->aspace_minaddr & 0xfff)
        return option_fail(options, "--aspace-minaddr=%x: a page begins at a multiple of 1000",
                           (u32)options->aspace_minaddr);
    return true;
}

int options_settle(Options *options)
{
    if (options->xtree_leak) {
        options->leak_check = LEAK_CHECK_FULL;
        options->show_leak_kinds = LEAK_ALL;
    }
    if (options->verbosity >= 2 && !was_given(options, offsetof(Options, show_error_list)))
        options->show_error_list = ERROR_LIST_YES;
    if (!options->undef_value_errors && !was_given(options, offsetof(Options, track_origins)))
        options->track_origins = false;

    bool has_xml_place =
        options->xml_fd >= 0 || options->xml_file != NULL || options->xml_socket != NULL;
    if (options->xml && !has_xml_place)
        option_fail(options, "--xml=yes needs --xml-file, --xml-fd or --xml-socket, to say where");
    else if (options->exit_on_first_error && options->error_exitcode == 0)
        option_fail(options, "--exit-on-first-error=yes needs --error-exitcode, to exit with");
    else if (options->track_origins && !options->undef_value_errors)
        option_fail(options, "--track-origins=yes has no effect with --undef-value-errors=no");
    else if (options->pages_as_heap && options->stacks)
        option_fail(options,
                    "--pages-as-heap=yes measures stacks, too: --stacks=yes cannot be added");
    else if (options->recording && strcmp(options->massif_out_file, options->recording_file) == 0)
        option_fail(options, "--massif-out-file and --recording-file are two files: %s is one",
                    options->recording_file);
    else if (!names_are_told(&options->alloc_fns))
        option_fail(options, "--alloc-fns wants NAME=FUNCTION or PREFIX*, by commas, such as "
                             "my_alloc=malloc,my_free=free or je_*, and at most %d of them",
                    ALLOC_FNS_MAX);
    else if (!triggers_are_known(options))
        option_fail(options, "--snapshot-when wants heap, mapped, stacks or rss, then > and a "
                             "size, such as heap>1G");
    else if (!text_symbols_are_patterns(options))
        option_fail(options, "--require-text-symbol wants a separator, a pattern of a soname, the "
                             "separator, and a pattern of a function, such as :libc.so*:malloc");
    else if (options->eval.count && !options_tool_is_script(options))
        option_fail(options, "-e CODE is a tool of its own, or part of --tool=FILE.lua; this is "
                             "--tool=%s", options->tool);
    else if (numbers_fit(options))
        return 0;
    return -EINVAL;
}

// ---------------------------------------------------------------- the engine's command line

static bool is_default(const OptionRow *row, const Options *options)
{
    return memcmp((const u8 *)options + row->field, (const u8 *)&option_defaults + row->field,
                  option_kinds[row->kind].field_size) == 0;
}

// Where options_to_argv() writes.
typedef struct ArgvWriter {
    char *at;    // the next free byte of the text
    size_t room; // bytes left there
    char **argv;
    int count;
    int max;
} ArgvWriter;

static bool write_value(ArgvWriter *writer, const OptionRow *row, const void *field)
{
    size_t prefix = (size_t)snprintf(writer->at, writer->room, "--%s=", row->name);

    if (prefix >= writer->room || writer->count >= writer->max)
        return false;
    size_t len = prefix + (size_t)option_kinds[row->kind].format(row, field, writer->at + prefix,
                                                                 writer->room - prefix);
    if (len >= writer->room)
        return false;
    writer->argv[writer->count++] = writer->at;
    writer->at += len + 1;
    writer->room -= len + 1;
    return true;
}

static bool write_row(ArgvWriter *writer, const OptionRow *row, const Options *options)
{
    const void *field = (const u8 *)options + row->field;

    if (!option_kinds[row->kind].is_list)
        return write_value(writer, row, field);
    const OptionList *list = field;
    for (u32 i = 0; i < list->count; i++)
        if (!write_value(writer, row, &list->items[i]))
            return false;
    return true;
}

int options_to_argv(const Options *options, char *buffer, size_t buffer_size, char **argv,
                    int argv_max)
{
    ArgvWriter writer = {.at = buffer, .room = buffer_size, .argv = argv, .max = argv_max};

    // --muninn-exe has to come first: it makes the other internal options known.
    for (int pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < option_row_count; i++) {
            const OptionRow *row = &option_rows[i];
            bool is_first = row->field == offsetof(Options, muninn_exe);

            if (is_first != (pass == 0) || option_kinds[row->kind].format == NULL ||
                is_default(row, options))
                continue;
            if (!write_row(&writer, row, options))
                return -ENOBUFS;
        }
    }
    return writer.count;
}

size_t options_text_size(const Options *options)
{
    size_t size = 0;

    for (u32 i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        const OptionKindRow *kind = &option_kinds[row->kind];
        const void *field = (const u8 *)options + row->field;
        const OptionList *list = field;
        u32 count = kind->is_list ? list->count : 1;

        if (kind->format == NULL || is_default(row, options))
            continue;
        for (u32 j = 0; j < count; j++)
            size += strlen("--=") + strlen(row->name) + 1 +
                    (size_t)kind->format(row, kind->is_list ? &list->items[j] : field, NULL, 0);
    }
    return size + 1;
}
