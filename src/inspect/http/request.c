// SPDX-License-Identifier: MIT
//
// See request.h.
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/http/request.h"

void request_blame(Request *request, const char *format, ...)
{
    va_list arguments;

    if (request->error[0])
        return;
    va_start(arguments, format);
    vsnprintf(request->error, sizeof(request->error), format, arguments);
    va_end(arguments);
}

static const char *keep_text(Request *request, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size > sizeof(request->text) - request->text_size)
        return NULL;
    char *copy = request->text + request->text_size;
    memcpy(copy, text, size);
    request->text_size += size;
    return copy;
}

bool request_set_path(Request *request, const char *path)
{
    request->path = keep_text(request, path);
    return request->path != NULL;
}

bool request_add(Request *request, const char *name, const char *value)
{
    size_t at = 0;

    if (!value || !*value)
        return true;
    while (at < request->param_count && strcmp(request->params[at].name, name) < 0)
        at++;
    if (at < request->param_count && strcmp(request->params[at].name, name) == 0)
        return true;
    if (request->param_count == REQUEST_PARAMS_MAX)
        return false;
    Param param = {keep_text(request, name), NULL};
    if (!param.name || !(param.value = keep_text(request, value)))
        return false;
    memmove(&request->params[at + 1], &request->params[at],
            (request->param_count - at) * sizeof(Param));
    request->params[at] = param;
    request->param_count++;
    return true;
}

static int hex_digit(char c)
{
    return isdigit((u8)c) ? c - '0' : isxdigit((u8)c) ? tolower((u8)c) - 'a' + 10 : -1;
}

// Decodes in place. False: a zero byte, or a % without its digits.
static bool decode(char *text)
{
    char *out = text;

    for (; *text; text++) {
        if (*text == '%') {
            int high = hex_digit(text[1]);
            int low = high < 0 ? -1 : hex_digit(text[2]);
            if (low < 0 || high * 16 + low == 0)
                return false;
            *out++ = (char)(high * 16 + low);
            text += 2;
        } else {
            *out++ = *text == '+' ? ' ' : *text;
        }
    }
    *out = '\0';
    return true;
}

bool request_parse(Request *request, const char *url)
{
    char *copy = strdup(url);
    char *rest = copy ? strchr(copy, '?') : NULL;

    if (rest)
        *rest++ = '\0';
    bool good = copy && request_set_path(request, copy);
    while (good && rest) {
        char *pair = strsep(&rest, "&");
        char *value = strchr(pair, '=');
        if (value)
            *value++ = '\0';
        good = decode(pair) && (!value || (decode(value) && request_add(request, pair, value)));
    }
    free(copy);
    return good;
}

const char *request_text(const Request *request, const char *name)
{
    for (size_t i = 0; i < request->param_count; i++) {
        if (strcmp(request->params[i].name, name) == 0)
            return request->params[i].value;
    }
    return NULL;
}

u64 request_u64(Request *request, const char *name, u64 fallback, u64 max)
{
    const char *text = request_text(request, name);
    char *end;

    if (!text)
        return fallback;
    errno = 0;
    u64 value = strtoull(text, &end, 10);
    if (!isdigit((u8)text[0]) || *end || errno) {
        request_blame(request, "%s: '%.40s' is not a number", name, text);
        return fallback;
    }
    if (value > max) {
        request_blame(request, "%s: at most %llu", name, (unsigned long long)max);
        return max;
    }
    return value;
}

u64 request_address(Request *request, const char *name, u64 fallback)
{
    const char *text = request_text(request, name);
    char *end;

    if (!text)
        return fallback;
    errno = 0;
    u64 value = strtoull(text, &end, 16);
    if (!isxdigit((u8)text[0]) || *end || errno) {
        request_blame(request, "%s: '%.40s' is not an address", name, text);
        return fallback;
    }
    return value;
}

bool request_flag(Request *request, const char *name)
{
    static const char *const words[] = {"0", "1", "no", "yes", "false", "true"};

    return request_choice(request, name, words, ARRAY_LEN(words), 0) % 2 == 1;
}

u32 request_choice(Request *request, const char *name, const char *const *words, u32 count,
                   u32 fallback)
{
    const char *text = request_text(request, name);

    if (!text)
        return fallback;
    for (u32 i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0)
            return i;
    }
    request_blame(request, "%s: there is no '%.40s'", name, text);
    return fallback;
}

void request_key(const Request *request, char *ret_key, size_t room)
{
    u64 hash = 14695981039346656037ull;
    size_t size = 0;

    // One string for all; names and values end in bytes that neither has inside.
    for (size_t i = 0; i <= request->param_count; i++) {
        const char *parts[2] = {request->path, ""};
        if (i > 0) {
            parts[0] = request->params[i - 1].name;
            parts[1] = request->params[i - 1].value;
        }
        for (size_t part = 0; part < 2; part++) {
            for (const char *c = parts[part];; c++) {
                char byte = *c ? *c : part ? '\n' : '\t';
                hash = (hash ^ (u8)byte) * 1099511628211ull;
                if (size + 20 < room)
                    ret_key[size++] = byte;
                if (!*c)
                    break;
            }
        }
    }
    snprintf(ret_key + size, room - size, "%016llx", (unsigned long long)hash);
}
