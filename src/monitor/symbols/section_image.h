// SPDX-License-Identifier: MIT
//
// An ELF file in memory made of named sections, for what elfutils cannot open as it
// stands, or takes long to: units of a .dwp package, and compressed sections.
#ifndef MUNINN_MONITOR_SYMBOLS_SECTION_IMAGE_H
#define MUNINN_MONITOR_SYMBOLS_SECTION_IMAGE_H

#include <libelf.h>

#include "base/types.h"

#define SECTION_IMAGE_MAX 32

typedef struct PlainSection {
    const char *name;
    const void *data;
    size_t size;
    Elf_Scn *packed; // what it is decompressed from, straight into the image; NULL: `data`
} PlainSection;

typedef struct SectionImage {
    Elf *elf;
    u8 *bytes;
    size_t size;
} SectionImage;

// Copies the sections. `shared_fd` (-1: none) is mapped, not copied, as one more section: many
// units of a package have one string table.
bool section_image_build(SectionImage *image, const PlainSection *sections, size_t count,
                         const char *shared_name, int shared_fd, size_t shared_size);
void section_image_free(SectionImage *image);

// As section_bytes(), for an image that is built while the Elf is open: a packed section is
// only looked at.
bool section_for_image(Elf *elf, const char *name, PlainSection *ret_section, void **ret_owned);

// The bytes of a section, decompressed. `ret_owned` is to be freed, or NULL when the bytes are
// the Elf's own.
bool section_bytes(Elf *elf, const char *name, PlainSection *ret_bytes, void **ret_owned);

// True when a debug section is compressed in a way that elfutils do not know (zstd, to older ones)
// or that somebody else decompresses several times as fast.
bool section_is_packed(Elf_Scn *scn);

#endif
