// SPDX-License-Identifier: MIT
//
// Values as people read them, and strings that are safe where they go: names come from the
// recorded program and may hold anything but a zero byte.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/print/print.h"

const char *value_bytes(u64 bytes, char *text)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = -1;

    while (value >= 1023.95 && unit < (int)ARRAY_LEN(units) - 1) {
        value /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(text, VALUE_BYTES_MAX, "%llu B", (unsigned long long)bytes);
    else
        snprintf(text, VALUE_BYTES_MAX, "%.*f %s", value < 99.95 ? 1 : 0, value, units[unit]);
    return text;
}

const char *value_change(i64 bytes, char *text)
{
    u64 size = bytes < 0 ? 0 - (u64)bytes : (u64)bytes;

    text[0] = bytes < 0 ? '-' : bytes > 0 ? '+' : ' ';
    char *rest = text + (bytes != 0);
    char digits[VALUE_BYTES_MAX];
    snprintf(rest, VALUE_BYTES_MAX - 1, "%s", value_bytes(size, digits));
    return text;
}

const char *value_ns(u64 ns, char *text)
{
    static const struct {
        u64 from_ns;
        double unit_ns;
        const char *name;
    } units[] = {
        {3600000000000ull, 3600e9, "h"}, {120000000000ull, 60e9, "min"},
        {1000000000, 1e9, "s"},          {1000000, 1e6, "ms"},
        {1000, 1e3, "us"},               {0, 1, "ns"},
    };

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (ns < units[i].from_ns)
            continue;
        double value = (double)ns / units[i].unit_ns;
        int digits = units[i].unit_ns == 1 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
        snprintf(text, VALUE_BYTES_MAX, "%.*f %s", digits, value, units[i].name);
        break;
    }
    return text;
}

const char *value_count(u64 count, char *text)
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
    int at = 0;

    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

const char *value_share(double share, char *text)
{
    snprintf(text, VALUE_BYTES_MAX, "%.1f%%", isfinite(share) ? share * 100 : 0.0);
    return text;
}

// ------------------------------------------------------------------------- UTF-8

u32 utf8_length(const char *text)
{
    static const struct {
        u8 mask, lead;
        u32 smallest;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const u8 *bytes = (const u8 *)text;

    for (u32 n = 0; n < ARRAY_LEN(forms); n++) {
        if ((bytes[0] & forms[n].mask) != forms[n].lead)
            continue;
        u32 code = bytes[0] & (u8)~forms[n].mask;
        for (u32 i = 1; i <= n; i++) {
            if ((bytes[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (bytes[i] & 0x3f);
        }
        bool is_surrogate = code >= 0xd800 && code < 0xe000;
        return code < forms[n].smallest || code > 0x10ffff || is_surrogate ? 0 : n + 1;
    }
    return 0;
}

void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        u8 c = (u8)*text;
        u32 length = utf8_length(text);
        if (length == 0) {
            fputs("\\ufffd", out);
            length = 1;
        } else if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (c < ' ' || c == 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            fwrite(text, 1, length, out);
        }
        text += length;
    }
    fputc('"', out);
}

// The control characters of C1 are two bytes long in UTF-8, and terminals obey some.
static bool is_control(const char *text, u32 length)
{
    u8 c = (u8)*text;

    return length == 0 || c < ' ' || c == 0x7f || (length == 2 && c == 0xc2 && (u8)text[1] < 0xa0);
}

void plain_text(FILE *out, const char *text)
{
    while (*text) {
        u32 length = utf8_length(text);
        if (is_control(text, length)) {
            length = length ? length : 1;
            for (u32 i = 0; i < length; i++)
                fprintf(out, "\\x%02x", (u8)text[i]);
        } else {
            fwrite(text, 1, length, out);
        }
        text += length;
    }
}

u32 plain_width(const char *text)
{
    u32 width = 0;

    while (*text) {
        u32 length = utf8_length(text);
        bool control = is_control(text, length);
        length = length ? length : 1;
        width += control ? 4 * length : 1;
        text += length;
    }
    return width;
}
