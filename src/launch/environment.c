// SPDX-License-Identifier: MIT
//
// The engine is an ordinary dynamically linked program: an LD_PRELOAD or a
// MALLOC_PERTURB_ that is meant for the client would change the engine instead.
// The launcher renames such variables and the engine renames them back. The
// hidden form is a longer string, the original is its tail, so giving it back is
// one addition.

#include <string.h>

#include "launch/launch.h"

#define PREFIX_LEN (sizeof(ENVIRONMENT_PREFIX) - 1)

static const char *const hidden_starts[] = {
    "LD_",
    "MALLOC_",
    "GLIBC_TUNABLES=",
    ENVIRONMENT_PREFIX,
};

static bool is_hidden(const char *entry)
{
    for (u32 i = 0; i < ARRAY_LEN(hidden_starts); i++)
        if (strncmp(entry, hidden_starts[i], strlen(hidden_starts[i])) == 0)
            return true;
    return false;
}

size_t environment_hidden_size(char *const *envp)
{
    size_t size = 0;

    for (; *envp != NULL; envp++)
        if (is_hidden(*envp))
            size += PREFIX_LEN + strlen(*envp) + 1;
    return size;
}

void environment_hide(char **envp, char *buffer)
{
    for (; *envp != NULL; envp++) {
        if (!is_hidden(*envp))
            continue;
        size_t size = strlen(*envp) + 1;
        memcpy(buffer, ENVIRONMENT_PREFIX, PREFIX_LEN);
        memcpy(buffer + PREFIX_LEN, *envp, size);
        *envp = buffer;
        buffer += PREFIX_LEN + size;
    }
}

void environment_restore(char **envp)
{
    for (; *envp != NULL; envp++)
        if (strncmp(*envp, ENVIRONMENT_PREFIX, PREFIX_LEN) == 0)
            *envp += PREFIX_LEN;
}

void environment_drop_hidden(char **envp)
{
    char **kept = envp;

    for (; *envp != NULL; envp++) {
        if (!is_hidden(*envp))
            *kept++ = *envp;
    }
    *kept = NULL;
}
