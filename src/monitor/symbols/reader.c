// SPDX-License-Identifier: MIT
//
// Answers questions about modules: opens a module's files when it is first asked
// about, then puts symbol table and debug info together. The name of a function that was
// not inlined comes from the symbol table where there is one, so that it is the same with and
// without debug info and suppressions keep matching; lines and inlined calls come from DWARF.
#include "monitor/symbols/reader.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "monitor/symbols/debug_info.h"
#include "monitor/symbols/demangle.h"
#include "monitor/symbols/elf_names.h"
#include "monitor/symbols/unwind_rules.h"
#include "monitor/symbols/variables.h"

typedef struct ReaderModule {
    ModuleSpec spec;
    char *path;
    bool is_opened, has_image, has_data;
    Image image;
    DebugFile file;
    DebugInfo info;
    ElfNames code, data;
    Globals globals;
    const char *warning;
} ReaderModule;

struct Reader {
    SymbolsConfig config;
    Vec modules;   // ReaderModule *, by number; NULL where none was defined
    Map demangled; // hash of a mangled name → Demangled *
};

typedef struct Demangled {
    char *mangled, *shown;
} Demangled;

// ---- replies --------------------------------------------------------------------------------

u32 reply_add_text(ReplyText *reply, const char *text, size_t length)
{
    size_t used = reply->reply.text_bytes, wanted = used + length + 1;
    if (wanted > READER_TEXT_MAX)
        return 0;
    if (wanted > reply->capacity) {
        char *grown = realloc(reply->text, 2 * wanted);
        if (!grown)
            return 0;
        reply->text = grown;
        reply->capacity = 2 * wanted;
    }
    memcpy(reply->text + used, text, length);
    reply->text[used + length] = '\0';
    reply->reply.text_bytes = (u32)wanted;
    return (u32)used + 1;
}

u32 reply_add_string(ReplyText *reply, const char *string)
{
    return string ? reply_add_text(reply, string, strlen(string)) : 0;
}

// DWARF 5 keeps folders relative to the one the compiler ran in.
static void add_path(ReplyText *reply, ReaderItem *item, const char *path, const char *folder)
{
    char whole[2 * PATH_MAX];
    if (!path || !*path)
        return;
    if (path[0] != '/' && folder && *folder) {
        while (strncmp(path, "./", 2) == 0)
            path += 2;
        snprintf(whole, sizeof whole, "%s/%s", folder, path);
        path = whole;
    }
    const char *slash = strrchr(path, '/');
    item->file = reply_add_string(reply, slash ? slash + 1 : path);
    if (slash)
        item->directory = reply_add_text(reply, path, slash == path ? 1 : (size_t)(slash - path));
}

static u64 hash_text(const char *text)
{
    u64 hash = 0xcbf29ce484222325ull;
    for (; *text; text++)
        hash = (hash ^ (u8)*text) * 0x100000001b3ull;
    return hash;
}

// The frames of a program have few names between them, and C++ names take long to demangle. When
// two names have one hash, the second is demangled each time.
static const char *demangle_cached(Reader *reader, const char *name, char **ret_owned)
{
    u64 hash = hash_text(name), found;

    *ret_owned = NULL;
    if (map_get(&reader->demangled, hash, &found)) {
        const Demangled *known = (const Demangled *)(uintptr_t)found;
        if (strcmp(known->mangled, name) == 0)
            return known->shown;
        return *ret_owned = demangle_name(name);
    }
    Demangled *entry = malloc(sizeof *entry);
    char *shown = demangle_name(name), *mangled = strdup(name);
    if (!entry || !shown || !mangled ||
        !map_put(&reader->demangled, hash, (u64)(uintptr_t)entry)) {
        free(entry);
        free(mangled);
        return *ret_owned = shown;
    }
    *entry = (Demangled){ mangled, shown };
    return shown;
}

static void add_name(Reader *reader, ReplyText *reply, ReaderItem *item, const char *name,
                     bool is_mangled)
{
    char *owned = NULL;
    const char *shown = name;
    if (!name)
        return;
    if (is_mangled)
        item->mangled = reply_add_string(reply, name);
    if (reader->config.demangle && is_mangled)
        shown = demangle_cached(reader, name, &owned);
    item->name = reply_add_string(reply, shown ? shown : name);
    free(owned);
}

// ---- modules --------------------------------------------------------------------------------

Reader *reader_new(const SymbolsConfig *config)
{
    Reader *reader = calloc(1, sizeof *reader);
    if (!reader || elf_version(EV_CURRENT) == EV_NONE) {
        free(reader);
        return NULL;
    }
    reader->config = *config;
    vec_init(&reader->modules, sizeof(ReaderModule *));
    return reader;
}

static void module_free(ReaderModule *module)
{
    if (!module)
        return;
    variables_free(&module->globals);
    debug_info_free(&module->info);
    elf_names_free(&module->code);
    elf_names_free(&module->data);
    if (module->is_opened) {
        debug_file_close(&module->file);
        image_close(&module->image);
    }
    free(module->path);
    free(module);
}

