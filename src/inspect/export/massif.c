// SPDX-License-Identifier: MIT
//
// massif.out of a recording: recording/massif_out.h knows the format.
#include <string.h>

#include "inspect/export/formats.h"
#include "recording/massif_out.h"

bool massif_write(const ExportJob *job, char **ret_error)
{
    enum { SNAPSHOTS = 100 };
    int error = massif_out_convert(job->recording, job->out, SNAPSHOTS);

    return error == 0 || export_fail(ret_error, "massif.out: %s", strerror(-error));
}
