// SPDX-License-Identifier: MIT
//
// A descending parser over a terminated text. Strings are unescaped in place: they only
// get shorter.
#include <stdlib.h>
#include <string.h>

#include "inspect/json_tree/json_tree.h"

enum { DEPTH_MAX = 64 };

typedef struct Parser {
    char *at;
    JsonTree json;
} Parser;

static bool parse_value(Parser *parser, u32 depth, u32 *ret_node);

static void skip_space(Parser *parser)
{
    parser->at += strspn(parser->at, " \t\r\n");
}

// Steps over the character if it is there, and the space behind it.
static bool accept(Parser *parser, char wanted)
{
    skip_space(parser);
    if (*parser->at != wanted)
        return false;
    parser->at++;
    skip_space(parser);
    return true;
}

static bool add_node(Parser *parser, JsonKind kind, u32 *ret_node)
{
    JsonTree *json = &parser->json;

    if (json->count == json->room) {
        u32 room = json->room ? json->room * 2 : 256;
        JsonTreeNode *moved =
            room > json->room ? realloc(json->nodes, room * sizeof(*moved)) : NULL;
        if (!moved)
            return false;
        json->nodes = moved;
        json->room = room;
    }
    *ret_node = json->count++;
    json->nodes[*ret_node] = (JsonTreeNode){.kind = kind};
    return true;
}

// ---------------------------------------------------------------------- strings

static bool parse_hex4(const char *text, u32 *ret_code)
{
    u32 code = 0;

    for (int i = 0; i < 4; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            code = code * 16 + (u32)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            code = code * 16 + (u32)((c | 0x20) - 'a' + 10);
        else
            return false;
    }
    *ret_code = code;
    return true;
}

static char *put_utf8(char *out, u32 code)
{
    if (code == 0 || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd; // half a pair, or what would end the text
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

// Behind the "u". The text that it came from is longer than what is put.
static bool parse_code(Parser *parser, char **out)
{
    u32 code, low;

    if (!parse_hex4(parser->at, &code))
        return false;
    parser->at += 4;
    bool is_pair = code >= 0xd800 && code < 0xdc00 && parser->at[0] == '\\' &&
                   parser->at[1] == 'u' && parse_hex4(parser->at + 2, &low) && low >= 0xdc00 &&
                   low < 0xe000;
    if (is_pair) {
        parser->at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *out = put_utf8(*out, code);
    return true;
}

// At the opening quote.
static bool parse_string(Parser *parser, const char **ret_text)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char *out = ++parser->at;

    *ret_text = out;
    while (*parser->at != '"') {
        char c = *parser->at++;
        if ((u8)c < ' ')
            return false; // also the end of the text
        if (c != '\\') {
            *out++ = c;
            continue;
        }
        c = *parser->at++;
        const char *name = c ? strchr(names, c) : NULL;
        if (name)
            *out++ = values[name - names];
        else if (c != 'u' || !parse_code(parser, &out))
            return false;
    }
    parser->at++;
    *out = '\0';
    return true;
}

// ----------------------------------------------------------------------- values

static bool parse_number(Parser *parser, JsonTreeNode *node)
{
    char *end;

    if (!strchr("-0123456789", *parser->at) || !*parser->at)
        return false;
    node->real = strtod(parser->at, &end);
    node->integer = strtoll(parser->at, NULL, 10);
    if (end == parser->at)
        return false;
    parser->at = end;
    return true;
}

static bool parse_word(Parser *parser, JsonTreeNode *node)
{
    static const struct {
        const char *word;
        JsonKind kind;
        i64 value;
    } words[] = {{"null", JSON_NULL, 0}, {"true", JSON_BOOL, 1}, {"false", JSON_BOOL, 0}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t length = strlen(words[i].word);
        if (strncmp(parser->at, words[i].word, length) == 0) {
            node->kind = words[i].kind;
            node->integer = words[i].value;
            parser->at += length;
            return true;
        }
    }
    return false;
}

static bool parse_children(Parser *parser, u32 parent, char close, u32 depth)
{
    u32 last = 0, child;

    parser->at++;
    if (accept(parser, close))
        return true;
    do {
        const char *key = NULL;
        if (close == '}' && (*parser->at != '"' || !parse_string(parser, &key) ||
                             !accept(parser, ':')))
            return false;
        if (!parse_value(parser, depth + 1, &child))
            return false;
        parser->json.nodes[child].key = key;
        *(last ? &parser->json.nodes[last].next : &parser->json.nodes[parent].first) = child;
        last = child;
    } while (accept(parser, ','));
    return accept(parser, close);
}

static bool parse_value(Parser *parser, u32 depth, u32 *ret_node)
{
    char c = *parser->at;
    JsonKind kind = c == '{' ? JSON_OBJECT : c == '[' ? JSON_ARRAY : c == '"' ? JSON_TEXT
                                                                              : JSON_NUMBER;

    if (depth > DEPTH_MAX || !add_node(parser, kind, ret_node))
        return false;
    JsonTreeNode *node = &parser->json.nodes[*ret_node];
    switch (kind) {
    case JSON_OBJECT: return parse_children(parser, *ret_node, '}', depth);
    case JSON_ARRAY:  return parse_children(parser, *ret_node, ']', depth);
    case JSON_TEXT:   return parse_string(parser, &node->text);
    default:          return parse_number(parser, node) || parse_word(parser, node);
    }
}

bool json_tree_parse(char *text, JsonTree *ret_json)
{
    Parser parser = {.at = text};
    u32 root;

    skip_space(&parser);
    bool is_json = parse_value(&parser, 0, &root);
    if (is_json) // else the parser may stand behind the end
        skip_space(&parser);
    if (!is_json || *parser.at) {
        json_tree_free(&parser.json);
        return false;
    }
    *ret_json = parser.json;
    return true;
}

void json_tree_free(JsonTree *json)
{
    free(json->nodes);
    *json = (JsonTree){0};
}

u32 json_tree_member(const JsonTree *json, u32 object, const char *key)
{
    if (json->nodes[object].kind != JSON_OBJECT)
        return 0;
    for (u32 i = json->nodes[object].first; i != 0; i = json->nodes[i].next) {
        if (strcmp(json->nodes[i].key, key) == 0)
            return i;
    }
    return 0;
}

i64 json_tree_integer(const JsonTree *json, u32 object, const char *key)
{
    u32 member = json_tree_member(json, object, key);

    return member && json->nodes[member].kind == JSON_NUMBER ? json->nodes[member].integer : 0;
}

const char *json_tree_text(const JsonTree *json, u32 object, const char *key)
{
    u32 member = json_tree_member(json, object, key);

    return member && json->nodes[member].kind == JSON_TEXT ? json->nodes[member].text : NULL;
}
