/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to regions:   x   x[i]   x[a:b]   x{a:b}   x[i]~h   x[i]~a:b   A[i][j]   A[i][*]   A[a:b][j][k]
 * where i, j, a, b and h are expressions. clamp(...) around a reference, or around what is in a bracket, keeps parts,
 * rows and tiles that lie outside the buffer inside it: an index becomes the nearest one, a range is cut. With three
 * arguments it is the function of expressions.
 */
#include "graph/json/json_read.h"

#include <string.h>

typedef struct bound {
    int64_t number;
    const gy_expr *expr; /* NULL: the number */
} bound;

/* first, or first:last, or all of them. */
typedef struct span {
    bound first, last;
    bool range, all, clamp;
} span;

typedef struct reference {
    const gantry_region *bound; /* rows that the name stands for; NULL: a buffer */
    gantry_buffer buffer;
    gantry_region_kind kind;
    int axes; /* tiles: how many there are of them */
    span span[GANTRY_TILE_AXES];
    int halos; /* 1, or of tiles one for each axis; 0: none */
    bound before[GANTRY_TILE_AXES], after[GANTRY_TILE_AXES];
} reference;

/* Characters of a string that are still to be read. */
typedef struct rest {
    const char *at;
    size_t length;
} rest;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static rest trim(rest s)
{
    while (s.length > 0 && is_blank(s.at[0])) {
        s.at++;
        s.length--;
    }
    while (s.length > 0 && is_blank(s.at[s.length - 1]))
        s.length--;
    return s;
}

static rest skip(rest s, size_t count)
{
    return trim((rest){ s.at + count, s.length - count });
}

/* Where `c` is outside of parentheses, or `length`. */
static size_t find_outside(rest s, char c)
{
    int depth = 0;
    for (size_t i = 0; i < s.length; i++) {
        if (s.at[i] == c && depth == 0)
            return i;
        depth += s.at[i] == '(' ? 1 : s.at[i] == ')' ? -1 : 0;
    }
    return s.length;
}

/* Takes "clamp(" and its ")" off; false if they are not around the whole. */
static bool unwrap_clamp(rest *s)
{
    if (s->length < 7 || strncmp(s->at, "clamp(", 6) != 0 || s->at[s->length - 1] != ')')
        return false;
    rest inside = { s->at + 6, s->length - 7 };
    if (find_outside(inside, ')') < inside.length)
        return false; /* the parenthesis ends earlier */
    *s = trim(inside);
    return true;
}

static gantry_status fail_form(gy_reader *r, const gy_json_at *at, const char *what)
{
    return gy_read_fail(r, at, "\"%s\" is not a reference: %s", json_string_value(at->value), what);
}

/* ---- reading ---- */

static gantry_status read_bound(gy_reader *r, const gy_json_at *at, rest s, bound *out)
{
    s = trim(s);
    *out = (bound){ 0, NULL };
    size_t digits = 0;
    while (digits < s.length && digits < 18 && s.at[digits] >= '0' && s.at[digits] <= '9')
        out->number = out->number * 10 + (s.at[digits++] - '0');
    if (digits == s.length && digits > 0)
        return GANTRY_OK;
    if (s.length == 0)
        return fail_form(r, at, "a number or expression is missing");
    return gy_read_compile(r, at, s.at, s.length, NULL, &out->expr);
}

static gantry_status read_span(gy_reader *r, const gy_json_at *at, rest s, span *out)
{
    *out = (span){ .range = false };
    s = trim(s);
    if (s.length == 1 && s.at[0] == '*') {
        out->all = true;
        return GANTRY_OK;
    }
    rest inside = s;
    if (unwrap_clamp(&inside) && find_outside(inside, ',') == inside.length) {
        out->clamp = true;
        s = inside;
    }
    size_t colon = find_outside(s, ':');
    gantry_status status = read_bound(r, at, (rest){ s.at, colon }, &out->first);
    if (!status && colon < s.length) {
        out->range = true;
        status = read_bound(r, at, (rest){ s.at + colon + 1, s.length - colon - 1 }, &out->last);
    }
    return status;
}

static gantry_status read_halo_of_axis(gy_reader *r, const gy_json_at *at, rest s, bound *before, bound *after)
{
    size_t colon = find_outside(s, ':');
    gantry_status status = read_bound(r, at, (rest){ s.at, colon }, before);
    *after = *before;
    if (!status && colon < s.length)
        status = read_bound(r, at, (rest){ s.at + colon + 1, s.length - colon - 1 }, after);
    return status;
}

