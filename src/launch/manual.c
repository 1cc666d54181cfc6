// SPDX-License-Identifier: MIT
//
// The manual page and docs/user/options.md, from the option table.

#include <stdio.h>
#include <string.h>

#include "launch/help.h"
#include "launch/launch.h"

// ---------------------------------------------------------------- roff

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
    if (fallback[0] != '\0') {
        fputs(" [", stdout);
        roff_text(fallback);
        putchar(']');
    }
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

static void roff_group(u8 group)
{
    printf(".SS %s\n", option_group_title(group));
    for (u32 i = 0; i < option_row_count; i++) {
        char term[HELP_TEXT_MAX], fallback[HELP_TEXT_MAX];
        const OptionRow *row = &option_rows[i];

        if (row->group != group)
            continue;
        help_format_usage(row, term, sizeof(term));
        help_format_default(row, fallback, sizeof(fallback));
        roff_entry(term, row->help, fallback);
        if (row->values != NULL)
            roff_values(row->values);
    }
}

static void roff_subcommands(void)
{
    puts(".SH SUBCOMMANDS\n"
         "One of these words in place of a program, with no option before it. A program of the\n"
         "same name is run by its path, or behind an option or \\-\\-:\n"
         ".B muninn \\-\\- ps.");
    for (const Subcommand *c = option_subcommands; c->name != NULL; c++) {
        char term[HELP_TEXT_MAX];

        snprintf(term, sizeof(term), "%s %s", c->name, c->arguments);
        roff_entry(term, c->help, "");
    }
}

static const char roff_start[] =
    ".\\\" SPDX-License-Identifier: MIT\n"
    ".\\\" Made from src/launch/options.def by `muninn --help=man`; `make man` rewrites it.\n"
    ".TH MUNINN 1 \"\" \"muninn " MUNINN_VERSION "\" \"User Commands\"\n"
    ".SH NAME\nmuninn \\- run a program on a synthetic CPU and watch it\n"
    ".SH SYNOPSIS\n.B muninn\n[\\fIoptions\\fR] \\fIprogram\\fR [\\fIarguments\\fR...]\n"
    ".br\n.B muninn\n\\fIsubcommand\\fR [\\fIarguments\\fR...]\n"
    ".SH DESCRIPTION\n"
    "Runs an unmodified Linux x86-64 program, translated, under the eyes of a tool. The\n"
    "program keeps its process id, its output, its exit status and its signals.\n"
    "The program is found as a shell finds it; a script is run by the interpreter of its\n"
    "#! line.\n"
    ".SH OPTIONS\n";

static const char roff_end[] =
    ".SH EXIT STATUS\n"
    "That of the program; if it dies of a signal, muninn dies of the same signal. With\n"
    "\\-\\-error\\-exitcode, that number if there were findings.\n"
    ".TP\n.B 1\nAn option is wrong, or muninn itself cannot start.\n"
    ".TP\n.B 126\n"
    "The program was found but cannot be run, or what is to judge it cannot start or write.\n"
    ".TP\n.B 127\nThe program was not found.\n"
    ".SH FILES AND ENVIRONMENT\n"
    "Options are read from these, in this order, and then from the command line; later ones\n"
    "win. Blanks separate them, quotes and backslashes protect blanks, # begins a comment.\n"
    "\\-\\-TOOL:name=value holds only for that tool. \\-\\-command\\-line\\-only=yes reads none.\n"
    ".TP\n.B ~/.muninnrc\n"
    ".TP\n.B MUNINN_OPTS\n"
    ".TP\n.B ./.muninnrc\n"
    "Is not read, and a warning says so, if it is not a regular file, is writable by everybody\n"
    "or belongs to another user.\n"
    ".TP\n.B LD_*, MALLOC_*, GLIBC_TUNABLES\n"
    "Affect the program, as they would without muninn, and never muninn itself.\n"
    ".SH CALLED AS VALGRIND\n"
    "A symbolic link of the name valgrind (make install\\-compat) makes muninn read\n"
    "~/.valgrindrc, VALGRIND_OPTS and ./.valgrindrc as well, each before its own of that kind,\n"
    "know no subcommands, and answer \\-\\-version with valgrind\\-" COMPAT_VERSION ".\n"
    ".SH NOTES\n"
    "Set\\-user\\-ID, set\\-group\\-ID and file\\-capability programs run without the\n"
    "privileges these would give them; a warning says so. Only 64\\-bit programs can be\n"
    "run.\n";

