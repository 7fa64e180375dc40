/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/error.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- parsing ---- */

/* jansson counts the bytes up to the end of the token it stumbled over, and quotes short ones: from both we find the
 * token's beginning, which is what a person looks for. */
static size_t start_of_token(const char *text, size_t end, const char *message)
{
    const char *quoted = strstr(message, " near '");
    size_t length = quoted ? strlen(quoted + 7) : 0;
    if (length > 1 && length - 1 <= end && memcmp(text + end - (length - 1), quoted + 7, length - 1) == 0)
        return end - (length - 1);
    return end > 0 ? end - 1 : 0;
}

static void find_line(const char *text, size_t offset, int *line, int *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < offset; i++) {
        *column = text[i] == '\n' ? 1 : *column + 1;
        *line += text[i] == '\n';
    }
}

/* Does the text have that key, in quotes, be it those of Python? It may hold bytes 0. */
static bool has_mark(const char *text, size_t length, const char *mark)
{
    size_t bytes = strlen(mark);
    const char *at = text, *end = text + length;
    while ((at = memmem(at, (size_t)(end - at), mark, bytes))) {
        if (at > text && strchr("\"'", at[-1]) && at + bytes < end && at[bytes] == at[-1])
            return true;
        at += bytes;
    }
    return false;
}

/* Slips of those who know JavaScript, Python or C, by what a token begins with, and what JSON has instead. */
static const struct slip {
    const char *text, *remedy;
} slips[] = {
    { "'", "; texts are in double quotes" },
    { "True", "; write true" },
    { "False", "; write false" },
    { "None", "; write null, or leave the key out" },
    { "//", "; JSON has no comments, take it out" },
    { "/*", "; JSON has no comments, take it out" },
    { "#", "; JSON has no comments, take it out" },
    { ".", "; a number begins with a digit, as in 0.5" },
    { "+", "; a number has no plus in front" },
    { "=", "; a colon is between key and value" },
    { "NaN", "; JSON has only finite numbers" },
    { "Infinity", "; JSON has only finite numbers" },
    { "-Infinity", "; JSON has only finite numbers" },
    { "-NaN", "; JSON has only finite numbers" },
    { "\xef\xbb\xbf", "; a byte order mark is here: save the text as UTF-8 without one" },
};

/* The remedy for the token at `at`; "" if there is nothing to say. */
static const char *find_remedy(const char *text, size_t length, size_t at)
{
    size_t before = at;
    while (before > 0 && strchr(" \t\r\n", text[before - 1]))
        before--;
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        size_t bytes = strlen(slips[i].text);
        if (bytes <= length - at && memcmp(text + at, slips[i].text, bytes) == 0)
            return slips[i].remedy;
    }
    if (at == length || before == 0)
        return "";
    if (strchr("]}", text[at]) && text[before - 1] == ',')
        return "; take the comma before it out";
    return strchr("\"{[", text[at]) && strchr("\"]}0123456789el", text[before - 1]) ? "; a comma is missing before it"
                                                                                    : "";
}

static void tell_syntax(const json_error_t *error, bool ours, const char *mark, const char *remedy, gantry_error *err)
{
    enum json_error_code code = json_error_code(error);
    const char *near = strstr(error->text, " near ");
    if (!ours && (!near || strcmp(near, " near end of file") != 0)) {
        gy_fail(err, GANTRY_E_SYNTAX, NULL,
                "not well-formed JSON, and \"%s\" is nowhere in it: it may be another file than you meant", mark);
    } else if (code == json_error_duplicate_key) {
        /* jansson quotes the key, quotes and all, in quotes. */
        const char *key = near && strlen(near) > 8 ? near + 7 : "";
        gy_fail(err, GANTRY_E_SYNTAX, NULL, "duplicate key%s%.*s: remove or rename one of them", key[0] ? " " : "",
                key[0] ? (int)strlen(key) - 1 : 0, key);
    } else if (code == json_error_null_character || code == json_error_null_byte_in_key) {
        gy_fail(err, GANTRY_E_SYNTAX, NULL,
                "a text has the character \\u0000, and texts are one line of plain "
                "characters: take it out");
    } else {
        if (code == json_error_numeric_overflow && strstr(error->text, "integer"))
            remedy = "; whole numbers are from -9223372036854775808 to 9223372036854775807, larger ones of u64 are "
                     "written in quotes";
        gy_fail(err, GANTRY_E_SYNTAX, NULL, "not well-formed JSON: %s%s", error->text, remedy);
    }
}

/* jansson names nothing when it runs out of memory in the middle of a value, and calls a token invalid when it does in
 * the middle of one. */
