// SPDX-License-Identifier: MIT
//
// Reports that the viewer reads: JSON, JSON lines, XML.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inspect/dom/dom.h"
#include "inspect/http/findings.h"

static size_t walk(const Dom *dom)
{
    size_t sum = 0;

    for (const Dom *child = dom ? dom->first : NULL; child; child = child->next)
        sum += strlen(child->text) + walk(child);
    return sum;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    Arena arena = {0};
    size_t used;
    char *error = NULL, *text = malloc(size + 1); // ends where the memory does

    memcpy(text, data, size);
    text = realloc(text, size ? size : 1);
    const Dom *dom = dom_read_json(&arena, text, size, &used);
    FUZZ_CHECK(used <= size);
    walk(dom);
    walk(dom_read_xml(&arena, text, size));
    arena_free(&arena);
    Findings *findings = findings_look(text, size) ? findings_load(fuzz_file(data, size), &error)
                                                   : NULL;
    for (u32 i = 0; findings && i < findings->count; i++) {
        free(finding_suppression(&findings->found[i]));
        finding_place(&findings->found[i]);
    }
    if (findings)
        findings_free(findings);
    free(error);
    free(text);
    return 0;
}
