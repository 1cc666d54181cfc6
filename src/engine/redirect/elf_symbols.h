// SPDX-License-Identifier: MIT
//
// The symbols of an ELF file that the client has mapped. The file is hostile:
// everything is read with pread() into memory of our own and every offset is
// checked, so the worst that a bad file gets is that its functions go unseen.
#ifndef MUNINN_ENGINE_REDIRECT_ELF_SYMBOLS_H
#define MUNINN_ENGINE_REDIRECT_ELF_SYMBOLS_H

#include <elf.h>

#include "base/types.h"

#define ELF_SONAME_MAX 256
#define ELF_BUFFERS_MAX 10

typedef struct ElfFile {
    int fd;
    u64 size;
    Elf64_Ehdr header;
    const Elf64_Phdr *phdrs;
    u32 phdr_count;
    char soname[ELF_SONAME_MAX]; // "" if it has none
    bool is_static_program;      // holds all of its libraries
    struct {
        u64 symbols, strings, strings_size; // file offsets
        u64 hash, gnu_hash;                 // 0: none
        u64 versions, definitions;          // of symbols; 0: none
        u64 definitions_size;               // an upper bound
        u64 symbol_count;                   // once it was read
    } dynamic;
    const u16 *versions;   // after elf_read_versions()
    const u8 *definitions;
    struct {
        void *pages;
        u64 size_bytes;
    } buffers[ELF_BUFFERS_MAX];
    u32 buffer_count;
} ElfFile;

typedef struct ElfSymbols {
    const Elf64_Sym *symbols;
    u64 count;
    const char *strings; // ends in a NUL
    u64 strings_size;
    bool is_dynamic; // from elf_dynamic_symbols()
} ElfSymbols;

// Reads headers and soname. False: not an ELF file of this machine. In any case
// elf_close() follows; it does not close the descriptor.
bool elf_open(int fd, ElfFile *ret_file);
void elf_close(ElfFile *file);

// The executable segment of which the file range from `offset` on, mapped at
// `start`, is a part: what to add to a symbol's value. False: there is none.
bool elf_load_bias(const ElfFile *file, GuestAddr start, u64 offset, u64 *ret_bias);

// .dynsym by way of PT_DYNAMIC, and .symtab by way of the section headers.
bool elf_dynamic_symbols(ElfFile *file, ElfSymbols *ret_symbols);
bool elf_full_symbols(ElfFile *file, ElfSymbols *ret_symbols);

// The versions of the symbols that an object defines, after elf_dynamic_symbols(). False: there are
// none.
bool elf_read_versions(ElfFile *file);
// The version of a symbol of that table, and whether others are linked with it by default. NULL: it
// has none.
const char *elf_version(const ElfFile *file, const ElfSymbols *dynamic, u64 index,
                        bool *ret_is_default);

#endif