void reader_free(Reader *reader)
{
    for (size_t i = 0; i < reader->modules.count; i++)
        module_free(*(ReaderModule **)vec_at(&reader->modules, i));
    vec_free(&reader->modules);
    u64 hash, found;
    for (size_t cursor = 0; map_next(&reader->demangled, &cursor, &hash, &found);) {
        Demangled *entry = (Demangled *)(uintptr_t)found;
        free(entry->mangled);
        free(entry->shown);
        free(entry);
    }
    map_free(&reader->demangled);
    free(reader);
}

void reader_define(Reader *reader, u32 number, const ModuleSpec *spec)
{
    while (reader->modules.count <= number)
        if (!vec_push(&reader->modules, NULL))
            return;
    ReaderModule **slot = vec_at(&reader->modules, number);
    ReaderModule *module = calloc(1, sizeof *module);
    if (!module)
        return;
    module->spec = *spec;
    module->path = strdup(spec->path);
    module->spec.path = module->path;
    module_free(*slot);
    *slot = module;
}

static void open_module(const Reader *reader, ReaderModule *module)
{
    module->is_opened = true;
    module->image.fd = module->file.fd = -1;
    if (module->spec.trust == READER_TRUST_NOTHING || !module->path)
        return;
    module->has_image = image_open(&module->image, &module->spec, &reader->config);
    if (!module->has_image)
        return;
    Elf *own = module->image.elf;
    if (module->spec.trust == READER_TRUST_ALL)
        debug_file_open(&module->file, &module->image, &reader->config, &module->warning);
    debug_info_init(&module->info, &module->file);
    if (own)
        elf_names_add_file(&module->code, own, ELF_NAMES_CODE);
    if (module->file.elf)
        elf_names_add_file(&module->code, module->file.elf, ELF_NAMES_CODE);
    if (module->file.mini)
        elf_names_add_file(&module->code, module->file.mini, ELF_NAMES_CODE);
    if (!module->code.count)
        elf_names_add_dynamic(&module->code, &module->image, ELF_NAMES_CODE);
    elf_names_add_plt(&module->code, &module->image);
    elf_names_seal(&module->code);
}

static ReaderModule *find_module(Reader *reader, u32 number)
{
    if (number >= reader->modules.count)
        return NULL;
    ReaderModule *module = *(ReaderModule **)vec_at(&reader->modules, number);
    if (module && !module->is_opened)
        open_module(reader, module);
    return module && module->has_image ? module : NULL;
}

// ---- frames ---------------------------------------------------------------------------------

static ReaderItem *new_item(ReplyText *reply)
{
    ReaderItem *item = &reply->items[reply->reply.item_count++];
    *item = (ReaderItem){ 0 };
    return item;
}

// The inlined calls around the address, innermost first. Returns where the outermost was called.
static SourceLine add_inlined(Reader *reader, DebugInfo *info, Unit *unit, const Body *body,
                              u64 vaddr, SourceLine place, ReplyText *reply)
{
    u32 scope = body_scope(body, vaddr);
    while (scope != SCOPE_NONE && reply->reply.item_count < READER_FRAMES_MAX - 1) {
        Scope *call = &body->scopes[scope];
        const char *linkage = die_linkage_name(&call->die), *plain = die_plain_name(&call->die);
        ReaderItem *item = new_item(reply);
        add_name(reader, reply, item, linkage ? linkage : plain, linkage != NULL);
        item->plain = reply_add_string(reply, plain);
        add_path(reply, item, place.path, place.folder);
        item->line = place.line;
        item->inlined = 1;
        place.path = unit_file(info, unit, call->call_file);
        place.line = call->call_line;
        scope = call->parent;
    }
    return place;
}

static void add_function(Reader *reader, const ReaderModule *module, Body *body, u64 vaddr,
                         SourceLine place, ReplyText *reply)
{
    const ElfName *name = elf_names_find(&module->code, vaddr);
    ReaderItem *item = new_item(reply);
    Dwarf_Addr low;

    if (name) {
        add_name(reader, reply, item, name->name, true);
        // Suppressions of the incumbent may have the version, which it shows.
        if (name->versioned)
            item->mangled = reply_add_string(reply, name->versioned);
        item->offset = vaddr - name->address;
    } else if (body) {
        const char *linkage = die_linkage_name(&body->die);
        add_name(reader, reply, item, linkage ? linkage : die_plain_name(&body->die), true);
        if (dwarf_entrypc(&body->die, &low) == 0 && low <= vaddr)
            item->offset = vaddr - low;
    }
    add_path(reply, item, place.path, place.folder);
    item->line = place.line;
}

