// SPDX-License-Identifier: MIT
//
// Requests to the viewer's server, behind the HTTP library: who may ask, what is asked, and that each
// answer is JSON. The first line is the address; the others are headers. Files are those of
// $FUZZ_RECORDING and $FUZZ_REPORT.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inspect/dom/dom.h"
#include "inspect/http/server.h"
#include "inspect/http/viewer.h"

enum { HEADERS = 6, ANSWER_NS = 1000000000 };

void call_run(Call *call);

static Viewer viewer;
static ServerPlace place = {.host = "127.0.0.1", .port = 8000, .cookie = "muninn-8000"};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    FUZZ_CHECK(file_open(&viewer, getenv("FUZZ_RECORDING"))->kind == FILE_HEAP);
    FUZZ_CHECK(file_open(&viewer, getenv("FUZZ_REPORT"))->kind == FILE_FINDINGS);
    memset(place.token, '7', TOKEN_DIGITS);
    return 0;
}

static void judge(char **lines)
{
    Credentials c = {.host = lines[0], .origin = lines[1], .fetch_site = lines[2],
                     .token_header = lines[3], .cookies = lines[4], .token_param = lines[5]};
    bool has_token = false;

    for (int i = 3; i < HEADERS; i++)
        has_token |= lines[i] && strstr(lines[i], place.token);
    FUZZ_CHECK(access_judge(&place, &c) != VERDICT_GOOD || has_token);
}

static void answer(const char *url)
{
    Request *request = calloc(1, sizeof(*request));
    Arena arena = {0};
    size_t used;

    if (request_parse(request, url)) {
        Call call = {.viewer = &viewer, .request = request, .deadline_ns = clock_ns() + ANSWER_NS};
        call_run(&call);
        FUZZ_CHECK(call.status >= 200 && call.status < 600);
        if (!call.out.failed && strcmp(call.type, "application/json") == 0) {
            FUZZ_CHECK(dom_read_json(&arena, call.out.data, call.out.size, &used));
            FUZZ_CHECK(used == call.out.size);
        }
        json_free(&call.out);
    }
    arena_free(&arena);
    free(request);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    char *text = fuzz_text(data, size), *lines[HEADERS + 1] = {0}, *rest = text;

    for (int i = 0; i <= HEADERS && rest; i++)
        lines[i] = strsep(&rest, "\n");
    judge(lines + 1);
    answer(lines[0]);
    free(text);
    return 0;
}
