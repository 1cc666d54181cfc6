// SPDX-License-Identifier: MIT
//
// Writes the ELF header, section names, contents and section headers of an image, and
// gets at the plain bytes of sections: zstd through a libzstd and zlib through a libdeflate
// that are loaded when the first such section is met; without the latter through libelf, which
// takes three times as long.
#include "monitor/symbols/section_image.h"

#include <dlfcn.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "monitor/symbols/image.h"

#define COMPRESS_ZSTD      2 // ELFCOMPRESS_ZSTD, newer than Debian 12's elf.h
#define PLAIN_SECTION_MAX  (4 * GiB)

// ---- compression ----------------------------------------------------------------------------

typedef size_t ZstdDecompress(void *to, size_t to_size, const void *from, size_t from_size);
typedef void *DeflateNew(void);
typedef int DeflateDecompress(void *decompressor, const void *from, size_t from_size, void *to,
                              size_t to_size, size_t *ret_size);

// What decompresses; looked for when the first such section is met.
typedef struct Unpackers {
    ZstdDecompress *zstd;
    DeflateDecompress *deflate;
    void *deflate_state;
} Unpackers;

static const Unpackers *unpackers(void)
{
    static Unpackers found;
    static bool tried;

    if (tried)
        return &found;
    tried = true;
    void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *deflate = dlopen("libdeflate.so.0", RTLD_NOW | RTLD_LOCAL);
    DeflateNew *new = NULL;
    if (zstd)
        *(void **)&found.zstd = dlsym(zstd, "ZSTD_decompress");
    if (deflate) {
        *(void **)&new = dlsym(deflate, "libdeflate_alloc_decompressor");
        *(void **)&found.deflate = dlsym(deflate, "libdeflate_zlib_decompress");
    }
    if (new && found.deflate)
        found.deflate_state = new();
    return &found;
}

static bool compression_of(Elf_Scn *scn, Elf64_Chdr *ret_head)
{
    GElf_Shdr section;

    if (!gelf_getshdr(scn, &section) || !(section.sh_flags & SHF_COMPRESSED))
        return false;
    Elf_Data *data = elf_rawdata(scn, NULL);
    if (!data || !data->d_buf || data->d_size < sizeof *ret_head)
        return false;
    memcpy(ret_head, data->d_buf, sizeof *ret_head);
    return true;
}

bool section_is_packed(Elf_Scn *scn)
{
    Elf64_Chdr head;

    return compression_of(scn, &head) &&
           (head.ch_type == COMPRESS_ZSTD ||
            (head.ch_type == ELFCOMPRESS_ZLIB && unpackers()->deflate_state));
}

static bool unpack(const Elf64_Chdr *head, const u8 *from, size_t from_size, u8 *to)
{
    const Unpackers *with = unpackers();
    size_t size;

    if (head->ch_type == COMPRESS_ZSTD)
        return with->zstd && with->zstd(to, head->ch_size, from, from_size) == head->ch_size;
    return with->deflate(with->deflate_state, from, from_size, to, head->ch_size, &size) == 0 &&
           size == head->ch_size;
}

// Into `to`, which has room for it.
static bool unpack_section(Elf_Scn *scn, u8 *to)
{
    Elf_Data *data = elf_rawdata(scn, NULL);
    Elf64_Chdr head;

    memcpy(&head, data->d_buf, sizeof head);
    return unpack(&head, (u8 *)data->d_buf + sizeof head, data->d_size - sizeof head, to);
}

// ---- building -------------------------------------------------------------------------------

static u64 align8(u64 size)
{
    return (size + 7) & ~7ull;
}

static u32 put_name(u8 *names, u64 *end, const char *name)
{
    u32 at = (u32)*end;
    size_t size = strlen(name) + 1;
    memcpy(names + at, name, size);
    *end += size;
    return at;
}

static void put_header(u8 *bytes, u64 headers_at, size_t section_count)
{
    Elf64_Ehdr head = {
        .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_shoff = headers_at,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (u16)section_count,
        .e_shstrndx = 1,
    };
    memcpy(bytes, &head, sizeof head);
}

