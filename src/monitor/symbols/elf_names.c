// SPDX-License-Identifier: MIT
//
// Symbol tables of files and of the client's memory, and lookup in what they gave. Tables are
// hostile: counts, offsets and ends of strings are checked, and a lookup looks at a
// bounded number of names.
#include "monitor/symbols/elf_names.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX        (32 * 1024 * 1024)
#define LOOK_BACK_MAX    256
#define MEMORY_NAMES_MAX 1000000
#define STRING_TABLE_MAX (256 * MiB)

// What weighs against a name, heaviest first; the underscores and the binding come below.
#define RANK_STUB  255
#define RANK_LABEL 64
#define RANK_OLD   32

static bool add_name(ElfNames *names, const ElfName *name)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? 2 * names->capacity : 1024;
        ElfName *grown = capacity > NAMES_MAX
                             ? NULL
                             : realloc(names->list, capacity * sizeof *names->list);
        if (!grown)
            return false;
        names->list = grown;
        names->capacity = capacity;
    }
    names->list[names->count++] = *name;
    return true;
}

// People know `puts` and `malloc`, which are aliases of _IO_puts and __libc_malloc; binding
// decides only between equals.
static u8 rank_of(const char *name, u8 type, u8 binding)
{
    u8 underscores = 0;
    while (name[underscores] == '_' && underscores < 3)
        underscores++;
    // _Z, _R and _D begin mangled names.
    if (underscores == 1 && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D'))
        underscores = 0;
    u8 by_binding = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
    u8 versioned = strchr(name, '@') != NULL;
    return (u8)((type == STT_NOTYPE) * RANK_LABEL + underscores * 8 + versioned * 4 + by_binding);
}

static bool is_wanted(const Elf64_Sym *symbol, ElfNameKind kind, bool section_is_code)
{
    u8 type = ELF64_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name == 0 || symbol->st_shndx == SHN_ABS)
        return false;
    if (kind == ELF_NAMES_DATA)
        return type == STT_OBJECT || type == STT_COMMON;
    return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && section_is_code);
}

static void add_symbol(ElfNames *names, const Elf64_Sym *symbol, const char *name, u8 handicap)
{
    u8 type = ELF64_ST_TYPE(symbol->st_info);
    if (!*name || symbol->st_value + symbol->st_size < symbol->st_value)
        return;
    // Mapping symbols and labels of assemblers name no function.
    if (type == STT_NOTYPE && (*name == '$' || *name == '.'))
        return;
    add_name(names, &(ElfName){
                        .address = symbol->st_value,
                        .size = symbol->st_size,
                        .name = name,
                        .rank = rank_of(name, type, ELF64_ST_BIND(symbol->st_info)) | handicap,
                    });
}

static bool section_is_code(Elf *elf, u32 index)
{
    GElf_Shdr section;
    Elf_Scn *scn = elf_getscn(elf, index);
    return scn && gelf_getshdr(scn, &section) && (section.sh_flags & SHF_EXECINSTR);
}

// The versions of the dynamic symbols, one u16 each. NULL: there are none.
static Elf_Data *versions_of(Elf *elf, Elf_Scn *dynamic)
{
    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr section;
        if (gelf_getshdr(scn, &section) && section.sh_type == SHT_GNU_versym &&
            section.sh_link == elf_ndxscn(dynamic))
            return elf_getdata(scn, NULL);
    }
    return NULL;
}

// Kept for old programs only, as `cfree` beside `free`.
static bool is_old_version(const Elf_Data *versions, size_t index)
{
    u16 version;
    if (!versions || !versions->d_buf || index >= versions->d_size / sizeof version)
        return false;
    memcpy(&version, (const u8 *)versions->d_buf + index * sizeof version, sizeof version);
    return version & 0x8000;
}

static void add_table(ElfNames *names, Elf *elf, Elf_Scn *scn, const GElf_Shdr *section,
                      ElfNameKind kind)
{
    Elf_Data *symbols = elf_getdata(scn, NULL);
    Elf_Scn *strings_scn = elf_getscn(elf, section->sh_link);
    Elf_Data *strings = strings_scn ? elf_getdata(strings_scn, NULL) : NULL;

    if (!symbols || !symbols->d_buf || !strings || !strings->d_buf)
        return;
    // Up to its last zero every string in the table ends in the table.
    const char *text = strings->d_buf;
    const char *last = memrchr(text, '\0', strings->d_size);
    size_t text_size = last ? (size_t)(last - text) + 1 : 0;
    size_t count = symbols->d_size / sizeof(Elf64_Sym);
    Elf_Data *versions = section->sh_type == SHT_DYNSYM ? versions_of(elf, scn) : NULL;
    u32 known_index = 0;
    bool known_is_code = false;

    for (size_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, (const u8 *)symbols->d_buf + i * sizeof symbol, sizeof symbol);
        if (symbol.st_shndx != known_index) {
            known_index = symbol.st_shndx;
            known_is_code = section_is_code(elf, known_index);
        }
        if (is_wanted(&symbol, kind, known_is_code) && symbol.st_name < text_size)
            add_symbol(names, &symbol, text + symbol.st_name,
                       is_old_version(versions, i) ? RANK_OLD : 0);
    }
}

void elf_names_add_file(ElfNames *names, Elf *elf, ElfNameKind kind)
{
    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr section;
        if (gelf_getshdr(scn, &section) &&
            (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM))
            add_table(names, elf, scn, &section, kind);
    }
}

bool elf_names_add_stub(ElfNames *names, u64 address, u64 size, char *name)
{
    return add_name(names, &(ElfName){ .address = address, .size = size, .name = name,
                                        .rank = RANK_STUB, .is_owned = true });
}

// ---- without section headers ----------------------------------------------------------------

