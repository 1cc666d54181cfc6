// SPDX-License-Identifier: MIT
//
// Comparison of symbol names with the tool's table. Exact names are found by a
// hash of the name; a bitmap of the first two letters spares most symbols even
// that, so that a table of 100,000 symbols takes about a millisecond. Patterns
// are tried one by one.
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/wrap_name.h"
#include "engine/aspace/aspace.h"
#include "engine/log/log.h"
#include "engine/redirect/elf_symbols.h"
#include "engine/redirect/redirect_internal.h"
#include "engine/redirect/synonyms.h"

#define FUNCTIONS_MAX 1024u
#define SLOTS (4 * FUNCTIONS_MAX)

static u16 slots[SLOTS];         // 1 + row of an exact name, by hash, open addressing
static u16 patterns[FUNCTIONS_MAX]; // rows whose name is a pattern
static u32 pattern_count;
static u64 first_letters[1024];  // a bit for every pair of bytes that begins an exact name
static bool has_own_operators;   // the program, and they are left alone

bool name_matches(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

static u32 hash_name(const char *name)
{
    u32 h = 5381;
    for (; *name; name++)
        h = h * 33 + (u8)*name;
    return h ^ h >> 15;
}

static u32 letters_of(const char *name)
{
    return (u32)(u8)name[0] << 8 | (u8)name[1]; // the second may be the NUL
}

void names_init(void)
{
    ASSERT(tool->function_count <= FUNCTIONS_MAX);
    for (u32 row = 0; row < tool->function_count; row++) {
        const char *name = tool->functions[row].name;
        ASSERT(name && *name);
        if (strpbrk(name, "*?")) {
            patterns[pattern_count++] = (u16)row;
            continue;
        }
        u32 letters = letters_of(name);
        first_letters[letters >> 6] |= 1ull << (letters & 63);
        u32 slot = hash_name(name) % SLOTS;
        while (slots[slot])
            slot = (slot + 1) % SLOTS;
        slots[slot] = (u16)(row + 1);
    }
}

// ---------------------------------------------------------------- one file

typedef struct Matching {
    const Mapping *mapping;
    u64 bias;
    bool is_system; // a C or C++ library
    bool locals; // those of a static program: its libraries' hidden functions are among them
    bool wanted[FUNCTIONS_MAX]; // rows whose object pattern names this file
} Matching;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_system_library(const char *object)
{
    static const char *const patterns_of_them[] = {"libc.*", "libc-*", "ld-*", "libstdc++.*",
                                                   "libc++.*", "libc++abi.*"};
    for (unsigned i = 0; i < ARRAY_LEN(patterns_of_them); i++) {
        if (name_matches(patterns_of_them[i], object))
            return true;
    }
    return false;
}

static bool is_operator(const char *name)
{
    return strncmp(name, "_Zn", 3) == 0 || strncmp(name, "_Zd", 3) == 0;
}

// Where the program's operators are left alone those of the C++ library are, too: the library's
// new[] calls the program's new, and its delete frees what the program's new has from malloc.
static bool is_left_alone(const Matching *m, u32 row)
{
    if (row >= tool->allocation_count || !synonyms_only_libraries())
        return false;
    return !m->is_system || (has_own_operators && is_operator(tool->functions[row].name));
}

static bool choose_rows(Matching *m, const ElfFile *file)
{
    const char *object = file->soname[0] ? file->soname : base_name(m->mapping->name);
    bool any = false, any_alone = false;
    m->is_system = is_system_library(object);
    for (u32 row = 0; row < tool->function_count; row++) {
        const char *pattern = tool->functions[row].object;
        bool is_alone = is_left_alone(m, row);
        m->wanted[row] = !is_alone && (!pattern || name_matches(pattern, object));
        any |= m->wanted[row];
        any_alone |= is_alone;
    }
    return any || any_alone;
}

// What the user has named may be hidden, and in whatever object.
static void hook_symbol(const Matching *m, u32 row, const Elf64_Sym *symbol, bool is_named)
{
    const ToolFunction *function = &tool->functions[row];
    bool local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL;
    bool is_wanted = m->wanted[row] || (is_named && !function->object);
    if (!local && !m->is_system && is_left_alone(m, row) && is_operator(function->name))
        has_own_operators = true;
    bool may_be_local = is_named || m->locals || function->flags & TOOL_FUNCTION_LOCAL;
    if (!is_wanted || (local && !may_be_local))
        return;
    GuestAddr at = symbol->st_value + m->bias;
    hooks_add_entry(at, symbol->st_size, function,
                    ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC, at, m->mapping);
}

static void match_exact(const Matching *m, const char *name, const Elf64_Sym *symbol,
                        bool is_named)
{
    u32 letters = letters_of(name);
    if (!name[0] || !(first_letters[letters >> 6] >> (letters & 63) & 1))
        return;
    for (u32 slot = hash_name(name) % SLOTS; slots[slot]; slot = (slot + 1) % SLOTS) {
        u32 row = slots[slot] - 1u;
        if (strcmp(tool->functions[row].name, name) == 0)
            hook_symbol(m, row, symbol, is_named);
    }
}

static void match_name(const Matching *m, const char *name, const Elf64_Sym *symbol)
{
    match_exact(m, name, symbol, false);
    const char *stands_for = synonyms_find(name);
    if (UNLIKELY(stands_for != NULL))
        match_exact(m, stands_for, symbol, true);
    for (u32 i = 0; i < pattern_count; i++) {
        if (name_matches(tool->functions[patterns[i]].name, name))
            hook_symbol(m, patterns[i], symbol, false);
    }
}

static bool is_code_here(const Matching *m, const Elf64_Sym *symbol)
{
    u8 type = ELF64_ST_TYPE(symbol->st_info);
    GuestAddr at = symbol->st_value + m->bias;
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           at >= m->mapping->start && at < m->mapping->end;
}

static void match_table(const Matching *m, const ElfSymbols *table)
{
    redirect_stats.symbols += table->count;
    for (u64 i = 0; i < table->count; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];
        if (is_code_here(m, symbol) && symbol->st_name < table->strings_size)
            match_name(m, table->strings + symbol->st_name, symbol);
    }
}

