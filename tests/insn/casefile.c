// SPDX-License-Identifier: MIT
//
// The writer of case files. Groups are numbered as they appear and cases as they are ended; the
// header and the names precede the cases in the file, so all is kept in memory until the end.
#include "casefile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 512

struct CaseWriter {
    const char *path;
    CaseFile head;
    char names[GROUPS_MAX][CASE_NAME_MAX];
    u8 *bytes;
    size_t len_bytes;
    size_t room_bytes;
};

static _Noreturn void fail(const char *what, const char *path)
{
    fprintf(stderr, "casefile: %s: %s\n", path, what);
    exit(2);
}

CaseWriter *casefile_create(const char *path, u32 slot_bytes)
{
    CaseWriter *w = calloc(1, sizeof(*w));
    if (!w)
        fail("out of memory", path);
    w->path = path;
    w->head = (CaseFile){ .magic = CASE_MAGIC, .slot_bytes = slot_bytes };
    return w;
}

void casefile_close(CaseWriter *w)
{
    FILE *f = fopen(w->path, "wb");
    if (!f)
        fail("cannot create", w->path);
    size_t names_bytes = (size_t)w->head.n_groups * CASE_NAME_MAX;
    if (fwrite(&w->head, sizeof(w->head), 1, f) != 1 ||
        fwrite(w->names, 1, names_bytes, f) != names_bytes ||
        fwrite(w->bytes, 1, w->len_bytes, f) != w->len_bytes || fclose(f))
        fail("cannot write", w->path);
    free(w->bytes);
    free(w);
}

u16 casefile_group(CaseWriter *w, const char *name)
{
    for (u32 i = 0; i < w->head.n_groups; i++)
        if (!strncmp(w->names[i], name, CASE_NAME_MAX - 1))
            return (u16)i;
    if (w->head.n_groups == GROUPS_MAX)
        fail("too many groups", w->path);
    snprintf(w->names[w->head.n_groups], CASE_NAME_MAX, "%s", name);
    return (u16)w->head.n_groups++;
}

void case_begin(CaseBuilder *c, u64 seed)
{
    c->head = (Case){ .seed = seed, .flags_mask = 0xcd5 };
}

void case_code_add(CaseBuilder *c, const void *bytes, u32 len_bytes)
{
    if (c->head.code_bytes + len_bytes > CASE_CODE_MAX)
        fail("too much code", "case");
    memcpy(c->code + c->head.code_bytes, bytes, len_bytes);
    c->head.code_bytes = (u16)(c->head.code_bytes + len_bytes);
}

static CaseSet *new_set(CaseBuilder *c)
{
    if (c->head.n_sets == CASE_SETS_MAX)
        fail("too many sets", "case");
    return &c->sets[c->head.n_sets++];
}

static void note_base(CaseBuilder *c, enum CaseBase base)
{
    if (base == BASE_NEAR)
        c->head.traits |= CASE_USES_NEAR;
}

void case_set(CaseBuilder *c, enum CaseSetKind kind, u32 index, enum CaseBase base, i64 value)
{
    *new_set(c) = (CaseSet){ .kind = (u8)kind, .base = (u8)base, .index = (u16)index,
                             .value = value };
    note_base(c, kind == SET_NEAR ? BASE_NEAR : base);
}

void case_set_divided(CaseBuilder *c, u32 gpr, enum CaseBase base, i64 value, u8 divisor)
{
    *new_set(c) = (CaseSet){ .kind = SET_GPR, .base = (u8)base, .index = (u16)gpr,
                             .divisor = divisor, .value = value };
    note_base(c, base);
}

void case_fix(CaseBuilder *c, enum CaseFixKind kind, u32 at, u32 end, enum CaseBase base, i64 value)
{
    if (c->head.n_fixes == CASE_FIXES_MAX)
        fail("too many fixes", "case");
    c->fixes[c->head.n_fixes++] = (CaseFix){ .kind = (u8)kind, .base = (u8)base, .at = (u16)at,
                                             .end = (u16)end, .value = value };
    note_base(c, base);
}

void case_exit(CaseBuilder *c, bool taken)
{
    static const u8 room[EXIT_BYTES];
    case_fix(c, taken ? FIX_EXIT_TAKEN : FIX_EXIT, c->head.code_bytes, 0, BASE_NONE, 0);
    case_code_add(c, room, EXIT_BYTES);
}

void case_ignore(CaseBuilder *c, enum CaseBase base, u32 at, u32 len_bytes)
{
    if (c->head.n_ignores == CASE_IGNORES_MAX)
        fail("too many ignored ranges", "case");
    c->ignores[c->head.n_ignores++] = (CaseIgnore){ .base = (u16)base, .at = (u16)at,
                                                    .len_bytes = len_bytes };
}

static void append(CaseWriter *w, const void *bytes, size_t len_bytes)
{
    if (w->len_bytes + len_bytes > w->room_bytes) {
        w->room_bytes = 2 * (w->room_bytes + len_bytes) + 1 * MiB;
        w->bytes = realloc(w->bytes, w->room_bytes);
        if (!w->bytes)
            fail("out of memory", w->path);
    }
    memcpy(w->bytes + w->len_bytes, bytes, len_bytes);
    w->len_bytes += len_bytes;
}

void case_end(CaseWriter *w, CaseBuilder *c, u16 group)
{
    Case *h = &c->head;
    static const u8 zeros[8];
    size_t size_bytes = sizeof(Case) + h->n_sets * sizeof(CaseSet) + h->n_fixes * sizeof(CaseFix) +
                        h->n_ignores * sizeof(CaseIgnore) + h->code_bytes;
    size_t pad = -size_bytes % 8;
    if (h->code_bytes > w->head.slot_bytes)
        fail("code does not fit its slot", w->path);
    h->size_bytes = (u32)(size_bytes + pad);
    h->id = w->head.n_cases++;
    h->group = group;
    append(w, h, sizeof(*h));
    append(w, c->sets, h->n_sets * sizeof(CaseSet));
    append(w, c->fixes, h->n_fixes * sizeof(CaseFix));
    append(w, c->ignores, h->n_ignores * sizeof(CaseIgnore));
    append(w, c->code, h->code_bytes);
    append(w, zeros, pad);
}
