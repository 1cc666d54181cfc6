// SPDX-License-Identifier: MIT
//
// The sums of a selection as answers and exports show them: what is live at a moment, and
// what happened in the range. The peak is a moment of the whole run, so beside it stand the
// counts of the whole run, not of what came before.
#ifndef MUNINN_INSPECT_SUMS_SUMS_H
#define MUNINN_INSPECT_SUMS_SUMS_H

#include "recording/query.h"

void site_sums_add(SiteSums *to, const SiteSums *from);
bool site_sums_are_empty(const SiteSums *sums);

// For every site, as selection_sums(). False: *ret_error.
bool site_sums_of(Recording *recording, const Selection *selection, SiteSums *ret_sums,
             char **ret_error);

#endif