static void fill(SectionImage *image, const PlainSection *sections, size_t count, u64 names_size,
                 const char *shared_name, u64 shared_at, size_t shared_size)
{
    Elf64_Shdr headers[SECTION_IMAGE_MAX + 3] = { 0 };
    u64 names_at = sizeof(Elf64_Ehdr), names_end = 1, at = align8(names_at + names_size);
    size_t used = 2;

    headers[1] = (Elf64_Shdr){
        .sh_name = put_name(image->bytes + names_at, &names_end, ".shstrtab"),
        .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = names_size,
        .sh_addralign = 1 };
    for (size_t i = 0; i < count; i++) {
        headers[used++] = (Elf64_Shdr){
            .sh_name = put_name(image->bytes + names_at, &names_end, sections[i].name),
            .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = sections[i].size,
            .sh_addralign = 1 };
        if (sections[i].packed && !unpack_section(sections[i].packed, image->bytes + at))
            headers[used - 1].sh_size = 0;
        else if (!sections[i].packed && sections[i].size)
            memcpy(image->bytes + at, sections[i].data, sections[i].size);
        at = align8(at + sections[i].size);
    }
    if (shared_size)
        headers[used++] = (Elf64_Shdr){
            .sh_name = put_name(image->bytes + names_at, &names_end, shared_name),
            .sh_type = SHT_PROGBITS, .sh_offset = shared_at, .sh_size = shared_size,
            .sh_addralign = 1 };
    memcpy(image->bytes + at, headers, used * sizeof headers[0]);
    put_header(image->bytes, at, used);
}

bool section_image_build(SectionImage *image, const PlainSection *sections, size_t count,
                         const char *shared_name, int shared_fd, size_t shared_size)
{
    u64 names_size = 1 + sizeof ".shstrtab" + strlen(shared_name) + 1;
    u64 front = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) * (SECTION_IMAGE_MAX + 3) + 64;

    *image = (SectionImage){ 0 };
    if (count > SECTION_IMAGE_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        names_size += strlen(sections[i].name) + 1;
        front += align8(sections[i].size) + 8;
    }
    if (shared_fd < 0)
        shared_size = 0;
    u64 shared_at = PAGE_UP(front + names_size);
    image->size = shared_at + PAGE_UP(shared_size);
    image->bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image->bytes == MAP_FAILED) {
        image->bytes = NULL;
        return false;
    }
    if (shared_size && mmap(image->bytes + shared_at, shared_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_FIXED, shared_fd, 0) == MAP_FAILED) {
        section_image_free(image);
        return false;
    }
    fill(image, sections, count, names_size, shared_name, shared_at, shared_size);
    image->elf = elf_memory((char *)image->bytes, image->size);
    if (!image->elf)
        section_image_free(image);
    return image->elf != NULL;
}

void section_image_free(SectionImage *image)
{
    if (image->elf)
        elf_end(image->elf);
    if (image->bytes)
        munmap(image->bytes, image->size);
    *image = (SectionImage){ 0 };
}

// ---- reading --------------------------------------------------------------------------------

static bool read_packed(Elf_Scn *scn, PlainSection *ret_bytes, void **ret_owned)
{
    Elf64_Chdr head;

    if (!compression_of(scn, &head) || head.ch_size > PLAIN_SECTION_MAX)
        return false;
    u8 *plain = malloc(head.ch_size + 1);
    if (!plain || !unpack_section(scn, plain)) {
        free(plain);
        return false;
    }
    ret_bytes->data = *ret_owned = plain;
    ret_bytes->size = head.ch_size;
    return true;
}

// The old way to compress: .zdebug_NAME, "ZLIB" and the size before the data.
static Elf_Scn *open_old_compression(Elf *elf, const char *name)
{
    char old[64];
    if (strncmp(name, ".debug_", 7) != 0)
        return NULL;
    snprintf(old, sizeof old, ".z%s", name + 1);
    Elf_Scn *scn = elf_section(elf, old);
    Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
    if (data && data->d_buf && data->d_size > 4 && memcmp(data->d_buf, "ZLIB", 4) == 0 &&
        elf_compress_gnu(scn, 0, 0) < 0)
        return NULL;
    return scn;
}

bool section_bytes(Elf *elf, const char *name, PlainSection *ret_bytes, void **ret_owned)
{
    GElf_Shdr section;
    Elf_Scn *scn = elf_section(elf, name);

    *ret_owned = NULL;
    if (!scn)
        scn = open_old_compression(elf, name);
    if (!scn || !gelf_getshdr(scn, &section) || section.sh_type == SHT_NOBITS)
        return false;
    if (section_is_packed(scn))
        return read_packed(scn, ret_bytes, ret_owned);
    if ((section.sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
        return false;
    Elf_Data *data = elf_rawdata(scn, NULL);
    if (section.sh_flags & SHF_COMPRESSED)
        data = elf_getdata(scn, NULL);
    if (!data || !data->d_buf)
        return false;
    ret_bytes->data = data->d_buf;
    ret_bytes->size = data->d_size;
    return true;
}

bool section_for_image(Elf *elf, const char *name, PlainSection *ret_section, void **ret_owned)
{
    Elf_Scn *scn = elf_section(elf, name);
    Elf64_Chdr head;

    ret_section->packed = NULL;
    *ret_owned = NULL;
    if (!scn || !section_is_packed(scn) || !compression_of(scn, &head))
        return section_bytes(elf, name, ret_section, ret_owned);
    if (head.ch_size > PLAIN_SECTION_MAX)
        return false;
    ret_section->packed = scn;
    ret_section->size = head.ch_size;
    return true;
}
