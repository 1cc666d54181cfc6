// SPDX-License-Identifier: MIT
//
// SQL on a recording, that of $FUZZ_RECORDING. Whatever is asked: it ends, and nothing is changed.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inspect/sql/sql.h"

static SqlDatabase *database;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char *error = NULL;
    Recording *recording = recording_open(getenv("FUZZ_RECORDING"), NULL, NULL, &error);

    (void)argc, (void)argv;
    FUZZ_CHECK(recording);
    database = sql_open(recording, &error);
    FUZZ_CHECK(database);
    return 0;
}

static bool take_row(void *arg, u32 count, const char *const *names, const SqlValue *values)
{
    size_t *sum = arg;

    FUZZ_CHECK(count > 0 && names[0]);
    for (u32 i = 0; values && i < count; i++)
        *sum += values[i].type == SQL_TEXT ? strlen(values[i].text) : 1;
    return true;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    SqlLimits limits = {.rows = 200, .time_ms = 300};
    SqlOutcome outcome;
    char *error = NULL, *text = fuzz_text(data, size);
    size_t sum = 0;

    bool good = sql_run(database, text, &limits, take_row, &sum, &outcome, &error);
    FUZZ_CHECK(good == (error == NULL));
    FUZZ_CHECK(!good || outcome.rows <= limits.rows);
    free(error);
    free(text);
    return 0;
}