typedef struct DynamicTables {
    u64 symbols, strings, strings_size, hash, gnu_hash;
} DynamicTables;

// ld.so relocates these entries in place in the client's memory, but not in all libraries.
static u64 to_vaddr(const Image *image, u64 value)
{
    u64 low, high;
    image_extent(image, &low, &high);
    if (!image->elf && value >= image->bias + low && value < image->bias + high)
        return value - image->bias;
    return value;
}

static bool find_tables(const Image *image, DynamicTables *ret_tables)
{
    DynamicTables tables = { 0 };
    for (u64 at = 0; at + sizeof(Elf64_Dyn) <= image->dynamic_size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (!image_read(image, image->dynamic_vaddr + at, &entry, sizeof entry))
            return false;
        switch (entry.d_tag) {
        case DT_NULL: at = image->dynamic_size; break;
        case DT_SYMTAB: tables.symbols = to_vaddr(image, entry.d_un.d_ptr); break;
        case DT_STRTAB: tables.strings = to_vaddr(image, entry.d_un.d_ptr); break;
        case DT_STRSZ: tables.strings_size = entry.d_un.d_val; break;
        case DT_HASH: tables.hash = to_vaddr(image, entry.d_un.d_ptr); break;
        case DT_GNU_HASH: tables.gnu_hash = to_vaddr(image, entry.d_un.d_ptr); break;
        }
    }
    *ret_tables = tables;
    return tables.symbols && tables.strings && tables.strings_size &&
           tables.strings_size <= STRING_TABLE_MAX;
}

// The GNU hash table does not say how many symbols there are: the chain of the highest bucket ends
// with the last one.
static u64 count_by_gnu_hash(const Image *image, u64 table)
{
    u32 head[4]; // buckets, first symbol, words of the filter, shift
    if (!image_read(image, table, head, sizeof head) || head[0] > MEMORY_NAMES_MAX)
        return 0;
    u64 buckets = table + sizeof head + 8ull * head[2], chains = buckets + 4ull * head[0];
    u32 highest = 0;
    for (u32 i = 0; i < head[0]; i++) {
        u32 first;
        if (!image_read(image, buckets + 4ull * i, &first, sizeof first))
            return 0;
        highest = first > highest ? first : highest;
    }
    if (highest < head[1])
        return head[1];
    for (u32 i = highest; i < MEMORY_NAMES_MAX; i++) {
        u32 hash;
        if (!image_read(image, chains + 4ull * (i - head[1]), &hash, sizeof hash))
            return 0;
        if (hash & 1)
            return (u64)i + 1;
    }
    return 0;
}

static u64 count_symbols(const Image *image, const DynamicTables *tables)
{
    u32 head[2]; // buckets, chains: as many as symbols
    if (tables->hash && image_read(image, tables->hash, head, sizeof head))
        return min_u64(head[1], MEMORY_NAMES_MAX);
    return tables->gnu_hash ? count_by_gnu_hash(image, tables->gnu_hash) : 0;
}

void elf_names_add_dynamic(ElfNames *names, const Image *image, ElfNameKind kind)
{
    DynamicTables tables;
    if (!find_tables(image, &tables))
        return;
    u64 count = count_symbols(image, &tables);
    char *text = malloc(tables.strings_size + 1);
    if (!text || !image_read(image, tables.strings, text, tables.strings_size)) {
        free(text);
        return;
    }
    text[tables.strings_size] = '\0';
    for (u64 i = 0; i < count; i++) {
        Elf64_Sym symbol;
        if (!image_read(image, tables.symbols + i * sizeof symbol, &symbol, sizeof symbol))
            break;
        if (!is_wanted(&symbol, kind, false) || symbol.st_name >= tables.strings_size)
            continue;
        char *name = strdup(text + symbol.st_name);
        size_t before = names->count;
        if (name)
            add_symbol(names, &symbol, name, 0);
        if (names->count > before)
            names->list[before].is_owned = true;
        else
            free(name);
    }
    free(text);
}

// ---- lookup ---------------------------------------------------------------------------------

static int by_address(const void *left, const void *right)
{
    const ElfName *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    // A name without a size only marks a spot; one with a size says what is there.
    if (!a->size != !b->size)
        return !a->size ? 1 : -1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    size_t a_length = strlen(a->name), b_length = strlen(b->name);
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    return strcmp(a->name, b->name);
}

void elf_names_seal(ElfNames *names)
{
    size_t kept = 0;
    u64 reach = 0;

    if (names->count)
        qsort(names->list, names->count, sizeof *names->list, by_address);
    for (size_t i = 0; i < names->count; i++) {
        ElfName *name = &names->list[i];
        if (kept && names->list[kept - 1].address == name->address) {
            ElfName *shown = &names->list[kept - 1];
            size_t length = strlen(shown->name);
            if (strncmp(name->name, shown->name, length) == 0 && name->name[length] == '@' &&
                !name->is_owned)
                shown->versioned = name->name;
            if (name->is_owned)
                free((char *)name->name);
            continue;
        }
        reach = max_u64(reach, name->address + name->size);
        name->reach = reach;
        names->list[kept++] = *name;
    }
    names->count = kept;
}

const ElfName *elf_names_find(const ElfNames *names, u64 address)
{
    size_t low = 0, high = names->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->list[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const ElfName *spot = NULL;
    for (size_t i = 0; i < LOOK_BACK_MAX && low > 0; i++, low--) {
        const ElfName *name = &names->list[low - 1];
        if (address - name->address < name->size)
            return name;
        if (!name->size && !spot && i == 0)
            spot = name;
        if (name->reach <= address)
            break;
    }
    return spot;
}

void elf_names_free(ElfNames *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->list[i].is_owned)
            free((char *)names->list[i].name);
    free(names->list);
    *names = (ElfNames){ 0 };
}
