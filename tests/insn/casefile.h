// SPDX-License-Identifier: MIT
//
// Writing case files: begin a case, add what it needs, end it.
#ifndef MUNINN_TESTS_INSN_CASEFILE_H
#define MUNINN_TESTS_INSN_CASEFILE_H

#include "case.h"

#define CASE_SETS_MAX 64
#define CASE_FIXES_MAX 128
#define CASE_IGNORES_MAX 4
#define CASE_CODE_MAX 2048

typedef struct CaseBuilder {
    Case head;
    CaseSet sets[CASE_SETS_MAX];
    CaseFix fixes[CASE_FIXES_MAX];
    CaseIgnore ignores[CASE_IGNORES_MAX];
    u8 code[CASE_CODE_MAX];
} CaseBuilder;

typedef struct CaseWriter CaseWriter;

// Exits with a message when the file cannot be written.
CaseWriter *casefile_create(const char *path, u32 slot_bytes);
void casefile_close(CaseWriter *writer);

// The number of the group of that name, made on first use.
u16 casefile_group(CaseWriter *writer, const char *name);

void case_begin(CaseBuilder *c, u64 seed);
void case_code_add(CaseBuilder *c, const void *bytes, u32 len_bytes);
void case_set(CaseBuilder *c, enum CaseSetKind kind, u32 index, enum CaseBase base, i64 value);
void case_set_divided(CaseBuilder *c, u32 gpr, enum CaseBase base, i64 value, u8 divisor);
void case_fix(CaseBuilder *c, enum CaseFixKind kind, u32 at, u32 end, enum CaseBase base,
              i64 value);
void case_exit(CaseBuilder *c, bool taken);
void case_ignore(CaseBuilder *c, enum CaseBase base, u32 at, u32 len_bytes);
void case_end(CaseWriter *writer, CaseBuilder *c, u16 group);

#endif
