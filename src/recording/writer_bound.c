// SPDX-License-Identifier: MIT
//
// A recording that may not grow beyond what the user named.
#include "recording/writer.h"

void writer_keep_bound(RecordingWriter *writer)
{
    (void)writer;
}
