// SPDX-License-Identifier: MIT
//
// All the places options come from, as one command line: the files in the home
// and the working directory, the environment, the words of the user.
#ifndef MUNINN_LAUNCH_OPTION_SOURCES_H
#define MUNINN_LAUNCH_OPTION_SOURCES_H

#include "base/types.h"

// Twice as many if called as valgrind: ~/.muninnrc, MUNINN_OPTS, ./.muninnrc.
#define SOURCES_MAX 6

typedef struct OptionSource {
    char name[4200];      // for messages: a path or the name of a variable
    char *text;           // as it was, to count lines in; NULL: a variable
    char *words_text;     // cut into words
    int first, count;     // its words in OptionSources.argv
} OptionSource;

typedef struct OptionSources {
    u32 count;
    OptionSource sources[SOURCES_MAX];
    char **argv; // argv[0], the words of the sources, argv[1...]
    int argc;
    int added;   // how many words come before the user's

    void (*warn)(const char *format, ...);
    bool failed; // a source is no list of options
    char problem[4800];
} OptionSources;

// Reads all sources there are. `is_compat` adds those of Valgrind.
// --command-line-only=yes among the user's words leaves only these, and so does a
// question for help or the version. A file that is left out is named by `warn`.
// False if what is there cannot be options, with the reason in sources->problem.
bool option_sources_read(OptionSources *sources, int argc, char **argv, bool is_compat,
                         void (*warn)(const char *format, ...));

// Where the word argv[index] came from, for a message: "FILE:LINE: ", "VARIABLE: "
// or, for the command line, "".
void option_sources_locate(const OptionSources *sources, int index, char *out, size_t size);

#endif
