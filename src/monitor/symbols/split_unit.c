// SPDX-License-Identifier: MIT
//
// A split unit refers to addresses by their number in the program's .debug_addr, from
// a base that only its skeleton knows; DWARF 4 does the same with ranges. Copying the
// program's sections from that base on makes the base zero, which is what libdw
// assumes of a unit that states none. Lists and string offsets of DWARF 5 have their base after a
// header at the start of the unit's own section, which libdw finds too.
#include "monitor/symbols/split_unit.h"

#include <dwarf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "monitor/symbols/image.h"

#define INDEX_HEADER 16
#define COLUMNS_MAX  16

// The sections of a split unit: in the file, in the image, and the column of a package's index.
static const struct {
    const char *name, *plain;
    u32 column;
} split_sections[PACKAGE_SECTIONS] = {
    { ".debug_info.dwo", ".debug_info", 1 },
    { ".debug_abbrev.dwo", ".debug_abbrev", 3 },
    { ".debug_str_offsets.dwo", ".debug_str_offsets", 6 },
    { ".debug_rnglists.dwo", ".debug_rnglists", 8 },
    { ".debug_loclists.dwo", ".debug_loclists", 5 },
    { ".debug_loc.dwo", ".debug_loc", 5 },
};

typedef struct Skeleton {
    u64 id;
    u64 version;
    u64 addresses_base, ranges_base;
    u64 base_address;
    const char *file, *folder;
} Skeleton;

// ---- the skeleton ---------------------------------------------------------------------------

static const char *text_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    return dwarf_attr(die, attribute, &found) ? dwarf_formstring(&found) : NULL;
}

static u64 number_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    Dwarf_Word value = 0;
    if (dwarf_attr(die, attribute, &found) && dwarf_formudata(&found, &value) != 0)
        return 0;
    return value;
}

bool split_unit_is_skeleton(Dwarf_Die *unit)
{
    return dwarf_hasattr(unit, DW_AT_GNU_dwo_name) || dwarf_hasattr(unit, DW_AT_dwo_name);
}

static bool read_skeleton(Dwarf_Die *die, Skeleton *ret_skeleton)
{
    Dwarf_Half version = 0;
    u64 header_id = 0;

    dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, &header_id, NULL, NULL);
    Skeleton found = { .version = version, .folder = text_of(die, DW_AT_comp_dir) };
    found.file = text_of(die, version >= 5 ? DW_AT_dwo_name : DW_AT_GNU_dwo_name);
    found.id = version >= 5 ? header_id : number_of(die, DW_AT_GNU_dwo_id);
    found.addresses_base =
        number_of(die, version >= 5 ? DW_AT_addr_base : DW_AT_GNU_addr_base);
    found.ranges_base = version >= 5 ? 0 : number_of(die, DW_AT_GNU_ranges_base);
    Dwarf_Addr low;
    if (dwarf_lowpc(die, &low) == 0)
        found.base_address = low;
    *ret_skeleton = found;
    return found.file != NULL;
}

// ---- a package ------------------------------------------------------------------------------

static int copy_to_memfd(const PlainSection *bytes)
{
    int fd = memfd_create("muninn-dwp-strings", MFD_CLOEXEC);
    const u8 *next = bytes->data;
    size_t left = bytes->size;

    while (fd >= 0 && left) {
        ssize_t wrote = write(fd, next, left);
        if (wrote <= 0) {
            close(fd);
            return -1;
        }
        next += wrote;
        left -= (size_t)wrote;
    }
    return fd;
}

static bool open_package_file(SplitPackage *package, const char *path)
{
    PlainSection strings;
    void *owned;

    package->elf = elf_open(path, &package->fd);
    if (!package->elf)
        return false;
    section_bytes(package->elf, ".debug_cu_index", &package->index,
                  &package->owned[PACKAGE_SECTIONS]);
    for (size_t i = 0; i < PACKAGE_SECTIONS; i++)
        section_bytes(package->elf, split_sections[i].name, &package->sections[i],
                      &package->owned[i]);
    if (section_bytes(package->elf, ".debug_str.dwo", &strings, &owned)) {
        package->strings_fd = copy_to_memfd(&strings);
        package->strings_size = strings.size;
        free(owned);
    }
    return true;
}

