// SPDX-License-Identifier: MIT
//
// The list of mappings is sorted and searched by bisection; files are found again by path
// and inode, then told apart by build id, or by size and time of change.
#include "monitor/symbols/module_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BELOW_MODULE_MAX (64 * GiB)

void module_table_init(ModuleTable *table)
{
    *table = (ModuleTable){ 0 };
    vec_init(&table->modules, sizeof(Module));
    vec_init(&table->kept, sizeof(KeptMapping));
    vec_push(&table->modules, NULL);
}

void module_table_free(ModuleTable *table)
{
    for (size_t i = 0; i < table->modules.count; i++)
        map_free(&((Module *)vec_at(&table->modules, i))->frames);
    vec_free(&table->modules);
    vec_free(&table->kept);
    map_free(&table->by_file);
    free(table->mappings);
    *table = (ModuleTable){ 0 };
}

Module *module_at(const ModuleTable *table, u32 number)
{
    return number && number < table->modules.count ? vec_at(&table->modules, number) : NULL;
}

// ---- modules --------------------------------------------------------------------------------

static u64 file_key(const ModuleSpec *spec)
{
    // Paths are kept once, so that equal paths are the same pointer.
    return (u64)(uintptr_t)spec->path ^ spec->inode * 0x9e3779b97f4a7c15ull;
}

