// SPDX-License-Identifier: MIT
//
// A document of values with names: what JSON and the XML of reports have in common. All of it
// lies in an arena. Documents are hostile: depth is bounded, and nothing is believed of
// lengths or encodings.
#ifndef MUNINN_INSPECT_DOM_DOM_H
#define MUNINN_INSPECT_DOM_DOM_H

#include "base/arena.h"
#include "base/types.h"

typedef enum DomKind { DOM_NULL, DOM_BOOL, DOM_NUMBER, DOM_TEXT, DOM_LIST, DOM_OBJECT } DomKind;

typedef struct Dom Dom;
struct Dom {
    DomKind kind;
    bool is_whole;    // its end was there
    const char *name; // of a member or an element; NULL: an item of a list
    const char *text; // of text, numbers and elements; never NULL
    Dom *first, *last, *next; // what it contains; its next sibling
};

// Reads one value and what lies behind it in *ret_used bytes. NULL: there is none. What is cut
// off or wrong ends the reading: everything before is there, not whole.
Dom *dom_read_json(Arena *arena, const char *text, size_t size, size_t *ret_used);
// The outermost element. Text of an element is what it has outside of others.
Dom *dom_read_xml(Arena *arena, const char *text, size_t size);

const Dom *dom_child(const Dom *dom, const char *name); // or NULL; of NULL too
// The next sibling of this name after `dom`.
const Dom *dom_next(const Dom *dom, const char *name);
const char *dom_text(const Dom *dom, const char *name); // or NULL
u64 dom_number(const Dom *dom, const char *name);       // decimal, or 0x; 0: there is none, or < 0
double dom_real(const Dom *dom, const char *name);      // 0: there is none

#endif
