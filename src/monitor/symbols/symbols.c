// SPDX-License-Identifier: MIT
//
// The monitor's side: what is mapped where, which files those mappings are, and every
// answer the reader ever gave. Nothing here opens a file.
//
// A place is (module, offset in its file), so it needs no load address and means the same
// after the mapping is gone, moved, or another library has taken its addresses.
#include "monitor/symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "monitor/symbols/module_table.h"
#include "monitor/symbols/perf_map.h"
#include "monitor/symbols/reader_process.h"
#include "monitor/symbols/unwind_rules.h"

#define TRIES_MAX 3 // a module is trusted less each time

typedef struct FrameList {
    u32 count;
    bool is_object; // the place is one of an object file
    Frame frames[];
} FrameList;

struct Symbols {
    SymbolsConfig config;
    ModuleTable table;
    Arena arena;  // strings and frame lists
    Map strings;  // hash → string; the next hash after a collision
    Map demangled; // string → string, both in the arena
    PerfMap perf;
    ReaderProcess reader;
    bool asks_alone; // the reader has died: one question at a time from now on
};

// ---- strings --------------------------------------------------------------------------------

static u64 hash_text(const char *text)
{
    u64 hash = 0xcbf29ce484222325ull;
    for (; *text; text++)
        hash = (hash ^ (u8)*text) * 0x100000001b3ull;
    return hash;
}

// The one copy of a text that lives as long as symbols. NULL stays NULL.
static const char *keep(Symbols *symbols, const char *text)
{
    if (!text)
        return NULL;
    u64 hash = hash_text(text), kept;
    for (; map_get(&symbols->strings, hash, &kept); hash++)
        if (strcmp((const char *)(uintptr_t)kept, text) == 0)
            return (const char *)(uintptr_t)kept;
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(&symbols->arena, size, 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, size);
    map_put(&symbols->strings, hash, (u64)(uintptr_t)copy);
    return copy;
}

static void warn(Symbols *symbols, const char *line)
{
    if (symbols->config.warn)
        symbols->config.warn(symbols->config.warn_opaque, line);
}

// ---- life -----------------------------------------------------------------------------------

Symbols *symbols_new(const SymbolsConfig *config)
{
    Symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return NULL;
    symbols->config = *config;
    symbols->config.extra_debuginfo_path = keep(symbols, config->extra_debuginfo_path);
    module_table_init(&symbols->table);
    perf_map_init(&symbols->perf, config->pid);
    reader_process_init(&symbols->reader, &symbols->config);
    return symbols;
}

void symbols_free(Symbols *symbols)
{
    if (!symbols)
        return;
    reader_process_free(&symbols->reader);
    module_table_free(&symbols->table);
    perf_map_free(&symbols->perf);
    map_free(&symbols->strings);
    map_free(&symbols->demangled);
    arena_free(&symbols->arena);
    free(symbols);
}

void symbols_after_fork(Symbols *symbols)
{
    reader_process_forget(&symbols->reader);
}

void symbols_rest(Symbols *symbols)
{
    reader_process_rest(&symbols->reader);
}

// ---- mappings -------------------------------------------------------------------------------

void symbols_map(Symbols *symbols, const SymbolsMapping *mapping)
{
    const char *path = keep(symbols, mapping->path ? mapping->path : "");
    if (path)
        module_table_map(&symbols->table, mapping, path);
}

void symbols_unmap(Symbols *symbols, u64 start, u64 size)
{
    module_table_unmap(&symbols->table, start, size);
}

void symbols_unload(Symbols *symbols, u64 start, u64 size, u32 unloading)
{
    if (unloading && symbols->config.keep_debuginfo)
        module_table_keep(&symbols->table, start, size, unloading);
    module_table_unmap(&symbols->table, start, size);
}

static CodePlace place_in(const Symbols *symbols, const Mapping *mapping, u64 address)
{
    if (!mapping)
        return (CodePlace){ 0, address };
    module_at(&symbols->table, mapping->module)->is_asked = true;
    return (CodePlace){ mapping->module, address - mapping->start + mapping->file_offset };
}

