// SPDX-License-Identifier: MIT
//
// pprof's profile.proto, gzipped: the four values of a heap profile for every stack, as Go's
// tools know them. A message is written to memory first, because its length goes before it.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/map.h"
#include "inspect/export/formats.h"

// Field numbers of profile.proto.
enum {
    PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5, PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12, PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    TYPE_NAME = 1, TYPE_UNIT = 2,
    SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2,
    MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3, MAPPING_OFFSET = 4, MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6, MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILES = 8,
    MAPPING_HAS_LINES = 9, MAPPING_HAS_INLINES = 10,
    LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4,
    LINE_FUNCTION = 1, LINE_NUMBER = 2,
    FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4,
};

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

typedef struct Message {
    FILE *out;
    char *bytes;
    size_t size;
} Message;

typedef struct Profile {
    const ExportJob *job;
    FILE *out;
    Interner *strings;
    Interner *functions; // "name\nfile"
    Map locations;       // pc and module to id
    u64 location_count;
} Profile;

// -------------------------------------------------------------------------- protobuf

static void put_varint(FILE *out, u64 value)
{
    for (; value >= 0x80; value >>= 7)
        fputc((int)(value & 0x7f) | 0x80, out);
    fputc((int)value, out);
}

static void put_number(FILE *out, u32 field, u64 value)
{
    if (value == 0)
        return; // the default of proto3
    put_varint(out, (u64)field << 3 | WIRE_VARINT);
    put_varint(out, value);
}

static void put_bytes(FILE *out, u32 field, const char *bytes, size_t size)
{
    put_varint(out, (u64)field << 3 | WIRE_BYTES);
    put_varint(out, size);
    fwrite(bytes, 1, size, out);
}

static void message_begin(Message *message)
{
    message->bytes = NULL;
    message->out = open_memstream(&message->bytes, &message->size);
    if (!message->out)
        abort();
}

static void message_end(Message *message, FILE *out, u32 field)
{
    fclose(message->out);
    put_bytes(out, field, message->bytes, message->size);
    free(message->bytes);
}

static void put_packed(FILE *out, u32 field, const u64 *values, size_t count)
{
    Message packed;

    message_begin(&packed);
    for (size_t i = 0; i < count; i++)
        put_varint(packed.out, values[i]);
    message_end(&packed, out, field);
}

// --------------------------------------------------------------------------- profile

static u64 string_id(Profile *profile, const char *text)
{
    return text ? intern(profile->strings, text) : 0;
}

// protobuf strings are UTF-8, and decoders refuse what is not.
static char *utf8_copy(const char *text)
{
    size_t length = strlen(text);
    char *copy = malloc(length * 3 + 1), *at = copy;

    if (!copy)
        abort();
    while (*text) {
        u32 n = utf8_length(text);
        if (n == 0) {
            at += sprintf(at, "\xef\xbf\xbd");
            text++;
            continue;
        }
        memcpy(at, text, n);
        at += n;
        text += n;
    }
    *at = 0;
    return copy;
}

static u64 function_id(Profile *profile, const char *name, const char *file)
{
    char *key = NULL;

    if (asprintf(&key, "%s\n%s", name, file ? file : "") < 0)
        abort();
    u32 before = interned_count(profile->functions);
    u64 id = intern(profile->functions, key) + 1;
    free(key);
    if (interned_count(profile->functions) == before)
        return id;
    Message function;
    message_begin(&function);
    put_number(function.out, FUNCTION_ID, id);
    put_number(function.out, FUNCTION_NAME, string_id(profile, name));
    put_number(function.out, FUNCTION_SYSTEM_NAME, string_id(profile, name));
    put_number(function.out, FUNCTION_FILE, string_id(profile, file));
    message_end(&function, profile->out, PROFILE_FUNCTION);
    return id;
}

static void put_line(Profile *profile, FILE *out, u32 context, u32 frame)
{
    char name[STACK_LABEL_MAX];
    char *path = NULL;
    StackFrame at = {context, frame};
    const RecordedFrame *row = recording_frame(profile->job->recording, frame);
    Message line;

    if (row->file && asprintf(&path, "%s%s%s", row->directory ? row->directory : "",
                              row->directory ? "/" : "", row->file) < 0)
        abort();
    message_begin(&line);
    put_number(line.out, LINE_FUNCTION,
               function_id(profile, frame_name(&at, profile->job->recording, name), path));
    put_number(line.out, LINE_NUMBER, row->line);
    message_end(&line, out, LOCATION_LINE);
    free(path);
}

