// SPDX-License-Identifier: MIT
//
// Reading JSON: a text into nodes that point into it. Hostile input ends in false, never in
// anything worse.
#ifndef MUNINN_INSPECT_JSON_TREE_JSON_TREE_H
#define MUNINN_INSPECT_JSON_TREE_JSON_TREE_H

#include "base/types.h"

typedef enum JsonKind {
    JSON_NULL,
    JSON_BOOL,   // integer is 0 or 1
    JSON_NUMBER,
    JSON_TEXT,
    JSON_ARRAY,
    JSON_OBJECT,
} JsonKind;

typedef struct JsonTreeNode {
    JsonKind kind;
    u32 first;        // child; 0: none
    u32 next;         // sibling; 0: none
    const char *key;  // of a member of an object; else NULL
    const char *text; // JSON_TEXT, UTF-8, without zeros
    i64 integer;      // JSON_NUMBER, towards zero, at the ends of i64 if it is beyond
    double real;
} JsonTreeNode;

typedef struct JsonTree {
    JsonTreeNode *nodes; // [0] is the root
    u32 count, room;
} JsonTree;

// `text` is terminated, is changed, and must live as long as the nodes. False: it is no JSON; the
// nodes are freed.
bool json_tree_parse(char *text, JsonTree *ret_json);
void json_tree_free(JsonTree *json);

// The member of an object with this key. 0: there is none.
u32 json_tree_member(const JsonTree *json, u32 object, const char *key);
// Its value; 0 or NULL if it is not there, or of another kind.
i64 json_tree_integer(const JsonTree *json, u32 object, const char *key);
const char *json_tree_text(const JsonTree *json, u32 object, const char *key);

#endif
