// SPDX-License-Identifier: MIT
//
// Who may ask. Other users of the machine, and pages of other sites in the user's own browser,
// can reach a loopback port: the former lack the token, the latter are betrayed by Host
// (a name that was bound to 127.0.0.1 after the page was loaded) and Origin.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "inspect/http/server.h"

bool access_make_token(char ret_token[TOKEN_DIGITS + 1])
{
    u8 bytes[TOKEN_DIGITS / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

// Takes the same time whatever the text is, but for its length.
static bool is_token(const ServerPlace *place, const char *text, size_t size)
{
    u8 difference = 0;

    if (size != TOKEN_DIGITS)
        return false;
    for (size_t i = 0; i < TOKEN_DIGITS; i++)
        difference |= (u8)(place->token[i] ^ text[i]);
    return difference == 0;
}

bool access_token_is_right(const ServerPlace *place, const char *token)
{
    return token && is_token(place, token, strlen(token));
}

static bool has_cookie(const ServerPlace *place, const char *cookies)
{
    size_t name_size = strlen(place->cookie);

    while (cookies && *cookies) {
        cookies += strspn(cookies, " ;");
        size_t size = strcspn(cookies, ";");
        if (size > name_size && strncmp(cookies, place->cookie, name_size) == 0 &&
            cookies[name_size] == '=' &&
            is_token(place, cookies + name_size + 1, size - name_size - 1))
            return true;
        cookies += size;
    }
    return false;
}

// Splits "[::1]:80" and "localhost:80". False: it is neither.
static bool split_host(const char *text, char name[256], u32 *ret_port)
{
    const char *end = text + strcspn(text, "]:");
    const char *start = text;
    unsigned port = 80;
    int used = 0;

    if (*text == '[') {
        start = text + 1;
        end = strchr(text, ']');
        if (!end)
            return false;
    }
    if ((size_t)(end - start) >= 256 || end == start)
        return false;
    memcpy(name, start, (size_t)(end - start));
    name[end - start] = '\0';
    if (*text == '[')
        end++;
    if (*end && (sscanf(end, ":%5u%n", &port, &used) != 1 || end[used]))
        return false;
    *ret_port = port;
    return true;
}

static bool is_address(const char *name)
{
    u8 room[16];

    return inet_pton(AF_INET, name, room) == 1 || inet_pton(AF_INET6, name, room) == 1;
}

static bool is_own_host(const ServerPlace *place, const char *host)
{
    char name[256];
    u32 port;

    if (!host || !split_host(host, name, &port) || port != place->port)
        return false;
    return strcasecmp(name, "localhost") == 0 || strcasecmp(name, place->host) == 0 ||
           (place->is_any && is_address(name));
}

static bool is_own_origin(const Credentials *credentials)
{
    static const char scheme[] = "http://";
    const char *origin = credentials->origin;

    if (!origin)
        return true;
    return strncmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
           strcasecmp(origin + sizeof(scheme) - 1, credentials->host) == 0;
}

Verdict access_judge(const ServerPlace *place, const Credentials *credentials)
{
    const char *token = credentials->token_header;
    const char *site = credentials->fetch_site;

    if (!is_own_host(place, credentials->host) || !is_own_origin(credentials))
        return VERDICT_FOREIGN;
    // A page of another site may lead here (a link), but not fetch anything.
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 &&
        !credentials->token_param)
        return VERDICT_FOREIGN;
    if (access_token_is_right(place, token) || has_cookie(place, credentials->cookies))
        return VERDICT_GOOD;
    return VERDICT_NO_TOKEN;
}
