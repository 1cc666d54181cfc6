// SPDX-License-Identifier: MIT
//
// The texts that options.def gives: --help and --help=TOOL (help.c), the manual
// page and docs/user/options.md (manual.c), completion for shells (completion.c).
#ifndef MUNINN_LAUNCH_HELP_H
#define MUNINN_LAUNCH_HELP_H

#include "launch/option_table.h"

// Prints to stdout the help on `topic`: "" for all options of this tool, "debug"
// for those without effect as well, "dyn", the name of a tool, or one of the texts
// that are made for files: man, markdown, bash, zsh, fish. False if there is no
// such topic.
bool help_print(const char *topic, const char *tool);

void manual_print_roff(void);
void manual_print_markdown(void);
void completion_print_bash(void);
void completion_print_zsh(void);
void completion_print_fish(void);

// "-h, --help[=TOOL]", as the user may type it.
void help_format_usage(const OptionRow *row, char *out, size_t size);

// The default, for a person; "" if there is none worth showing.
void help_format_default(const OptionRow *row, char *out, size_t size);

// Room for what the two above write.
#define HELP_TEXT_MAX 160

#endif