CodePlace symbols_place(Symbols *symbols, u64 address)
{
    return place_in(symbols, module_table_find(&symbols->table, address), address);
}

CodePlace symbols_place_before(Symbols *symbols, u64 address, u32 unloading)
{
    const Mapping *kept =
        unloading ? module_table_find_kept(&symbols->table, address, unloading) : NULL;

    return kept ? place_in(symbols, kept, address) : symbols_place(symbols, address);
}

// ---- asking the reader ----------------------------------------------------------------------

static bool define(Symbols *symbols, u32 number, Module *module)
{
    u8 payload[sizeof(ModuleSpec) + 4400] = { 0 };
    size_t path_size = strlen(module->spec.path) + 1;

    if (module->known_to == symbols->reader.generation)
        return true;
    if (path_size > sizeof payload - sizeof(ModuleSpec))
        return false;
    ModuleSpec spec = module->spec;
    spec.path = NULL;
    spec.header_address = module_table_header(&symbols->table, number);
    memcpy(payload, &spec, sizeof spec);
    memcpy(payload + sizeof spec, module->spec.path, path_size);
    ReaderRequest request = { .op = READER_DEFINE, .module = number,
                              .payload_bytes = (u32)(sizeof spec + path_size) };
    module->known_to = symbols->reader.generation;
    return reader_process_send(&symbols->reader, &request, payload);
}

static void distrust(Symbols *symbols, Module *module)
{
    char line[4600];
    if (module->spec.trust >= READER_TRUST_NOTHING)
        return;
    module->spec.trust++;
    snprintf(line, sizeof line, "debug info of %s cannot be read: %s", module->spec.path,
             module->spec.trust == READER_TRUST_NAMES ? "only its symbol table is used"
                                                      : "its code will have no names");
    warn(symbols, line);
}

// Asks about a module. A question that kills the reader is asked again of one that trusts the
// module less. NULL: there is no answer.
static const ReaderReply *ask(Symbols *symbols, u32 number, ReaderRequest *request)
{
    Module *module = module_at(&symbols->table, number);

    request->module = number;
    module->is_asked = true;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (!reader_process_ready(&symbols->reader))
            return NULL;
        const ReaderReply *reply =
            define(symbols, number, module) ? reader_process_ask(&symbols->reader, request, NULL)
                                            : NULL;
        if (reply) {
            if (reply->warning)
                warn(symbols, reader_reply_text(reply, reply->warning));
            return reply;
        }
        if (symbols->reader.was_ahead) {
            // It may have died of one that was asked ahead: now this one is asked alone.
            symbols->reader.was_ahead = false;
            symbols->asks_alone = true;
            tries--;
            continue;
        }
        if (request->op != READER_FRAMES) {
            module->no_data = true;
            return NULL;
        }
        distrust(symbols, module);
    }
    return NULL;
}

// ---- frames ---------------------------------------------------------------------------------

static void fill_frame(Symbols *symbols, const ReaderReply *reply, const ReaderItem *item,
                       Frame *frame)
{
    frame->function = keep(symbols, reader_reply_text(reply, item->name));
    frame->mangled = keep(symbols, reader_reply_text(reply, item->mangled));
    frame->plain = keep(symbols, reader_reply_text(reply, item->plain));
    frame->directory = keep(symbols, reader_reply_text(reply, item->directory));
    frame->file = keep(symbols, reader_reply_text(reply, item->file));
    frame->line = item->line;
    frame->inlined = item->inlined;
    frame->function_offset = item->offset;
}

