// SPDX-License-Identifier: MIT
//
// Renders the option table for people: on a terminal and as a manual page. The
// prose that belongs to no option stands here; everything else is in options.def.

#include "launch/help.h"

#include <stdio.h>
#include <string.h>

#include "launch/option_table.h"
#include "launch/options.h"

#define TEXT_COLUMN 32
#define LINE_WIDTH 96

static const char usage[] = "usage: muninn [options] program [arguments...]\n";

static const char help_end[] =
    "\nOptions in the environment variable MUNINN_OPTS come before those of the command line.\n"
    "muninn --help=TOOL says more about a tool.\n";

// ---------------------------------------------------------------- terminal

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

// "-h, --help[=TOOL]", as the user may type it.
static void format_usage(const OptionRow *row, char *out, size_t size)
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

// The default, for a person; "" if there is none worth showing.
static void format_default(const OptionRow *row, char *out, size_t size)
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
    if (value[0] != '\0')
        snprintf(out, size, " [%s]", value);
    else
        out[0] = '\0';
}

static void print_option(const OptionRow *row)
{
    char left[128], fallback[160], text[640];
    const OptionValue *values = row->values;

    format_usage(row, left, sizeof(left));
    format_default(row, fallback, sizeof(fallback));
    snprintf(text, sizeof(text), "%s%s", row->help, fallback);
    print_wrapped(text, printf("  %s", left));
    for (; values != NULL && values->name != NULL; values++) {
        if (values->help != NULL)
            print_wrapped(values->help, printf("      %s", values->name));
    }
}

static void print_group(const char *title, OptionGroup group)
{
    printf("\n%s:\n", title);
    for (u32 i = 0; i < option_row_count; i++)
        if (option_rows[i].group == group)
            print_option(&option_rows[i]);
}

static void print_all(void)
{
    fputs(usage, stdout);
    puts("Runs a Linux x86-64 program on a synthetic CPU and watches it with a tool.");
    print_group("Options", GROUP_CORE);
    print_group("Looking at the engine", GROUP_DEBUG);
    fputs(help_end, stdout);
}

static bool print_tool(const char *name)
{
    for (const OptionValue *tool = option_tools; tool->name != NULL; tool++) {
        if (strcmp(tool->name, name) == 0 && tool->help != NULL) {
            printf("usage: muninn --tool=%s [options] program [arguments...]\n%s\n"
                   "\nThis tool has no options of its own; muninn --help lists the common ones.\n",
                   tool->name, tool->help);
            return true;
        }
    }
    return false;
}

// ---------------------------------------------------------------- manual page

// roff takes '-' for a hyphen, '\' for an escape and a leading '.' for a request.
static void roff_text(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '-')
            fputs("\\-", stdout);
        else if (*c == '\\')
            fputs("\\e", stdout);
        else if (*c == '.' && c == text)
            fputs("\\&.", stdout);
        else
            putchar(*c);
    }
}

static void roff_entry(const char *term, const char *text, const char *fallback)
{
    fputs(".TP\n.B ", stdout);
    roff_text(term);
    putchar('\n');
    roff_text(text);
    roff_text(fallback);
    putchar('\n');
}

static void roff_values(const OptionValue *values)
{
    puts(".RS");
    for (; values->name != NULL; values++) {
        if (values->help != NULL)
            roff_entry(values->name, values->help, "");
    }
    puts(".RE");
}

static void roff_group(const char *title, OptionGroup group)
{
    printf(".SS %s\n", title);
    for (u32 i = 0; i < option_row_count; i++) {
        char term[128], fallback[160];
        const OptionRow *row = &option_rows[i];

        if (row->group != group)
            continue;
        format_usage(row, term, sizeof(term));
        format_default(row, fallback, sizeof(fallback));
        roff_entry(term, row->help, fallback);
        if (row->values != NULL)
            roff_values(row->values);
    }
}

static void print_man(void)
{
    fputs(".\\\" SPDX-License-Identifier: MIT\n"
          ".\\\" Made from src/launch/options.def by `muninn --help=man`; `make man` rewrites it.\n"
          ".TH MUNINN 1 \"\" \"muninn " MUNINN_VERSION "\" \"User Commands\"\n"
          ".SH NAME\nmuninn \\- run a program on a synthetic CPU and watch it\n"
          ".SH SYNOPSIS\n.B muninn\n[\\fIoptions\\fR] \\fIprogram\\fR [\\fIarguments\\fR...]\n"
          ".SH DESCRIPTION\n"
          "Runs an unmodified Linux x86-64 program, translated, under the eyes of a tool. The\n"
          "program keeps its process id, its output, its exit status and its signals.\n"
          "The program is found as a shell finds it; a script is run by the interpreter of its\n"
          "#! line.\n"
          ".SH OPTIONS\n",
          stdout);
    roff_group("Options", GROUP_CORE);
    roff_group("Looking at the engine", GROUP_DEBUG);
    fputs(".SH EXIT STATUS\n"
          "That of the program; if it dies of a signal, muninn dies of the same signal.\n"
          ".TP\n.B 1\nAn option is wrong, or muninn itself cannot start.\n"
          ".TP\n.B 126\nThe program was found but cannot be run.\n"
          ".TP\n.B 127\nThe program was not found.\n"
          ".SH ENVIRONMENT\n"
          ".TP\n.B MUNINN_OPTS\n"
          "Options, separated by blanks; quotes and backslashes protect blanks. Those on the\n"
          "command line come after them and win.\n"
          ".TP\n.B LD_*, MALLOC_*, GLIBC_TUNABLES\n"
          "Affect the program, as they would without muninn, and never muninn itself.\n"
          ".SH NOTES\n"
          "Set\\-user\\-ID, set\\-group\\-ID and file\\-capability programs run without the\n"
          "privileges these would give them; a warning says so. Only 64\\-bit programs can be\n"
          "run.\n",
          stdout);
}

bool help_print(const char *topic)
{
    if (strcmp(topic, "") == 0)
        print_all();
    else if (strcmp(topic, "man") == 0)
        print_man();
    else
        return print_tool(topic);
    return true;
}
