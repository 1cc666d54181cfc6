// SPDX-License-Identifier: MIT
//
// Renders the option table for people at a terminal. The prose that belongs to
// no option stands here; everything else is in options.def.

#include "launch/help.h"

#include <stdio.h>
#include <string.h>

#define TEXT_COLUMN 32
#define LINE_WIDTH 96

static const char usage[] = "usage: muninn [options] program [arguments...]\n"
                            "       muninn subcommand [arguments...]\n"
                            "Runs a Linux x86-64 program on a synthetic CPU and watches it with "
                            "a tool.\n";

static const char help_end[] =
    "\nOptions are also read from ~/.muninnrc, the environment variable MUNINN_OPTS and "
    "./.muninnrc,\nin this order; those of the command line come last and win.\n"
    "muninn --help=TOOL says more about a tool, --help-debug what else is understood.\n";

static const char dynamic_options[] =
    "Some options can be changed while the program runs:\n"
    "    by a command:  muninn ctl PID clo --leak-check=full\n"
    "    by itself:     VALGRIND_CLO_CHANGE(\"--leak-check=full\")\n"
    "What else can be asked of a program that runs:\n"
    "    muninn ctl PID help\n\n"
    "options that can be changed:\n";

// Prints words from column `at` on, breaking lines and indenting to TEXT_COLUMN.
static void print_wrapped(const char *text, int at)
{
    if (at >= TEXT_COLUMN) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", TEXT_COLUMN - at, "");
    at = TEXT_COLUMN;
    while (*text != '\0') {
        int len = (int)strcspn(text, " ");

        if (at + 1 + len > LINE_WIDTH && at > TEXT_COLUMN) {
            printf("\n%*s", TEXT_COLUMN, "");
            at = TEXT_COLUMN;
        }
        at += printf("%s%.*s", at > TEXT_COLUMN ? " " : "", len, text);
        text += len;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void help_format_usage(const OptionRow *row, char *out, size_t size)
{
    char letter[8] = "";
    bool optional = row->kind == OPTION_OPTIONAL_STRING;

    if (row->letter != 0)
        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    snprintf(out, size, "%s--%s%s%s%s", letter, row->name,
             row->arg[0] == '\0' ? "" : (optional ? "[=" : "="), row->arg, optional ? "]" : "");
}

// A size as a person writes it.
static void format_size(u64 size, char *out, size_t out_size)
{
    if (size != 0 && size % MiB == 0)
        snprintf(out, out_size, "%llum", (unsigned long long)(size / MiB));
    else
        snprintf(out, out_size, "%llu", (unsigned long long)size);
}

static void format_percent(u32 ppm, char *out, size_t out_size)
{
    snprintf(out, out_size, "%u.%u", ppm / 10000, ppm / 1000 % 10);
}

void help_format_default(const OptionRow *row, char *out, size_t size)
{
    const void *field = (const u8 *)&option_defaults + row->field;
    char value[128] = "";

    switch (row->kind) {
    case OPTION_INT:
    case OPTION_FD:
    case OPTION_HEX:
        if (*(const i32 *)field >= 0)
            snprintf(value, sizeof(value), "%d", *(const i32 *)field);
        break;
    case OPTION_SIZE:
        format_size(*(const u64 *)field, value, sizeof(value));
        break;
    case OPTION_PERCENT:
        format_percent(*(const u32 *)field, value, sizeof(value));
        break;
    case OPTION_TOOL:
    case OPTION_PATH_TEMPLATE:
        if (*(const char *const *)field != NULL)
            snprintf(value, sizeof(value), "%s", *(const char *const *)field);
        break;
    case OPTION_BOOL:
    case OPTION_CHOICE:
    case OPTION_SET:
        option_kinds[row->kind].format(row, field, value, sizeof(value));
        break;
    }
    snprintf(out, size, "%s", value);
}

static void print_option(const OptionRow *row)
{
    char left[HELP_TEXT_MAX], fallback[HELP_TEXT_MAX], text[1024];
    bool has_default;

    help_format_usage(row, left, sizeof(left));
    help_format_default(row, fallback, sizeof(fallback));
    has_default = fallback[0] != '\0';
    snprintf(text, sizeof(text), "%s%s%s%s", row->help, has_default ? " [" : "", fallback,
             has_default ? "]" : "");
    print_wrapped(text, printf("  %s", left));
    for (const OptionValue *v = row->values; v != NULL && v->name != NULL; v++) {
        if (v->help != NULL)
            print_wrapped(v->help, printf("      %s", v->name));
    }
}

static void print_group(u8 group)
{
    printf("\n%s:\n", option_group_title(group));
    for (u32 i = 0; i < option_row_count; i++)
        if (option_rows[i].group == group)
            print_option(&option_rows[i]);
}

static void print_subcommands(void)
{
    puts("\nSubcommands, in place of a program and without options before them:");
    for (const Subcommand *c = option_subcommands; c->name != NULL; c++)
        print_wrapped(c->help, printf("  %s %s", c->name, c->arguments));
}

static void print_changeable(void)
{
    fputs(dynamic_options, stdout);
    int at = printf("   ");
    for (u32 i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        int length = (int)strlen(row->name) + 3;

        if (!option_is_changeable(row))
            continue;
        if (at + length > LINE_WIDTH)
            at = printf("\n   ") - 1;
        at += printf(" --%s", row->name);
    }
    putchar('\n');
}

// The common options, and those of the tool.
static void print_all(const char *tool, bool is_debug)
{
    fputs(usage, stdout);
    for (u8 group = 0; group < GROUP_COUNT; group++) {
        const char *owner = option_group_tool(group);

        if (option_group_title(group) == NULL || (group >= GROUP_IGNORED && !is_debug))
            continue;
        if (owner == NULL || strcmp(owner, tool) == 0)
            print_group(group);
    }
    print_subcommands();
    fputs(help_end, stdout);
}

static bool print_tool(const char *name)
{
    const OptionValue *tool = option_tools;
    bool has_options = false;

    while (tool->name != NULL && strcmp(tool->name, name) != 0)
        tool++;
    if (tool->name == NULL || tool->help == NULL)
        return false;
    printf("usage: muninn --tool=%s [options] program [arguments...]\n%s\n", tool->name,
           tool->help);
    for (u8 group = 0; group < GROUP_COUNT; group++) {
        const char *owner = option_group_tool(group);

        if (owner != NULL && strcmp(owner, name) == 0) {
            print_group(group);
            has_options = true;
        }
    }
    printf("\n%smuninn --help lists the common %s.\n",
           has_options ? "" : "This tool has no options of its own; ",
           has_options ? "options" : "ones");
    return true;
}

bool help_print(const char *topic, const char *tool)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } files[] = {
        {"man", manual_print_roff},      {"markdown", manual_print_markdown},
        {"bash", completion_print_bash}, {"zsh", completion_print_zsh},
        {"fish", completion_print_fish},
    };

    if (strcmp(topic, "") == 0 || strcmp(topic, "debug") == 0) {
        print_all(tool, topic[0] != '\0');
        return true;
    }
    if (strcmp(topic, "dyn") == 0) {
        print_changeable();
        return true;
    }
    for (u32 i = 0; i < ARRAY_LEN(files); i++) {
        if (strcmp(topic, files[i].name) == 0) {
            files[i].print();
            return true;
        }
    }
    return print_tool(topic);
}