static const FrameList *read_frames(Symbols *symbols, u32 number, u64 offset)
{
    ReaderRequest request = { .op = READER_FRAMES, .offset = offset };
    const ReaderReply *reply = ask(symbols, number, &request);
    u32 count = reply && reply->item_count ? reply->item_count : 1;
    FrameList *list = arena_alloc(&symbols->arena, sizeof *list + count * sizeof(Frame), 8);

    if (!list)
        return NULL;
    list->count = count;
    list->is_object = reply && reply->found;
    for (u32 i = 0; i < count; i++) {
        Frame *frame = &list->frames[i];
        if (reply && i < reply->item_count)
            fill_frame(symbols, reply, &reader_reply_items(reply)[i], frame);
        frame->object = module_at(&symbols->table, number)->spec.path;
        frame->object_offset = reply && reply->found ? reply->vaddr : offset;
    }
    return list;
}

static const FrameList *frames_at(Symbols *symbols, u32 number, u64 offset)
{
    Module *module = module_at(&symbols->table, number);
    u64 known;

    if (map_get(&module->frames, offset, &known))
        return (const FrameList *)(uintptr_t)known;
    const FrameList *list = read_frames(symbols, number, offset);
    if (list)
        map_put(&module->frames, offset, (u64)(uintptr_t)list);
    return list;
}

SymbolsAhead symbols_ask_ahead(Symbols *symbols, CodePlace place, bool is_return_address)
{
    Module *module = module_at(&symbols->table, place.module);
    ReaderRequest request = { .op = READER_FRAMES, .module = place.module,
                              .offset = place.offset - (is_return_address && place.offset > 0) };
    u64 known;

    if (!module || module->is_jit || map_get(&module->frames, request.offset, &known))
        return SYMBOLS_NO_QUESTION;
    if (symbols->asks_alone || !reader_process_ready(&symbols->reader) ||
        !define(symbols, place.module, module) ||
        !reader_process_ask_ahead(&symbols->reader, &request))
        return SYMBOLS_TOO_MANY;
    return SYMBOLS_ASKED;
}

void symbols_send_ahead(Symbols *symbols)
{
    reader_process_send_ahead(&symbols->reader);
}

bool symbols_has_answer(const Symbols *symbols)
{
    return reader_process_has_answer(&symbols->reader);
}

// JITs re-use addresses, so that their names are looked up anew each time.
static size_t jit_frame(Symbols *symbols, u64 address, Frame *frame)
{
    u64 start;
    const char *name = perf_map_find(&symbols->perf, address, &start);
    if (name) {
        frame->mangled = keep(symbols, name);
        frame->function = frame->mangled;
        frame->function_offset = address - start;
    }
    return 1;
}

size_t symbols_frames(Symbols *symbols, CodePlace place, u64 pc, bool is_return_address,
                      Frame *ret_frames, size_t max)
{
    const Module *module = module_at(&symbols->table, place.module);
    u64 back = is_return_address && pc > 0 && place.offset > 0;
    u64 offset = place.offset - back;

    if (max == 0)
        return 0;
    ret_frames[0] = (Frame){ .pc = pc - back };
    if (!module || module->is_jit)
        return jit_frame(symbols, offset, &ret_frames[0]);
    place.offset = offset;
    if (!symbols->config.keep_debuginfo && !module_table_is_live(&symbols->table, place))
        return 1;
    const FrameList *list = frames_at(symbols, place.module, offset);
    if (!list)
        return 1;
    // When there is room for fewer, the outer ones go: the innermost is where it happened.
    size_t count = min_u64(list->count, max);
    for (size_t i = 0; i < count; i++) {
        ret_frames[i] = list->frames[i];
        ret_frames[i].pc = pc - back;
    }
    // Some JITs keep their code in a memfd, which has a path but no symbols.
    if (count == 1 && !ret_frames[0].function && !list->is_object)
        jit_frame(symbols, pc - back, &ret_frames[0]);
    return count;
}

