// SPDX-License-Identifier: MIT
//
// The grammar. A file is lines; blanks around a line, blank lines, and lines that
// start with # do not count. An entry is
//
//     {
//        name                       any text
//        Tool1,Tool2:Kind
//        extra lines                Param: the parameter; Leak: match-leak-kinds:;
//                                   FishyValue: function(argument)
//        fun:… obj:… src:… ...      one or more, not only "..."
//     }
//
// Entries for Memcheck and the core are held to it. What stands in an entry for
// another tool is that tool's business: only its closing brace is looked for, and if all
// of it is locations it is kept, so that the tool may match it once it exists.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/suppress/entry.h"
#include "monitor/suppress/filter.h"
#include "monitor/suppress/glob.h"
#include "monitor/suppress/names.h"

#define LINE_SIZE_MAX 100000

typedef struct Parser {
    SuppressSet *set;
    const char *file;
    char *next, *end; // what is left of the copy of the text
    u32 line;         // number of the line that was read last
    char *text;       // that line, trimmed and terminated; NULL: the file has ended
    size_t size;
    Vec locations;    // Location: of the current entry
    const char *error;
} Parser;

// ------------------------------------------------------------------- errors

// "'text'" in a form that fits a line of a terminal.
static void quote(char *buffer, size_t room, const char *text)
{
    size_t size = 0;

    buffer[size++] = '\'';
    for (; *text && size < room - 6; text++)
        buffer[size++] = isprint((u8)*text) || (u8)*text >= 0x80 ? *text : '?';
    if (*text) {
        memcpy(buffer + size, "...", 3);
        size += 3;
    }
    memcpy(buffer + size, "'", 2);
}

// Always false, so that it can be returned. Only the first error counts.
static bool fail_found(Parser *parser, const char *expected, const char *found)
{
    size_t size = strlen(parser->file) + strlen(expected) + strlen(found) + 64;
    char *message;

    if (parser->error)
        return false;
    message = arena_alloc(&parser->set->arena, size, 1);
    if (message)
        snprintf(message, size, "%s:%u: expected %s, found %s", parser->file, parser->line,
                 expected, found);
    parser->error = message ? message : "out of memory";
    return false;
}

// The line that was read last is not what it should be.
static bool fail(Parser *parser, const char *expected)
{
    char found[80] = "the end of the file";

    if (parser->text)
        quote(found, sizeof(found), parser->text);
    return fail_found(parser, expected, found);
}

static bool fail_memory(Parser *parser)
{
    if (!parser->error)
        parser->error = "out of memory";
    return false;
}

// -------------------------------------------------------------------- lines

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// Reads the next line that counts into parser->text, or NULL at the end. False on an error.
static bool read_line(Parser *parser)
{
    while (parser->next < parser->end) {
        char *start = parser->next;
        char *stop = memchr(start, '\n', (size_t)(parser->end - start));

        if (!stop)
            stop = parser->end;
        parser->next = stop < parser->end ? stop + 1 : stop;
        parser->line++;
        while (start < stop && is_blank(*start))
            start++;
        while (stop > start && is_blank(stop[-1]))
            stop--;
        if (start == stop || *start == '#')
            continue;
        if (memchr(start, '\0', (size_t)(stop - start)))
            return fail_found(parser, "text", "a NUL byte");
        *stop = '\0'; // the copy has a byte more than the text
        parser->text = start;
        parser->size = (size_t)(stop - start);
        if (parser->size > LINE_SIZE_MAX)
            return fail_found(parser, "a line of at most 100000 characters", "a longer one");
        return true;
    }
    parser->text = NULL;
    parser->size = 0;
    return true;
}

static bool line_is(const Parser *parser, const char *text)
{
    return parser->text && strcmp(parser->text, text) == 0;
}

static bool line_starts(const Parser *parser, const char *start)
{
    return parser->text && strncmp(parser->text, start, strlen(start)) == 0;
}

// ---------------------------------------------------------------- locations

static const struct {
    const char *start;
    LocationKind kind;
} location_words[] = {
    { "fun:", LOCATION_FUNCTION },
    { "obj:", LOCATION_OBJECT },
    { "src:", LOCATION_SOURCE },
};

