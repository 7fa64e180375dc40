/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Finds line and column of a value in a JSON text by its pointer. The text was read by jansson before, so this scans
 * loosely: it follows the pointer's path and skips everything else by brackets and quotes, without recursion.
 */
#include "base/json.h"
#include <string.h>

typedef struct scan {
    const char *at, *end;
} scan;

/* The parser passes over a NUL behind a number, too. */
static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

static void skip_space(scan *s)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
}

/* Over the character `c`, with the space around it. */
static bool take(scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    skip_space(s);
    return true;
}

/* At the opening quote; ends behind the closing one. */
static bool skip_string(scan *s)
{
    for (s->at++; s->at < s->end; s->at++) {
        if (*s->at == '"') {
            s->at++;
            return true;
        }
        if (*s->at == '\\')
            s->at++;
    }
    s->at = s->end; /* a backslash at the very end steps over it */
    return false;
}

static bool is_delimiter(char c)
{
    return strchr(" \t\r\n,:[]{}\"", c) != NULL;
}

/* Over one value: brackets are counted, strings are stepped over. */
static bool skip_value(scan *s)
{
    size_t depth = 0;
    do {
        skip_space(s);
        if (s->at == s->end)
            return false;
        char c = *s->at;
        if (c == '"') {
            if (!skip_string(s))
                return false;
        } else if (c == '{' || c == '[') {
            depth++;
            s->at++;
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
            s->at++;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            s->at++;
        } else if (is_delimiter(c)) {
            return false;
        } else {
            while (s->at < s->end && !is_delimiter(*s->at))
                s->at++;
        }
    } while (depth > 0);
    return true;
}

static unsigned hex4(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 0;
        value = value * 16 + digit;
    }
    return value;
}

static size_t put_utf8(unsigned code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 | (code >> 6));
        to[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | (code >> 12));
        to[1] = (char)(0x80 | ((code >> 6) & 0x3F));
        to[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | (code >> 18));
    to[1] = (char)(0x80 | ((code >> 12) & 0x3F));
    to[2] = (char)(0x80 | ((code >> 6) & 0x3F));
    to[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* Behind "\u"; reads the pair if it is half of one. */
static size_t take_unicode(const char **at, const char *end, char *to)
{
    if (end - *at < 4) {
        *at = end;
        return 0;
    }
    unsigned code = hex4(*at);
    *at += 4;
    if (code >= 0xD800 && code < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        code = 0x10000 + ((code - 0xD800) << 10) + (hex4(*at + 2) & 0x3FF);
        *at += 6;
    }
    return put_utf8(code, to);
}

/* One character of a JSON string, unescaped, into `to`; returns its bytes. */
static size_t take_character(const char **at, const char *end, char *to)
{
    static const char letter[] = "bfnrt", plain[] = "\b\f\n\r\t";
    char c = *(*at)++;
    if (c == '\\' && *at < end) {
        c = *(*at)++;
        if (c == 'u')
            return take_unicode(at, end, to);
        const char *found = strchr(letter, c);
        c = found && c ? plain[found - letter] : c;
    }
    to[0] = c;
    return 1;
}

/* One byte of a pointer's token, "~0" and "~1" being '~' and '/'. */
static char token_byte(const char **token, const char *end)
{
    char c = *(*token)++;
    if (c == '~' && *token < end)
        c = *(*token)++ == '1' ? '/' : '~';
    return c;
}

/* Is the JSON string (between its quotes) the key that the pointer's token names? */
static bool same_key(const char *key, const char *key_end, const char *token, const char *token_end)
{
    while (key < key_end) {
        char bytes[4];
        size_t count = take_character(&key, key_end, bytes);
        for (size_t i = 0; i < count; i++)
            if (token == token_end || token_byte(&token, token_end) != bytes[i])
                return false;
    }
    return token == token_end;
}

typedef enum found { ABSENT, PRESENT, BROKEN } found;

/* At '{'; PRESENT: at the member's value. */
static found enter_object(scan *s, const char *token, const char *token_end)
{
    take(s, '{');
    if (take(s, '}'))
        return ABSENT;
    do {
        const char *key = s->at + 1;
        if (s->at == s->end || *s->at != '"' || !skip_string(s))
            return BROKEN;
        bool same = same_key(key, s->at - 1, token, token_end);
        if (!take(s, ':') || s->at == s->end)
            return BROKEN;
        if (same)
            return PRESENT;
        if (!skip_value(s))
            return BROKEN;
    } while (take(s, ','));
    return take(s, '}') ? ABSENT : BROKEN;
}

static bool read_index(const char *token, const char *token_end, size_t *index)
{
    *index = 0;
    for (const char *c = token; c < token_end; c++) {
        if (*c < '0' || *c > '9' || *index > SIZE_MAX / 10 - 1)
            return false;
        *index = *index * 10 + (size_t)(*c - '0');
    }
    return token < token_end;
}

/* At '['; PRESENT: at the item. */
static found enter_array(scan *s, const char *token, const char *token_end)
{
    size_t index;
    take(s, '[');
    if (!read_index(token, token_end, &index) || take(s, ']'))
        return ABSENT;
    for (; index > 0; index--) {
        if (!skip_value(s))
            return BROKEN;
        if (!take(s, ','))
            return take(s, ']') ? ABSENT : BROKEN;
    }
    return s->at < s->end ? PRESENT : BROKEN;
}

void gy_json_locate(const char *text, size_t length, const char *pointer, int *line, int *column)
{
    scan s = { text, text + length };
    *line = *column = 0;
    skip_space(&s);
    const char *value = s.at;
    bool wanted = *pointer == '/' || *pointer == '\0'; /* a pointer that was cut ("...") leads nowhere */
    if (s.at == s.end || !wanted || (*s.at != '{' && *s.at != '['))
        return;
    while (*pointer == '/') {
        const char *token = pointer + 1;
        pointer = token + strcspn(token, "/");
        found got = *s.at == '{'   ? enter_object(&s, token, pointer)
                    : *s.at == '[' ? enter_array(&s, token, pointer)
                                   : ABSENT;
        if (got == BROKEN)
            return;
        if (got == ABSENT)
            break;
        value = s.at;
    }
    *line = *column = 1;
    for (const char *c = text; c < value; c++) {
        *column = *c == '\n' ? 1 : *column + 1;
        *line += *c == '\n';
    }
}