bool gy_json_no_memory(const json_error_t *error)
{
    return errno == ENOMEM || json_error_code(error) == json_error_out_of_memory || !error->text[0];
}

gantry_status gy_json_fail_syntax(const json_error_t *error, const char *text, size_t length, const char *name,
                                  const char *mark, gantry_error *err)
{
    if (gy_json_no_memory(error))
        return gy_fail_nomem(err);
    size_t end = error->position > 0 ? (size_t)error->position : 0;
    int line, column;
    size_t at = start_of_token(text, end > length ? length : end, error->text);
    find_line(text, at, &line, &column);
    tell_syntax(error, has_mark(text, length, mark), mark, find_remedy(text, length, at), err);
    gy_error_locate(err, name, line, column);
    return GANTRY_E_SYNTAX;
}

enum { MOST_DEPTH = 256 };

/* jansson takes 2,048 levels, and those who read what it made call themselves for each: more than the stack of some
 * threads. The offset of the first value that is too deep; `length` if there is none. */
static size_t find_too_deep(const char *text, size_t length)
{
    static const int8_t deeper[UCHAR_MAX + 1] = { ['['] = 1, ['{'] = 1, [']'] = -1, ['}'] = -1 };
    int64_t depth = 0;
    for (size_t i = 0; i < length; i++) {
        depth += deeper[(unsigned char)text[i]];
        if (depth > MOST_DEPTH)
            return i;
        if (text[i] == '"')
            for (i++; i < length && text[i] != '"'; i++)
                i += text[i] == '\\';
    }
    return length;
}

static gantry_status fail_deep(const char *text, size_t offset, const char *name, gantry_error *err)
{
    int line, column;
    find_line(text, offset, &line, &column);
    gy_fail(err, GANTRY_E_SYNTAX, NULL, "arrays and objects are nested more than %d deep: have fewer in each other",
            MOST_DEPTH);
    gy_error_locate(err, name, line, column);
    return GANTRY_E_SYNTAX;
}

gantry_status gy_json_parse(json_t **root, const char *text, size_t length, const char *name, const char *mark,
                            gantry_error *err)
{
    json_error_t error = { 0 };
    size_t deep = find_too_deep(text, length);
    if (deep < length)
        return fail_deep(text, deep, name, err);
    json_t *parsed = gy_json_load(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!parsed) {
        gantry_status status = gy_json_fail_syntax(&error, text, length, name, mark, err);
        return status ? status : GANTRY_E_SYNTAX; /* the compiler does not see that it is none of success */
    }
    *root = parsed;
    return GANTRY_OK;
}

/* ---- where the reader is ---- */

gy_json_at gy_json_key(const gy_json_at *up, const char *key)
{
    return (gy_json_at){ up, key, 0, json_object_get(up->value, key) };
}

gy_json_at gy_json_item(const gy_json_at *up, size_t index)
{
    return (gy_json_at){ up, NULL, index, json_array_get(up->value, index) };
}

/* Puts `c` before *start; false if only the room for "..." is left. */
static bool prepend(char *to, char **start, char c)
{
    if (*start - to <= 3)
        return false;
    *--*start = c;
    return true;
}

static bool prepend_key(char *to, char **start, const char *key)
{
    for (size_t i = strlen(key); i-- > 0;) {
        char c = key[i];
        bool fits = c == '~'   ? prepend(to, start, '0') && prepend(to, start, '~')
                    : c == '/' ? prepend(to, start, '1') && prepend(to, start, '~')
                               : prepend(to, start, c);
        if (!fits)
            return false;
    }
    return prepend(to, start, '/');
}

char *gy_json_pointer(const gy_json_at *at, char *to, size_t size)
{
    if (size < 5) {
        if (size > 0)
            to[0] = '\0';
        return to;
    }
    char *start = to + size - 1;
    *start = '\0';
    for (; at && at->up; at = at->up) {
        char number[24];
        snprintf(number, sizeof number, "%zu", at->index);
        if (!prepend_key(to, &start, at->key ? at->key : number)) {
            while (((unsigned char)*start & 0xC0) == 0x80)
                start++; /* not from the middle of a character */
            start -= 3;
            memcpy(start, "...", 3);
            break;
        }
    }
    memmove(to, start, strlen(start) + 1);
    return to;
}

static gantry_status vfail(gantry_error *err, gantry_status status, const gy_json_at *at, const char *format,
                           va_list args) __attribute__((format(printf, 4, 0)));

static gantry_status vfail(gantry_error *err, gantry_status status, const gy_json_at *at, const char *format,
                           va_list args)
{
    char pointer[sizeof err->where];
    return gy_vfail(err, status, gy_json_pointer(at, pointer, sizeof pointer), format, args);
}