// Contexts of one pc are one location, unless their frames differ: code may be replaced.
static u64 location_key(Recording *recording, const RecordedContext *row)
{
    u64 key = (row->pc ^ (u64)row->module << 48) * 0x9e3779b97f4a7c15;

    for (u32 i = 0; i < row->frame_count; i++) {
        const RecordedFrame *frame = recording_frame(recording, row->first_frame + i);
        for (const char *c = frame->function; c && *c; c++)
            key = (key ^ (u8)*c) * 0x100000001b3;
        key = (key ^ frame->line) * 0x100000001b3;
    }
    return key;
}

static u64 location_id(Profile *profile, u32 context)
{
    const RecordedContext *row = recording_context(profile->job->recording, context);
    u64 key = location_key(profile->job->recording, row);
    u64 id;

    if (map_get(&profile->locations, key, &id))
        return id;
    id = ++profile->location_count;
    if (!map_put(&profile->locations, key, id))
        abort();
    Message location;
    message_begin(&location);
    put_number(location.out, LOCATION_ID, id);
    put_number(location.out, LOCATION_MAPPING, row->module);
    put_number(location.out, LOCATION_ADDRESS, row->pc - (row->is_return && row->pc));
    for (u32 i = 0; i < row->frame_count; i++)
        put_line(profile, location.out, context, row->first_frame + i);
    message_end(&location, profile->out, PROFILE_LOCATION);
    return id;
}

// Of what nobody in the program has allocated: pprof shows no sample without a location.
static u64 nowhere_id(Profile *profile)
{
    enum { NOWHERE_KEY = 0 }; // the empty stack's
    u64 id;
    Message location, line;

    if (map_get(&profile->locations, NOWHERE_KEY, &id))
        return id;
    id = ++profile->location_count;
    if (!map_put(&profile->locations, NOWHERE_KEY, id))
        abort();
    message_begin(&location);
    put_number(location.out, LOCATION_ID, id);
    message_begin(&line);
    put_number(line.out, LINE_FUNCTION, function_id(profile, "(no stack)", NULL));
    message_end(&line, location.out, LOCATION_LINE);
    message_end(&location, profile->out, PROFILE_LOCATION);
    return id;
}

static void put_sample(Profile *profile, const StackSums *stack)
{
    Recording *recording = profile->job->recording;
    const SiteSums *sums = &stack->sums;
    const u64 values[] = {sums->allocations, sums->allocated_bytes, sums->live_blocks,
                          sums->live_bytes};
    u64 *ids = NULL;
    size_t count = 0, capacity = 0;

    for (u32 context = stack->context; context > 0 || count == 0;) {
        if (count == capacity) {
            capacity = capacity * 2 + 32;
            ids = realloc(ids, capacity * sizeof(*ids));
            if (!ids)
                abort();
        }
        ids[count++] = context ? location_id(profile, context) : nowhere_id(profile);
        u32 parent = context ? recording_context(recording, context)->parent : 0;
        context = parent < context ? parent : 0;
    }
    Message sample;
    message_begin(&sample);
    put_packed(sample.out, SAMPLE_LOCATIONS, ids, count);
    put_packed(sample.out, SAMPLE_VALUES, values, ARRAY_LEN(values));
    message_end(&sample, profile->out, PROFILE_SAMPLE);
    free(ids);
}

static void put_type(Profile *profile, u32 field, const char *name, const char *unit)
{
    Message type;

    message_begin(&type);
    put_number(type.out, TYPE_NAME, string_id(profile, name));
    put_number(type.out, TYPE_UNIT, string_id(profile, unit));
    message_end(&type, profile->out, field);
}

static void put_mapping(Profile *profile, u32 number, const RecordedModule *module)
{
    char build_id[2 * 64 + 1] = "";
    Message mapping;

    for (u32 b = 0; module->build_id && b < module->build_id_size && b < 64; b++)
        sprintf(build_id + 2 * (size_t)b, "%02x", module->build_id[b]);
    message_begin(&mapping);
    put_number(mapping.out, MAPPING_ID, number);
    put_number(mapping.out, MAPPING_START, module->start);
    put_number(mapping.out, MAPPING_LIMIT, module->start + module->size);
    put_number(mapping.out, MAPPING_OFFSET, module->offset);
    put_number(mapping.out, MAPPING_FILE, string_id(profile, module->path));
    put_number(mapping.out, MAPPING_BUILD_ID, string_id(profile, *build_id ? build_id : NULL));
    for (u32 field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++)
        put_number(mapping.out, field, 1);
    message_end(&mapping, profile->out, PROFILE_MAPPING);
}