// Makes a pattern indifferent to what changes with every build: a Rust hash and
// LLVM's number. `text` is changed in place.
static void read_function(Location *location, char *text)
{
    NameForm name = name_without_hash((NameForm){ text, location->size });
    const char *number = memmem(name.text, name.size, ".llvm.", 6);
    const char *hash;

    if (number && name_without_clone(name).size <= (size_t)(number - name.text))
        name = name_without_clone(name);
    location->size = (u32)name.size;
    hash = name_mangled_hash(name);
    if (hash)
        memset(text + (hash - text), '?', 16);
    NameForm plain = name_without_version(name);
    if (plain.size < name.size)
        location->unversioned_size = (u32)plain.size;
}

// file, or file:line. What is no number after the colon means any line.
static void read_source(Location *location, const char *text)
{
    const char *colon = memrchr(text, ':', location->size);
    u64 line = 0;

    if (!colon)
        return;
    for (const char *digit = colon + 1; isdigit((u8)*digit) && line < UINT32_MAX; digit++)
        line = line * 10 + (u64)(*digit - '0');
    location->line = line < UINT32_MAX ? (u32)line : UINT32_MAX;
    location->size = (u32)(colon - text);
}

Location location_of(LocationKind kind, char *pattern)
{
    Location location = { .pattern = pattern, .size = (u32)strlen(pattern), .kind = kind };

    if (kind == LOCATION_FUNCTION)
        read_function(&location, pattern);
    else if (kind == LOCATION_SOURCE)
        read_source(&location, pattern);
    location.is_literal = glob_is_literal(pattern, location.size);
    return location;
}

// Whether the line is a location; then it is added, unless there is no memory.
static bool read_location(Parser *parser)
{
    Location location = { .kind = LOCATION_ANY_FRAMES };
    size_t count = parser->locations.count;

    if (line_is(parser, "...")) {
        const Location *last = count ? vec_at(&parser->locations, count - 1) : NULL;

        if (last && last->kind == LOCATION_ANY_FRAMES)
            return true;
        return vec_push(&parser->locations, &location) || !fail_memory(parser);
    }
    for (size_t i = 0; i < ARRAY_LEN(location_words); i++) {
        if (!line_starts(parser, location_words[i].start))
            continue;
        location = location_of(location_words[i].kind,
                               parser->text + strlen(location_words[i].start));
        return vec_push(&parser->locations, &location) || !fail_memory(parser);
    }
    return false;
}

static void add_need(Entry *entry, u16 bit)
{
    if (entry->need_count < ENTRY_NEEDS_MAX)
        entry->needs[entry->need_count++] = bit;
}

// What must be on a stack for the location to match (filter.h): the whole name, or both
// ends of the longest piece between wildcards.
static void add_needs(Entry *entry, const Location *location)
{
    const char *pattern = location->pattern, *longest = NULL;
    size_t size = location->unversioned_size ? location->unversioned_size : location->size;
    size_t longest_size = 0;

    if (location->kind == LOCATION_ANY_FRAMES)
        return;
    if (location->kind == LOCATION_FUNCTION && location->is_literal && size == location->size) {
        add_need(entry, filter_name_bit(pattern, size));
        return;
    }
    for (size_t start = 0, i = 0; i <= size; i++) {
        if (i < size && pattern[i] != '*' && pattern[i] != '?')
            continue;
        if (i - start > longest_size) {
            longest = pattern + start;
            longest_size = i - start;
        }
        start = i + 1;
    }
    if (longest_size >= FILTER_PIECE_SIZE)
        add_need(entry, filter_piece_bit(longest + longest_size - FILTER_PIECE_SIZE));
    if (longest_size > FILTER_PIECE_SIZE)
        add_need(entry, filter_piece_bit(longest));
}

// Keeps the locations with their entry.
static bool keep_locations(Parser *parser, Entry *entry)
{
    size_t count = parser->locations.count;
    Location *kept;

    // An entry matches the beginning of a stack, so what it ends with anyway is "...".
    if (((const Location *)vec_at(&parser->locations, count - 1))->kind == LOCATION_ANY_FRAMES)
        count--;
    if (count == 0)
        return fail(parser, "a location other than '...' (fun:, obj: or src:)");
    kept = arena_alloc(&parser->set->arena, count * sizeof(Location), _Alignof(Location));
    if (!kept)
        return fail_memory(parser);
    memcpy(kept, parser->locations.data, count * sizeof(Location));
    entry->locations = kept;
    entry->location_count = (u32)count;

    for (size_t i = 0; i < count; i++)
        add_needs(entry, &kept[i]);
    return true;
}

// ------------------------------------------------------------- kinds and extras

