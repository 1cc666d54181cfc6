// SPDX-License-Identifier: MIT
//
// `muninn heap tree` and `flame`: the same tree of frames as indented lines and as boxes.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/heap/command.h"

static Tree *build(Question *question, Metric *ret_metric, bool bottom_up)
{
    const Arguments *arguments = question->arguments;
    TreeOptions options = {
        .bottom_up = bottom_up,
        .collapse_recursion = !arguments->keep_recursion,
        .by_function = arguments->by_function,
        .fold_libraries = arguments->fold_libraries,
        .only_code = arguments->only_code,
        .hide_allocators = !arguments->show_allocators,
    };

    *ret_metric = question_metric(question);
    u64 *counts = NULL;
    i64 *values = question_counted_values(question, *ret_metric, &counts);
    if (!values)
        return NULL;
    progress_begin("building the tree");
    Tree *tree = tree_build_counts(question->recording, values, counts, &options);
    progress_end();
    free(values);
    free(counts);
    if (!tree)
        heap_error("the tree could not be built");
    return tree;
}

static u64 magnitude(i64 value)
{
    return value < 0 ? 0 - (u64)value : (u64)value;
}

// ---------------------------------------------------------------------------- tree

typedef struct TreeWalk {
    Question *question;
    const Tree *tree;
    Metric metric;
    u64 whole;
    bool *is_shown; // by node
} TreeWalk;

// Stacks may be deeper than our own stack is.
enum { TREE_DEPTH_MAX = 4000, TREE_ROWS_FOR_PEOPLE = 60 };

static const Column tree_columns[] = {
    {"value", "", COLUMN_RIGHT | COLUMN_STRONG},
    {"percent", "%", COLUMN_RIGHT},
    {"self", "self", COLUMN_RIGHT},
    {"count", "blocks", COLUMN_RIGHT},
    {"depth", "", COLUMN_DATA_ONLY},
    {"id", "", COLUMN_DATA_ONLY},
    {"parent", "", COLUMN_DATA_ONLY},
    {"name", "", COLUMN_DATA_ONLY},
    {"more_nodes", "", COLUMN_DATA_ONLY}, // of a row that stands for what is left out
    {"line", "where", COLUMN_TEXT_ONLY | COLUMN_PLACE},
};

static Cell amount(Metric metric, i64 value)
{
    if (metric == METRIC_GROWTH)
        return cell_i64(CELL_CHANGE, value);
    return cell_u64(metric_is_bytes(metric) ? CELL_BYTES : CELL_COUNT, (u64)value);
}

static int largest_first(const void *a, const void *b, void *arg)
{
    const TreeNode *nodes = arg;
    u32 x = *(const u32 *)a, y = *(const u32 *)b;
    u64 of_x = magnitude(nodes[x].value), of_y = magnitude(nodes[y].value);

    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    return x < y ? -1 : x > y;
}

// The largest nodes, as many as the user wants, each with the way to it from the root.
static bool *choose_nodes(const Question *question, const Tree *tree, u64 whole)
{
    const Arguments *arguments = question->arguments;
    bool is_text = arguments->form == PRINT_TEXT;
    double threshold = arguments->threshold >= 0 ? arguments->threshold : is_text ? 1 : 0;
    u64 least = (u64)((double)whole * threshold / 100);
    u64 limit = !arguments->has_limit && is_text ? TREE_ROWS_FOR_PEOPLE : arguments->limit;
    bool *is_shown = calloc((size_t)tree->count + 1, sizeof(*is_shown));
    u32 *order = malloc(((size_t)tree->count + 1) * sizeof(*order));

    if (!is_shown || !order)
        abort();
    for (u32 i = 0; i < tree->count; i++)
        order[i] = i;
    qsort_r(order, tree->count, sizeof(*order), largest_first, tree->nodes);
    for (u32 i = 0; i < tree->count && i < limit; i++) {
        u64 size = magnitude(tree->nodes[order[i]].value);
        if (size < least || size == 0)
            break;
        for (u32 node = order[i]; !is_shown[node]; node = tree->nodes[node].parent)
            is_shown[node] = true;
    }
    is_shown[0] = true;
    free(order);
    return is_shown;
}