const char *symbols_demangle(Symbols *symbols, const char *mangled)
{
    const char *kept = keep(symbols, mangled);
    u64 known;

    // Without a mangling prefix, only suffixes could be trimmed: those begin with a dot.
    if (!kept || !symbols->config.demangle || (kept[0] != '_' && !strchr(kept, '.')))
        return kept;
    if (map_get(&symbols->demangled, (u64)(uintptr_t)kept, &known))
        return (const char *)(uintptr_t)known;
    ReaderRequest request = { .op = READER_DEMANGLE, .payload_bytes = (u32)strlen(kept) };
    const ReaderReply *reply = reader_process_ready(&symbols->reader)
                                   ? reader_process_ask(&symbols->reader, &request, kept)
                                   : NULL;
    const char *name = NULL;
    if (reply && reply->item_count)
        name = keep(symbols, reader_reply_text(reply, reader_reply_items(reply)->name));
    if (!name)
        name = kept;
    map_put(&symbols->demangled, (u64)(uintptr_t)kept, (u64)(uintptr_t)name);
    return name;
}

// ---- variables ------------------------------------------------------------------------------

static bool fill_data(Symbols *symbols, u32 number, const ReaderReply *reply, DataName *ret_name)
{
    if (!reply || !reply->item_count)
        return false;
    const ReaderItem *item = reader_reply_items(reply);
    *ret_name = (DataName){
        .name = keep(symbols, reader_reply_text(reply, item->name)),
        .mangled = keep(symbols, reader_reply_text(reply, item->mangled)),
        .offset = item->offset,
        .size = item->size,
        .part = keep(symbols, reader_reply_text(reply, item->part)),
        .part_offset = item->part_offset,
        .object = module_at(&symbols->table, number)->spec.path,
        .directory = keep(symbols, reader_reply_text(reply, item->directory)),
        .file = keep(symbols, reader_reply_text(reply, item->file)),
        .line = item->line,
    };
    return ret_name->name != NULL;
}

bool symbols_data(Symbols *symbols, u64 address, DataName *ret_name)
{
    const Mapping *header = module_table_header_below(&symbols->table, address);
    if (!header)
        return false;
    u32 number = header->module;
    const Module *module = module_at(&symbols->table, number);
    if (module->is_jit || module->no_data)
        return false;
    u64 start = header->start;
    ReaderRequest request = { .op = READER_EXTENT, .offset = 0 };
    const ReaderReply *reply = ask(symbols, number, &request);
    if (!reply || !reply->found)
        return false;
    u64 vaddr = reply->vaddr + (address - start);
    if (vaddr < reply->vaddr_low || vaddr >= reply->vaddr_high)
        return false;
    request = (ReaderRequest){ .op = READER_DATA, .offset = vaddr };
    return fill_data(symbols, number, ask(symbols, number, &request), ret_name);
}

bool symbols_stack_data(Symbols *symbols, CodePlace place, bool is_return_address,
                        i64 cfa_distance, DataName *ret_name)
{
    const Module *module = module_at(&symbols->table, place.module);
    if (!module || module->is_jit || module->no_data || module->spec.path[0] != '/')
        return false;
    ReaderRequest request = { .op = READER_STACK,
                              .offset = place.offset - is_return_address,
                              .distance = cfa_distance };
    return fill_data(symbols, place.module, ask(symbols, place.module, &request), ret_name);
}

// ---- stacks ---------------------------------------------------------------------------------

bool symbols_rules(Symbols *symbols, CodePlace place, UnwindRules *ret_rules)
{
    ReaderRequest request = { .op = READER_UNWIND, .offset = place.offset };
    const Module *module = module_at(&symbols->table, place.module);
    if (!module || module->is_jit || module->no_data)
        return false;
    const ReaderReply *reply = ask(symbols, place.module, &request);
    if (!reply || !reply->item_count)
        return false;
    // The first is the CFA, the others what is saved.
    const ReaderItem *items = reader_reply_items(reply);
    *ret_rules = (UnwindRules){ .cfa_register = items->line,
                                .cfa_offset = (i64)items->offset,
                                .is_signal_frame = items->inlined,
                                .saved_count = (u32)min_u64(reply->item_count - 1,
                                                            UNWIND_REGISTERS) };
    for (u32 i = 0; i < ret_rules->saved_count; i++)
        ret_rules->saved[i] = (SavedRegister){ items[i + 1].line, (i64)items[i + 1].offset };
    return true;
}