// The first mapping is the program: by it pprof names a profile, and knows those of one program.
static void put_mappings(Profile *profile)
{
    Recording *recording = profile->job->recording;
    const char *program = recording_info(recording)->executable;
    u32 count = recording_module_count(recording), first = 1;

    while (first < count) {
        const char *path = recording_module(recording, first)->path;
        if (path && program && strcmp(path, program) == 0)
            break;
        first++;
    }
    if (first < count)
        put_mapping(profile, first, recording_module(recording, first));
    for (u32 i = 1; i < count; i++) {
        if (i != first)
            put_mapping(profile, i, recording_module(recording, i));
    }
}

static void put_about(Profile *profile)
{
    const RecordingInfo *info = recording_info(profile->job->recording);
    u64 duration = recording_last(profile->job->recording).ns;
    char comment[128];

    put_number(profile->out, PROFILE_TIME, info->start_unix_ns);
    put_number(profile->out, PROFILE_DURATION, duration);
    put_type(profile, PROFILE_PERIOD_TYPE, "space", "bytes");
    put_number(profile->out, PROFILE_PERIOD, 1); // every allocation is counted
    snprintf(comment, sizeof(comment), "in use: %s",
             profile->job->selection.at_peak ? "at the peak of the heap"
                                             : "at the end of the range");
    put_number(profile->out, PROFILE_COMMENT, string_id(profile, comment));
    put_number(profile->out, PROFILE_COMMENT, string_id(profile, info->command));
    put_number(profile->out, PROFILE_DEFAULT_TYPE, string_id(profile, "inuse_space"));
}

static void put_profile(Profile *profile, const StackSums *stacks, u32 count)
{
    string_id(profile, ""); // the first string is the empty one
    put_type(profile, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
    put_type(profile, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
    put_type(profile, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
    put_type(profile, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
    put_mappings(profile);
    for (u32 i = 0; i < count; i++) {
        put_sample(profile, &stacks[i]);
        if (profile->job->progress)
            profile->job->progress(i, count);
    }
    put_about(profile);
    for (u32 i = 0; i < interned_count(profile->strings); i++) {
        char *text = utf8_copy(interned(profile->strings, i));
        put_bytes(profile->out, PROFILE_STRING, text, strlen(text));
        free(text);
    }
}

static bool write_gzip(FILE *out, const char *bytes, size_t size, char **ret_error)
{
    enum { GZIP_WINDOW = 15 + 16, CHUNK = 64 * 1024 };
    z_stream stream = {0};
    u8 chunk[CHUNK];
    int status;

    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return export_fail(ret_error, "no memory to compress the profile");
    stream.next_in = (z_const Bytef *)bytes;
    do {
        // avail_in is 32 bits wide; a profile may be longer.
        size_t left = size - (size_t)((const char *)stream.next_in - bytes);
        stream.avail_in = (uInt)min_u64(left, 1u << 30);
        bool is_last = left == stream.avail_in;
        stream.next_out = chunk;
        stream.avail_out = CHUNK;
        status = deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
        fwrite(chunk, 1, CHUNK - stream.avail_out, out);
    } while (status == Z_OK || status == Z_BUF_ERROR);
    deflateEnd(&stream);
    return status == Z_STREAM_END || export_fail(ret_error, "the profile could not be compressed");
}

bool pprof_write(const ExportJob *job, char **ret_error)
{
    u32 count;
    StackSums *stacks = stack_sums(job, &count, ret_error);
    Message whole;

    if (!stacks)
        return false;
    message_begin(&whole);
    Profile profile = {.job = job, .out = whole.out, .strings = interner_new(),
                       .functions = interner_new()};
    put_profile(&profile, stacks, count);
    fclose(whole.out);
    bool ok = write_gzip(job->out, whole.bytes, whole.size, ret_error);
    free(whole.bytes);
    free(stacks);
    interner_free(profile.strings);
    interner_free(profile.functions);
    map_free(&profile.locations);
    return ok;
}
