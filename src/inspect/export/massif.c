// SPDX-License-Identifier: MIT
//
// massif.out of a recording, the one that ms_print shows of it.
#include "inspect/export/formats.h"
#include "inspect/ms_print/ms_print.h"

bool massif_write(const ExportJob *job, char **ret_error)
{
    if (ms_print_write_massif(job->recording, job->out) || ferror(job->out))
        return true; // the caller knows why it cannot be written
    return export_fail(ret_error, "massif.out: there is not enough memory");
}