static const struct {
    const char *name, *canonical;
} memcheck_kinds[] = {
#define KIND(name, canonical) { name, canonical },
#include "monitor/suppress/kinds.def"
#undef KIND
};

const char *kind_canonical(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(memcheck_kinds); i++) {
        if (strcmp(kind, memcheck_kinds[i].name) == 0)
            return memcheck_kinds[i].canonical;
    }
    return kind;
}

static bool is_memcheck_kind(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(memcheck_kinds); i++) {
        if (strcmp(kind, memcheck_kinds[i].name) == 0)
            return true;
    }
    return false;
}

// "Addr1, Addr2, … or AlignMismatch", for the error.
static bool fail_kind(Parser *parser, const char *kind)
{
    char expected[640] = "a kind of Memcheck (";
    char found[80];
    size_t size = strlen(expected);

    for (size_t i = 0; i < ARRAY_LEN(memcheck_kinds) && size < sizeof(expected); i++)
        size += (size_t)snprintf(expected + size, sizeof(expected) - size, "%s%s",
                                 i ? ", " : "", memcheck_kinds[i].name);
    if (size < sizeof(expected))
        snprintf(expected + size, sizeof(expected) - size, ")");
    quote(found, sizeof(found), kind);
    return fail_found(parser, expected, found);
}

static const struct {
    const char *word;
    u8 bits;
} leak_words[] = {
    { "definite", LEAK_DEFINITE },   { "indirect", LEAK_INDIRECT }, { "possible", LEAK_POSSIBLE },
    { "reachable", LEAK_REACHABLE }, { "all", LEAK_ALL },
};

u8 leak_kinds_of(const char *word, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(leak_words); i++) {
        if (strlen(leak_words[i].word) == size && memcmp(leak_words[i].word, word, size) == 0)
            return leak_words[i].bits;
    }
    return 0;
}

#define LEAK_LINE "match-leak-kinds:"

static bool read_leak_kinds(Parser *parser, Entry *entry)
{
    const char *word = parser->text + strlen(LEAK_LINE);
    size_t words = 0;

    entry->leak_kinds = 0;
    for (;;) {
        word += strspn(word, " \t,");
        if (!*word)
            break;
        size_t size = strcspn(word, " \t,");
        u8 bits = leak_kinds_of(word, size);

        if (!bits && !(size == 4 && memcmp(word, "none", 4) == 0))
            return fail(parser, "match-leak-kinds: with a list of definite, indirect, possible "
                                "and reachable, or all, or none");
        entry->leak_kinds |= bits;
        words++;
        word += size;
    }
    return words || fail(parser, "leak kinds after match-leak-kinds:");
}

