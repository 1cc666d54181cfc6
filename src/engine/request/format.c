// SPDX-License-Identifier: MIT
//
// printf with a format and a va_list that lie in the client's memory and are not
// to be trusted. Each conversion is read, checked, and rebuilt for snprintf() with a
// bounded width and precision and a value that was fetched beforehand; strings
// are copied byte by byte. %n is never honoured. A conversion that is unknown is
// printed as it stands, so that the mistake is visible.
#include <stdio.h>
#include <string.h>

#include "engine/request/request_internal.h"

enum {
    FIELD_MAX = 256,      // width and precision: more is cut
    CONVERSION_MAX = 640, // characters of one number: 1e308 as %f is 309 and its precision
    SPEC_MAX = 24,
};

// System V: a va_list is an array of one such structure.
typedef struct ClientVaList {
    u32 gp_offset; // of the next integer register's slot; 48 and up: none left
    u32 fp_offset; // the same of vector registers, up to 176
    u64 overflow;  // arguments on the stack
    u64 save_area;
} ClientVaList;

typedef struct Formatter {
    RequestRead *read;
    RequestPut *put;
    void *arg;
    size_t count;
    GuestAddr at; // in the format
    ClientVaList list;
    bool list_ok;
} Formatter;

// What stands between % and the letter.
typedef struct Conversion {
    char flags[6]; // those given, each once
    int width;     // -1: none
    int precision; // -1: none
    char length;   // 0, h, H (hh), l (also ll, j, z, t), L
    char letter;
} Conversion;

static void put(Formatter *f, char c)
{
    if (f->count >= REQUEST_TEXT_MAX)
        return;
    f->put(c, f->arg);
    f->count++;
}

static void put_text(Formatter *f, const char *text)
{
    while (*text)
        put(f, *text++);
}

static bool peek(const Formatter *f, char *ret_c)
{
    return f->read(f->at, ret_c, 1) && *ret_c;
}

// ----------------------------------------------------------------- arguments

// What cannot be read is 0.
static u64 fetch(const Formatter *f, GuestAddr address)
{
    u64 value;
    return f->read(address, &value, sizeof(value)) ? value : 0;
}

static u64 next_on_stack(Formatter *f)
{
    u64 value = fetch(f, f->list.overflow);
    f->list.overflow += 8;
    return value;
}

static u64 next_integer(Formatter *f)
{
    if (!f->list_ok)
        return 0;
    if (f->list.gp_offset > 40)
        return next_on_stack(f);
    u64 value = fetch(f, f->list.save_area + f->list.gp_offset);
    f->list.gp_offset += 8;
    return value;
}

