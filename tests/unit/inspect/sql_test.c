// SPDX-License-Identifier: MIT
//
// The interface of SQL on a recording: names first, limits, stopping, interrupting, and what is
// said when it does not work.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "inspect/sql/sql.h"

typedef struct Seen {
    u32 names, rows;
    u32 stop_after; // rows; 0: never
    i64 last;
} Seen;

static bool see(void *arg, u32 count, const char *const *names, const SqlValue *values)
{
    Seen *seen = arg;

    CHECK(count > 0);
    CHECK(names[0] != NULL);
    if (!values) {
        CHECK_EQ(seen->rows, 0);
        seen->names++;
        return true;
    }
    seen->last = values[0].type == SQL_INTEGER ? values[0].integer : -1;
    return ++seen->rows != seen->stop_after;
}

// A hundred blocks of one site, half of them freed.
static Recording *make(char *path)
{
    RecordingInfo info = {.tool = "massif", .command = "x", .pid = 1};
    char *error = NULL;
    int code = 0;
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    RecordingWriter *writer = recording_create(&(WriterConfig){.path = path}, &info, &code);
    CHECK(writer != NULL);
    u32 context = recording_add_context(writer, 0, 0, 0x1000, false);
    u32 site = recording_add_site(writer, &(RecordedSite){.context = context, .thread = 1});
    for (u64 i = 1; i <= 100; i++) {
        HeapEvent event = {.kind = EVENT_ALLOC, .site = site, .thread = 1, .time = {.ns = i * 10},
                           .address = i * 64, .size = i, .usable = 64};
        recording_add_event(writer, &event);
        if (i % 2 == 0) {
            event.kind = EVENT_FREE;
            event.born_ns = event.time.ns;
            event.time.ns += 5;
            recording_add_event(writer, &event);
        }
    }
    CHECK_EQ(recording_close(writer, &(Moment){.ns = 2000}, &(RecordingEnd){.known = true}), 0);
    Recording *recording = recording_open(path, NULL, NULL, &error);
    CHECK(recording != NULL);
    return recording;
}

typedef struct Fixture {
    char path[64];
    Recording *recording;
    SqlDatabase *database;
} Fixture;

static void open_fixture(Fixture *fixture)
{
    char *error = NULL;

    strcpy(fixture->path, "/tmp/muninn-sql-XXXXXX");
    fixture->recording = make(fixture->path);
    fixture->database = sql_open(fixture->recording, &error);
    CHECK(fixture->database != NULL);
}

static void close_fixture(Fixture *fixture)
{
    sql_close(fixture->database);
    recording_free(fixture->recording);
    unlink(fixture->path);
}

static bool run(Fixture *fixture, const char *text, SqlLimits limits, Seen *seen,
                SqlOutcome *outcome, const char *expected_error)
{
    char *error = NULL;
    bool ok = sql_run(fixture->database, text, &limits, see, seen, outcome, &error);

    CHECK_EQ(ok, error == NULL);
    if (expected_error && error)
        CHECK(strstr(error, expected_error) != NULL);
    free(error);
    return ok;
}

TEST(names_come_once_and_before_the_rows)
{
    Fixture fixture;
    Seen seen = {0}, none = {0};
    SqlOutcome outcome;

    open_fixture(&fixture);
    CHECK(run(&fixture, "SELECT size FROM allocations", (SqlLimits){0}, &seen, &outcome, NULL));
    CHECK_EQ(seen.names, 1);
    CHECK_EQ(seen.rows, 100);
    CHECK_EQ(outcome.rows, 100);
    CHECK(!outcome.is_cut);
    CHECK(run(&fixture, "SELECT size FROM allocations WHERE size > 1000", (SqlLimits){0}, &none,
              NULL, NULL));
    CHECK_EQ(none.names, 1);
    CHECK_EQ(none.rows, 0);
    close_fixture(&fixture);
}

TEST(rows_end_at_the_limit_and_when_the_caller_has_enough)
{
    Fixture fixture;
    Seen limited = {0}, stopped = {.stop_after = 3}, exact = {0};
    SqlOutcome outcome;

    open_fixture(&fixture);
    CHECK(run(&fixture, "SELECT size FROM allocations", (SqlLimits){.rows = 7}, &limited, &outcome,
              NULL));
    CHECK_EQ(limited.rows, 7);
    CHECK(outcome.is_cut);
    CHECK(run(&fixture, "SELECT size FROM allocations", (SqlLimits){.rows = 100}, &exact, &outcome,
              NULL));
    CHECK(!outcome.is_cut);
    CHECK(run(&fixture, "SELECT size FROM allocations", (SqlLimits){0}, &stopped, &outcome, NULL));
    CHECK_EQ(stopped.rows, 3);
    close_fixture(&fixture);
}

