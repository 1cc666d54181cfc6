// SPDX-License-Identifier: MIT
//
// Writes an entry for a finding that should still match after a rebuild, or an
// update of a library, and say as much as a person would have said.
//
//   - Names are demangled, without parameters and hashes; template arguments are *.
//   - The first frame and the frames of the program itself are kept. What lies between
//     them becomes "...", but for the function through which the program entered the
//     library that the finding is in: "malloc ... main" would cover every leak there is.
//     That function is part of an interface, so it stays what it is.
//   - Nothing under main.
#include <ctype.h>
#include <string.h>

#include "monitor/suppress/match.h"

#define LINES_MAX 24          // locations that the incumbent promises to read
#define LIBRARY_FRAMES_KEPT 4 // of a stack without a frame of the program
#define PATTERN_MAX 50000     // half of what a line may have

typedef struct Generator {
    const SuppressQuery *query;
    QueryFrame *frames;
    Arena arena;
    const char *program; // the object of main; NULL if main is not on the stack
    size_t end;          // frames to look at: main is the last
    FILE *out;
} Generator;

// --------------------------------------------------------------- kinds of frames

static bool starts_with(NameForm name, const char *start)
{
    size_t size = strlen(start);

    return name.size >= size && memcmp(name.text, start, size) == 0;
}

static const char *const library_folders[] = {
    "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/", "/nix/store/", "[",
};

static bool is_library(const Generator *generator, size_t index)
{
    const char *object = generator->query->frames[index].object;

    if (!object)
        return !generator->query->frames[index].function;
    if (generator->program && strcmp(object, generator->program) == 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(library_folders); i++) {
        if (strncmp(object, library_folders[i], strlen(library_folders[i])) == 0)
            return true;
    }
    return false;
}

// The standard libraries of C++ and Rust are compiled into the program.
static const char *const standard_scopes[] = {
    "std::", "__gnu_cxx::", "core::", "alloc::", "hashbrown::", "__rustc", "__rust_", "__rdl_",
};

static bool is_standard(const Generator *generator, size_t index)
{
    const char *function = generator->query->frames[index].function;

    if (!function)
        return false;
    NameForm name = name_without_parameters((NameForm){ function, strlen(function) });
    for (size_t i = 0; i < ARRAY_LEN(standard_scopes); i++) {
        char as_trait[32];

        if (starts_with(name, standard_scopes[i]))
            return true;
        // <alloc::vec::Vec<T> as Trait>::f and <T as core::fmt::Debug>::f
        if (name.text[0] != '<')
            continue;
        snprintf(as_trait, sizeof(as_trait), " as %s", standard_scopes[i]);
        if (starts_with((NameForm){ name.text + 1, name.size - 1 }, standard_scopes[i]) ||
            memmem(name.text, name.size, as_trait, strlen(as_trait)))
            return true;
    }
    return false;
}

static bool is_own(const Generator *generator, size_t index)
{
    return !is_library(generator, index) && !is_standard(generator, index);
}

static void find_program(Generator *generator)
{
    generator->end = generator->query->count;
    for (size_t i = 0; i < generator->query->count; i++) {
        const Frame *frame = &generator->query->frames[i];

        if (i > 0 && name_is_below_main(generator->frames[i].names.forms[0])) {
            generator->end = i;
            return;
        }
        if (frame->function && strcmp(frame->function, "main") == 0) {
            generator->program = frame->object;
            generator->end = i + 1;
            return;
        }
    }
}

// ------------------------------------------------------------------- patterns

// Makes text that survives the way through a file: what a line cannot hold, or
// would lose at its end, is matched by ?.
static NameForm printable(NameForm text, Arena *arena)
{
    size_t size = text.size < PATTERN_MAX ? text.size : PATTERN_MAX;
    char *copy = arena_alloc(arena, size + 1, 1);

    if (!copy)
        return (NameForm){ "*", 1 };
    for (size_t i = 0; i < size; i++)
        copy[i] = (u8)text.text[i] < ' ' || text.text[i] == 0x7f ? '?' : text.text[i];
    if (size && copy[size - 1] == ' ')
        copy[size - 1] = '?';
    if (size < text.size)
        copy[size++] = '*';
    return (NameForm){ copy, size };
}

// Whether the pattern, once it is read back, matches the frame.
static bool would_match(NameForm pattern, const QueryFrame *frame, Arena *arena)
{
    char *copy = arena_alloc(arena, pattern.size + 1, 1);

    if (!copy || !pattern.size)
        return false;
    memcpy(copy, pattern.text, pattern.size);
    Location location = location_of(LOCATION_FUNCTION, copy);
    return location_matches(&location, frame);
}

// What a person would call a demangled name.
static NameForm short_name(NameForm name, Arena *arena)
{
    name = name_without_hash(name_without_clone(name_without_version(name)));
    name = name_without_parameters(name);
    char *buffer = arena_alloc(arena, name.size * 2 + 1, 1);
    if (!buffer)
        return (NameForm){ "*", 1 };
    return (NameForm){ buffer, name_replace_templates(name, "<*>", buffer) };
}

