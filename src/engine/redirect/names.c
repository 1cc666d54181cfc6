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
#include "engine/redirect/own_allocator.h"
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
    bool has_table; // its allocator is entered through a table as well: it is left alone
    bool has_names; // that somebody could want, whether he gets the function or not
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

static const char *object_name(const Matching *m, const ElfFile *file)
{
    return file->soname[0] ? file->soname : base_name(m->mapping->name);
}

// Where the program's operators are left alone those of the C++ library are, too: the library's
// new[] calls the program's new, and its delete frees what the program's new has from malloc.
static bool is_left_alone(const Matching *m, u32 row)
{
    const ToolFunction *function = &tool->functions[row];
    if (row >= tool->allocation_count)
        return false;
    if (!m->is_system)
        return synonyms_only_libraries() || (m->has_table && function->replace);
    return has_own_operators && is_operator(function->name);
}

static bool choose_rows(Matching *m, const ElfFile *file)
{
    const char *object = object_name(m, file);
    bool any = false, any_alone = false;
    for (u32 row = 0; row < tool->function_count; row++) {
        const char *pattern = tool->functions[row].object;
        bool is_alone = is_left_alone(m, row);
        m->wanted[row] = !is_alone && (!pattern || name_matches(pattern, object));
        any |= m->wanted[row];
        any_alone |= is_alone;
    }
    return any || any_alone;
}

// `malloc` that only jumps to what others in its object call by another name. Operators may jump to
// a function that is no operator.
static void hook_what_it_jumps_to(const Matching *m, const ToolFunction *function, GuestAddr at)
{
    bool allocates = function < tool->functions + tool->allocation_count && function->replace;
    if (m->is_system || m->locals || !allocates || is_operator(function->name))
        return;
    GuestAddr target = own_allocator_jump_target(at);
    if (target >= m->mapping->start && target < m->mapping->end)
        hooks_add_entry(target, 0, function, false, at, m->mapping);
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
    if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
        hook_what_it_jumps_to(m, function, at);
}

static void match_exact(Matching *m, const char *name, const Elf64_Sym *symbol,
                        bool is_named)
{
    u32 letters = letters_of(name);
    if (!name[0] || !(first_letters[letters >> 6] >> (letters & 63) & 1))
        return;
    for (u32 slot = hash_name(name) % SLOTS; slots[slot]; slot = (slot + 1) % SLOTS) {
        u32 row = slots[slot] - 1u;
        if (strcmp(tool->functions[row].name, name) != 0)
            continue;
        m->has_names = true;
        hook_symbol(m, row, symbol, is_named);
    }
}

static void match_name(Matching *m, const char *name, const Elf64_Sym *symbol)
{
    match_exact(m, name, symbol, false);
    const char *stands_for = synonyms_find(name);
    if (UNLIKELY(stands_for != NULL))
        match_exact(m, stands_for, symbol, true);
    for (u32 i = 0; i < pattern_count; i++) {
        if (!name_matches(tool->functions[patterns[i]].name, name))
            continue;
        m->has_names = true;
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

static void match_table(Matching *m, const ElfSymbols *table)
{
    redirect_stats.symbols += table->count;
    for (u64 i = 0; i < table->count; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];
        if (is_code_here(m, symbol) && symbol->st_name < table->strings_size)
            match_name(m, table->strings + symbol->st_name, symbol);
    }
}

// ---------------------------------------------------------------- the program's own

static bool note_wraps(Matching *m, const ElfSymbols *table)
{
    bool any = false;
    for (u64 i = 0; i < table->count; i++) {
        const Elf64_Sym *symbol = &table->symbols[i];
        if (symbol->st_name >= table->strings_size ||
            !wrap_name_begins(table->strings + symbol->st_name) || !is_code_here(m, symbol))
            continue;
        m->has_names = true;
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

// ---------------------------------------------------------------- an allocator of its own

// The exported function that frees; 0: there is none here.
static GuestAddr find_free(const Matching *m, const ElfSymbols *tables, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        for (u64 j = 0; tables[i].is_dynamic && j < tables[i].count; j++) {
            const Elf64_Sym *symbol = &tables[i].symbols[j];
            if (is_code_here(m, symbol) && symbol->st_name < tables[i].strings_size &&
                ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
                strcmp(tables[i].strings + symbol->st_name, "free") == 0)
                return symbol->st_value + m->bias;
        }
    }
    return 0;
}

// Decides what becomes of it, before rows are chosen.
static void judge_allocator(Matching *m, const ElfFile *object, const ElfSymbols *tables, u32 count)
{
    m->is_system = is_system_library(object_name(m, object));
    m->has_table = false;
    bool may_be_own = tool->allocation_count && tool->functions[0].replace && !m->is_system &&
                      !object->is_static_program && !synonyms_only_libraries();
    GuestAddr at = may_be_own ? find_free(m, tables, count) : 0;
    if (!at)
        return;
    m->has_names = true;
    m->has_table = !synonyms_names_object(object->soname) && own_allocator_has_table(at);
    if (m->has_table)
        own_allocator_left_alone(m->mapping);
    else
        own_allocator_replaced(m->mapping);
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

// True: there are new specifications.
static bool match_file(int fd, const Mapping *mapping)
{
    ElfSymbols tables[2];
    u32 count = 0;
    bool any = false;

    matching.has_names = false;
    if (open_file(fd, mapping)) {
        redirect_stats.modules++;
        matching.locals = file.is_static_program;
        count += elf_dynamic_symbols(&file, &tables[count]);
        count += elf_full_symbols(&file, &tables[count]);
        judge_allocator(&matching, &file, tables, count);
        bool tool_cares = choose_rows(&matching, &file);
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

// A specification may be about any name, and a required function is looked for in every object.
bool names_match_file(int fd, const Mapping *mapping)
{
    FileKey key;
    bool may_know = known_files_key(fd, mapping, &key) && !required->count;
    if (may_know && !wraps_are_there() && known_files_have(&key))
        return false;
    bool any = match_file(fd, mapping);
    if (may_know && !matching.has_names)
        known_files_add(&key);
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