static void open_package(SplitPackage *package, const char *program)
{
    char path[PATH_MAX];
    size_t length = strlen(program);

    if (package->is_tried)
        return;
    package->is_tried = true;
    package->strings_fd = -1;
    snprintf(path, sizeof path, "%s.dwp", program);
    if (open_package_file(package, path))
        return;
    // prog.debug, the separate debug info of prog, goes with prog.dwp
    if (length > 6 && strcmp(program + length - 6, ".debug") == 0) {
        snprintf(path, sizeof path, "%.*s.dwp", (int)(length - 6), program);
        open_package_file(package, path);
    }
}

void split_package_close(SplitPackage *package)
{
    for (size_t i = 0; i < ARRAY_LEN(package->owned); i++)
        free(package->owned[i]);
    if (package->elf) {
        elf_end(package->elf);
        close(package->fd);
        if (package->strings_fd >= 0)
            close(package->strings_fd);
    }
    *package = (SplitPackage){ 0 };
}

static u32 u32_at(const PlainSection *bytes, u64 at)
{
    u32 value = 0;
    if (at + sizeof value <= bytes->size)
        memcpy(&value, (const u8 *)bytes->data + at, sizeof value);
    return value;
}

// The row of a unit in the index of a package: an open hash table of ids. 0: it has none.
static u32 find_row(const PlainSection *index, u64 id, u32 slot_count)
{
    if (slot_count == 0 || (slot_count & (slot_count - 1)) ||
        INDEX_HEADER + 12ull * slot_count > index->size)
        return 0;
    u32 slot = (u32)id & (slot_count - 1), step = ((u32)(id >> 32) & (slot_count - 1)) | 1;
    for (u32 i = 0; i < slot_count; i++, slot = (slot + step) & (slot_count - 1)) {
        u64 found;
        memcpy(&found, (const u8 *)index->data + INDEX_HEADER + 8ull * slot, sizeof found);
        u32 row = u32_at(index, INDEX_HEADER + 8ull * slot_count + 4ull * slot);
        if (row == 0)
            return 0;
        if (found == id)
            return row;
    }
    return 0;
}

// Cuts the unit's part out of each section of the package.
static bool cut_from_package(const SplitPackage *package, u64 id, PlainSection *ret_sections)
{
    const PlainSection *index = &package->index;
    u32 columns = u32_at(index, 4), units = u32_at(index, 8), slots = u32_at(index, 12);
    u32 row = package->elf && index->data ? find_row(index, id, slots) : 0;

    if (row == 0 || row > units || columns > COLUMNS_MAX)
        return false;
    u64 names = INDEX_HEADER + 12ull * slots;
    u64 offsets = names + 4ull * columns + 4ull * columns * (row - 1);
    u64 sizes = offsets + 4ull * columns * units;
    if (sizes + 4ull * columns > index->size)
        return false;
    for (u32 i = 0; i < PACKAGE_SECTIONS; i++)
        for (u32 column = 0; column < columns; column++) {
            const PlainSection *whole = &package->sections[i];
            u64 offset = u32_at(index, offsets + 4ull * column);
            u64 size = u32_at(index, sizes + 4ull * column);
            if (u32_at(index, names + 4ull * column) != split_sections[i].column || !whole->data)
                continue;
            if (offset > whole->size || size > whole->size - offset)
                return false;
            ret_sections[i] = (PlainSection){ split_sections[i].plain,
                                              (const u8 *)whole->data + offset, size, NULL };
        }
    return ret_sections[0].data != NULL;
}

// ---- putting it together --------------------------------------------------------------------

// The program's section from a base on.
static void add_from_base(Elf *program, const char *name, u64 base, PlainSection *sections,
                          size_t *count, void **ret_owned)
{
    PlainSection whole = { 0 };
    *ret_owned = NULL;
    if (!section_bytes(program, name, &whole, ret_owned) || base > whole.size)
        return;
    sections[(*count)++] =
        (PlainSection){ name, (const u8 *)whole.data + base, whole.size - base, NULL };
}

static bool is_unit(Dwarf_Die *die, const Skeleton *skeleton)
{
    Dwarf_Half version = 0;
    u64 id = 0;
    u8 type = 0;

    dwarf_cu_info(die->cu, &version, &type, NULL, NULL, &id, NULL, NULL);
    if (version < 5)
        id = number_of(die, DW_AT_GNU_dwo_id);
    return dwarf_tag(die) == DW_TAG_compile_unit && id == skeleton->id;
}

