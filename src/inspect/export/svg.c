// SPDX-License-Identifier: MIT
//
// A flame graph in one SVG file: titles on hover, a click widens a frame, the search marks
// what matches and sums it up. Frames narrower than a tenth of a pixel have no box; their
// room stays empty, and a line below says how many there are.
#include <stdlib.h>
#include <string.h>

#include "base/saturate.h"
#include "inspect/export/formats.h"

enum { WIDTH = 1200, ROW = 17, TOP = 60, BOTTOM = 30, MARGIN = 10, DEPTH_MAX = 1000 };
static const double narrowest = 0.1, text_width = 7.2;

typedef struct Svg {
    const ExportJob *job;
    const Tree *tree;
    double pixels_per_unit;
    u32 depth; // of what is drawn
    u64 left_frames;
    u64 left;  // their value
} Svg;

static const char script[] =
#include "inspect/export/svg_script.def"
    ;

static void put_xml(FILE *out, const char *text, size_t characters_max)
{
    for (size_t n = 0; *text && n < characters_max; n++) {
        u32 length = utf8_length(text);
        u8 c = (u8)*text;
        if (length == 0 || c < ' ' || c == 0x7f)
            fputs("\xef\xbf\xbd", out);
        else if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(out, "&#%d;", c);
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
    }
}

static u64 magnitude(i64 value)
{
    return value < 0 ? 0 - (u64)value : (u64)value;
}

// A warm colour of the name's own; what shrank is cold.
static void put_colour(FILE *out, const char *name, bool is_less)
{
    u32 hash = 2166136261u;

    for (; *name && *name != ' ' && *name != '('; name++)
        hash = (hash ^ (u8)*name) * 16777619u;
    u32 red = 205 + hash % 50, green = 90 + hash / 64 % 120, blue = 30 + hash / 8192 % 55;
    if (is_less)
        fprintf(out, "rgb(%u,%u,%u)", blue + 60, green + 30, red);
    else
        fprintf(out, "rgb(%u,%u,%u)", red, green, blue);
}

static void put_value(Svg *svg, i64 value)
{
    char text[VALUE_BYTES_MAX];
    Metric metric = svg->job->metric;
    bool is_count = metric == METRIC_ALLOCATIONS || metric == METRIC_TEMPORARY;

    fputs(is_count              ? value_count(magnitude(value), text)
          : metric == METRIC_GROWTH ? value_change(value, text)
                                    : value_bytes(magnitude(value), text),
          svg->job->out);
}

static void put_frame(Svg *svg, u32 index, u32 depth, double x, double width)
{
    const TreeNode *node = &svg->tree->nodes[index];
    FILE *out = svg->job->out;
    char name[STACK_LABEL_MAX] = "all", share[VALUE_BYTES_MAX];
    u64 whole = magnitude(svg->tree->nodes[0].value);
    u32 y = TOP + depth * ROW;

    if (index)
        tree_node_label(svg->job->recording, node, name, sizeof(name));
    fputs("<g class=\"f\"><title>", out);
    put_xml(out, name, SIZE_MAX);
    fputs(" — ", out);
    put_value(svg, node->value);
    fprintf(out, ", %s</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"",
            value_share(whole ? (double)magnitude(node->value) / (double)whole : 0, share), x, y,
            width, ROW - 1);
    put_colour(out, name, node->value < 0);
    fprintf(out, "\"/><text x=\"%.2f\" y=\"%u\">", x + 3, y + 12);
    if (width > 3 * text_width)
        put_xml(out, name, (size_t)((width - 6) / text_width));
    fputs("</text></g>\n", out);
}

static void put_frames(Svg *svg, u32 index, u32 depth, double x)
{
    const TreeNode *nodes = svg->tree->nodes;
    double width = (double)magnitude(nodes[index].value) * svg->pixels_per_unit;

    if (width < narrowest || depth >= DEPTH_MAX)
        return;
    put_frame(svg, index, depth, x, width);
    for (u32 child = nodes[index].first_child; child; child = nodes[child].next_sibling) {
        put_frames(svg, child, depth + 1, x);
        x += (double)magnitude(nodes[child].value) * svg->pixels_per_unit;
    }
}

static void measure_depth(Svg *svg, u32 index, u32 depth)
{
    const TreeNode *nodes = svg->tree->nodes;

    if ((double)magnitude(nodes[index].value) * svg->pixels_per_unit < narrowest ||
        depth >= DEPTH_MAX) {
        svg->left_frames += nodes[index].value != 0;
        saturate_grow_u64(&svg->left, magnitude(nodes[index].value));
        return;
    }
    svg->depth = depth + 1 > svg->depth ? depth + 1 : svg->depth;
    for (u32 child = nodes[index].first_child; child; child = nodes[child].next_sibling)
        measure_depth(svg, child, depth + 1);
}

static void put_svg(Svg *svg)
{
    FILE *out = svg->job->out;
    const char *command = recording_info(svg->job->recording)->command;
    u32 height;

    measure_depth(svg, 0, 0);
    height = TOP + svg->depth * ROW + BOTTOM;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "viewBox=\"0 0 %d %u\">\n<style>text{font:12px monospace;fill:#111}"
            ".f{cursor:pointer}.f:hover rect{stroke:#111}.f text{pointer-events:none}"
            ".m rect{fill:#d33bd3}.o{display:none}#t{font-size:16px}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfcf5\"/>\n<text id=\"t\" x=\"%d\" "
            "y=\"24\">",
            WIDTH, height, WIDTH, height, MARGIN);
    put_xml(out, command ? command : "recording", 110);
    fprintf(out,
            "</text>\n<text id=\"d\" x=\"%d\" y=\"48\">&#160;</text>\n"
            "<text id=\"s\" x=\"%d\" y=\"24\" text-anchor=\"end\" style=\"cursor:pointer\">"
            "search</text>\n<text id=\"r\" x=\"%d\" y=\"48\" text-anchor=\"end\" "
            "style=\"cursor:pointer\" class=\"o\">whole</text>\n",
            MARGIN, WIDTH - MARGIN, WIDTH - MARGIN);
    put_frames(svg, 0, 0, MARGIN);
    if (svg->left_frames) {
        fprintf(out, "<text x=\"%d\" y=\"%u\">%llu more are too narrow to be drawn (", MARGIN,
                height - 10, (unsigned long long)svg->left_frames);
        put_value(svg, (i64)svg->left);
        fputs(")</text>\n", out);
    }
    fprintf(out, "<script><![CDATA[\n%s]]></script>\n</svg>\n", script);
}

bool svg_write(const ExportJob *job, char **ret_error)
{
    Svg svg = {.job = job};
    i64 *values = calloc((size_t)recording_site_count(job->recording) + 1, sizeof(*values));

    if (!values)
        return export_fail(ret_error, "no memory");
    if (!selection_metric(job->recording, &job->selection, job->metric, values, ret_error)) {
        free(values);
        return false;
    }
    Tree *tree = tree_build(job->recording, values, &job->tree);
    free(values);
    if (!tree)
        return export_fail(ret_error, "no memory for the tree");
    svg.tree = tree;
    u64 whole = magnitude(tree->nodes[0].value);
    svg.pixels_per_unit = whole ? (WIDTH - 2.0 * MARGIN) / (double)whole : 0;
    put_svg(&svg);
    tree_free(tree);
    return true;
}
