// SPDX-License-Identifier: MIT
//
// `muninn view --export`: one page with the answers that it is likely to ask for.
#ifndef MUNINN_INSPECT_HTTP_EXPORT_H
#define MUNINN_INSPECT_HTTP_EXPORT_H

#include "inspect/http/viewer.h"

enum { EXPORT_MAX_BYTES = 5 << 20 };

// False: *ret_error (to be freed) says why.
bool export_write(Viewer *viewer, const char *path, char **ret_error);

#endif