// The best name that there is for the function; size 0 if there is none. Names are
// hostile: one that does not survive being written gives way to the next.
static NameForm function_pattern(Generator *generator, size_t index)
{
    const Frame *frame = &generator->query->frames[index];
    NameForm function = { frame->function, frame->function ? strlen(frame->function) : 0 };
    NameForm mangled = { frame->mangled, frame->mangled ? strlen(frame->mangled) : 0 };

    if (!function.size && !mangled.size)
        return (NameForm){ NULL, 0 };
    NameForm choices[] = {
        short_name(function.size ? function : mangled, &generator->arena),
        function,
        mangled,
    };
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        NameForm pattern = printable(choices[i], &generator->arena);

        if (would_match(pattern, &generator->frames[index], &generator->arena))
            return pattern;
    }
    return (NameForm){ "*", 1 };
}

// Without its folder, and without the version after ".so".
static NameForm object_pattern(Generator *generator, size_t index)
{
    const char *object = generator->query->frames[index].object;
    const char *slash = object ? strrchr(object, '/') : NULL;

    if (!object || !object[0])
        return (NameForm){ "*", 1 };
    if (!slash || !slash[1])
        return printable((NameForm){ object, strlen(object) }, &generator->arena);

    const char *version = strstr(slash, ".so");
    size_t size = version ? (size_t)(version + 3 - slash) : strlen(slash);
    char *buffer = arena_alloc(&generator->arena, size + 2, 1);
    if (!buffer)
        return (NameForm){ "*", 1 };
    buffer[0] = '*';
    memcpy(buffer + 1, slash, size);
    size++;
    if (version)
        buffer[size++] = '*';
    return printable((NameForm){ buffer, size }, &generator->arena);
}

// --------------------------------------------------------------------- the entry

static void write_line(FILE *out, const char *start, NameForm text)
{
    fprintf(out, "   %s%.*s\n", start, (int)text.size, text.text);
}

static void write_frame(Generator *generator, size_t index)
{
    NameForm name = function_pattern(generator, index);

    if (name.size)
        write_line(generator->out, "fun:", name);
    else
        write_line(generator->out, "obj:", object_pattern(generator, index));
}

static bool has_own_frame(const Generator *generator)
{
    for (size_t i = 1; i < generator->end; i++) {
        if (is_own(generator, i))
            return true;
    }
    return false;
}

static void write_stack(Generator *generator)
{
    bool has_own = has_own_frame(generator), seen_own = false;
    size_t lines = 0, last = 0;

    if (!has_own && generator->end > LIBRARY_FRAMES_KEPT)
        generator->end = LIBRARY_FRAMES_KEPT;
    for (size_t i = 0; i < generator->end && lines < LINES_MAX - 1; i++) {
        bool own = is_own(generator, i);
        bool is_entry = !seen_own && i + 1 < generator->end && is_own(generator, i + 1);

        // A frame without a name could be anywhere in the program, and so could the first
        // one: a static program has malloc in it.
        seen_own = seen_own || (i > 0 && own && generator->query->frames[i].function);
        if (has_own && i > 0 && !own && !is_entry)
            continue;
        if (lines && last + 1 < i) {
            fputs("   ...\n", generator->out);
            lines++;
        }
        write_frame(generator, i);
        lines++;
        last = i;
    }
}

// Of Param, which cannot be without.
static NameForm parameter_pattern(const SuppressQuery *query, Arena *arena)
{
    if (!query->extra || !query->extra[0])
        return (NameForm){ "*", 1 };
    return printable((NameForm){ query->extra, strlen(query->extra) }, arena);
}

// "function(argument)", of which nothing depends on the program.
static NameForm fishy_line(const SuppressQuery *query)
{
    const char *text = fishy_canonical(query->extra);
    return (NameForm){ text, strlen(text) };
}

void suppress_generate(const SuppressQuery *query, FILE *out)
{
    Generator generator = { .query = query, .out = out };

    if (query->count == 0)
        return;
    generator.frames = describe_frames(query->frames, query->count, &generator.arena);
    if (generator.frames) {
        find_program(&generator);
        fprintf(out, "{\n   <insert_a_suppression_name_here>\n   %s:%s\n", query->tool,
                kind_canonical(query->kind));
        if (strcmp(query->kind, "Param") == 0)
            write_line(out, "", parameter_pattern(query, &generator.arena));
        if (strcmp(query->kind, "FishyValue") == 0 && query->extra && query->extra[0])
            write_line(out, "", fishy_line(query));
        if (query->leak_kind)
            fprintf(out, "   match-leak-kinds: %s\n", query->leak_kind);
        write_stack(&generator);
        fputs("}\n", out);
    }
    arena_free(&generator.arena);
}
