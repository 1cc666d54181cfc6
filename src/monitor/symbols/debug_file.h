// SPDX-License-Identifier: MIT
//
// The file that has a module's debug info: the module's own file, or a separate one
// that is found by build id, by .gnu_debuglink or from a debuginfod server.
#ifndef MUNINN_MONITOR_SYMBOLS_DEBUG_FILE_H
#define MUNINN_MONITOR_SYMBOLS_DEBUG_FILE_H

#include <elfutils/libdw.h>

#include "monitor/symbols/image.h"
#include "monitor/symbols/section_image.h"

typedef struct DebugFile {
    Elf *elf;      // of the separate file; NULL: the debug info is in the image
    int fd;
    char *path;    // of the file that has the debug info
    Dwarf *dwarf;  // NULL: no debug info
    Elf *mini;     // .gnu_debugdata: a symbol table for stripped files
    u8 *mini_bytes;
    SectionImage plain; // under dwarf when elfutils could not decompress the file
    Elf *alt_elf;
    int alt_fd;
    Dwarf *alt;    // dwz's common file, when it is not where libdw looks
} DebugFile;

// Finds and opens. `ret_warning`, if set, is one line for the user.
void debug_file_open(DebugFile *file, const Image *image, const SymbolsConfig *config,
                     const char **ret_warning);
void debug_file_close(DebugFile *file);

#endif
