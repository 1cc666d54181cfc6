// SPDX-License-Identifier: MIT
//
// massif.out: three header lines, then snapshots of "key=value" lines, some with a tree in
// which a line's indentation is its depth.
//
//   desc: --time-unit=B                   snapshot=9
//   cmd: ./ex                             time=9144
//   time_unit: B                          mem_heap_B=9000
//                                         mem_heap_extra_B=144
//                                         mem_stacks_B=0
//                                         heap_tree=detailed
//                                         n1: 9000 (heap allocation functions) malloc/new/…
//                                          n0: 9000 0x10918A: main (ex.c:4)
//
// A snapshot counts once its heap_tree line is there, so a file that was cut off loses only what
// it was writing. Lines are terminated in place; the model points into the text.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/foreign/foreign.h"

static const u64 SIZE_BYTES_MAX = 1ull << 50;

typedef struct Parser {
    MassifFile *file;
    char *next, *end;
    char *line; // the present one, terminated; at the end of the file it is empty
    u32 line_number;
    bool in_snapshot; // its first line was read, its heap_tree line was not
    u64 missing_nodes; // that the tree read last announced and does not have
    MassifFileSnapshot open;
    u32 snapshot_room, node_room;
    bool is_seconds; // times have decimals; heaptrack writes such
} Parser;

