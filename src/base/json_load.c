/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jansson (2.14, and 2.15 too) does not notice that the buffer of the token that it reads cannot grow: it loses a byte,
 * and then leaves something out of a string, or goes on behind its end
 * (https://github.com/akheron/jansson/issues/362). So the buffer has grown before it is needed: the text is given as
 * the second element of an array, whose first one is a string that is as long as the longest token. That string is
 * given byte by byte, and ends the text where memory has run out; its last byte, after which nothing would be asked
 * for, is no byte for which the buffer grows.
 */
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { FIRST_ROOM = 16 }; /* of jansson's buffer, which is doubled */

/* By a table, as every byte of a file is asked about. */
static bool is_in_word(char c)
{
    static const bool ends[UCHAR_MAX + 1] = {
        ['\0'] = true, [' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, ['{'] = true,
        ['}'] = true,  ['['] = true, [']'] = true,  [':'] = true,  [','] = true
    };
    return !ends[(unsigned char)c];
}

/* Bytes of the longest token, quotes and all. */
static size_t longest_token(const char *text, size_t length)
{
    size_t most = 0;
    for (size_t i = 0; i < length; i++) {
        size_t from = i;
        if (text[i] == '"')
            for (i++; i < length && text[i] != '"'; i++)
                i += text[i] == '\\';
        else
            for (; i + 1 < length && is_in_word(text[i]) && text[i + 1] != '"'; i++) {
            }
        most = i + 1 - from > most ? i + 1 - from : most;
    }
    return most;
}

typedef struct feed {
    const char *text;
    size_t length, at; /* `at` counts from the beginning of the array */
    size_t other;      /* where the text begins */
} feed;

static char byte_of_first(const feed *f)
{
    return f->at == 0 ? '[' : f->at == f->other - 1 ? ',' : f->at == 1 ? '"' : f->at == f->other - 2 ? '"' : 'x';
}

static size_t give(void *to, size_t room, void *data)
{
    feed *f = data;
    char *bytes = to;
    if (f->at < f->other) {
        if (errno == ENOMEM) /* later it says nothing: malloc sets it too where another way succeeds */
            return 0;
        bytes[0] = byte_of_first(f);
        f->at++;
        return 1;
    }
    size_t done = f->at - f->other, left = f->length - done;
    if (done > f->length)
        return 0;
    size_t count = left < room ? left : room;
    memcpy(bytes, f->text + done, count);
    if (count < room && count == left)
        bytes[count++] = ']';
    f->at += count;
    return count;
}

/* NULL too where the text is wrong in a way that only a reader of the text alone can tell. */
static json_t *load_with_room(feed *f, size_t flags, json_error_t *error)
{
    json_t *both = json_load_callback(give, f, flags & ~(size_t)JSON_DISABLE_EOF_CHECK, error);
    json_t *root = both && json_array_size(both) == 2 ? json_incref(json_array_get(both, 1)) : NULL;
    json_decref(both);
    return root;
}

json_t *gy_json_load(const char *text, size_t length, size_t flags, json_error_t *error)
{
    size_t room = FIRST_ROOM, longest = longest_token(text, length), blank = 0;
    while (blank < length && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    bool container = blank < length && (text[blank] == '{' || text[blank] == '[');
    errno = 0;
    if (!container || longest + 2 < room)
        return json_loadb(text, length, flags, error);
    while (room <= longest + 2 && room < SIZE_MAX / 4)
        room *= 2;
    feed f = { .text = text, .length = length, .other = room / 4 * 3 + 4 };
    json_t *root = load_with_room(&f, flags, error);
    if (!root && errno != ENOMEM)
        return json_loadb(text, length, flags, error);
    if (root)
        error->position = (int)length;
    return root;
}