static bool is_same_file(const ModuleSpec *a, const ModuleSpec *b)
{
    return a->path == b->path && a->inode == b->inode && a->size_bytes == b->size_bytes &&
           a->mtime_ns == b->mtime_ns && a->build_id_size == b->build_id_size &&
           memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static void describe_file(const SymbolsMapping *mapping, const char *path, ModuleSpec *ret_spec)
{
    struct stat status;
    ModuleSpec spec = { .path = path, .inode = mapping->inode };

    if (mapping->build_id && mapping->build_id_size <= READER_BUILD_ID_MAX) {
        memcpy(spec.build_id, mapping->build_id, mapping->build_id_size);
        spec.build_id_size = (u32)mapping->build_id_size;
    } else if (path[0] == '/' && stat(path, &status) == 0 &&
               (!mapping->inode || mapping->inode == status.st_ino)) {
        // Tells a file that is overwritten later. A look at the inode opens no file.
        spec.inode = status.st_ino;
        spec.size_bytes = (u64)status.st_size;
        spec.mtime_ns =
            (u64)status.st_mtim.tv_sec * 1000000000ull + (u64)status.st_mtim.tv_nsec;
    }
    *ret_spec = spec;
}

static u32 find_module(const ModuleTable *table, const ModuleSpec *spec)
{
    u64 number = 0;
    map_get(&table->by_file, file_key(spec), &number);
    while (number && !is_same_file(&module_at(table, (u32)number)->spec, spec))
        number = module_at(table, (u32)number)->next;
    return (u32)number;
}

static u32 add_module(ModuleTable *table, const ModuleSpec *spec)
{
    u32 number = table->first_free;
    u64 older = 0;

    if (!number && !vec_push(&table->modules, NULL))
        return 0;
    if (!number)
        number = (u32)(table->modules.count - 1);
    else
        table->first_free = module_at(table, number)->next;
    map_get(&table->by_file, file_key(spec), &older);
    *module_at(table, number) =
        (Module){ .spec = *spec, .is_jit = spec->path[0] == '\0', .next = (u32)older };
    map_put(&table->by_file, file_key(spec), number);
    return number;
}

static void drop_module(ModuleTable *table, u32 number)
{
    Module *module = module_at(table, number);
    u64 key = file_key(&module->spec), first = 0;

    map_get(&table->by_file, key, &first);
    if (first == number && module->next) {
        map_put(&table->by_file, key, module->next);
    } else if (first == number) {
        map_remove(&table->by_file, key);
    } else {
        for (u32 i = (u32)first; i; i = module_at(table, i)->next)
            if (module_at(table, i)->next == number)
                module_at(table, i)->next = module->next;
    }
    *module = (Module){ .next = table->first_free };
    table->first_free = number;
}

static void forget_mapping(ModuleTable *table, u32 number)
{
    Module *module = module_at(table, number);
    if (--module->mapping_count == 0 && !module->is_asked)
        drop_module(table, number);
}

// ---- mappings -------------------------------------------------------------------------------

// The first mapping that ends above an address.
static size_t mapping_index(const ModuleTable *table, u64 address)
{
    size_t low = 0, high = table->mapping_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->mappings[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool insert_mapping(ModuleTable *table, size_t at, const Mapping *mapping)
{
    if (table->mapping_count == table->mapping_capacity) {
        size_t capacity = table->mapping_capacity ? 2 * table->mapping_capacity : 64;
        Mapping *grown = realloc(table->mappings, capacity * sizeof *grown);
        if (!grown)
            return false;
        table->mappings = grown;
        table->mapping_capacity = capacity;
    }
    memmove(&table->mappings[at + 1], &table->mappings[at],
            (table->mapping_count - at) * sizeof *mapping);
    table->mappings[at] = *mapping;
    table->mapping_count++;
    module_at(table, mapping->module)->mapping_count++;
    return true;
}

void module_table_unmap(ModuleTable *table, u64 start, u64 size)
{
    u64 end = start + size < start ? ~0ull : start + size;

    for (size_t i = mapping_index(table, start);
         i < table->mapping_count && table->mappings[i].start < end;) {
        Mapping *mapping = &table->mappings[i], old = *mapping;
        if (old.start < start && old.end > end) {
            mapping->end = start;
            Mapping rest = { end, old.end, old.file_offset + (end - old.start), old.module };
            insert_mapping(table, i + 1, &rest);
            return;
        }
        if (old.start < start) {
            mapping->end = start;
            i++;
        } else if (old.end > end) {
            mapping->file_offset += end - old.start;
            mapping->start = end;
            return;
        } else {
            memmove(mapping, mapping + 1, (--table->mapping_count - i) * sizeof *mapping);
            forget_mapping(table, old.module);
        }
    }
}

void module_table_map(ModuleTable *table, const SymbolsMapping *mapping, const char *path)
{
    if (mapping->size == 0 || mapping->start + mapping->size < mapping->start)
        return;
    module_table_unmap(table, mapping->start, mapping->size);
    bool is_anonymous = path[0] == '\0';
    // Only code is interesting in memory that has no file.
    if (is_anonymous && !mapping->executable)
        return;
    ModuleSpec spec;
    describe_file(mapping, path, &spec);
    u32 module = find_module(table, &spec);
    if (!module)
        module = add_module(table, &spec);
    if (!module)
        return;
    Mapping added = { mapping->start, mapping->start + mapping->size,
                      is_anonymous ? mapping->start : mapping->file_offset, module };
    insert_mapping(table, mapping_index(table, mapping->start), &added);
}

const Mapping *module_table_find(const ModuleTable *table, u64 address)
{
    size_t i = mapping_index(table, address);
    return i < table->mapping_count && address >= table->mappings[i].start ? &table->mappings[i]
                                                                           : NULL;
}

void module_table_keep(ModuleTable *table, u64 start, u64 size, u32 unloading)
{
    u64 end = start + size < start ? ~0ull : start + size;

    for (size_t i = mapping_index(table, start);
         i < table->mapping_count && table->mappings[i].start < end; i++) {
        KeptMapping kept = { table->mappings[i], unloading };
        if (vec_push(&table->kept, &kept))
            module_at(table, kept.mapping.module)->is_asked = true;
    }
}

const Mapping *module_table_find_kept(const ModuleTable *table, u64 address, u32 unloading)
{
    const KeptMapping *kept = (const KeptMapping *)table->kept.data;
    size_t low = 0, high = table->kept.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (kept[middle].unloading < unloading)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < table->kept.count && kept[low].unloading == unloading; low++) {
        const Mapping *mapping = &kept[low].mapping;
        if (address >= mapping->start && address < mapping->end)
            return mapping;
    }
    return NULL;
}

bool module_table_is_live(const ModuleTable *table, CodePlace place)
{
    for (size_t i = 0; i < table->mapping_count; i++) {
        const Mapping *mapping = &table->mappings[i];
        if (mapping->module == place.module &&
            place.offset - mapping->file_offset < mapping->end - mapping->start)
            return true;
    }
    return false;
}

u64 module_table_header(const ModuleTable *table, u32 number)
{
    for (size_t i = 0; i < table->mapping_count; i++)
        if (table->mappings[i].module == number && table->mappings[i].file_offset == 0)
            return table->mappings[i].start;
    return 0;
}

const Mapping *module_table_header_below(const ModuleTable *table, u64 address)
{
    size_t i = mapping_index(table, address);
    if (i == table->mapping_count || address < table->mappings[i].start)
        i--;
    u32 module = i < table->mapping_count ? table->mappings[i].module : 0;
    for (; i < table->mapping_count; i--) {
        const Mapping *mapping = &table->mappings[i];
        if (address - mapping->start > BELOW_MODULE_MAX)
            return NULL;
        if (mapping->module == module && mapping->file_offset == 0)
            return mapping;
    }
    return NULL;
}
