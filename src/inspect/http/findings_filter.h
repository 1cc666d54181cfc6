// SPDX-License-Identifier: MIT
//
// Which findings a request wants.
#ifndef MUNINN_INSPECT_HTTP_FINDINGS_FILTER_H
#define MUNINN_INSPECT_HTTP_FINDINGS_FILTER_H

#include "inspect/http/findings.h"
#include "inspect/http/viewer.h"

typedef struct FindingFilter {
    const char *kinds;  // ids with commas between them
    const char *module; // a shell pattern of some frame's object
    const char *tool, *search;
} FindingFilter;

FindingFilter finding_filter(Call *call);
bool finding_is_wanted(const FindingFilter *filter, const Found *found);

#endif
