// SPDX-License-Identifier: MIT
//
// Completion for bash, zsh and fish, from the option table. Options come first;
// the word that is none is a program, and what follows is completed as that
// program's own command line would be.

#include <stdio.h>
#include <string.h>

#include "launch/help.h"

static bool is_offered(const OptionRow *row)
{
    return row->group < GROUP_IGNORED && option_group_title(row->group) != NULL;
}

static bool takes_file(const OptionRow *row)
{
    return row->kind == OPTION_PATH || row->kind == OPTION_PATH_LIST ||
           row->kind == OPTION_PATH_TEMPLATE || row->kind == OPTION_LIST;
}

static bool takes_yes_or_no(const OptionRow *row)
{
    return row->kind == OPTION_BOOL || row->kind == OPTION_BITS;
}

static bool is_set(const OptionRow *row)
{
    return row->kind == OPTION_SET;
}

// The values an option can have, separated by blanks; nothing if any will do.
static void print_values(const OptionRow *row)
{
    const char *separator = "";

    if (takes_yes_or_no(row))
        fputs("yes no", stdout);
    for (const OptionValue *v = row->values; v != NULL && v->name != NULL; v++) {
        if (v->help == NULL)
            continue;
        printf("%s%s", separator, v->name);
        separator = " ";
    }
    if (is_set(row))
        fputs(" all none", stdout);
}

static bool has_values(const OptionRow *row)
{
    return takes_yes_or_no(row) || row->values != NULL;
}

// The first sentence of the help, without its full stop; a backslash before each
// character of `escaped`, which the shell would take for its own.
static void print_summary(const char *help, const char *escaped)
{
    const char *end = strstr(help, ". ");
    size_t len = end != NULL ? (size_t)(end - help) : strlen(help);

    if (end == NULL && len > 0 && help[len - 1] == '.')
        len--;
    for (size_t i = 0; i < len; i++) {
        if (help[i] == '\'')
            fputs("'\\'", stdout);
        else if (strchr(escaped, help[i]) != NULL)
            putchar('\\');
        putchar(help[i]);
    }
}

static const char header[] =
    "# SPDX-License-Identifier: MIT\n"
    "# Made from src/launch/options.def by `muninn --help=%s`; `make completions` rewrites it.\n";

// ---------------------------------------------------------------- bash

static const char bash_start[] =
    "\n"
    "# bash cuts words at '=': --tool=none arrives as three of them.\n"
    "_muninn()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} option= at=1 values= is_set= is_file=\n"
    "    COMPREPLY=()\n"
    "    while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == -* && -z $option ]]; do\n"
    "        if [[ ${COMP_WORDS[at]} == -- ]]; then\n"
    "            ((at++))\n"
    "            break\n"
    "        elif [[ ${COMP_WORDS[at + 1]} != = ]]; then\n"
    "            ((at++))\n"
    "        elif ((COMP_CWORD <= at + 2)); then\n"
    "            option=${COMP_WORDS[at]}\n"
    "        else\n"
    "            ((at += 3))\n"
    "        fi\n"
    "    done\n"
    "    [[ $cur == = ]] && cur=\n"
    "    if [[ -z $option ]]; then\n"
    "        _muninn_word\n"
    "        return\n"
    "    fi\n"
    "    case $option in\n";

static const char bash_end[] =
    "    esac\n"
    "    if [[ -n $is_file ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "    elif [[ -n $is_set && $cur == *,* ]]; then\n"
    "        COMPREPLY=($(compgen -P \"${cur%,*},\" -W \"$values\" -- \"${cur##*,}\"))\n"
    "    else\n"
    "        COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
    "    fi\n"
    "}\n"
    "\n"
    "# An option, the program, or something for it.\n"
    "_muninn_word()\n"
    "{\n"
    "    if ((at < COMP_CWORD)) && declare -F _command_offset >/dev/null; then\n"
    "        _command_offset \"$at\"\n"
    "    elif ((at < COMP_CWORD)); then\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$_muninn_options\" -- \"$cur\"))\n"
    "        [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    else\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
    "        if ((COMP_CWORD == 1)) && [[ ${COMP_WORDS[0]##*/} == muninn ]]; then\n"
    "            COMPREPLY+=($(compgen -W \"$_muninn_subcommands\" -- \"$cur\"))\n"
    "        fi\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _muninn muninn valgrind\n";