static void set_problem(Parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void set_problem(Parser *parser, const char *format, ...)
{
    char what[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    const char *damage = parser->file->text.problem;
    if (damage && strcmp(damage, what) == 0)
        damage = NULL;
    if (asprintf(&parser->file->problem, "line %u (offset %zu): %s%s%s", parser->line_number,
                 (size_t)(parser->line - parser->file->text.data), what, damage ? "; " : "",
                 damage ? damage : "") < 0)
        parser->file->problem = NULL;
}

// Goes to the next line that is neither empty nor a comment. False: there is none.
static bool next_line(Parser *parser)
{
    while (parser->next < parser->end) {
        char *line = parser->next;
        char *end = memchr(line, '\n', (size_t)(parser->end - line));
        parser->line_number++;
        parser->line = line;
        parser->next = end ? end + 1 : parser->end;
        end = end ? end : parser->end;
        if (end > line && end[-1] == '\r')
            end--;
        *end = '\0';
        if (*line && *line != '#')
            return true;
    }
    parser->line = parser->end;
    return false;
}

// What stands behind the prefix, or NULL.
static char *behind(char *line, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(line, prefix, length) == 0 ? line + length : NULL;
}

// What does not fit is the largest number there is.
static bool parse_number(const char *text, char **ret_end, u64 *ret_number)
{
    if (!isdigit((u8)*text))
        return false;
    *ret_number = strtoull(text, ret_end, 10);
    return true;
}

// Bytes. More than a PiB is a number of a damaged file: sums of such numbers would not fit, and no
// program has that much memory. False: this, or no number.
static bool parse_size(const char *text, char **ret_end, u64 *ret_bytes)
{
    u64 bytes;

    if (!parse_number(text, ret_end, &bytes) || bytes > SIZE_BYTES_MAX)
        return false;
    *ret_bytes = bytes;
    return true;
}

// Doubles the array when it is full. False: no memory.
static bool grow(void **array, u32 count, u32 *room, size_t element_bytes)
{
    if (count < *room)
        return true;
    if (*room > UINT32_MAX / 4)
        return false;
    u32 larger = *room ? *room * 2 : 64;
    void *moved = realloc(*array, larger * element_bytes);
    if (!moved)
        return false;
    *array = moved;
    *room = larger;
    return true;
}

// ----------------------------------------------------------------------- trees

// "  n2: 8000 0x109156: g (ex.c:2)". False: it is no such line.
static bool parse_node(char *line, u32 depth_max, MassifNode *ret_node, u64 *ret_children)
{
    char *text = line + strspn(line, " ");

    if (*text != 'n' || !parse_number(text + 1, &text, ret_children) || *text++ != ':')
        return false;
    text += strspn(text, " ");
    if (!parse_size(text, &text, &ret_node->bytes))
        return false;
    ret_node->label = text + (*text == ' ');
    ret_node->depth = (u32)min_u64(strspn(line, " "), depth_max);
    return true;
}

// Sets the ends of the subtrees: a node ends where the next one of at most its depth begins.
static bool close_tree(MassifNode *nodes, u32 first, u32 count)
{
    u32 deepest = 0, open = 0; // levels that are open

    for (u32 i = first; i < count; i++)
        deepest = (u32)max_u64(deepest, nodes[i].depth);
    u32 *open_at = malloc(((size_t)deepest + 1) * sizeof(*open_at));
    if (!open_at)
        return false;
    for (u32 i = first; i < count; i++) {
        while (open > nodes[i].depth)
            nodes[open_at[--open]].end = i;
        open_at[open++] = i;
    }
    while (open > 0)
        nodes[open_at[--open]].end = count;
    free(open_at);
    return true;
}

// From the present line on, up to the first that is none of the tree.
static bool parse_tree(Parser *parser)
{
    MassifFile *file = parser->file;
    u32 first = file->node_count, depth_max = 0;
    MassifNode node;
    u64 children;

    parser->missing_nodes = 1;
    while (parse_node(parser->line, depth_max, &node, &children) &&
           (depth_max == 0 || node.depth > 0)) {
        if (!grow((void **)&file->nodes, file->node_count, &parser->node_room, sizeof(node)))
            return false;
        file->nodes[file->node_count++] = node;
        depth_max = node.depth + 1;
        parser->missing_nodes += children - 1;
        next_line(parser);
    }
    parser->open.first_node = first;
    parser->open.node_count = file->node_count - first;
    return close_tree(file->nodes, first, file->node_count);
}

// ------------------------------------------------------------------- snapshots

typedef enum Key { KEY_NUMBER, KEY_TIME, KEY_HEAP, KEY_EXTRA, KEY_STACKS, KEY_TREE } Key;

static const char *const keys[] = {
    [KEY_NUMBER] = "snapshot=",  [KEY_TIME] = "time=",
    [KEY_HEAP] = "mem_heap_B=",  [KEY_EXTRA] = "mem_heap_extra_B=",
    [KEY_STACKS] = "mem_stacks_B=", [KEY_TREE] = "heap_tree=",
};

static bool parse_time(const Parser *parser, const char *text, u64 *ret_time)
{
    char *end;

    if (!isdigit((u8)*text))
        return false;
    if (!parser->is_seconds)
        return parse_number(text, &end, ret_time);
    double seconds = strtod(text, &end);
    *ret_time = seconds < 1e15 ? (u64)(seconds * 1000 + 0.5) : (u64)1e18;
    return true;
}

static bool finish_snapshot(Parser *parser, const char *kind)
{
    MassifFile *file = parser->file;
    MassifFileSnapshot *open = &parser->open;

    // The incumbent has been seen to write more words behind these.
    if (strncmp(kind, "empty", 5) == 0)
        open->tree = MASSIF_TREE_EMPTY;
    else if (strncmp(kind, "peak", 4) == 0)
        open->tree = MASSIF_TREE_PEAK;
    else if (strncmp(kind, "detailed", 8) == 0)
        open->tree = MASSIF_TREE_DETAILED;
    else {
        set_problem(parser, "heap_tree is empty, detailed or peak, not %.40s", kind);
        return false;
    }
    next_line(parser);
    if ((open->tree != MASSIF_TREE_EMPTY && !parse_tree(parser)) ||
        !grow((void **)&file->snapshots, file->snapshot_count, &parser->snapshot_room,
              sizeof(*open))) {
        set_problem(parser, "there is not enough memory for the rest");
        return false;
    }
    file->snapshots[file->snapshot_count++] = *open;
    parser->in_snapshot = false;
    return true;
}

// One line; the tree's lines go with heap_tree.
static bool parse_snapshot_line(Parser *parser)
{
    MassifFileSnapshot *open = &parser->open;
    u64 *const sizes[] = {[KEY_HEAP] = &open->heap_bytes, [KEY_EXTRA] = &open->extra_bytes,
                          [KEY_STACKS] = &open->stacks_bytes};
    char *value = NULL, *end;
    size_t key = 0;

    while (key < ARRAY_LEN(keys) && !(value = behind(parser->line, keys[key])))
        key++;
    if (key == KEY_NUMBER) {
        *open = (MassifFileSnapshot){0};
        parser->in_snapshot = true;
        parser->missing_nodes = 0;
    }
    if (!value || !parser->in_snapshot) {
        set_problem(parser, "expected a line of a snapshot, found \"%.40s\"", parser->line);
        return false;
    }
    if (key == KEY_TREE)
        return finish_snapshot(parser, value);
    bool is_good = key == KEY_TIME     ? parse_time(parser, value, &open->time)
                   : key == KEY_NUMBER ? parse_number(value, &end, &open->number)
                                       : parse_size(value, &end, sizes[key]);
    if (!is_good) {
        set_problem(parser, "expected %s, found \"%.40s\"",
                    key == KEY_TIME || key == KEY_NUMBER ? "a number"
                                                              : "a size of at most a PiB",
                    value);
        return false;
    }
    next_line(parser);
    return true;
}

// -------------------------------------------------------------------- the file

static bool parse_header(Parser *parser)
{
    MassifFile *file = parser->file;
    const struct {
        const char *prefix;
        const char **value;
    } lines[] = {
        {"desc:", &file->arguments}, {"cmd:", &file->command}, {"time_unit:", &file->time_unit}};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char *value = next_line(parser) ? behind(parser->line, lines[i].prefix) : NULL;
        if (!value) {
            set_problem(parser, "expected the line \"%s\", found \"%.40s\"", lines[i].prefix,
                        parser->line);
            return false;
        }
        *lines[i].value = value + strspn(value, " ");
    }
    parser->is_seconds = strcmp(file->time_unit, "s") == 0;
    if (parser->is_seconds)
        file->time_unit = "ms";
    return true;
}

bool massif_file_is(const ForeignText *text)
{
    return text->size >= 5 && memcmp(text->data, "desc:", 5) == 0;
}

MassifFile *massif_file_parse(ForeignText *text, char **ret_error)
{
    MassifFile *file = calloc(1, sizeof(*file));
    Parser parser = {.file = file, .next = text->data, .line = text->data,
                     .end = text->data + text->size};

    if (!file) {
        foreign_free(text);
        *ret_error = strdup("there is not enough memory");
        return NULL;
    }
    // Whoever writes such files ends every line.
    bool is_line_cut = text->size > 0 && text->data[text->size - 1] != '\n';
    file->text = *text;
    *text = (ForeignText){0};
    if (parse_header(&parser)) {
        next_line(&parser);
        while (parser.line < parser.end && parse_snapshot_line(&parser))
            continue;
    }
    if (!file->problem && file->text.problem)
        set_problem(&parser, "%s", file->text.problem);
    if (!file->problem && (parser.in_snapshot || parser.missing_nodes || is_line_cut))
        set_problem(&parser, "the file ends within snapshot %llu",
                    (unsigned long long)parser.open.number);
    if (file->snapshot_count > 0)
        return file;
    *ret_error = file->problem ? file->problem : strdup("it has no snapshots");
    file->problem = NULL;
    massif_file_free(file);
    return NULL;
}

void massif_file_free(MassifFile *file)
{
    if (!file)
        return;
    free(file->snapshots);
    free(file->nodes);
    free(file->problem);
    foreign_free(&file->text);
    free(file);
}