// The address of an indirect function stands for the function, not for the code there, which is
// that of its resolver.
static bool is_indirect(const ReaderModule *module, u64 vaddr)
{
    const ElfName *name = elf_names_find(&module->code, vaddr);
    return name && name->address == vaddr && name->is_indirect;
}

static void answer_frames(Reader *reader, ReaderModule *module, u64 vaddr, ReplyText *reply)
{
    if (is_indirect(module, vaddr)) {
        add_function(reader, module, NULL, vaddr, (SourceLine){ 0 }, reply);
        return;
    }
    Unit *unit = debug_info_unit(&module->info, vaddr);
    SourceLine place = unit ? unit_line(&module->info, unit, vaddr) : (SourceLine){ 0 };
    Body *body = NULL;

    // Without inlined frames only the symbol table is asked for names, if it has any.
    if (unit && (reader->config.read_inline_info || !module->code.count))
        body = debug_info_body(&module->info, unit, vaddr);
    if (body && reader->config.read_inline_info)
        place = add_inlined(reader, &module->info, unit, body, vaddr, place, reply);
    add_function(reader, module, body, vaddr, place, reply);
}

// ---- variables ------------------------------------------------------------------------------

static void add_variable(ReplyText *reply, const Variable *variable)
{
    ReaderItem *item = new_item(reply);
    item->name = reply_add_string(reply, variable->name);
    item->line = variable->line;
    item->offset = variable->offset;
    item->size = variable->size;
    if (variable->part[0])
        item->part = reply_add_string(reply, variable->part);
    item->part_offset = variable->part_offset;
    add_path(reply, item, variable->file, variable->folder);
}

static void open_data(ReaderModule *module)
{
    module->has_data = true;
    if (module->image.elf)
        elf_names_add_file(&module->data, module->image.elf, ELF_NAMES_DATA);
    if (module->file.elf)
        elf_names_add_file(&module->data, module->file.elf, ELF_NAMES_DATA);
    if (!module->data.count)
        elf_names_add_dynamic(&module->data, &module->image, ELF_NAMES_DATA);
    elf_names_seal(&module->data);
}

static void answer_data(Reader *reader, ReaderModule *module, u64 vaddr, ReplyText *reply)
{
    Variable variable = { 0 };
    if (!module->has_data)
        open_data(module);
    const ElfName *name = elf_names_find(&module->data, vaddr);
    bool is_declared =
        module->file.dwarf &&
        variables_find_global(&module->globals, &module->info, vaddr, &variable);

    // The debug info knows a static variable by the name in the source; the symbol table has
    // `count.1`.
    if (is_declared)
        add_variable(reply, &variable);
    else if (name && vaddr - name->address < max_u64(name->size, 1)) {
        ReaderItem *item = new_item(reply);
        add_name(reader, reply, item, name->name, true);
        item->offset = vaddr - name->address;
        item->size = name->size;
    }
}

static void answer_unwind(ReaderModule *module, u64 vaddr, ReplyText *reply)
{
    UnwindRules rules;

    if (!unwind_rules_find(module->image.elf, vaddr, &rules))
        return;
    ReaderItem *item = new_item(reply);
    item->line = rules.cfa_register;
    item->offset = (u64)rules.cfa_offset;
    item->inlined = rules.is_signal_frame;
    for (u32 i = 0; i < rules.saved_count; i++) {
        item = new_item(reply);
        item->line = rules.saved[i].number;
        item->offset = (u64)rules.saved[i].distance;
    }
}

// ---- requests -------------------------------------------------------------------------------

static void answer_demangle(Reader *reader, const char *mangled, ReplyText *reply)
{
    add_name(reader, reply, new_item(reply), mangled, true);
}

void reader_answer(Reader *reader, const ReaderRequest *request, const char *payload,
                   ReplyText *reply)
{
    Variable variable;
    u64 vaddr = request->offset;

    if (request->op == READER_DEMANGLE) {
        answer_demangle(reader, payload, reply);
        return;
    }
    ReaderModule *module = find_module(reader, request->module);
    if (!module)
        return;
    if (request->op != READER_DATA &&
        !image_vaddr_of_offset(&module->image, request->offset, &vaddr))
        return;
    reply->reply.found = 1;
    reply->reply.vaddr = vaddr;
    switch (request->op) {
    case READER_FRAMES:
        answer_frames(reader, module, vaddr, reply);
        break;
    case READER_EXTENT:
        image_extent(&module->image, &reply->reply.vaddr_low, &reply->reply.vaddr_high);
        break;
    case READER_DATA:
        answer_data(reader, module, vaddr, reply);
        break;
    case READER_STACK:
        if (variables_find_local(&module->info, module->image.elf, vaddr, request->distance,
                                 &variable))
            add_variable(reply, &variable);
        break;
    case READER_UNWIND:
        answer_unwind(module, vaddr, reply);
        break;
    }
    reply->reply.warning = reply_add_string(reply, module->warning);
    module->warning = NULL;
}