void manual_print_roff(void)
{
    fputs(roff_start, stdout);
    for (u8 group = 0; group < GROUP_COUNT; group++)
        if (option_group_title(group) != NULL)
            roff_group(group);
    roff_subcommands();
    fputs(roff_end, stdout);
}

// ---------------------------------------------------------------- markdown

// In a cell of a table a bar would end it. Values stand in a list, without full stops.
static void markdown_text(const char *text, bool is_value)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (is_value && *c == '.' && c[1] == '\0')
            break;
        if (*c == '|' || *c == '*' || *c == '<')
            putchar('\\');
        putchar(*c);
    }
}

static void markdown_code(const char *text)
{
    putchar('`');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '|')
            putchar('\\');
        putchar(*c);
    }
    putchar('`');
}

static void markdown_row(const OptionRow *row)
{
    char usage[HELP_TEXT_MAX], fallback[HELP_TEXT_MAX];
    const char *separator = " ";

    help_format_usage(row, usage, sizeof(usage));
    help_format_default(row, fallback, sizeof(fallback));
    fputs("| ", stdout);
    markdown_code(usage);
    fputs(" | ", stdout);
    if (fallback[0] != '\0')
        markdown_code(fallback);
    fputs(" | ", stdout);
    markdown_text(row->help, false);
    for (const OptionValue *v = row->values; v != NULL && v->name != NULL; v++) {
        if (v->help == NULL)
            continue;
        fputs(separator, stdout);
        markdown_code(v->name);
        fputs(": ", stdout);
        markdown_text(v->help, true);
        separator = "; ";
    }
    puts(" |");
}

static const char markdown_start[] =
    "<!-- SPDX-License-Identifier: MIT -->\n"
    "<!-- Made from src/launch/options.def by `muninn --help=markdown`; `make man` rewrites it. "
    "-->\n"
    "# Options\n\n"
    "`muninn [options] program [arguments...]`. Options end at the first word that is none, or at "
    "`--`.\n\n"
    "## Where options come from\n\n"
    "In this order, so that later ones win: `~/.muninnrc`, the environment variable `MUNINN_OPTS`, "
    "`./.muninnrc`,\nthe command line. In files and the variable blanks separate options, quotes "
    "and backslashes protect blanks and\na word that starts with `#` begins a comment. "
    "`--memcheck:leak-check=full` holds only when the tool is memcheck.\n"
    "`./.muninnrc` is not read, and a warning says so, if it is not a regular file, is writable by "
    "everybody or belongs\nto another user: it could come from someone else. "
    "`--command-line-only=yes` reads neither files nor the variable.\n\n"
    "A wrong option is explained in one line, with the name that was probably meant, and the exit "
    "status is 1.\n\n"
    "## Called as `valgrind`\n\n"
    "`make install-compat` makes a symbolic link of that name. Called so, muninn also reads "
    "`~/.valgrindrc`,\n`VALGRIND_OPTS` and `./.valgrindrc`, each before its own of that kind; "
    "there are no subcommands, so that `valgrind ps`\nruns `ps`; and `--version` prints "
    "`valgrind-" COMPAT_VERSION "`: the newest\nrelease that writes version 4 of the XML as muninn "
    "does by default. Programs that compare versions get what\nthey expect; options of later "
    "releases are understood all the same.\n\n"
    "Texts have that release's words where muninn's own are others, so that filters remove what "
    "they remove of it:\nthe lines about copyright and version at the start, the title of "
    "`--tool=none`, and the advice on `--main-stacksize=`\nafter every fatal access to memory "
    "that is not there.\n\n"
    "Every option of Valgrind's core, and of the tools that are here, is in the tables below with\n"
    "its meaning, or is accepted without effect because there is nothing for it to do, or is "
    "refused with a sentence\nthat says why.\n\n"
    "## Subcommands\n\n"
    "One of these words in place of a program, with no option before it. A program of the same "
    "name is run by\n`muninn -- ps`, `muninn ./ps`, or behind any option.\n\n"
    "| | |\n|---|---|\n";

void manual_print_markdown(void)
{
    fputs(markdown_start, stdout);
    for (const Subcommand *c = option_subcommands; c->name != NULL; c++)
        printf("| `muninn %s%s%s` | %s |\n", c->name, c->arguments[0] != '\0' ? " " : "",
               c->arguments, c->help);
    for (u8 group = 0; group < GROUP_COUNT; group++) {
        if (option_group_title(group) == NULL)
            continue;
        printf("\n## %s\n\n| option | default | |\n|---|---|---|\n", option_group_title(group));
        for (u32 i = 0; i < option_row_count; i++)
            if (option_rows[i].group == group)
                markdown_row(&option_rows[i]);
    }
}
