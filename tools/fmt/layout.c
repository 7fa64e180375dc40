/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in the layout that `gantry fmt` writes. Keys, numbers and texts stay as they are written: only blanks change. */
#include "layout.h"
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 140, STEP = 2 };

/* A value of the text, with the key before it. Those of one container are a list; all lie in one array, parents first.
 */
typedef struct value {
    const char *key, *at;      /* key: NULL in arrays; at: a scalar's text, or "{" or "[" */
    size_t key_length, length; /* of their texts, in bytes; a container's: 1 */
    size_t width;              /* in columns, the key's included, when all is in one line */
    size_t first, next, last;  /* the values in it and the one behind it, by number; 0: none. `last` is its last one */
    bool sections;             /* it has values on lines of their own, whatever their width */
} value;

typedef struct layout {
    const char *from;
    value *values;
    size_t count, room;
    char *to;
    size_t length, reserved, line; /* line: where in `to` the current one begins */
    bool failed;
} layout;

/* ---- reading: the text was parsed before, so it is JSON ---- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

static const char *skip_scalar(const char *at)
{
    return *at == '"' ? skip_string(at) : at + strcspn(at, " \t\r\n,]}");
}

static size_t columns(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

static size_t new_value(layout *l)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        value *more = realloc(l->values, room * sizeof *more);
        l->failed = l->failed || !more;
        if (!more)
            return 0;
        l->values = more;
        l->room = room;
    }
    l->values[l->count] = (value){ 0 };
    return l->count++;
}

static size_t read_value(layout *l, size_t depth);

static bool is_container(const value *v)
{
    return *v->at == '{' || *v->at == '[';
}

static bool holds_containers(const layout *l, const value *v)
{
    for (size_t i = v->first; i; i = l->values[i].next)
        if (is_container(&l->values[i]))
            return true;
    return false;
}

/* The parts of a file are: all in it; what holds containers right there, as buffers and devices do; lists of nodes. */
static bool has_sections(const layout *l, const value *v, size_t depth)
{
    bool nodes = v->key && v->key_length == strlen("\"nodes\"") && strncmp(v->key, "\"nodes\"", v->key_length) == 0;
    return v->first && (depth == 0 || nodes || (depth == 1 && holds_containers(l, v)));
}

static void read_members(layout *l, size_t at, size_t depth)
{
    const bool object = *l->values[at].at == '{';
    size_t width = object ? 4 : 2; /* "{ " and " }", or brackets */
    l->from = skip_blanks(l->from + 1);
    while (*l->from != '}' && *l->from != ']' && !l->failed) {
        const char *key = object ? l->from : NULL;
        if (key)
            l->from = skip_blanks(skip_blanks(skip_string(key)) + 1); /* behind the colon */
        size_t key_length = key ? (size_t)(skip_string(key) - key) : 0, n = new_value(l);
        if (!n)
            return;
        l->values[n].key = key;
        l->values[n].key_length = key_length;
        l->values[n].width = key ? columns(key, key_length) + 2 : 0;
        read_value(l, depth + 1);
        value *v = &l->values[at];
        width += l->values[n].width + (v->first ? 2 : 0);
        *(v->first ? &l->values[v->last].next : &v->first) = n;
        v->last = n;
        v->sections = v->sections || l->values[n].sections;
        l->from = skip_blanks(l->from);
        l->from = skip_blanks(l->from + (*l->from == ','));
    }
    l->from++;
    l->values[at].width += l->values[at].first ? width : 2;
    l->values[at].sections = l->values[at].sections || has_sections(l, &l->values[at], depth);
}

/* Fills the newest value, and those in it, from l->from. */
static size_t read_value(layout *l, size_t depth)
{
    size_t at = l->count - 1;
    value *v = &l->values[at];
    v->at = l->from = skip_blanks(l->from);
    if (is_container(v)) {
        v->length = 1;
        read_members(l, at, depth);
        return at;
    }
    l->from = skip_scalar(l->from);
    v->length = (size_t)(l->from - v->at);
    v->width += columns(v->at, v->length);
    return at;
}

/* ---- writing ---- */

static void add(layout *l, const char *text, size_t length)
{
    if (l->length + length + 1 > l->reserved && !l->failed) {
        size_t reserved = 2 * (l->length + length + 1);
        char *more = realloc(l->to, reserved);
        l->failed = !more;
        if (more) {
            l->to = more;
            l->reserved = reserved;
        }
    }
    if (l->failed)
        return;
    memcpy(l->to + l->length, text, length);
    l->length += length;
    l->to[l->length] = '\0';
}

static void add_text(layout *l, const char *text)
{
    add(l, text, strlen(text));
}

static void new_line(layout *l, size_t indent)
{
    add_text(l, "\n");
    l->line = l->length;
    while (indent--)
        add_text(l, " ");
}

static size_t column(const layout *l)
{
    return l->to ? columns(l->to + l->line, l->length - l->line) : 0;
}

static void write_value(layout *l, const value *v, size_t indent, size_t behind, size_t depth);

/* Each value on a line of its own. */
static void write_sections(layout *l, const value *v, size_t indent, size_t depth)
{
    for (size_t i = v->first; i; i = l->values[i].next) {
        new_line(l, indent + STEP);
        write_value(l, &l->values[i], indent + STEP, l->values[i].next ? 1 : 0, depth + 1);
        add_text(l, l->values[i].next ? "," : "");
    }
    new_line(l, indent);
}

/* As many values on a line as there is room for; the next line begins below the first value. */
static void write_filled(layout *l, const value *v, size_t indent, size_t behind, size_t depth)
{
    const bool object = *v->at == '{';
    size_t inner = indent + (object ? STEP : 1), closing = behind + (object ? 2 : 1);
    add_text(l, object ? " " : "");
    for (size_t i = v->first; i; i = l->values[i].next) {
        const value *in = &l->values[i];
        size_t after = in->next ? 1 : closing;
        bool fits = in->sections || column(l) + in->width + after + (i != v->first) <= WIDTH;
        if (i != v->first && !fits)
            new_line(l, inner);
        else if (i != v->first)
            add_text(l, " ");
        write_value(l, in, in->sections ? indent : inner, after, depth + 1);
        add_text(l, in->next ? "," : "");
    }
    add_text(l, object ? " " : "");
}

/* From the column at hand on, with `behind` columns to follow it. Lines that it needs begin at `indent`. */
static void write_value(layout *l, const value *v, size_t indent, size_t behind, size_t depth)
{
    if (v->key) {
        add(l, v->key, v->key_length);
        add_text(l, ": ");
    }
    add(l, v->at, v->length);
    if (!is_container(v))
        return;
    if (has_sections(l, v, depth))
        write_sections(l, v, indent, depth);
    else if (v->first)
        write_filled(l, v, indent, behind, depth);
    add_text(l, *v->at == '{' ? "}" : "]");
}

char *layout_json(const char *text, size_t *length)
{
    layout l = { .from = text };
    new_value(&l);
    if (!l.failed)
        read_value(&l, 0);
    if (!l.failed)
        write_value(&l, &l.values[0], 0, 0, 0);
    add_text(&l, "\n");
    free(l.values);
    if (l.failed) {
        free(l.to);
        l.to = NULL;
    }
    *length = l.length;
    return l.to;
}