static bool assemble(SplitUnit *split, const PlainSection *parts, const Skeleton *skeleton,
                     Elf *program, int strings_fd, size_t strings_size, Dwarf_Die *ret_tree)
{
    PlainSection sections[PACKAGE_SECTIONS + 2];
    void *owned[2] = { NULL, NULL };
    size_t count = 0;

    for (size_t i = 0; i < PACKAGE_SECTIONS; i++)
        if (parts[i].data)
            sections[count++] = parts[i];
    add_from_base(program, ".debug_addr", skeleton->addresses_base, sections, &count, &owned[0]);
    if (skeleton->version < 5)
        add_from_base(program, ".debug_ranges", skeleton->ranges_base, sections, &count,
                      &owned[1]);
    bool built = section_image_build(&split->image, sections, count, ".debug_str", strings_fd,
                                     strings_size);
    free(owned[0]);
    free(owned[1]);
    split->dwarf = built ? dwarf_begin_elf(split->image.elf, DWARF_C_READ, NULL) : NULL;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    while (split->dwarf &&
           dwarf_get_units(split->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
        if (is_unit(&die, skeleton)) {
            void *none;
            split->base_address = skeleton->base_address;
            section_bytes(split->image.elf, ".debug_ranges", &split->pairs, &none);
            section_bytes(split->image.elf, ".debug_rnglists", &split->lists, &none);
            section_bytes(split->image.elf, ".debug_addr", &split->addresses, &none);
            *ret_tree = die;
            return true;
        }
    split_unit_close(split);
    return false;
}

static bool try_dwo(SplitUnit *split, const char *path, const Skeleton *skeleton, Elf *program,
                    Dwarf_Die *ret_tree)
{
    PlainSection parts[PACKAGE_SECTIONS] = { 0 }, strings = { 0 };
    void *owned[PACKAGE_SECTIONS + 1] = { NULL };
    int fd, strings_fd = -1;
    Elf *elf = elf_open(path, &fd);

    if (!elf)
        return false;
    for (size_t i = 0; i < PACKAGE_SECTIONS; i++) {
        section_bytes(elf, split_sections[i].name, &parts[i], &owned[i]);
        parts[i].name = split_sections[i].plain;
    }
    if (section_bytes(elf, ".debug_str.dwo", &strings, &owned[PACKAGE_SECTIONS]))
        strings_fd = copy_to_memfd(&strings);
    bool found = parts[0].data && assemble(split, parts, skeleton, program, strings_fd,
                                           strings.size, ret_tree);
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        free(owned[i]);
    if (strings_fd >= 0)
        close(strings_fd);
    elf_end(elf);
    close(fd);
    return found;
}

bool split_unit_open(SplitUnit *split, SplitPackage *package, Elf *program, const char *path,
                     Dwarf_Die *skeleton_die, Dwarf_Die *ret_tree)
{
    PlainSection parts[PACKAGE_SECTIONS] = { 0 };
    char dwo[PATH_MAX];
    Skeleton skeleton;

    if (!program || !read_skeleton(skeleton_die, &skeleton))
        return false;
    open_package(package, path);
    if (cut_from_package(package, skeleton.id, parts) &&
        assemble(split, parts, &skeleton, program, package->strings_fd, package->strings_size,
                 ret_tree))
        return true;

    const char *slash = strrchr(path, '/'), *base = strrchr(skeleton.file, '/');
    int folder = slash ? (int)(slash - path) : 0;
    if (skeleton.file[0] == '/')
        snprintf(dwo, sizeof dwo, "%s", skeleton.file);
    else
        snprintf(dwo, sizeof dwo, "%s/%s", skeleton.folder ? skeleton.folder : ".", skeleton.file);
    if (try_dwo(split, dwo, &skeleton, program, ret_tree))
        return true;
    snprintf(dwo, sizeof dwo, "%.*s/%s", folder, path, skeleton.file);
    if (try_dwo(split, dwo, &skeleton, program, ret_tree))
        return true;
    snprintf(dwo, sizeof dwo, "%.*s/%s", folder, path, base ? base + 1 : skeleton.file);
    return try_dwo(split, dwo, &skeleton, program, ret_tree);
}

void split_unit_close(SplitUnit *split)
{
    if (split->dwarf)
        dwarf_end(split->dwarf);
    split->dwarf = NULL;
    section_image_free(&split->image);
}
