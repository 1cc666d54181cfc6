// SPDX-License-Identifier: MIT
//
// A small printf without libc, locale, floating point or allocation.
#include "base/text.h"

typedef struct Output {
    char *at;
    char *end; // where the terminating zero goes at the latest
} Output;

typedef struct Conversion {
    bool left_aligned;
    bool zero_padded;
    bool is_long;
    size_t width;
    char letter; // '\0' when the format ended inside the conversion
} Conversion;

// The empty asm keeps the compiler from turning the loop into a call of strlen.
static size_t string_length(const char *text)
{
    size_t length = 0;

    for (; text[length]; length++)
        __asm__("" : "+r"(length));
    return length;
}

static void put_char(Output *out, char c)
{
    if (out->at < out->end)
        *out->at++ = c;
}

static void put_repeated(Output *out, char c, size_t count)
{
    // More than the buffer holds is cut anyway: a huge width must not take long.
    for (size_t room = (size_t)(out->end - out->at); count > 0 && room > 0; count--, room--)
        put_char(out, c);
}

static void put_padded(Output *out, const Conversion *conv, const char *text, size_t length)
{
    size_t padding = conv->width > length ? conv->width - length : 0;

    if (!conv->left_aligned)
        put_repeated(out, ' ', padding);
    for (size_t i = 0; i < length; i++)
        put_char(out, text[i]);
    if (conv->left_aligned)
        put_repeated(out, ' ', padding);
}

static void put_number(Output *out, const Conversion *conv, u64 magnitude, u32 radix,
                       const char *prefix)
{
    char digits[20]; // of 2^64 in decimal
    size_t digit_count = 0;
    size_t prefix_length = string_length(prefix);

    do {
        digits[digit_count++] = "0123456789abcdef"[magnitude % radix];
        magnitude /= radix;
    } while (magnitude != 0);

    size_t length = prefix_length + digit_count;
    size_t padding = conv->width > length ? conv->width - length : 0;
    bool zeros = conv->zero_padded && !conv->left_aligned;

    if (!zeros && !conv->left_aligned)
        put_repeated(out, ' ', padding);
    for (size_t i = 0; i < prefix_length; i++)
        put_char(out, prefix[i]);
    if (zeros)
        put_repeated(out, '0', padding);
    while (digit_count > 0)
        put_char(out, digits[--digit_count]);
    if (conv->left_aligned)
        put_repeated(out, ' ', padding);
}

static void put_signed(Output *out, const Conversion *conv, i64 value)
{
    u64 magnitude = value < 0 ? -(u64)value : (u64)value;

    put_number(out, conv, magnitude, 10, value < 0 ? "-" : "");
}

static void put_string(Output *out, const Conversion *conv, const char *text)
{
    if (!text)
        text = "(null)";
    put_padded(out, conv, text, string_length(text));
}

// Reads what stands between a '%' and its letter, and returns what follows.
static const char *read_conversion(const char *format, Conversion *ret_conv)
{
    Conversion conv = { 0 };

    for (; *format == '0' || *format == '-'; format++) {
        if (*format == '0')
            conv.zero_padded = true;
        else
            conv.left_aligned = true;
    }
    for (; *format >= '0' && *format <= '9'; format++)
        conv.width = conv.width * 10 + (size_t)(*format - '0');
    for (; *format == 'l' || *format == 'z'; format++)
        conv.is_long = true;
    conv.letter = *format;
    *ret_conv = conv;
    return *format ? format + 1 : format;
}

size_t text_format_list(char *buffer, size_t size_bytes, const char *format, va_list arguments)
{
    if (size_bytes == 0)
        return 0;

    Output out = { buffer, buffer + size_bytes - 1 };

    while (*format) {
        if (*format != '%') {
            put_char(&out, *format++);
            continue;
        }

        const char *percent = format;
        Conversion conv;
        format = read_conversion(format + 1, &conv);
        switch (conv.letter) {
        case '%':
            put_char(&out, '%');
            break;
        case 'c': {
            char c = (char)va_arg(arguments, int);
            put_padded(&out, &conv, &c, 1);
            break;
        }
        case 's':
            put_string(&out, &conv, va_arg(arguments, const char *));
            break;
        case 'd':
            put_signed(&out, &conv, conv.is_long ? va_arg(arguments, i64) : va_arg(arguments, int));
            break;
        case 'u':
        case 'x': {
            u64 value = conv.is_long ? va_arg(arguments, u64) : va_arg(arguments, u32);
            put_number(&out, &conv, value, conv.letter == 'x' ? 16 : 10, "");
            break;
        }
        case 'p':
            put_number(&out, &conv, (u64)va_arg(arguments, void *), 16, "0x");
            break;
        default:
            while (percent < format)
                put_char(&out, *percent++);
            break;
        }
    }
    *out.at = '\0';
    return (size_t)(out.at - buffer);
}

size_t text_format(char *buffer, size_t size_bytes, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    size_t length = text_format_list(buffer, size_bytes, format, arguments);
    va_end(arguments);
    return length;
}

u64 text_parse_hex(const char **text)
{
    u64 value = 0;

    for (;; (*text)++) {
        char c = **text;
        if (c >= '0' && c <= '9')
            value = value * 16 + (u64)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (u64)(c - 'a') + 10;
        else
            return value;
    }
}
