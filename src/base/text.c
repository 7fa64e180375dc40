/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/memory.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` characters and the final 0. */
static bool reserve(gy_text *text, size_t more)
{
    size_t need;
    if (text->failed || __builtin_add_overflow(text->length + 1, more, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity)
        return true;
    size_t grown = text->capacity < 32 ? 64 : text->capacity + text->capacity / 2;
    grown = grown < need ? need : grown;
    char *at = gy_realloc(text->at, grown, 1);
    if (!at) {
        text->failed = true;
        return false;
    }
    text->at = at;
    text->capacity = grown;
    return true;
}

void gy_text_add(gy_text *text, const char *string)
{
    gy_text_add_n(text, string, strlen(string));
}

void gy_text_add_n(gy_text *text, const char *string, size_t length)
{
    if (reserve(text, length)) {
        memcpy(text->at + text->length, string, length);
        text->length += length;
        text->at[text->length] = '\0';
    }
}

void gy_text_printf(gy_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gy_text_vprintf(text, format, args);
    va_end(args);
}

void gy_text_vprintf(gy_text *text, const char *format, va_list args)
{
    if (!reserve(text, 0))
        return;
    va_list again;
    va_copy(again, args);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(text->at + text->length, room, format, args);
    if (length < 0) {
        text->failed = true;
    } else if ((size_t)length < room) {
        text->length += (size_t)length;
    } else if (reserve(text, (size_t)length)) {
        vsnprintf(text->at + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    if (text->failed && text->at)
        text->at[text->length] = '\0';
}

size_t gy_utf8_length(const char *from)
{
    const unsigned char *s = (const unsigned char *)from;
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] >= 0x90))
        return 0;
    return length;
}

size_t gy_plain_length(const char *from)
{
    const unsigned char *s = (const unsigned char *)from;
    size_t length = gy_utf8_length(from);
    if (length == 1)
        return s[0] >= 0x20 && s[0] != 0x7f;
    if (length == 2)
        return s[0] == 0xC2 && s[1] < 0xA0 ? 0 : 2; /* U+0080 to U+009F */
    if (length == 3 && s[0] == 0xEF)
        return s[1] == 0xBF && s[2] >= 0xBE ? 0 : 3; /* U+FFFE and U+FFFF */
    if (length != 3 || s[0] != 0xE2)
        return length;
    bool separates = s[1] == 0x80 && s[2] >= 0xA8 && s[2] <= 0xAE; /* U+2028 to U+202E */
    bool directs = s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9;   /* U+2066 to U+2069 */
    return separates || directs ? 0 : 3;
}

size_t gy_name_length(const char *text)
{
    size_t length = 0, next;
    while (text[length] && !strchr(" []{}()~*:,\"\\", text[length]) && (next = gy_plain_length(text + length)))
        length += next;
    return length;
}

bool gy_is_plain(const char *text)
{
    size_t length;
    while (*text && (length = gy_plain_length(text)))
        text += length;
    return *text == '\0';
}

void gy_make_plain(char *text)
{
    char *to = text;
    while (*text) {
        size_t plain = gy_plain_length(text), length = plain ? plain : gy_utf8_length(text);
        if (plain)
            memmove(to, text, plain);
        else
            *to = '?';
        to += plain ? plain : 1;
        text += length ? length : 1;
    }
    *to = '\0';
}

/* A character of two or three bytes as JSON escapes it. */
static void add_json_escape(gy_text *text, const char *s, size_t length)
{
    unsigned code = (unsigned char)s[0] & (length == 2 ? 0x1Fu : 0x0Fu);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3Fu);
    gy_text_printf(text, "\\u%04x", code);
}

static void add_json_ascii(gy_text *text, char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *found = strchr(plain, c);
    if (found) {
        char escape[2] = { '\\', letter[found - plain] };
        gy_text_add_n(text, escape, 2);
    } else if ((unsigned char)c < 0x20 || c == 0x7f) {
        gy_text_printf(text, "\\u%04x", (unsigned)c);
    } else {
        gy_text_add_n(text, &c, 1);
    }
}

void gy_text_json(gy_text *text, const char *string)
{
    gy_text_add_n(text, "\"", 1);
    while (*string) {
        size_t length = gy_utf8_length(string);
        if (length == 1)
            add_json_ascii(text, *string);
        else if (length == 0)
            gy_text_add(text, "\\ufffd");
        else if (!gy_plain_length(string))
            add_json_escape(text, string, length);
        else
            gy_text_add_n(text, string, length);
        string += length ? length : 1;
    }
    gy_text_add_n(text, "\"", 1);
}

static void add_xml_ascii(gy_text *text, char c)
{
    static const struct {
        char plain;
        const char *entity;
    } entities[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" }, { '\'', "&#39;" } };
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        if (entities[i].plain == c) {
            gy_text_add(text, entities[i].entity);
            return;
        }
    }
    /* XML 1.0 has no other control characters, not even escaped; what would turn lines round is as little wanted. */
    bool allowed = ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
    gy_text_add_n(text, allowed ? &c : "\xEF\xBF\xBD", allowed ? 1 : 3);
}

void gy_text_xml(gy_text *text, const char *string)
{
    while (*string) {
        size_t length = gy_utf8_length(string);
        if (length == 1)
            add_xml_ascii(text, *string);
        else if (gy_plain_length(string))
            gy_text_add_n(text, string, length);
        else
            gy_text_add(text, "\xEF\xBF\xBD");
        string += length ? length : 1;
    }
}

/* The locale's decimal point, which printf and strtod use and files do not. */
static const char *local_point(void)
{
    const char *point = localeconv()->decimal_point;
    return point[0] ? point : ".";
}

static void to_plain_point(char *number)
{
    const char *point = local_point();
    char *found = strcmp(point, ".") == 0 ? NULL : strstr(number, point);
    if (found) {
        size_t length = strlen(point);
        *found = '.';
        memmove(found + 1, found + length, strlen(found + length) + 1);
    }
}

char *gy_double_text(char *to, size_t size, double value)
{
    if (!isfinite(value)) {
        snprintf(to, size, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return to;
    }
    char digits[40];
    /* 15 digits always survive a normal double and %g drops trailing zeros: fewer need not be tried. */
    int precision = fabs(value) >= DBL_MIN ? 15 : 1;
    do {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
    } while (strtod(digits, NULL) != value && ++precision <= 17);
    to_plain_point(digits);
    snprintf(to, size, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
    return to;
}

void gy_text_double(gy_text *text, double value)
{
    char digits[GY_DOUBLE_TEXT];
    gy_text_add(text, gy_double_text(digits, sizeof digits, value));
}

static size_t skip_digits(const char *text, size_t at, size_t length)
{
    while (at < length && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

size_t gy_number_length(const char *text, size_t length, bool *is_real)
{
    size_t end = skip_digits(text, 0, length);
    *is_real = false;
    if (end == 0)
        return 0;
    if (end < length && text[end] == '.') {
        size_t fraction = skip_digits(text, end + 1, length);
        if (fraction > end + 1) {
            end = fraction;
            *is_real = true;
        }
    }
    if (end < length && (text[end] == 'e' || text[end] == 'E')) {
        size_t sign = end + 1 < length && (text[end + 1] == '+' || text[end + 1] == '-');
        size_t exponent = skip_digits(text, end + 1 + sign, length);
        if (exponent > end + 1 + sign) {
            end = exponent;
            *is_real = true;
        }
    }
    return end;
}

bool gy_parse_double(const char *text, size_t length, double *value)
{
    char copy[400];
    size_t sign = length > 0 && (text[0] == '-' || text[0] == '+');
    bool is_real;
    if (length == sign || gy_number_length(text + sign, length - sign, &is_real) != length - sign ||
        length + 8 > sizeof copy)
        return false;
    const char *point = memchr(text, '.', length);
    size_t head = point ? (size_t)(point - text) : length;
    snprintf(copy, sizeof copy, "%.*s%s%.*s", (int)head, text, point ? local_point() : "",
             point ? (int)(length - head - 1) : 0, point ? point + 1 : "");
    double read = strtod(copy, NULL);
    if (!isfinite(read))
        return false;
    *value = read;
    return true;
}

char *gy_text_take(gy_text *text, size_t *length)
{
    if (!reserve(text, 0)) {
        gy_text_free(text);
        return NULL;
    }
    char *at = text->at;
    at[text->length] = '\0';
    if (length)
        *length = text->length;
    *text = (gy_text){ 0 };
    return at;
}

void gy_text_free(gy_text *text)
{
    gy_free(text->at);
    *text = (gy_text){ 0 };
}

/* Nothing but blanks and the marks with which compilers underline. */
static bool is_underline(const char *line, size_t length)
{
    return strspn(line, " \t\r^~|") >= length;
}

void gy_lines_text(char *to, size_t size, const char *lines)
{
    size_t used = 0;
    to[0] = '\0';
    while (*lines && used + 1 < size) {
        lines += strspn(lines, " \t");
        size_t length = strcspn(lines, "\n");
        if (!is_underline(lines, length)) {
            int put = snprintf(to + used, size - used, "%s%.*s", used ? " | " : "", (int)length, lines);
            used += put > 0 ? (size_t)put : 0;
        }
        lines += length + (lines[length] == '\n');
    }
}
