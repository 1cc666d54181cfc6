// SPDX-License-Identifier: MIT
//
// Recordings written for other programs. A format is a row of the table in export.c.
#ifndef MUNINN_INSPECT_EXPORT_EXPORT_H
#define MUNINN_INSPECT_EXPORT_EXPORT_H

#include <stdio.h>

#include "recording/query.h"

typedef struct ExportJob {
    Recording *recording;
    Selection selection;
    Metric metric; // of formats that have one value for a stack
    TreeOptions tree; // of flame graphs
    FILE *out;     // the caller looks whether all could be written
    void (*progress)(u64 done, u64 total); // or NULL
} ExportJob;

typedef struct ExportFormat {
    const char *name;
    const char *suffix;     // of files
    const char *media_type; // for HTTP
    bool is_binary;
    bool is_whole_run;      // it has a time axis, or the peak beside the end: no moment is chosen
    // False: *ret_error (to be freed) is a line that says why.
    bool (*write)(const ExportJob *job, char **ret_error);
} ExportFormat;

const ExportFormat *export_find(const char *name); // or NULL
const ExportFormat *export_formats(size_t *ret_count);
const char *export_names(void); // "pprof, folded, …"

#endif