static void bash_options(void)
{
    printf("\n_muninn_options='");
    for (u32 i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];
        bool has_value = option_kinds[row->kind].form == VALUE_REQUIRED;

        if (is_offered(row))
            printf("%s--%s%s", i == 0 ? "" : "\n", row->name, has_value ? "=" : "");
    }
    printf("'\n_muninn_subcommands='");
    for (const Subcommand *c = option_subcommands; c->name != NULL; c++)
        printf("%s%s", c == option_subcommands ? "" : " ", c->name);
    puts("'");
}

void completion_print_bash(void)
{
    printf(header, "bash");
    bash_options();
    fputs(bash_start, stdout);
    for (u32 i = 0; i < option_row_count; i++) {
        const OptionRow *row = &option_rows[i];

        if (!is_offered(row) || (!has_values(row) && !takes_file(row)))
            continue;
        printf("    --%s) ", row->name);
        if (takes_file(row)) {
            puts("is_file=1 ;;");
            continue;
        }
        fputs("values='", stdout);
        print_values(row);
        printf("'%s ;;\n", is_set(row) ? " is_set=1" : "");
    }
    fputs(bash_end, stdout);
}

// ---------------------------------------------------------------- zsh

static void zsh_option(const OptionRow *row)
{
    bool is_repeated = option_kinds[row->kind].is_list || row->kind == OPTION_MORE ||
                       row->kind == OPTION_LESS;
    ValueForm form = option_kinds[row->kind].form;

    printf("    '%s--%s%s[", is_repeated ? "*" : "", row->name,
           form == VALUE_REQUIRED ? "=" : (form == VALUE_OPTIONAL ? "=-" : ""));
    print_summary(row->help, "[]:\\");
    putchar(']');
    if (form != VALUE_NEVER)
        printf("%s:value:", form == VALUE_OPTIONAL ? ":" : "");
    if (takes_file(row))
        fputs("_files", stdout);
    else if (is_set(row)) {
        fputs("_values -s , value ", stdout);
        print_values(row);
    } else if (has_values(row)) {
        putchar('(');
        print_values(row);
        putchar(')');
    }
    puts("'");
    if (row->letter != 0) {
        printf("    '%s-%c[", is_repeated ? "*" : "", row->letter);
        print_summary(row->help, "[]:\\");
        puts("]'");
    }
}

void completion_print_zsh(void)
{
    puts("#compdef muninn valgrind");
    printf(header, "zsh");
    puts("\nlocal -a options subcommands\nlocal service_name=${words[1]:t}\n\noptions=(");
    for (u32 i = 0; i < option_row_count; i++)
        if (is_offered(&option_rows[i]))
            zsh_option(&option_rows[i]);
    puts(")\n\nsubcommands=(");
    for (const Subcommand *c = option_subcommands; c->name != NULL; c++) {
        printf("    '%s:", c->name);
        print_summary(c->help, ":\\");
        puts("'");
    }
    puts(")\n\n"
         "_muninn_program()\n{\n"
         "    if ((CURRENT == 2)) && [[ $service_name == muninn ]]; then\n"
         "        _describe -t subcommands subcommand subcommands\n"
         "    fi\n"
         "    _command_names -e\n"
         "    _files -g '*(-*)'\n"
         "}\n\n"
         "_arguments -S : $options '(-)1:program:_muninn_program' '*::arguments:_normal'");
}

// ---------------------------------------------------------------- fish

static void fish_option(const OptionRow *row)
{
    ValueForm form = option_kinds[row->kind].form;

    printf("    complete -c $command -n __muninn_is_before_program -l %s", row->name);
    if (row->letter != 0)
        printf(" -s %c", row->letter);
    if (takes_file(row))
        fputs(" -r -F", stdout);
    else if (form == VALUE_REQUIRED && row->letter == 0)
        fputs(" -x", stdout);
    if (has_values(row)) {
        fputs(" -a '", stdout);
        print_values(row);
        putchar('\'');
    }
    fputs(" -d '", stdout);
    print_summary(row->help, "\\");
    puts("'");
}

void completion_print_fish(void)
{
    printf(header, "fish");
    puts("\n"
         "function __muninn_is_before_program\n"
         "    for word in (commandline -opc)[2..]\n"
         "        string match -q -- '-*' $word; or return 1\n"
         "    end\n"
         "end\n\n"
         "for command in muninn valgrind");
    for (u32 i = 0; i < option_row_count; i++)
        if (is_offered(&option_rows[i]))
            fish_option(&option_rows[i]);
    puts("    complete -c $command -x -a '(__fish_complete_subcommand)'\nend\n");
    for (const Subcommand *c = option_subcommands; c->name != NULL; c++) {
        printf("complete -c muninn -n 'test (count (commandline -opc)) -eq 1' -a %s -d '", c->name);
        print_summary(c->help, "\\");
        puts("'");
    }
}