// "│ ├ ": `rails` has a bit for every level at which a sibling is still to come.
static void draw_rails(char *text, size_t size, u64 rails, u32 depth)
{
    size_t at = 0;

    text[0] = 0;
    for (u32 i = 1; i <= min_u64(depth, 63) && at + 8 < size; i++) {
        bool goes_on = rails >> i & 1;
        const char *part = i == depth ? (goes_on ? "├ " : "└ ") : goes_on ? "│ " : "  ";
        at += (size_t)snprintf(text + at, size - at, "%s", part);
    }
}

static __attribute__((noinline)) void print_node(TreeWalk *walk, u32 index, u32 depth, u64 rails)
{
    const TreeNode *node = &walk->tree->nodes[index];
    char name[STACK_LABEL_MAX] = "all";
    char line[512 + STACK_LABEL_MAX];

    if (depth)
        tree_node_label(walk->question->recording, node, name, sizeof(name));
    draw_rails(line, 512, rails, depth);
    strncat(line, name, sizeof(line) - strlen(line) - 1);
    const Cell cells[] = {
        amount(walk->metric, node->value),
        cell_share((double)magnitude(node->value), (double)walk->whole),
        amount(walk->metric, node->self),
        cell_u64(CELL_COUNT, node->count),
        cell_u64(CELL_COUNT, depth),
        cell_u64(CELL_COUNT, index),
        depth ? cell_u64(CELL_COUNT, node->parent) : cell_none(),
        cell_text(name),
        cell_none(),
        cell_text(line),
    };
    printer_row(walk->question->out, cells);
}

// The line that stands for the children that are not shown.
static __attribute__((noinline)) void print_rest(TreeWalk *walk, u32 parent, u32 depth, u64 rails,
                                                 u64 nodes, i64 sum)
{
    char line[640];

    draw_rails(line, 512, rails, depth);
    snprintf(line + strlen(line), 64, "%llu more", (unsigned long long)nodes);
    const Cell cells[] = {
        amount(walk->metric, sum),
        cell_share((double)magnitude(sum), (double)walk->whole),
        cell_none(),
        cell_none(),
        cell_u64(CELL_COUNT, depth),
        cell_none(),
        cell_u64(CELL_COUNT, parent),
        cell_none(),
        cell_u64(CELL_COUNT, nodes),
        cell_text(line),
    };
    printer_row(walk->question->out, cells);
}

static void walk_tree(TreeWalk *walk, u32 index, u32 depth, u64 rails)
{
    const TreeNode *nodes = walk->tree->nodes;
    bool is_deepest = depth >= min_u64(walk->question->arguments->depth, TREE_DEPTH_MAX);
    u64 rail = 1ull << min_u64(depth + 1, 63);
    u64 left_nodes = 0;
    i64 left = 0;
    u32 last_shown = 0;

    print_node(walk, index, depth, rails);
    for (u32 child = nodes[index].first_child; child; child = nodes[child].next_sibling) {
        if (walk->is_shown[child] && !is_deepest) {
            last_shown = child;
            continue;
        }
        left_nodes += nodes[child].value != 0;
        saturate_grow_i64(&left, nodes[child].value);
    }
    for (u32 child = nodes[index].first_child; child; child = nodes[child].next_sibling) {
        if (walk->is_shown[child] && !is_deepest) {
            bool goes_on = child != last_shown || left_nodes;
            walk_tree(walk, child, depth + 1, goes_on ? rails | rail : rails & ~rail);
        }
    }
    if (left_nodes)
        print_rest(walk, index, depth + 1, rails & ~rail, left_nodes, left);
}

int heap_tree(Question *question)
{
    Metric metric;
    Tree *tree = build(question, &metric, !question->arguments->top_down);

    if (!tree)
        return 1;
    TreeWalk walk = {question, tree, metric, magnitude(tree->nodes[0].value), NULL};
    Column columns[ARRAY_LEN(tree_columns)];
    memcpy(columns, tree_columns, sizeof(columns));
    columns[0].heading = metric_title(metric);
    if (!metric_is_bytes(metric))
        columns[3].flags |= COLUMN_DATA_ONLY; // the value is the count
    walk.is_shown = choose_nodes(question, tree, walk.whole);
    answer_begin(question);
    groups_print_moment(question, metric, tree->nodes[0].value);
    printer_table(question->out, "nodes", NULL, columns, ARRAY_LEN(columns));
    walk_tree(&walk, 0, 0, 0);
    free(walk.is_shown);
    tree_free(tree);
    return answer_end(question);
}

