// SPDX-License-Identifier: MIT
//
// What the viewer's server parses, mangled: addresses of requests, reports in JSON and XML, and
// text of any bytes on its way into an answer. With sanitizers the least wrong step ends it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "inspect/dom/dom.h"
#include "inspect/http/findings.h"
#include "inspect/http/json.h"
#include "inspect/http/request.h"
#include "inspect/http/server.h"

enum { ROUNDS = 3000 };

static u64 state = 88172645463325252ull;

static u64 random_below(u64 limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

// A copy that ends where the memory does, so that a byte too far is noticed.
static char *mangle(const char *text, size_t size, size_t *ret_size)
{
    static const char likely[] = "{}[]\",:\\<>&;/'!?-u0x%=+# \n";
    size_t kept = random_below(4) == 0 ? random_below(size) + 1 : size;
    char *copy = malloc(kept);

    memcpy(copy, text, kept);
    for (u64 i = random_below(8); i > 0; i--)
        copy[random_below(kept)] = random_below(2) ? likely[random_below(sizeof(likely) - 1)]
                                                   : (char)random_below(256);
    *ret_size = kept;
    return copy;
}

static const char report_json[] =
    "{\"format\": \"muninn-report\", \"version\": 1, \"run\": {\"pid\": 7, \"command\": [\"./a\", "
    "\"b c\"]}, \"findings\": [{\"id\": 0, \"kind\": \"invalid-read\", \"tool\": \"Memcheck\", "
    "\"what\": \"Invalid read of size 4\", \"fingerprint\": \"39187b0e8387cb22\", \"count\": 3, "
    "\"thread\": {\"id\": 1}, \"leak\": {\"bytes\": 12, \"blocks\": 1}, \"stack\": [{\"pc\": "
    "\"0x109163\", \"function\": \"ma\\u0069n \\ud83d\\ude00\", \"file\": \"b.c\", \"directory\": "
    "\"/nowhere\", \"line\": 2, \"inlined\": true}], \"parts\": [{\"kind\": \"address-block\", "
    "\"text\": \"Address\", \"stack\": []}]}], \"status\": \"finished\"}\n"
    "{\"type\": \"summary\", \"counts\": {\"0\": 17}}\n";

static const char report_xml[] =
    "<?xml version=\"1.0\"?>\n<!-- note -->\n<valgrindoutput><protocoltool>memcheck</protocoltool>"
    "<pid>7</pid><args><argv><exe>./a</exe><arg>b &lt;c&gt; &#65;</arg></argv></args>"
    "<status><state>RUNNING</state></status><error><unique>0x0</unique><tid>1</tid>"
    "<kind>InvalidRead</kind><what>Invalid read of size 4</what><stack><frame><ip>0x1</ip>"
    "<obj>/a</obj><fn>main</fn><dir>/nowhere</dir><file>b.c</file><line>2</line></frame></stack>"
    "<auxwhat>Address</auxwhat><stack><frame><ip>0x2</ip></frame></stack>"
    "<suppression><rawtext><![CDATA[\n{\n}\n]]></rawtext></suppression></error>"
    "<errorcounts><pair><count>17</count><unique>0x0</unique></pair></errorcounts>"
    "<status><state>FINISHED</state></status></valgrindoutput>\n";

static void walk(const Dom *dom, u32 *count)
{
    for (const Dom *child = dom ? dom->first : NULL; child; child = child->next) {
        *count += (u32)strlen(child->text) + 1;
        walk(child, count);
    }
}

TEST(documents_of_any_bytes_are_read_as_far_as_they_go)
{
    for (int round = 0; round < ROUNDS; round++) {
        Arena arena = {0};
        size_t size, used;
        u32 count = 0;
        char *json = mangle(report_json, sizeof(report_json) - 1, &size);
        const Dom *dom = dom_read_json(&arena, json, size, &used);
        CHECK(used <= size);
        walk(dom, &count);
        free(json);
        char *xml = mangle(report_xml, sizeof(report_xml) - 1, &size);
        walk(dom_read_xml(&arena, xml, size), &count);
        free(xml);
        arena_free(&arena);
    }
}

static Findings *load(const char *text, size_t size)
{
    char path[] = "/tmp/muninn-http-test-XXXXXX", *error = NULL;
    int fd = mkstemp(path);

    CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    close(fd);
    Findings *findings = findings_look(text, size) ? findings_load(path, &error) : NULL;
    unlink(path);
    free(error);
    return findings;
}

TEST(reports_that_are_whole_are_read_whole)
{
    const char *texts[] = {report_json, report_xml};

    for (size_t i = 0; i < 2; i++) {
        Findings *findings = load(texts[i], strlen(texts[i]));
        CHECK(findings && findings->count == 1 && findings->pid == 7);
        const Found *found = &findings->found[0];
        CHECK(strcmp(found->kind, "invalid-read") == 0 && found->count == 17);
        CHECK(found->stack.count == 1 && found->part_count == 1);
        CHECK(strcmp(findings->status, "finished") == 0);
        CHECK(strcmp(findings->command, i ? "./a b <c> A" : "./a b c") == 0);
        findings_free(findings);
    }
}

TEST(mangled_reports_give_what_they_have)
{
    for (int round = 0; round < ROUNDS / 10; round++) {
        size_t size;
        bool is_json = round % 2 == 0;
        char *text = is_json ? mangle(report_json, sizeof(report_json) - 1, &size)
                             : mangle(report_xml, sizeof(report_xml) - 1, &size);
        Findings *findings = load(text, size);
        for (u32 i = 0; findings && i < findings->count; i++) {
            free(finding_suppression(&findings->found[i]));
            finding_place(&findings->found[i]);
        }
        if (findings)
            findings_free(findings);
        free(text);
    }
}

TEST(requests_of_any_bytes_are_parsed_or_refused)
{
    static const char url[] = "/api/tree?metric=live&from=12&function=a%2fb+c&f=0&only=%7e&f=2&x";
    Request *request = malloc(sizeof(*request));
    u32 parsed = 0;

    for (int round = 0; round < ROUNDS; round++) {
        size_t size;
        char key[200], *text = mangle(url, sizeof(url) - 1, &size);
        char *copy = strndup(text, size);
        *request = (Request){0};
        if (request_parse(request, copy)) {
            parsed++;
            request_key(request, key, sizeof(key));
            CHECK(strlen(key) < sizeof(key));
            for (size_t i = 1; i < request->param_count; i++)
                CHECK(strcmp(request->params[i - 1].name, request->params[i].name) < 0);
            request_u64(request, "from", 0, 100);
            request_flag(request, "f");
        }
        free(copy);
        free(text);
    }
    CHECK(parsed > ROUNDS / 2);
    free(request);
}

TEST(a_request_has_limits)
{
    Request *request = calloc(1, sizeof(*request));
    char *long_one = malloc(100000);

    memset(long_one, 'a', 99999);
    long_one[99999] = '\0';
    CHECK(!request_parse(request, long_one));
    *request = (Request){0};
    char *many = malloc(100000), *at = many;
    at += sprintf(at, "/x?");
    for (int i = 0; i < REQUEST_PARAMS_MAX + 1; i++)
        at += sprintf(at, "p%d=1&", i);
    CHECK(!request_parse(request, many));
    *request = (Request){0};
    CHECK(request_parse(request, "/x?a=1&a=2&b=&c"));
    CHECK(strcmp(request_text(request, "a"), "1") == 0 && !request_text(request, "b"));
    *request = (Request){0};
    CHECK(!request_parse(request, "/x?a=%00") && !request_parse(request, "/x?a=%4"));
    free(many);
    free(long_one);
    free(request);
}

// Whatever bytes go in: what comes out is JSON that any reader takes, with nothing that could
// end a script element.
TEST(any_text_becomes_a_string)
{
    for (int round = 0; round < ROUNDS; round++) {
        Json out = {0};
        Arena arena = {0};
        char text[64];
        size_t size = random_below(sizeof(text)), used;

        for (size_t i = 0; i < size; i++)
            text[i] = random_below(3) ? (char)random_below(256)
                                      : "<\"\\\n\xe2\x80\xa8"[i % 7];
        json_text_size(&out, text, size);
        CHECK(!out.failed && out.size >= 2 && !memchr(out.data, '<', out.size));
        for (size_t i = 0; i < out.size; i++)
            CHECK((u8)out.data[i] >= ' ');
        const Dom *back = dom_read_json(&arena, out.data, out.size, &used);
        CHECK(back && back->kind == DOM_TEXT && used == out.size);
        json_free(&out);
        arena_free(&arena);
    }
}

TEST(only_the_right_words_open_the_door)
{
    ServerPlace place = {.host = "127.0.0.1", .port = 8000, .cookie = "muninn-8000"};
    Credentials good = {.host = "127.0.0.1:8000", .token_header = place.token};
    char cookie[128];

    CHECK(access_make_token(place.token) && strlen(place.token) == TOKEN_DIGITS);
    CHECK(access_judge(&place, &good) == VERDICT_GOOD);
    snprintf(cookie, sizeof(cookie), "a=b; muninn-8000=%s", place.token);
    CHECK(access_judge(&place, &(Credentials){.host = "localhost:8000", .cookies = cookie}) ==
          VERDICT_GOOD);
    CHECK(access_judge(&place, &(Credentials){.host = "127.0.0.1:8000"}) == VERDICT_NO_TOKEN);
    CHECK(access_judge(&place, &(Credentials){.host = "evil:8000",
                                              .token_header = place.token}) == VERDICT_FOREIGN);
    CHECK(access_judge(&place, &(Credentials){.token_header = place.token}) == VERDICT_FOREIGN);
    for (int round = 0; round < ROUNDS; round++) {
        size_t host_size, cookie_size;
        char *host = mangle("127.0.0.1:8000", 14, &host_size);
        char *cookies = mangle(cookie, strlen(cookie), &cookie_size);
        char *host_text = strndup(host, host_size), *cookie_text = strndup(cookies, cookie_size);
        Credentials mangled = {.host = host_text, .cookies = cookie_text, .origin = host_text};
        CHECK(access_judge(&place, &mangled) == VERDICT_FOREIGN);
        mangled.origin = NULL;
        if (strcmp(host_text, "127.0.0.1:8000") != 0)
            CHECK(access_judge(&place, &mangled) != VERDICT_GOOD ||
                  strtoul(strchr(host_text, ':') + 1, NULL, 10) == 8000);
        free(host);
        free(cookies);
        free(host_text);
        free(cookie_text);
    }
}