static gantry_status read_halo(gy_reader *r, const gy_json_at *at, rest s, reference *out)
{
    int most = out->kind == GANTRY_TILES ? GANTRY_TILE_AXES : 1;
    for (size_t comma;; s = skip(s, comma + 1)) {
        if (out->halos == most)
            return fail_form(
                r, at, most > 1 ? "it has more halos than tiles can have axes, 4" : "it has a halo for one axis only");
        comma = find_outside(s, ',');
        GY_TRY(read_halo_of_axis(r, at, (rest){ s.at, comma }, &out->before[out->halos], &out->after[out->halos]));
        out->halos++;
        if (comma == s.length)
            return GANTRY_OK;
    }
}

/* The text between the bracket that `s` begins with and its partner; *s goes on behind the partner. */
static gantry_status take_bracket(gy_reader *r, const gy_json_at *at, rest *s, char close, rest *inside)
{
    size_t end = find_outside(*s, close);
    if (end == s->length)
        return fail_form(r, at, close == ']' ? "a ] is missing" : "a } is missing");
    *inside = (rest){ s->at + 1, end - 1 };
    *s = skip(*s, end + 1);
    return GANTRY_OK;
}

static gantry_status read_brackets(gy_reader *r, const gy_json_at *at, rest *s, reference *out)
{
    while (s->length > 0 && s->at[0] == '[') {
        rest inside;
        if (out->axes == GANTRY_TILE_AXES)
            return fail_form(r, at, "it has more brackets than tiles can have axes, 4");
        GY_TRY(take_bracket(r, at, s, ']', &inside));
        GY_TRY(read_span(r, at, inside, &out->span[out->axes++]));
    }
    bool tiled = r->graph->buffers.at[out->buffer.id].tiles[0] != 0;
    out->kind = tiled || out->axes > 1 ? GANTRY_TILES : GANTRY_PARTS;
    return GANTRY_OK;
}

static gantry_status read_rows(gy_reader *r, const gy_json_at *at, rest *s, reference *out)
{
    rest inside;
    gantry_status status = take_bracket(r, at, s, '}', &inside);
    out->kind = GANTRY_ROWS;
    if (!status)
        status = read_span(r, at, inside, &out->span[0]);
    if (!status && !out->span[0].range)
        return fail_form(r, at, "rows are given as {first:last}, without the last");
    return status;
}

static gantry_status read_reference(gy_reader *r, const gy_json_at *at, reference *out)
{
    rest s = trim((rest){ json_string_value(at->value), json_string_length(at->value) });
    memset(out, 0, sizeof *out);
    bool clamp = unwrap_clamp(&s);
    size_t name = strcspn(s.at, "[{~ \t)");
    name = name < s.length ? name : s.length;
    const gy_meaning *b = gy_read_meaning(r, s.at, name);
    if (b && !b->is_number && b->region.kind != GANTRY_ALL) {
        out->bound = &b->region;
        return s.length == name
                   ? GANTRY_OK
                   : gy_read_fail(r, at, "\"%s\" stands for rows of another buffer, so it can only be named whole",
                                  b->name);
    }
    gantry_status status = gy_read_buffer_named(r, at, s.at, name, &out->buffer);
    s = skip(s, name);
    if (!status && s.length > 0 && s.at[0] == '[')
        status = read_brackets(r, at, &s, out);
    else if (!status && s.length > 0 && s.at[0] == '{')
        status = read_rows(r, at, &s, out);
    if (!status && s.length > 0 && s.at[0] == '~') {
        status = read_halo(r, at, skip(s, 1), out);
        s.length = 0;
    }
    if (!status && s.length > 0)
        return fail_form(r, at, "write x, x[i], x[a:b], x{a:b}, x[i]~halo or A[i][j]");
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        out->span[k].clamp = out->span[k].clamp || clamp;
    return status;
}

/* ---- values ---- */

static gantry_status bound_value(gy_reader *r, const gy_json_at *at, const bound *b, int64_t *out)
{
    if (!b->expr) {
        *out = b->number;
        return GANTRY_OK;
    }
    return gy_read_evaluate(r, at, b->expr, out);
}

