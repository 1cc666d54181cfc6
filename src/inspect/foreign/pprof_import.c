// SPDX-License-Identifier: MIT
//
// A heap profile of pprof (Go, tcmalloc, jemalloc's converter, our own export) into a recording:
// protocol buffers, of which these fields matter:
//
//   Profile   1 sample_type  2 sample  4 location  5 function  6 string_table
//   ValueType 1 type                    Sample  1 location_id, innermost first  2 value
//   Location  1 id  3 address  4 line   Line    1 function_id  2 line
//   Function  1 id  2 name  4 filename
//
// It is one moment: what is in use is allocated there; what was freed before, if that is known
// too, is allocated and freed again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/foreign/import.h"

enum {
    VALUES_MAX = 16,
    STACK_MAX = 1024,
    BLOCKS_PER_STACK = 1000, // more share the bytes
    FREED_PER_STACK = 100,
};

typedef struct Slice {
    const u8 *at, *end;
} Slice;

// -------------------------------------------------------------- protocol buffers

static bool take_varint(Slice *slice, u64 *ret_value)
{
    u64 value = 0;

    for (int shift = 0; slice->at < slice->end && shift < 64; shift += 7) {
        u8 byte = *slice->at++;
        value |= (u64)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

typedef struct Field {
    u32 number;
    bool is_bytes;
    u64 value;   // a number
    Slice bytes; // or this
} Field;

// False: the end, or what is no protocol buffer.
static bool take_field(Slice *slice, Field *ret_field)
{
    u64 key, size;
    Field field = {0};

    if (!take_varint(slice, &key) || key >> 3 > UINT32_MAX)
        return false;
    field.number = (u32)(key >> 3);
    switch (key & 7) {
    case 0:
        if (!take_varint(slice, &field.value))
            return false;
        break;
    case 1:
    case 5:
        size = (key & 7) == 1 ? 8 : 4;
        if ((u64)(slice->end - slice->at) < size)
            return false;
        slice->at += size;
        break;
    case 2:
        if (!take_varint(slice, &size) || size > (u64)(slice->end - slice->at))
            return false;
        field.is_bytes = true;
        field.bytes = (Slice){slice->at, slice->at + size};
        slice->at += size;
        break;
    default:
        return false;
    }
    *ret_field = field;
    return true;
}

// Repeated numbers, packed or one by one. Returns how many there are now.
static u32 add_numbers(const Field *field, u64 *numbers, u32 count, u32 most)
{
    Slice packed = field->bytes;

    if (!field->is_bytes && count < most)
        numbers[count++] = field->value;
    while (field->is_bytes && count < most && take_varint(&packed, &numbers[count]))
        count++;
    return count;
}

static u64 number_in(Slice slice, u32 number)
{
    Field field;
    u64 value = 0;

    while (take_field(&slice, &field)) {
        if (field.number == number && !field.is_bytes)
            value = field.value;
    }
    return value;
}

// ------------------------------------------------------------------- the profile

typedef struct Pprof {
    Import *import;
    Slice *strings;   // of the string table
    u32 string_count, string_room;
    Map locations, functions; // ids to where they begin in the text
    const u8 *text;
    u32 type_count;
    u64 types[VALUES_MAX]; // strings
    int in_use, in_use_count, all, all_count; // which values; -1: none
    bool is_rounded;
} Pprof;

static bool string_is(const Pprof *pprof, u64 index, const char *text)
{
    size_t length = strlen(text);

    return index < pprof->string_count &&
           (size_t)(pprof->strings[index].end - pprof->strings[index].at) == length &&
           memcmp(pprof->strings[index].at, text, length) == 0;
}

// A copy, to be freed; NULL: empty or not there.
static char *copy_string(const Pprof *pprof, u64 index)
{
    if (index >= pprof->string_count || pprof->strings[index].at == pprof->strings[index].end)
        return NULL;
    return strndup((const char *)pprof->strings[index].at,
                   (size_t)(pprof->strings[index].end - pprof->strings[index].at));
}

static void add_string(Pprof *pprof, Slice bytes)
{
    if (pprof->string_count == pprof->string_room) {
        u32 room = pprof->string_room ? pprof->string_room * 2 : 256;
        Slice *moved = room > pprof->string_room
                           ? realloc(pprof->strings, room * sizeof(Slice)) : NULL;
        if (!moved) {
            pprof->import->failed = true;
            return;
        }
        pprof->strings = moved;
        pprof->string_room = room;
    }
    pprof->strings[pprof->string_count++] = bytes;
}

// A message is found again by where its bytes begin and how many they are.
static void index_message(Pprof *pprof, Map *map, Slice bytes)
{
    u64 size = (u64)(bytes.end - bytes.at), offset = (u64)(bytes.at - pprof->text);

    if (size < 1ull << 24)
        map_put(map, number_in(bytes, 1), offset << 24 | size);
}

static bool find_message(const Pprof *pprof, const Map *map, u64 id, Slice *ret_bytes)
{
    u64 place;

    if (!map_get(map, id, &place))
        return false;
    ret_bytes->at = pprof->text + (place >> 24);
    ret_bytes->end = ret_bytes->at + (place & 0xffffff);
    return true;
}

static void read_tables(Pprof *pprof, Slice profile)
{
    Field field;

    while (take_field(&profile, &field)) {
        if (!field.is_bytes)
            continue;
        if (field.number == 1 && pprof->type_count < VALUES_MAX)
            pprof->types[pprof->type_count++] = number_in(field.bytes, 1);
        if (field.number == 4)
            index_message(pprof, &pprof->locations, field.bytes);
        if (field.number == 5)
            index_message(pprof, &pprof->functions, field.bytes);
        if (field.number == 6)
            add_string(pprof, field.bytes);
    }
}

static int find_type(const Pprof *pprof, const char *name, const char *other)
{
    for (u32 i = 0; i < pprof->type_count; i++) {
        if (string_is(pprof, pprof->types[i], name) || string_is(pprof, pprof->types[i], other))
            return (int)i;
    }
    return -1;
}

// ---------------------------------------------------------------------- samples

static u32 add_line(Pprof *pprof, u32 parent, u64 address, Slice line)
{
    Slice function = {0};
    u64 function_id = number_in(line, 1);
    bool is_known = find_message(pprof, &pprof->functions, function_id, &function);
    char *name = is_known ? copy_string(pprof, number_in(function, 2)) : NULL;
    char *path = is_known ? copy_string(pprof, number_in(function, 4)) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    RecordedFrame frame = {.function = name, .file = slash ? slash + 1 : path, .pc = address,
                           .line = path ? (u32)min_u64(number_in(line, 2), INT32_MAX) : 0};
    char label[64];

    // The ids name them, whatever the names.
    snprintf(label, sizeof(label), "%llx %llx %x", (unsigned long long)address,
             (unsigned long long)function_id, frame.line);
    u32 context = import_context(pprof->import, parent, label, &frame);
    free(name);
    free(path);
    return context;
}

// Lines of a location are innermost first, so the last is the caller of the others.
static u32 add_location(Pprof *pprof, u32 parent, u64 id)
{
    enum { LINES_MAX = 64 };
    Slice location, lines[LINES_MAX];
    u32 count = 0;
    u64 address = 0;
    Field field;

    if (!find_message(pprof, &pprof->locations, id, &location))
        return parent;
    while (take_field(&location, &field)) {
        if (field.number == 3 && !field.is_bytes)
            address = field.value;
        if (field.number == 4 && field.is_bytes && count < LINES_MAX)
            lines[count++] = field.bytes;
    }
    if (count == 0)
        return add_line(pprof, parent, address, (Slice){0});
    while (count-- > 0)
        parent = add_line(pprof, parent, address, lines[count]);
    return parent;
}

// `count` blocks of `bytes` together, which stay or are freed at once.
static void add_blocks(Pprof *pprof, u32 site, u64 bytes, u64 count, bool are_freed)
{
    u64 most = are_freed ? FREED_PER_STACK : BLOCKS_PER_STACK;
    u64 made = count == 0 ? bytes > 0 : min_u64(count, most);

    pprof->is_rounded |= count > most;
    for (u64 i = 0; i < made; i++) {
        u64 size = bytes / made + (i < bytes % made);
        import_alloc(pprof->import, site, size, 0);
        if (are_freed)
            import_free(pprof->import, site, 0);
    }
}

static u64 value_of(const u64 *values, u32 count, int index)
{
    bool is_there = index >= 0 && (u32)index < count && (i64)values[index] > 0;

    return is_there ? min_u64(values[index], 1ull << 50) : 0;
}

static void add_sample(Pprof *pprof, Slice sample)
{
    static u64 stack[STACK_MAX];
    u64 values[VALUES_MAX];
    u32 depth = 0, value_count = 0, context = 0;
    Field field;

    while (take_field(&sample, &field)) {
        if (field.number == 1)
            depth = add_numbers(&field, stack, depth, STACK_MAX);
        if (field.number == 2)
            value_count = add_numbers(&field, values, value_count, VALUES_MAX);
    }
    while (depth-- > 0)
        context = add_location(pprof, context, stack[depth]);
    u32 site = import_site(pprof->import, SPACE_HEAP, context);
    u64 in_use = value_of(values, value_count, pprof->in_use);
    u64 in_use_count = value_of(values, value_count, pprof->in_use_count);
    u64 all = value_of(values, value_count, pprof->all);
    u64 all_count = value_of(values, value_count, pprof->all_count);
    if (all > in_use)
        add_blocks(pprof, site, all - in_use, all_count > in_use_count ? all_count - in_use_count
                                                                      : 0, true);
    add_blocks(pprof, site, in_use, in_use_count, false);
}

// ---------------------------------------------------------------------- the file

// Its first fields are one of ours each; nothing says more.
bool pprof_is(const ForeignText *text)
{
    Slice slice = {(const u8 *)text->data, (const u8 *)text->data + text->size};
    Field field;
    u32 seen = 0, types = 0;

    while (seen < 16 && slice.at < slice.end) {
        if (!take_field(&slice, &field) || field.number == 0 || field.number > 15)
            return false;
        types += field.number == 1 && field.is_bytes;
        seen++;
    }
    return seen > 0 && types > 0;
}

static bool import_samples(Pprof *pprof, Slice profile, char **ret_error)
{
    RecordingInfo info = {.tool = "pprof", .depth = 200, .time_unit = 1};
    Field field;

    pprof->in_use = find_type(pprof, "inuse_space", "space");
    pprof->in_use_count = find_type(pprof, "inuse_objects", "objects");
    pprof->all = find_type(pprof, "alloc_space", "alloc_space");
    pprof->all_count = find_type(pprof, "alloc_objects", "alloc_objects");
    if (pprof->in_use < 0 && pprof->all < 0) {
        *ret_error = strdup("it is a profile of pprof, but not of the heap");
        return false;
    }
    if (!import_begin(pprof->import, &info, ret_error))
        return false;
    pprof->import->now.ns = 1;
    while (take_field(&profile, &field) && !pprof->import->failed) {
        if (field.number == 2 && field.is_bytes)
            add_sample(pprof, field.bytes);
    }
    import_keep_state(pprof->import, STATE_PEAK, "the profile");
    import_warn(pprof->import, "a profile of pprof is one moment: there is no course of time");
    if (pprof->is_rounded)
        import_warn(pprof->import, "bytes are exact; of more than %d blocks of a stack, the number "
                                   "is not", FREED_PER_STACK);
    return true;
}

bool import_pprof(Import *import, ForeignText *text, char **ret_error)
{
    Pprof pprof = {.import = import, .text = (const u8 *)text->data};
    Slice profile = {pprof.text, pprof.text + text->size};

    read_tables(&pprof, profile);
    bool is_made = import_samples(&pprof, profile, ret_error);
    if (is_made && text->problem)
        import_warn(import, "%s", text->problem);
    map_free(&pprof.locations);
    map_free(&pprof.functions);
    free(pprof.strings);
    return is_made;
}