// --------------------------------------------------------------------------- flame

// A level of the flame graph is a line: a box for each frame that is at least a few columns
// wide, dots for those that are not, and a sum below for those that have no column.
typedef struct FlameWalk {
    Question *question;
    const Tree *tree;
    double columns_per_unit;
    char **cells; // by level: width columns of UTF-8 text, a character each
    u32 width, level_count;
    u64 left_frames, left; // too narrow, or too deep
} FlameWalk;

enum { FLAME_LEVELS_MAX = 64, FLAME_NAME_MIN = 3 };

static void draw_box(FlameWalk *walk, const TreeNode *node, u32 level, u32 from, u32 to)
{
    char name[STACK_LABEL_MAX] = "all";
    char *line = walk->cells[level];

    if (level)
        tree_node_label(walk->question->recording, node, name, sizeof(name));
    line[from] = '[';
    line[to - 1] = ']';
    for (u32 i = from + 1; i < to - 1; i++) {
        u32 at = i - from - 1;
        char c = at < strlen(name) ? name[at] : '-';
        line[i] = c >= ' ' && c < 0x7f ? c : '?';
    }
}

static void flame_level(FlameWalk *walk, u32 index, u32 level, double from)
{
    const TreeNode *nodes = walk->tree->nodes;
    double to = from + (double)magnitude(nodes[index].value) * walk->columns_per_unit;
    u32 first = (u32)(from + 0.5), end = (u32)(to + 0.5);

    if (level >= FLAME_LEVELS_MAX || end <= first || end > walk->width) {
        walk->left_frames += nodes[index].value != 0;
        saturate_grow_u64(&walk->left, magnitude(nodes[index].value));
        return;
    }
    walk->level_count = level + 1 > walk->level_count ? level + 1 : walk->level_count;
    if (end - first < FLAME_NAME_MIN) {
        memset(walk->cells[level] + first, '.', end - first);
        return;
    }
    draw_box(walk, &nodes[index], level, first, end);
    for (u32 child = nodes[index].first_child; child; child = nodes[child].next_sibling) {
        flame_level(walk, child, level + 1, from);
        from += (double)magnitude(nodes[child].value) * walk->columns_per_unit;
    }
}

static void print_flame(Question *question, const Tree *tree, Metric metric)
{
    u64 whole = magnitude(tree->nodes[0].value);
    FlameWalk walk = {.question = question, .tree = tree, .width = printer_width(question->out)};
    char *cells[FLAME_LEVELS_MAX];
    char sum[VALUE_BYTES_MAX];

    walk.cells = cells;
    walk.columns_per_unit = whole ? (double)walk.width / (double)whole : 0;
    for (u32 i = 0; i < FLAME_LEVELS_MAX; i++) {
        cells[i] = malloc(walk.width + 1);
        if (!cells[i])
            abort();
        memset(cells[i], ' ', walk.width);
        cells[i][walk.width] = 0;
    }
    flame_level(&walk, 0, 0, 0);
    groups_print_moment(question, metric, tree->nodes[0].value);
    for (u32 i = 0; i < walk.level_count; i++)
        printer_line(question->out, "%s", cells[i]);
    if (metric_is_bytes(metric))
        value_bytes(walk.left, sum);
    else
        value_count(walk.left, sum);
    if (walk.left_frames)
        printer_line(question->out, "%llu more are narrower than a column (%s); "
                     "-o FILE.svg has them", (unsigned long long)walk.left_frames, sum);
    for (u32 i = 0; i < FLAME_LEVELS_MAX; i++)
        free(cells[i]);
}

// For programs: the tree as rows, as `tree --top-down` gives them.
static int flame_data(Question *question)
{
    Arguments arguments = *question->arguments;

    arguments.top_down = !arguments.bottom_up;
    question->arguments = &arguments;
    return heap_tree(question);
}

int heap_flame(Question *question)
{
    const Arguments *arguments = question->arguments;
    Metric metric;

    if (arguments->output)
        return heap_export_as(question, "svg");
    if (arguments->form != PRINT_TEXT)
        return flame_data(question);
    Tree *tree = build(question, &metric, arguments->bottom_up);
    if (!tree)
        return 1;
    answer_begin(question);
    print_flame(question, tree, metric);
    tree_free(tree);
    return answer_end(question);
}
