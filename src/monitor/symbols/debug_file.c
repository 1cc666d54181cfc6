// SPDX-License-Identifier: MIT
//
// The search for debug info, in the order gdb and the incumbent use. A separate file must
// prove that it belongs to the image: by an equal build id, or by the checksum in the
// link when there is no build id; --allow-mismatched-debuginfo waives the proof.
#include "monitor/symbols/debug_file.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_DEBUG   "/usr/lib/debug"
#define MINI_SIZE_MAX  (512 * MiB)
#define LZMA_BUF_ERROR 10 // liblzma's: the output does not fit

static bool has_section(Elf *elf, const char *name)
{
    GElf_Shdr section;
    Elf_Scn *scn = elf_section(elf, name);
    return scn && gelf_getshdr(scn, &section) && section.sh_type != SHT_NOBITS;
}

static bool has_debug_info(Elf *elf)
{
    return has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info");
}

// ---- proof ----------------------------------------------------------------------------------

// The checksum of .gnu_debuglink: CRC-32 of the whole file.
static u32 crc_of(const u8 *bytes, size_t size)
{
    static u32 table[256];
    u32 crc = ~0u;

    for (u32 i = 0; !table[255] && i < 256; i++) {
        u32 value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        table[i] = value;
    }
    for (size_t i = 0; i < size; i++)
        crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

typedef struct Search {
    DebugFile *file;
    const Image *image;
    const SymbolsConfig *config;
    bool by_link; // then the checksum may prove it
    u32 link_crc;
} Search;

static bool is_proven(const Search *search, Elf *elf)
{
    BuildId found = { .size = 0 };
    size_t size;

    if (search->config->allow_mismatched)
        return true;
    if (search->image->build_id.size && elf_build_id(elf, &found))
        return build_id_equal(&found, &search->image->build_id);
    if (!search->by_link)
        return false;
    const u8 *bytes = (const u8 *)elf_rawfile(elf, &size);
    return bytes && crc_of(bytes, size) == search->link_crc;
}

static bool try_path(const Search *search, const char *path)
{
    int fd;
    Elf *elf = elf_open(path, &fd);
    if (!elf)
        return false;
    // A link may lead back to the stripped file itself.
    if (!(has_debug_info(elf) || has_section(elf, ".symtab")) || !is_proven(search, elf)) {
        elf_end(elf);
        close(fd);
        return false;
    }
    search->file->elf = elf;
    search->file->fd = fd;
    free(search->file->path);
    search->file->path = strdup(path);
    return true;
}

// ---- places ---------------------------------------------------------------------------------

static bool try_build_id(const Search *search, const char *root)
{
    const BuildId *id = &search->image->build_id;
    char hex[2 * READER_BUILD_ID_MAX + 1], path[PATH_MAX];

    if (!root || id->size < 2)
        return false;
    for (u32 i = 0; i < id->size; i++)
        snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
    static const char *const forms[] = { "%s/.build-id/%.2s/%s.debug",
                                         "%s/usr/lib/debug/.build-id/%.2s/%s.debug" };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        snprintf(path, sizeof path, i ? forms[1] : forms[0], root, hex, hex + 2);
        if (try_path(search, path))
            return true;
    }
    return false;
}

static bool try_link_in(const Search *search, const char *name, const char *folder)
{
    const char *extra = search->config->extra_debuginfo_path;
    char path[PATH_MAX];

#define TRY(...) (snprintf(path, sizeof path, __VA_ARGS__) < (int)sizeof path && \
                  try_path(search, path))
    return TRY("%s/%s", folder, name) || TRY("%s/.debug/%s", folder, name) ||
           TRY(SYSTEM_DEBUG "%s/%s", folder, name) ||
           (extra && (TRY("%s%s/%s", extra, folder, name) || TRY("%s/%s", extra, name)));
#undef TRY
}