static int64_t cut(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* `count`: how many of them the buffer has. */
static gantry_status span_value(gy_reader *r, const gy_json_at *at, const span *s, int64_t count, int64_t *first,
                                int64_t *last)
{
    if (s->all) {
        *first = 0;
        *last = count;
        return GANTRY_OK;
    }
    gantry_status status = bound_value(r, at, &s->first, first);
    if (status)
        return status;
    if (!s->range) {
        *first = s->clamp ? cut(*first, 0, count - 1) : *first;
        *last = *first < INT64_MAX ? *first + 1 : *first;
        return GANTRY_OK;
    }
    status = bound_value(r, at, &s->last, last);
    if (!status && s->clamp) {
        *first = cut(*first, 0, count);
        *last = cut(*last, *first, count);
    }
    return status;
}

static gantry_status tiles_of(gy_reader *r, const gy_json_at *at, const reference *ref, gantry_region *out)
{
    const gy_buffer *b = &r->graph->buffers.at[ref->buffer.id];
    int64_t first[GANTRY_TILE_AXES] = { 0 }, last[GANTRY_TILE_AXES] = { 0 };
    for (int k = 0; k < ref->axes; k++)
        GY_TRY(span_value(r, at, &ref->span[k], b->tiles[k], &first[k], &last[k]));
    *out = ref->axes == 2 ? gantry_tiles(ref->buffer, first[0], last[0], first[1], last[1])
                          : gantry_tiles_by_axis(ref->buffer, ref->axes, first, last);
    return GANTRY_OK;
}

static gantry_status region_of(gy_reader *r, const gy_json_at *at, const reference *ref, gantry_region *out)
{
    if (ref->bound) {
        *out = *ref->bound;
        return GANTRY_OK;
    }
    const gy_buffer *b = &r->graph->buffers.at[ref->buffer.id];
    gantry_region region = gantry_region_make(ref->buffer, ref->kind, 0, 0);
    gantry_status status = GANTRY_OK;
    if (ref->kind == GANTRY_TILES) {
        status = tiles_of(r, at, ref, &region);
    } else if (ref->kind != GANTRY_ALL) {
        status = span_value(r, at, &ref->span[0], ref->kind == GANTRY_ROWS ? b->rows : b->parts, &region.first,
                            &region.last);
    }
    if (!status && ref->halos > b->rank && ref->halos > 1)
        status =
            gy_read_fail(r, at, "\"%s\" has a halo for %d axes, and \"%s\" has %d: give one for each, or one for all",
                         json_string_value(at->value), ref->halos, b->name, (int)b->rank);
    for (int k = 0; k < ref->halos && !status; k++) {
        int64_t before = 0, after = 0;
        status = bound_value(r, at, &ref->before[k], &before);
        status = status ? status : bound_value(r, at, &ref->after[k], &after);
        region = ref->halos > 1 ? gantry_halo_axis(region, k, before, after) : gantry_halo(region, before, after);
    }
    if (!status)
        *out = region;
    return status;
}

gantry_status gy_read_region(gy_reader *r, const gy_json_at *at, gantry_region *out)
{
    if (!json_is_string(at->value))
        return gy_read_kind(r, at, "a reference such as \"x[i]\"");
    const reference *known = gy_read_known(r, at->value);
    if (known)
        return region_of(r, at, known, out);
    reference made;
    gantry_status status = read_reference(r, at, &made);
    if (!status && r->index.count > 0) {
        reference *kept = gy_arena_alloc(&r->graph->arena, sizeof *kept);
        if (!kept)
            return gy_read_nomem(r);
        *kept = made;
        status = gy_read_remember(r, at->value, kept);
    }
    return status ? status : region_of(r, at, &made, out);
}

gantry_status gy_read_find_buffer(gy_reader *r, const char *name, size_t length, gantry_buffer *out)
{
    char room[256];
    const gy_meaning *m = gy_read_meaning(r, name, length);
    *out = (gantry_buffer){ GANTRY_NONE, 0 };
    if (m) {
        *out = m->is_number ? *out : m->region.buffer;
        return GANTRY_OK;
    }
    const char *prefix = r->scope ? r->scope->buffer_prefix : "";
    size_t before = strlen(prefix), all = before + length + 1;
    char *text = all <= sizeof room ? room : gy_arena_alloc(&r->graph->arena, all);
    if (!text)
        return gy_read_nomem(r);
    memcpy(text, prefix, before);
    memcpy(text + before, name, length);
    text[all - 1] = '\0';
    *out = gantry_graph_find_buffer(r->graph, text);
    return GANTRY_OK;
}

gantry_status gy_read_buffer_named(gy_reader *r, const gy_json_at *at, const char *name, size_t length,
                                   gantry_buffer *out)
{
    if (length == 0)
        return gy_read_fail(r, at, "\"%s\" does not begin with the name of a buffer", json_string_value(at->value));
    const gy_meaning *b = gy_read_meaning(r, name, length);
    if (b && !b->is_number && b->region.kind != GANTRY_ALL)
        return gy_read_fail(r, at, "\"%s\" stands for rows of another buffer, and a whole buffer is wanted", b->name);
    GY_TRY(gy_read_find_buffer(r, name, length, out));
    if (out->id != GANTRY_NONE)
        return GANTRY_OK;
    const char *text = gy_arena_strndup(&r->graph->arena, name, length);
    if (!text)
        return gy_read_nomem(r);
    gy_near near = { 0 };
    json_t *names = gy_read_open(r->all_buffers);
    for (void *i = json_object_iter(names); i; i = json_object_iter_next(names, i))
        gy_near_offer(&near, text, json_object_iter_key(i));
    return near.best ? gy_read_fail(r, at, "no buffer \"%s\" (did you mean \"%s\"?)", text, near.best)
                     : gy_read_fail(r, at, "no buffer \"%s\": add it to \"buffers\"", text);
}
