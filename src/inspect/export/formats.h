// SPDX-License-Identifier: MIT
//
// What the formats share: sums by stack, and names as other programs want them.
#ifndef MUNINN_INSPECT_EXPORT_FORMATS_H
#define MUNINN_INSPECT_EXPORT_FORMATS_H

#include "inspect/export/export.h"
#include "inspect/intern/intern.h"
#include "inspect/print/print.h"
#include "inspect/stack/stack.h"
#include "inspect/sums/sums.h"

bool pprof_write(const ExportJob *job, char **ret_error);
bool folded_write(const ExportJob *job, char **ret_error);
bool speedscope_write(const ExportJob *job, char **ret_error);
bool svg_write(const ExportJob *job, char **ret_error);
bool heaptrack_write(const ExportJob *job, char **ret_error);
bool dhat_write(const ExportJob *job, char **ret_error);
bool massif_write(const ExportJob *job, char **ret_error);

// A stack of the selection: the sites of all threads in one.
typedef struct StackSums {
    u32 context;
    i64 value;     // of the job's metric
    SiteSums sums;
} StackSums;

// In order of contexts; those with nothing are left out. NULL: *ret_error. To be freed.
StackSums *stack_sums(const ExportJob *job, u32 *ret_count, char **ret_error);

// For formats that are made of events, which know a block's size but not, at its birth, its
// lifetime.
// Which sites are selected, whatever the time; by site, to be freed. NULL: *ret_error.
bool *selected_sites(const ExportJob *job, char **ret_error);
bool size_is_wanted(const ExportJob *job, u64 size);
// Of what is selected, up to a moment.
bool sums_until(const ExportJob *job, u64 ns, SiteSums *ret_sums, char **ret_error);

// The end of the selection, exclusive.
u64 selection_end_ns(const ExportJob *job);

// A line with snprintf's words, for ret_error. Returns false.
bool export_fail(char **ret_error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Function, or object+offset where there is none.
const char *frame_name(const StackFrame *at, Recording *recording, char *text);

#endif
