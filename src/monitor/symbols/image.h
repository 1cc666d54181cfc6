// SPDX-License-Identifier: MIT
//
// An image: the ELF file of a module, or what the client still has of it in memory
// when the file is gone or is another one by now. Names from the wrong file are worse
// than none, so a file is used only when it is shown to be the one that was mapped.
#ifndef MUNINN_MONITOR_SYMBOLS_IMAGE_H
#define MUNINN_MONITOR_SYMBOLS_IMAGE_H

#include <libelf.h>

#include "monitor/symbols/reader.h"

typedef struct Segment { // PT_LOAD
    u64 vaddr, offset, file_size, memory_size;
    bool executable;
} Segment;

typedef struct BuildId {
    u8 bytes[READER_BUILD_ID_MAX];
    u32 size;
} BuildId;

#define IMAGE_SEGMENTS_MAX 64

typedef struct Image {
    Elf *elf; // NULL: only the client's memory is there
    int fd;   // -1: none
    char *path;
    u8 *copy; // the bytes under elf when they come from no file
    Segment segments[IMAGE_SEGMENTS_MAX];
    u32 segment_count;
    u64 dynamic_vaddr, dynamic_size;
    BuildId build_id;
    i32 pid;  // of the client whose memory this is; 0: none
    u64 bias; // its address of a vaddr, less the vaddr
} Image;

// False: nothing of the module can be read.
bool image_open(Image *image, const ModuleSpec *spec, const SymbolsConfig *config);
void image_close(Image *image);

bool image_vaddr_of_offset(const Image *image, u64 offset, u64 *ret_vaddr);
void image_extent(const Image *image, u64 *ret_low, u64 *ret_high);

// Bytes of the loaded image, from the file or the client. False: not all are there.
bool image_read(const Image *image, u64 vaddr, void *buffer, size_t size);

// Opens any ELF file for reading; it must be a regular one. NULL: it is not there or not ELF.
Elf *elf_open(const char *path, int *ret_fd);
bool elf_build_id(Elf *elf, BuildId *ret_id);
bool build_id_equal(const BuildId *a, const BuildId *b);

// The section of that name with its data, decompressed by nobody. NULL: there is none.
Elf_Scn *elf_section(Elf *elf, const char *name);

#endif