TEST(the_dead_and_the_living_are_told_apart)
{
    Fixture fixture;
    Seen seen = {0};

    open_fixture(&fixture);
    CHECK(run(&fixture, "SELECT sum(size) FROM allocations WHERE died_ns IS NULL", (SqlLimits){0},
              &seen, NULL, NULL));
    CHECK_EQ(seen.last, 2500); // 1 + 3 + … + 99
    CHECK(run(&fixture, "SELECT sum(lifetime_ns) FROM allocations WHERE died_ns < 505",
              (SqlLimits){0}, &(Seen){0}, NULL, NULL));
    seen = (Seen){0};
    CHECK(run(&fixture, "SELECT count(*) FROM allocations WHERE died_ns BETWEEN 100 AND 205",
              (SqlLimits){0}, &seen, NULL, NULL));
    CHECK_EQ(seen.last, 6); // born at 100, 120 … 200, died five later
    close_fixture(&fixture);
}

static const char endless[] = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
                              "SELECT count(*) FROM c";

TEST(a_query_has_its_time_and_another_may_follow)
{
    Fixture fixture;
    Seen seen = {0};

    open_fixture(&fixture);
    CHECK(!run(&fixture, endless, (SqlLimits){.time_ms = 50}, &seen, NULL, "longer than 50 ms"));
    seen = (Seen){0};
    CHECK(run(&fixture, "SELECT count(*) FROM sites", (SqlLimits){.time_ms = 60000}, &seen, NULL,
              NULL));
    CHECK_EQ(seen.last, 1);
    close_fixture(&fixture);
}

static bool is_over;

// Again and again: the first time the query may not have begun.
static void *interrupt(void *arg)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        usleep(50000);
        sql_interrupt(arg);
    }
    return NULL;
}

TEST(another_thread_may_end_a_query)
{
    Fixture fixture;
    pthread_t thread;

    open_fixture(&fixture);
    CHECK_EQ(pthread_create(&thread, NULL, interrupt, fixture.database), 0);
    CHECK(!run(&fixture, endless, (SqlLimits){0}, &(Seen){0}, NULL, "was stopped"));
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    close_fixture(&fixture);
}

TEST(what_is_refused_says_why)
{
    static const struct {
        const char *text, *error;
    } refused[] = {
        {"SELEC 1", "syntax error, at character 1"},
        {"SELECT nope FROM sites", "no such column: nope"},
        {"DROP TABLE sites", "only SELECT is allowed"},
        {"ATTACH ':memory:' AS x", "only SELECT is allowed"},
        {"SELECT 1; SELECT 2", "one statement at a time"},
        {"  ", "there is no statement"},
        {"SELECT zeroblob(1 << 30)", "too big"},
    };
    Fixture fixture;

    open_fixture(&fixture);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        CHECK(!run(&fixture, refused[i].text, (SqlLimits){0}, &(Seen){0}, NULL, refused[i].error));
    close_fixture(&fixture);
}

TEST(every_column_of_every_table_can_be_read)
{
    Fixture fixture;
    size_t count;
    const SqlTable *tables = sql_tables(&count);

    open_fixture(&fixture);
    CHECK(count >= 6);
    for (size_t i = 0; i < count; i++) {
        for (u32 c = 0; c < tables[i].column_count; c++) {
            char text[256];
            snprintf(text, sizeof(text), "SELECT \"%s\", count(*) FROM %s GROUP BY 1",
                     tables[i].columns[c].name, tables[i].name);
            CHECK(run(&fixture, text, (SqlLimits){0}, &(Seen){0}, NULL, NULL));
        }
    }
    close_fixture(&fixture);
}

// ------------------------------------------------------------- in a process of its own

