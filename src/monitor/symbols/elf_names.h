// SPDX-License-Identifier: MIT
//
// The names that symbol tables give to addresses, sorted. Two tables of one
// kind: functions (with the procedure linkage stubs, as `strlen@plt`) and data.
#ifndef MUNINN_MONITOR_SYMBOLS_ELF_NAMES_H
#define MUNINN_MONITOR_SYMBOLS_ELF_NAMES_H

#include "monitor/symbols/image.h"

typedef struct ElfName {
    u64 address;
    u64 size;         // 0: up to the next name
    u64 reach;        // the highest end of this and all names before it
    const char *name; // in the string table of an open Elf, or allocated (is_owned)
    const char *versioned; // NAME@@VERSION, when a symbol table has that too; else NULL
    u8 rank;          // of the names of one address the lowest is shown
    bool is_owned;
} ElfName;

typedef struct ElfNames {
    ElfName *list; // by address, one for each address once it is sealed
    size_t count, capacity;
} ElfNames;

typedef enum ElfNameKind { ELF_NAMES_CODE, ELF_NAMES_DATA } ElfNameKind;

// Adds what the symbol tables of the file have. Its strings are used: it must stay open.
void elf_names_add_file(ElfNames *names, Elf *elf, ElfNameKind kind);
// Adds the dynamic symbols by the program headers alone: for files without sections and for the
// client's memory.
void elf_names_add_dynamic(ElfNames *names, const Image *image, ElfNameKind kind);
// One name of its own, which is freed with the table unless this is false.
bool elf_names_add_stub(ElfNames *names, u64 address, u64 size, char *name);
void elf_names_add_plt(ElfNames *names, const Image *image);
// Sorts. Nothing may be added afterwards.
void elf_names_seal(ElfNames *names);

const ElfName *elf_names_find(const ElfNames *names, u64 address);
void elf_names_free(ElfNames *names);

#endif