static double next_double(Formatter *f)
{
    u64 bits = 0;
    double value;
    if (f->list_ok && f->list.fp_offset > 160) {
        bits = next_on_stack(f);
    } else if (f->list_ok) {
        bits = fetch(f, f->list.save_area + f->list.fp_offset);
        f->list.fp_offset += 16;
    }
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// 80 bits in 16 bytes, always on the stack. Bit patterns that no instruction makes, and
// that libc does not expect, become 0.
static long double next_long_double(Formatter *f)
{
    struct {
        u64 mantissa;
        u16 exponent;
    } bits = {0, 0};
    long double value = 0;
    if (!f->list_ok)
        return 0;
    f->list.overflow = (f->list.overflow + 15) & ~15ull;
    bool good = f->read(f->list.overflow, &bits, 10);
    f->list.overflow += 16;
    bool has_integer_bit = bits.mantissa >> 63;
    if (good && has_integer_bit == ((bits.exponent & 0x7fff) != 0))
        memcpy(&value, &bits, 10);
    return value;
}

// --------------------------------------------------------------- conversions

static void put_string(Formatter *f, const Conversion *c, GuestAddr string)
{
    static const char null_text[] = "(null)";
    size_t max = c->precision >= 0 ? (size_t)c->precision : REQUEST_TEXT_MAX;
    size_t length = 0;
    char byte;
    bool left = strchr(c->flags, '-');
    if (!string) {
        for (; length < max && null_text[length]; length++)
            ;
    } else {
        while (length < max && f->read(string + length, &byte, 1) && byte)
            length++;
    }
    size_t padding = c->width > 0 && (size_t)c->width > length ? (size_t)c->width - length : 0;
    for (size_t i = 0; !left && i < padding; i++)
        put(f, ' ');
    for (size_t i = 0; i < length && f->count < REQUEST_TEXT_MAX; i++) {
        if (string && !f->read(string + i, &byte, 1))
            break;
        put(f, string ? byte : null_text[i]);
    }
    for (size_t i = 0; left && i < padding; i++)
        put(f, ' ');
}

// "%", the conversion with `length` and `letter`: for snprintf.
static void build_spec(const Conversion *c, const char *length, char letter, char *spec)
{
    int n = snprintf(spec, SPEC_MAX, "%%%s", c->flags);
    if (c->width >= 0)
        n += snprintf(spec + n, SPEC_MAX - (size_t)n, "%d", c->width);
    if (c->precision >= 0)
        n += snprintf(spec + n, SPEC_MAX - (size_t)n, ".%d", c->precision);
    snprintf(spec + n, SPEC_MAX - (size_t)n, "%s%c", length, letter);
}

static i64 narrow_signed(u64 value, char length)
{
    switch (length) {
    case 'H': return (i8)value;
    case 'h': return (i16)value;
    case 0: return (i32)value;
    default: return (i64)value;
    }
}

static u64 narrow_unsigned(u64 value, char length)
{
    switch (length) {
    case 'H': return (u8)value;
    case 'h': return (u16)value;
    case 0: return (u32)value;
    default: return value;
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" // build_spec() makes them
static void put_number(Formatter *f, const Conversion *c)
{
    char spec[SPEC_MAX], text[CONVERSION_MAX];
    u64 value = next_integer(f);
    if (c->letter == 'd' || c->letter == 'i') {
        build_spec(c, "l", 'd', spec);
        snprintf(text, sizeof(text), spec, narrow_signed(value, c->length));
    } else {
        build_spec(c, "l", c->letter, spec);
        snprintf(text, sizeof(text), spec, narrow_unsigned(value, c->length));
    }
    put_text(f, text);
}

static void put_float(Formatter *f, const Conversion *c)
{
    // The largest long double has 4,933 digits before the point.
    char spec[SPEC_MAX], text[CONVERSION_MAX];
    bool is_long = c->length == 'L';
    build_spec(c, is_long ? "L" : "", c->letter, spec);
    if (is_long)
        snprintf(text, sizeof(text), spec, next_long_double(f));
    else
        snprintf(text, sizeof(text), spec, next_double(f));
    put_text(f, text);
}

static void put_pointer(Formatter *f, const Conversion *c)
{
    char spec[SPEC_MAX], text[CONVERSION_MAX], digits[24];
    Conversion plain = {.width = c->width, .precision = -1};
    snprintf(digits, sizeof(digits), "0x%lx", next_integer(f));
    if (strchr(c->flags, '-'))
        plain.flags[0] = '-';
    build_spec(&plain, "", 's', spec);
    snprintf(text, sizeof(text), spec, digits);
    put_text(f, text);
}
#pragma GCC diagnostic pop

static void put_character(Formatter *f, const Conversion *c)
{
    char value = (char)next_integer(f);
    bool left = strchr(c->flags, '-');
    for (int i = 1; !left && i < c->width; i++)
        put(f, ' ');
    put(f, value);
    for (int i = 1; left && i < c->width; i++)
        put(f, ' ');
}

// ------------------------------------------------------------------- parsing

// A number or *; -1 when there is none.
static int parse_field(Formatter *f)
{
    char c;
    int value = -1;
    if (peek(f, &c) && c == '*') {
        f->at++;
        value = (int)next_integer(f);
    } else {
        while (peek(f, &c) && c >= '0' && c <= '9') {
            value = (value < 0 ? 0 : value) * 10 + (c - '0');
            value = value > FIELD_MAX ? FIELD_MAX : value;
            f->at++;
        }
    }
    return value > FIELD_MAX ? FIELD_MAX : value;
}

static char parse_length(Formatter *f)
{
    char c, length = 0;
    while (peek(f, &c) && strchr("hljztLq", c)) {
        f->at++;
        if (c == 'h')
            length = length == 'h' ? 'H' : 'h';
        else
            length = c == 'L' ? 'L' : 'l';
    }
    return length;
}

static void parse(Formatter *f, Conversion *ret)
{
    char c;
    size_t flags = 0;
    *ret = (Conversion){.width = -1, .precision = -1};
    while (peek(f, &c) && strchr("-+ #0", c)) {
        if (!strchr(ret->flags, c) && flags < sizeof(ret->flags) - 1)
            ret->flags[flags++] = c;
        f->at++;
    }
    ret->width = parse_field(f);
    if (ret->width < -1) { // from *: left-justified
        if (!strchr(ret->flags, '-'))
            ret->flags[flags++] = '-';
        ret->width = ret->width < -FIELD_MAX ? FIELD_MAX : -ret->width;
    }
    if (peek(f, &c) && c == '.') {
        f->at++;
        ret->precision = parse_field(f);
        if (ret->precision < 0)
            ret->precision = 0;
    }
    ret->length = parse_length(f);
    if (peek(f, &c)) {
        ret->letter = c;
        f->at++;
    }
}

// As it stands in the format, from `start` to f->at.
static void put_unknown(Formatter *f, GuestAddr start)
{
    char c;
    for (GuestAddr at = start; at < f->at && f->read(at, &c, 1); at++)
        put(f, c);
}

// f->at is behind the %.
static void convert(Formatter *f)
{
    GuestAddr start = f->at - 1;
    Conversion c;
    parse(f, &c);
    switch (c.letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': put_number(f, &c); break;
    case 'f': case 'F': case 'e': case 'E': case 'g': case 'G': case 'a': case 'A':
        put_float(f, &c);
        break;
    case 's': put_string(f, &c, next_integer(f)); break;
    case 'c': put_character(f, &c); break;
    case 'p': put_pointer(f, &c); break;
    case '%': put(f, '%'); break;
    default: put_unknown(f, start); break;
    }
}

size_t request_format(GuestAddr format, GuestAddr va_list_at, RequestRead *read, RequestPut *put_fn,
                      void *arg)
{
    Formatter f = {.read = read, .put = put_fn, .arg = arg, .at = format};
    char c;
    f.list_ok = read(va_list_at, &f.list, sizeof(f.list));
    while (f.count < REQUEST_TEXT_MAX && f.at - format < REQUEST_TEXT_MAX && peek(&f, &c)) {
        f.at++;
        if (c == '%')
            convert(&f);
        else
            put(&f, c);
    }
    return f.count;
}
