// SPDX-License-Identifier: MIT
//
// Memcheck's commands; private to memcheck/.
#ifndef MUNINN_TOOLS_MEMCHECK_COMMANDS_H
#define MUNINN_TOOLS_MEMCHECK_COMMANDS_H

#include "engine/toolapi/toolapi.h"

extern const char commands_help[];                     // Tool.command_help
bool commands_run(ToolThread *thread, char *command); // Tool.command

#endif