// ---------------------------------------------------------------- the program's own

static bool note_wraps(const Matching *m, const ElfSymbols *table)
{
    bool any = false;
    for (u64 i = 0; i < table->count; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];
        if (symbol->st_name < table->strings_size &&
            wrap_name_begins(table->strings + symbol->st_name) && is_code_here(m, symbol))
            any |= wraps_note(table->strings + symbol->st_name, symbol->st_value + m->bias);
    }
    return any;
}

// A symbol of a version that others are not linked with any more goes by its version only, as in
// .symtab.
static void apply_wraps(const Matching *m, ElfFile *file, const ElfSymbols *table)
{
    static char versioned[WRAP_NAME_MAX];
    bool has_versions = table->is_dynamic && elf_read_versions(file);
    for (u64 i = 0; i < table->count; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];
        if (!is_code_here(m, symbol) || symbol->st_name >= table->strings_size)
            continue;
        const char *name = table->strings + symbol->st_name;
        bool is_resolver = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC, is_default = true;
        const char *version = has_versions ? elf_version(file, table, i, &is_default) : NULL;
        GuestAddr at = symbol->st_value + m->bias;
        if (is_default)
            wraps_apply(name, symbol->st_size, is_resolver, at);
        if (version && snprintf(versioned, sizeof(versioned), "%s%s%s", name,
                                is_default ? "@@" : "@", version) < (int)sizeof(versioned))
            wraps_apply(versioned, symbol->st_size, is_resolver, at);
    }
}

// ---------------------------------------------------------------- what must be there

static const OptionList *required;

void names_require(const OptionList *wanted)
{
    required = wanted;
}

static bool has_function(const Matching *m, const ElfSymbols *table, const char *pattern)
{
    for (u64 i = 0; i < table->count; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];
        if (is_code_here(m, symbol) && symbol->st_name < table->strings_size &&
            name_matches(pattern, table->strings + symbol->st_name))
            return true;
    }
    return false;
}

static void check_required(const Matching *m, const ElfFile *object, const ElfSymbols *tables,
                           u32 count)
{
    OptionTextSymbol wanted;
    for (u32 i = 0; required && i < required->count; i++) {
        bool is_there = !options_text_symbol(required->items[i], &wanted) ||
                        !name_matches(wanted.soname, object->soname[0] ? object->soname : "NONE");
        for (u32 j = 0; j < count && !is_there; j++)
            is_there = has_function(m, &tables[j], wanted.function);
        if (!is_there)
            log_refuse("--require-text-symbol=%s: %s has no such function", required->items[i],
                       m->mapping->name);
    }
}

// ---------------------------------------------------------------- one file, in order

static Matching matching; // these two: the engine lock is held
static ElfFile file;

static bool open_file(int fd, const Mapping *mapping)
{
    matching.mapping = mapping;
    return elf_open(fd, &file) &&
           elf_load_bias(&file, mapping->start, mapping->offset, &matching.bias);
}

bool names_match_file(int fd, const Mapping *mapping)
{
    ElfSymbols tables[2];
    u32 count = 0;
    bool any = false;

    if (open_file(fd, mapping)) {
        bool tool_cares = choose_rows(&matching, &file);
        redirect_stats.modules++;
        matching.locals = file.is_static_program;
        count += elf_dynamic_symbols(&file, &tables[count]);
        count += elf_full_symbols(&file, &tables[count]);
        for (u32 i = 0; i < count; i++) {
            if (tool_cares)
                match_table(&matching, &tables[i]);
            any |= note_wraps(&matching, &tables[i]);
        }
        check_required(&matching, &file, tables, count);
        bool has_wraps = count && wraps_choose(file.soname);
        for (u32 i = 0; i < count && has_wraps; i++)
            apply_wraps(&matching, &file, &tables[i]);
    }
    elf_close(&file);
    return any;
}

void names_match_wraps(int fd, const Mapping *mapping)
{
    ElfSymbols table;
    if (open_file(fd, mapping) && wraps_choose(file.soname)) {
        if (elf_dynamic_symbols(&file, &table))
            apply_wraps(&matching, &file, &table);
        if (elf_full_symbols(&file, &table))
            apply_wraps(&matching, &file, &table);
    }
    elf_close(&file);
}