static bool run_apart(Fixture *fixture, const char *text, SqlLimits limits, Seen *seen,
                      SqlOutcome *ret_outcome, const char *expected_error)
{
    char *error = NULL;
    SqlTask *task = sql_begin(fixture->recording, text, &limits, &error);
    bool ok = task && sql_end(task, see, seen, ret_outcome, &error);

    CHECK_EQ(ok, error == NULL);
    if (expected_error)
        CHECK(error && strstr(error, expected_error) != NULL);
    free(error);
    return ok;
}

static bool see_types(void *arg, u32 count, const char *const *names, const SqlValue *values)
{
    u32 *rows = arg;

    if (!values)
        return true;
    CHECK_EQ(count, 6);
    CHECK(strcmp(names[1], "b") == 0);
    CHECK(values[0].type == SQL_INTEGER && values[0].integer == INT64_MIN);
    CHECK(values[1].type == SQL_REAL && values[1].real == 0.5);
    CHECK(values[2].type == SQL_NULL);
    CHECK(values[3].type == SQL_TEXT && strcmp(values[3].text, "") == 0);
    CHECK(values[4].type == SQL_TEXT && strcmp(values[4].text, "x'00ff'") == 0);
    CHECK(values[5].type == SQL_TEXT && strlen(values[5].text) == 200000);
    return ++*rows > 0;
}

TEST(rows_come_through_the_pipe_as_they_are)
{
    Fixture fixture;
    Seen seen = {0};
    SqlOutcome outcome = {0};
    char *error = NULL;
    u32 rows = 0;

    open_fixture(&fixture);
    CHECK(run_apart(&fixture, "SELECT size FROM allocations", (SqlLimits){0}, &seen, &outcome,
                    NULL));
    CHECK_EQ(seen.names, 1);
    CHECK_EQ(seen.rows, 100);
    CHECK_EQ(outcome.rows, 100);
    SqlTask *task = sql_begin(fixture.recording,
                              "SELECT -9223372036854775808 AS a, 0.5 AS b, NULL AS c, '' AS d, "
                              "x'00ff' AS e, printf('%.*c', 200000, 'y') AS f FROM allocations",
                              &(SqlLimits){.rows = 20}, &error);
    CHECK(task && sql_end(task, see_types, &rows, &outcome, &error));
    CHECK_EQ(rows, 20);
    CHECK(outcome.is_cut);
    seen = (Seen){.stop_after = 3};
    CHECK(run_apart(&fixture, "SELECT 1 FROM events a, events b, events c, events d",
                    (SqlLimits){0}, &seen, NULL, NULL));
    CHECK_EQ(seen.rows, 3);
    close_fixture(&fixture);
}

TEST(one_long_operation_is_ended_with_its_process)
{
    Fixture fixture;
    Seen seen = {0};

    open_fixture(&fixture);
    CHECK(!run_apart(&fixture,
                     "SELECT instr(printf('%.*c', 16000000, 'a'), printf('%.*c', 8000000, 'a') || "
                     "'b')",
                     (SqlLimits){.time_ms = 50}, &seen, NULL, "longer than 50 ms"));
    CHECK(!run_apart(&fixture, endless, (SqlLimits){.time_ms = 50}, &(Seen){0}, NULL,
                     "longer than 50 ms"));
    CHECK(run_apart(&fixture, "SELECT count(*) FROM sites", (SqlLimits){.time_ms = 60000}, &seen,
                    NULL, NULL));
    CHECK_EQ(seen.last, 1);
    close_fixture(&fixture);
}

TEST(functions_and_tables_that_are_not_listed_are_refused)
{
    static const char *const refused[] = {
        "SELECT fts3_tokenizer('simple')", "SELECT load_extension('x')",
        "SELECT * FROM sqlite_stmt",       "SELECT * FROM pragma_database_list",
        "PRAGMA temp_store",               "SELECT sqlite_source_id()",
    };
    static const char *const allowed[] = {
        "SELECT count(*) FROM json_each('[1]')", "SELECT count(*) FROM pragma_table_info('sites')",
        "WITH c(x) AS (SELECT 1) SELECT count(*) FROM c", "PRAGMA table_info(sites)",
    };
    Fixture fixture;

    open_fixture(&fixture);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        CHECK(!run_apart(&fixture, refused[i], (SqlLimits){0}, &(Seen){0}, NULL, ""));
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        CHECK(run_apart(&fixture, allowed[i], (SqlLimits){0}, &(Seen){0}, NULL, NULL));
    close_fixture(&fixture);
}