static bool try_link(Search *search)
{
    PlainSection link;
    void *owned;
    char folder[PATH_MAX];

    if (!search->image->elf || !section_bytes(search->image->elf, ".gnu_debuglink", &link, &owned))
        return false;
    const char *name = link.data;
    size_t length = strnlen(name, link.size), crc_at = (length + 4) & ~(size_t)3;
    bool found = false;
    if (length > 0 && length < NAME_MAX && crc_at + 4 <= link.size && !memchr(name, '/', length)) {
        memcpy(&search->link_crc, name + crc_at, 4);
        search->by_link = true;
        // The file itself may have been reached through a link: both folders count.
        for (int resolved = 0; resolved < 2 && !found; resolved++) {
            char *real = resolved ? realpath(search->image->path, NULL)
                                  : strdup(search->image->path);
            char *slash = real ? strrchr(real, '/') : NULL;
            if (slash && (size_t)(slash - real) < sizeof folder) {
                *slash = '\0';
                snprintf(folder, sizeof folder, "%s", real);
                found = try_link_in(search, name, folder);
            }
            free(real);
        }
    }
    free(owned);
    return found;
}

// libdebuginfod is loaded only for users who ask for it: it brings a TLS library with it.
static bool try_server(const Search *search, const char **ret_warning)
{
    const BuildId *id = &search->image->build_id;
    static void *library;

    if (!search->config->debuginfod || !id->size)
        return false;
    if (!library)
        library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    void *(*begin)(void) = NULL;
    int (*find)(void *, const u8 *, int, char **) = NULL;
    void (*end)(void *) = NULL;
    if (library) {
        *(void **)&begin = dlsym(library, "debuginfod_begin");
        *(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
        *(void **)&end = dlsym(library, "debuginfod_end");
    }
    if (!begin || !find || !end) {
        *ret_warning = "--enable-debuginfod=yes needs libdebuginfod.so.1, which is not installed";
        return false;
    }
    char *path = NULL;
    void *client = begin();
    int fd = client ? find(client, id->bytes, (int)id->size, &path) : -1;
    bool found = fd >= 0 && path && try_path(search, path);
    if (fd >= 0)
        close(fd);
    if (client)
        end(client);
    free(path);
    return found;
}

// ---- .gnu_debugdata -------------------------------------------------------------------------

typedef int LzmaDecode(u64 *memory_limit, u32 flags, const void *allocator, const u8 *in,
                       size_t *in_at, size_t in_size, u8 *out, size_t *out_at, size_t out_size);

// A symbol table compressed with xz, which some distributions leave in stripped files.
static void open_mini(DebugFile *file, const Image *image)
{
    PlainSection packed;
    void *owned;

    if (!image->elf || !section_bytes(image->elf, ".gnu_debugdata", &packed, &owned))
        return;
    void *library = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
    LzmaDecode *decode = NULL;
    if (library)
        *(void **)&decode = dlsym(library, "lzma_stream_buffer_decode");
    size_t out_at = 0;
    int result = LZMA_BUF_ERROR;
    for (size_t size = 16 * packed.size + 4096; decode && result == LZMA_BUF_ERROR; size *= 4) {
        u64 memory_limit = 256 * MiB;
        size_t in_at = 0;
        free(file->mini_bytes);
        file->mini_bytes = size <= MINI_SIZE_MAX ? malloc(size) : NULL;
        if (!file->mini_bytes)
            break;
        out_at = 0;
        result = decode(&memory_limit, 0, NULL, packed.data, &in_at, packed.size,
                        file->mini_bytes, &out_at, size);
    }
    if (result == 0 && out_at > sizeof(Elf64_Ehdr))
        file->mini = elf_memory((char *)file->mini_bytes, out_at);
    if (file->mini && gelf_getclass(file->mini) != ELFCLASS64) {
        elf_end(file->mini);
        file->mini = NULL;
    }
    free(owned);
}

// ---- opening --------------------------------------------------------------------------------

static bool is_packed(Elf *elf)
{
    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn))
        if (section_is_packed(scn))
            return true;
    return false;
}

