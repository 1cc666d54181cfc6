// SPDX-License-Identifier: MIT
//
// See dom.h: what a document has, whatever it was read from.
#include <stdlib.h>
#include <string.h>

#include "inspect/dom/dom.h"

const Dom *dom_child(const Dom *dom, const char *name)
{
    const Dom *child = dom ? dom->first : NULL;

    while (child && (!child->name || strcmp(child->name, name) != 0))
        child = child->next;
    return child;
}

const Dom *dom_next(const Dom *dom, const char *name)
{
    do
        dom = dom->next;
    while (dom && (!dom->name || strcmp(dom->name, name) != 0));
    return dom;
}

const char *dom_text(const Dom *dom, const char *name)
{
    const Dom *child = dom_child(dom, name);

    return child && child->kind != DOM_NULL && child->text[0] ? child->text : NULL;
}

u64 dom_number(const Dom *dom, const char *name)
{
    const char *text = dom_text(dom, name);

    if (!text || *text == '-')
        return 0;
    return strtoull(text, NULL, strncmp(text, "0x", 2) == 0 ? 16 : 10);
}

double dom_real(const Dom *dom, const char *name)
{
    const Dom *child = dom_child(dom, name);

    return child && child->kind == DOM_NUMBER ? strtod(child->text, NULL) : 0;
}