gantry_status(gy_json_fail)(gantry_error *err, gantry_status status, const gy_json_at *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    status = vfail(err, status, at, format, args);
    va_end(args);
    return status;
}

/* ---- plain text ---- */

typedef struct plain_check {
    gantry_status status; /* of a text that is not plain */
    gantry_error *err;
    char pointer[1024]; /* to it: longer than an error's, which is cut and made plain, and then finds nothing */
} plain_check;

static gantry_status check_text(plain_check *c, const gy_json_at *at, const char *text)
{
    if (gy_is_plain(text))
        return GANTRY_OK;
    gy_json_pointer(at, c->pointer, sizeof c->pointer);
    return gy_json_fail(c->err, c->status, at,
                        "\"%.200s\" has control characters (they show as '?'): a text is one line of plain characters; "
                        "take them out",
                        text);
}

static gantry_status check_plain(plain_check *c, const gy_json_at *at)
{
    json_t *value = (json_t *)(uintptr_t)at->value; /* jansson's iterators do not change it */
    if (json_is_string(value))
        return check_text(c, at, json_string_value(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        gy_json_at item = gy_json_item(at, i);
        GY_TRY(check_plain(c, &item));
    }
    for (void *i = json_object_iter(value); i; i = json_object_iter_next(value, i)) {
        gy_json_at member = { at, json_object_iter_key(i), 0, json_object_iter_value(i) };
        GY_TRY(check_text(c, &member, member.key));
        GY_TRY(check_plain(c, &member));
    }
    return GANTRY_OK;
}

gantry_status gy_json_parse_plain(json_t **root, const char *text, size_t length, const char *name, const char *mark,
                                  gantry_status status, gantry_error *err)
{
    gantry_error local = { 0 };
    json_t *parsed;
    err = err ? err : &local;
    GY_TRY(gy_json_parse(&parsed, text, length, name, mark, err));
    gy_json_at at = { NULL, NULL, 0, parsed };
    plain_check c = { .status = status, .err = err };
    if (json_object_get(parsed, mark) && check_plain(&c, &at)) {
        int line, column;
        gy_json_locate(text, length, c.pointer, &line, &column);
        gy_error_locate(err, name, line, column);
        json_decref(parsed);
        return status;
    }
    *root = parsed;
    return GANTRY_OK;
}

/* ---- typed members ---- */

static const struct file_kind {
    const char *key, *name, *place;
} file_kinds[] = {
    { "gantry", "a graph", "goes first behind the command (gantry_graph_load)" },
    { "gantry_machine", "a machine", "goes behind --machine (gantry_machine_load)" },
    { "gantry_schedule", "a schedule",
      "goes behind --schedule, or behind the graph in `gantry check` (gantry_schedule_load)" },
};
enum { FILE_KINDS = sizeof file_kinds / sizeof *file_kinds };

gantry_status gy_json_refuse_other(const gy_json_at *root, const char *wanted, gantry_status status, gantry_error *err)
{
    const char *name = "";
    for (size_t i = 0; i < FILE_KINDS; i++)
        name = strcmp(file_kinds[i].key, wanted) == 0 ? file_kinds[i].name : name;
    for (size_t i = 0; i < FILE_KINDS && !json_object_get(root->value, wanted); i++)
        if (json_object_get(root->value, file_kinds[i].key))
            return gy_json_fail(err, status, root, "no \"%s\" in it, so this is not %s: it is %s, which %s", wanted,
                                name, file_kinds[i].name, file_kinds[i].place);
    return GANTRY_OK;
}

const char *gy_json_kind(const json_t *value)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static bool is_one_of(const char *key, const char *const *allowed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (key[0] == allowed[i][0] && strcmp(key, allowed[i]) == 0)
            return true;
    return false;
}

static gantry_status fail_key(const gy_json_at *at, const char *key, const char *const *allowed, size_t count,
                              gantry_status status, gantry_error *err)
{
    gy_json_at member = gy_json_key(at, key);
    const char *near = gy_nearest(key, allowed, count);
    if (near)
        return gy_json_fail(err, status, &member, "unknown key \"%s\" (did you mean \"%s\"?)", key, near);
    char list[320] = "";
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", allowed[i]);
    return gy_json_fail(err, status, &member, "unknown key \"%.100s\": allowed here: %s%s", key,
                        count ? list : "no keys at all", length >= sizeof list ? "..." : "");
}

gantry_status gy_json_keys(const gy_json_at *at, const char *const *allowed, size_t count, gantry_status status,
                           gantry_error *err)
{
    if (!json_is_object(at->value))
        return gy_json_fail(err, status, at, "expected an object, not %s", gy_json_kind(at->value));
    /* jansson's iterators want a pointer to a changeable object, and do not change it. */
    json_t *object = json_incref((json_t *)(uintptr_t)at->value);
    gantry_status result = GANTRY_OK;
    for (void *i = json_object_iter(object); i && !result; i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        if (!is_one_of(key, allowed, count))
            result = fail_key(at, key, allowed, count, status, err);
    }
    json_decref(object);
    return result;
}

static gantry_status fail_missing(const gy_json_at *at, const char *key, const char *what, gantry_status status,
                                  gantry_error *err)
{
    return gy_json_fail(err, status, at, "missing key \"%s\": give %s", key, what);
}

static gantry_status fail_kind(const gy_json_at *member, const char *what, gantry_status status, gantry_error *err)
{
    return gy_json_fail(err, status, member, "\"%s\" must be %s, not %s", member->key, what,
                        gy_json_kind(member->value));
}

/* "between 1 and 8", "at least 1", "at most 8", "any whole number": bounds as wide as the type are left out. */
static const char *range_text(char *to, size_t size, const char *low, const char *high, const char *any)
{
    if (low && high)
        snprintf(to, size, "between %s and %s", low, high);
    else
        snprintf(to, size, "%s%s", low ? "at least " : high ? "at most " : any, low ? low : high ? high : "");
    return to;
}

static gantry_status fail_int_kind(const gy_json_at *member, gantry_status status, gantry_error *err)
{
    double real = json_is_real(member->value) ? json_real_value(member->value) : 0.5;
    if (real > -9e15 && real < 9e15 && real == (double)(int64_t)real) {
        return gy_json_fail(err, status, member, "\"%s\" must be an integer, not a real number: write %" PRId64,
                            member->key, (int64_t)real);
    }
    return fail_kind(member, "an integer", status, err);
}

gantry_status gy_json_int(const gy_json_at *at, const char *key, bool required, int64_t fallback, int64_t low,
                          int64_t high, int64_t *out, gantry_status status, gantry_error *err)
{
    gy_json_at member = gy_json_key(at, key);
    if (!member.value && required) {
        char only[24];
        snprintf(only, sizeof only, "%" PRId64, low);
        return fail_missing(at, key, low == high ? only : "an integer", status, err);
    }
    if (member.value && !json_is_integer(member.value))
        return fail_int_kind(&member, status, err);
    int64_t value = member.value ? json_integer_value(member.value) : fallback;
    if (member.value && (value < low || value > high)) {
        char range[80], least[24], most[24];
        snprintf(least, sizeof least, "%" PRId64, low);
        snprintf(most, sizeof most, "%" PRId64, high);
        range_text(range, sizeof range, low > INT64_MIN ? least : NULL, high < INT64_MAX ? most : NULL, "");
        return gy_json_fail(err, status, &member, "\"%s\" must be %s, not %" PRId64, key, range, value);
    }
    *out = value;
    return GANTRY_OK;
}

gantry_status gy_json_number(const gy_json_at *at, const char *key, bool required, double fallback, double low,
                             double high, double *out, gantry_status status, gantry_error *err)
{
    gy_json_at member = gy_json_key(at, key);
    if (!member.value && required)
        return fail_missing(at, key, "a number", status, err);
    if (member.value && !json_is_number(member.value))
        return fail_kind(&member, "a number", status, err);
    double value = member.value ? json_number_value(member.value) : fallback;
    if (member.value && !(value >= low && value <= high)) {
        char range[120], least[32], most[32];
        snprintf(least, sizeof least, "%.15g", low);
        snprintf(most, sizeof most, "%.15g", high);
        range_text(range, sizeof range, low >= -1e300 ? least : NULL, high <= 1e300 ? most : NULL, "finite");
        return gy_json_fail(err, status, &member, "\"%s\" must be %s, not %.15g", key, range, value);
    }
    *out = value;
    return GANTRY_OK;
}

gantry_status gy_json_string(const gy_json_at *at, const char *key, bool required, const char *fallback,
                             const char **out, gantry_status status, gantry_error *err)
{
    gy_json_at member = gy_json_key(at, key);
    if (!member.value && required)
        return fail_missing(at, key, "a string", status, err);
    if (member.value && !json_is_string(member.value))
        return fail_kind(&member, "a string", status, err);
    *out = member.value ? json_string_value(member.value) : fallback;
    return GANTRY_OK;
}

gantry_status gy_json_bool(const gy_json_at *at, const char *key, bool fallback, bool *out, gantry_status status,
                           gantry_error *err)
{
    gy_json_at member = gy_json_key(at, key);
    if (member.value && !json_is_boolean(member.value))
        return fail_kind(&member, "true or false", status, err);
    *out = member.value ? json_is_true(member.value) : fallback;
    return GANTRY_OK;
}