// The last two tell where variables are.
static Dwarf *open_decompressed(DebugFile *file, Elf *elf, const SymbolsConfig *config)
{
    static const char *const names[] = {
        ".debug_info", ".debug_abbrev", ".debug_line", ".debug_line_str", ".debug_str",
        ".debug_str_offsets", ".debug_addr", ".debug_ranges", ".debug_rnglists", ".debug_types",
        ".gnu_debugaltlink", ".debug_loc", ".debug_loclists",
    };
    size_t name_count = ARRAY_LEN(names) - (config->only_code ? 2 : 0);
    PlainSection sections[ARRAY_LEN(names)];
    void *owned[ARRAY_LEN(names)];
    size_t count = 0;

    for (size_t i = 0; i < name_count; i++) {
        sections[count].name = names[i];
        if (section_for_image(elf, names[i], &sections[count], &owned[count]))
            count++;
    }
    bool built = section_image_build(&file->plain, sections, count, "", -1, 0);
    for (size_t i = 0; i < count; i++)
        free(owned[i]);
    return built ? dwarf_begin_elf(file->plain.elf, DWARF_C_READ, NULL) : NULL;
}

static bool try_alt(DebugFile *file, const char *path, const void *id, size_t id_size)
{
    BuildId found = { .size = 0 };
    Elf *elf = elf_open(path, &file->alt_fd);

    if (!elf)
        return false;
    if (elf_build_id(elf, &found) && found.size == id_size &&
        memcmp(found.bytes, id, id_size) == 0)
        file->alt = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (!file->alt) {
        elf_end(elf);
        close(file->alt_fd);
        return false;
    }
    file->alt_elf = elf;
    dwarf_setalt(file->dwarf, file->alt);
    return true;
}

// dwz moves what several files share into another one. libdw finds it beside the file and under
// /usr/lib/debug; this adds the user's own folder, and the file's when libdw only has its bytes.
static void find_alt(DebugFile *file, const SymbolsConfig *config)
{
    const void *id;
    const char *name;
    char path[PATH_MAX];

    ssize_t id_size = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id);
    if (id_size <= 0 || dwarf_getalt(file->dwarf))
        return;
    const char *slash = strrchr(name, '/'), *folder = strrchr(file->path, '/');
    snprintf(path, sizeof path, "%.*s/%s", folder ? (int)(folder - file->path) : 0, file->path,
             name);
    if (try_alt(file, name[0] == '/' ? name : path, id, (size_t)id_size) ||
        !config->extra_debuginfo_path)
        return;
    snprintf(path, sizeof path, "%s/%s", config->extra_debuginfo_path, slash ? slash + 1 : name);
    try_alt(file, path, id, (size_t)id_size);
}

void debug_file_open(DebugFile *file, const Image *image, const SymbolsConfig *config,
                     const char **ret_warning)
{
    Search search = { .file = file, .image = image, .config = config };

    *file = (DebugFile){ .fd = -1, .alt_fd = -1, .path = strdup(image->path) };
    if (!image->elf || !has_debug_info(image->elf)) {
        if (!try_build_id(&search, config->extra_debuginfo_path) &&
            !try_build_id(&search, SYSTEM_DEBUG) && !try_link(&search))
            try_server(&search, ret_warning);
    }
    if (!file->elf)
        open_mini(file, image);
    Elf *elf = file->elf ? file->elf : image->elf;
    if (!elf || !has_debug_info(elf))
        return;
    file->dwarf = is_packed(elf) ? open_decompressed(file, elf, config)
                                 : dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (file->dwarf)
        find_alt(file, config);
}

void debug_file_close(DebugFile *file)
{
    if (file->dwarf)
        dwarf_end(file->dwarf);
    if (file->alt)
        dwarf_end(file->alt);
    if (file->alt_elf) {
        elf_end(file->alt_elf);
        close(file->alt_fd);
    }
    section_image_free(&file->plain);
    if (file->mini)
        elf_end(file->mini);
    free(file->mini_bytes);
    if (file->elf)
        elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (DebugFile){ .fd = -1, .alt_fd = -1 };
}