const char *fishy_canonical(const char *text)
{
    static const struct {
        const char *name, *canonical;
    } names[] = {
        {"operator new(size)", "__builtin_new(size)"},
        {"operator new[](size)", "__builtin_vec_new(size)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i].name) == 0)
            return names[i].canonical;
    }
    return text;
}

static bool is_location(const Parser *parser)
{
    for (size_t i = 0; i < ARRAY_LEN(location_words); i++) {
        if (line_starts(parser, location_words[i].start))
            return true;
    }
    return line_is(parser, "...");
}

// The extra lines of Memcheck's kinds. The current line is the first after
// Tool:Kind; afterwards it is the first location.
static bool read_extras(Parser *parser, Entry *entry)
{
    if (strcmp(entry->kind, "Param") == 0) {
        if (!parser->text || is_location(parser) || line_is(parser, "}"))
            return fail(parser, "the parameter of a system call, such as write(buf)");
        entry->extra = parser->text;
        return read_line(parser);
    }
    // The incumbent wants this line. An entry without it matches whatever the function.
    if (strcmp(entry->kind, "FishyValue") == 0 && parser->text && !is_location(parser) &&
        !line_is(parser, "}")) {
        entry->extra = fishy_canonical(parser->text);
        return read_line(parser);
    }
    if (strcmp(entry->kind, "Leak") == 0 && line_starts(parser, LEAK_LINE))
        return read_leak_kinds(parser, entry) && read_line(parser);
    return true;
}

// ------------------------------------------------------------------- entries

// Cuts "Tool1,Tool2:Kind" up in place. Blanks around a tool do not count.
static bool read_tools(Parser *parser, Entry *entry, bool *ret_is_strict, bool *ret_is_foreign)
{
    char *colon, *to, *word;

    if (!parser->text || !(colon = strchr(parser->text, ':')))
        return fail(parser, "a line Tool1,Tool2:Kind, such as Memcheck:Cond");
    *colon = '\0';
    entry->kind = kind_canonical(colon + 1);
    entry->tools = to = word = parser->text;
    for (char *comma; word; word = comma) {
        comma = strchr(word, ',');
        if (comma)
            *comma++ = '\0';
        while (is_blank(*word))
            word++;
        size_t size = strlen(word);
        while (size && is_blank(word[size - 1]))
            size--;
        if (!size)
            continue;
        memmove(to, word, size);
        to[size] = '\0';
        if (strcmp(to, "Memcheck") == 0 || strcmp(to, "CoreError") == 0)
            *ret_is_strict = true;
        if (strcmp(to, "Memcheck") != 0)
            *ret_is_foreign = true;
        to += size + 1;
        entry->tool_count++;
    }
    if (*ret_is_strict && !*ret_is_foreign && !is_memcheck_kind(colon + 1))
        return fail_kind(parser, colon + 1);
    return true;
}

// The body of an entry that we are to understand.
static bool read_strict_body(Parser *parser, Entry *entry)
{
    if (!read_line(parser) || !read_extras(parser, entry))
        return false;
    while (!line_is(parser, "}")) {
        if (!parser->text || !read_location(parser))
            return fail(parser, parser->locations.count ? "fun:, obj:, src:, '...' or '}'"
                                                        : "fun:, obj:, src: or '...'");
        if (parser->error || !read_line(parser))
            return false;
    }
    if (parser->locations.count == 0)
        return fail(parser, "fun:, obj:, src: or '...'");
    return keep_locations(parser, entry);
}

// The body of an entry for tools that we do not have.
static bool read_foreign_body(Parser *parser, Entry *entry)
{
    bool understood = true;

    for (;;) {
        if (!read_line(parser))
            return false;
        if (!parser->text)
            return fail(parser, "'}'");
        if (line_is(parser, "}"))
            break;
        understood = read_location(parser) && understood;
        if (parser->error)
            return false;
    }
    for (size_t i = 0; understood && i < parser->locations.count; i++) {
        const Location *location = vec_at(&parser->locations, i);

        if (location->kind != LOCATION_ANY_FRAMES)
            return keep_locations(parser, entry);
    }
    return true;
}

static bool read_entry(Parser *parser)
{
    Entry *entry = arena_alloc(&parser->set->arena, sizeof(Entry), _Alignof(Entry));
    bool is_strict = false, is_foreign = false;

    if (!entry)
        return fail_memory(parser);
    if (!read_line(parser))
        return false;
    if (!parser->text || line_is(parser, "}"))
        return fail(parser, "the name of a suppression");
    entry->shown.name = parser->text;
    entry->shown.file = parser->file;
    entry->shown.line = parser->line;
    entry->order = (u32)parser->set->entries.count;
    entry->leak_kinds = LEAK_ALL;
    vec_clear(&parser->locations);
    if (!read_line(parser) || !read_tools(parser, entry, &is_strict, &is_foreign))
        return false;
    if (!(is_strict ? read_strict_body : read_foreign_body)(parser, entry))
        return false;
    return vec_push(&parser->set->entries, &entry) || fail_memory(parser);
}

static bool read_file(Parser *parser)
{
    for (;;) {
        if (!read_line(parser))
            return false;
        if (!parser->text)
            return true;
        if (!line_is(parser, "{"))
            return fail(parser, "'{' alone on a line");
        if (!read_entry(parser))
            return false;
    }
}

bool suppress_parse(SuppressSet *set, const char *file, const char *text, size_t size,
                    const char **ret_error)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    size_t count_before = set->entries.count, name_size = strlen(file) + 1;
    char *name = arena_alloc(&set->arena, name_size, 1);
    char *copy = arena_alloc(&set->arena, size + 1, 1);
    Parser parser = { .set = set, .file = name, .next = copy, .end = copy + size };

    if (!name || !copy || set->entries.count + size > UINT32_MAX) {
        *ret_error = "out of memory";
        return false;
    }
    memcpy(name, file, name_size);
    if (size)
        memcpy(copy, text, size);
    if (size >= 3 && memcmp(copy, byte_order_mark, 3) == 0)
        parser.next += 3;

    vec_init(&parser.locations, sizeof(Location));
    bool ok = read_file(&parser);
    vec_free(&parser.locations);
    if (!ok) {
        while (set->entries.count > count_before)
            vec_pop(&set->entries);
        *ret_error = parser.error;
    }
    return ok;
}
