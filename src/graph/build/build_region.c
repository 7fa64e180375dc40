/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a region: from the parts, rows or tiles that name it to rows of the buffer. */
#include "graph/build/build_state.h"

#include <stdio.h>

static bool resolve_parts(gantry_graph *g, const gy_buffer *b, const gantry_region *r, gy_access *out)
{
    long long first = r->first, last = r->last, parts = b->parts;
    if (parts == 0) {
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "buffer \"%s\" is not split, so %s[%lld] names no part; split it, or name rows as %s{a:b}",
                         b->name, b->name, first, b->name);
        return false;
    }
    if (first < INT64_MAX && last == first + 1 && (first < 0 || first >= parts)) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s[%lld] is out of range: \"%s\" has parts 0 to %lld", b->name, first,
                         b->name, parts - 1);
        return false;
    }
    if (first < 0 || last > parts || first > last) {
        char rows[80] = "";
        if (0 <= first && first <= last && last <= b->rows && !b->split_auto)
            snprintf(rows, sizeof rows, "; where rows are meant, write {%lld:%lld}", first, last);
        gy_graph_mistake(
            g, GANTRY_E_GRAPH,
            "%s[%lld:%lld] is out of range: \"%s\" has %lld parts, and the first may not be behind the last%s", b->name,
            first, last, b->name, parts, rows);
        return false;
    }
    out->first = b->part_first[first];
    out->last = b->part_first[last];
    out->part = (int32_t)first;
    out->part_last = (int32_t)last;
    return true;
}

static bool resolve_rows(gantry_graph *g, const gy_buffer *b, const gantry_region *r, gy_access *out)
{
    long long first = r->first, last = r->last;
    if (b->split_auto || b->tiles[0]) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "%s{%lld:%lld} names rows, but \"%s\" is %s; name %s", b->name, first, last,
                         b->name, b->tiles[0] ? "cut into tiles" : "split where the scheduler chooses",
                         b->tiles[0] ? "tiles" : "parts");
        return false;
    }
    if (first < 0 || last > b->rows || first > last) {
        gy_graph_mistake(
            g, GANTRY_E_GRAPH,
            "%s{%lld:%lld} is out of range: \"%s\" has %lld rows, and the first may not be behind the last", b->name,
            first, last, b->name, (long long)b->rows);
        return false;
    }
    out->first = first;
    out->last = last;
    return true;
}

/* ---- tiles ---- */

static int named_axes(const gantry_region *r)
{
    return r->kind == GANTRY_ALL ? 0 : r->kind == GANTRY_TILES ? 2 : r->ndim;
}

/* As the region has them: see GANTRY_TILES_BY_AXIS. */
static gy_tile_spans named_spans(const gantry_region *r)
{
    gy_tile_spans at = { { r->first, r->first2 }, { r->last, r->last2 } };
    if (r->kind != GANTRY_TILES_BY_AXIS)
        return at;
    int64_t packed[GANTRY_TILE_AXES] = { r->first, r->last, r->first2, r->last2 };
    for (int k = 0; k < GANTRY_TILE_AXES; k++) {
        at.first[k] = packed[k] >> 32;
        at.last[k] = (int32_t)(uint32_t)packed[k];
    }
    return at;
}

void gy_region_spans(gy_tile_spans *to, const gy_buffer *b, const gantry_region *r)
{
    *to = named_spans(r);
    for (int k = named_axes(r); k < GANTRY_TILE_AXES; k++) {
        to->first[k] = 0;
        to->last[k] = b->tiles[k];
    }
}

int64_t gy_region_tiles(const gy_buffer *b, const gantry_region *r)
{
    gy_tile_spans at;
    int64_t tiles = 1;
    gy_region_spans(&at, b, r);
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        tiles *= at.last[k] - at.first[k];
    return tiles;
}

/* "A[1][0:2]" as it was named. */
static void add_named(gy_text *to, const gy_buffer *b, const gantry_region *r, bool ranges)
{
    gy_tile_spans at = named_spans(r);
    gy_text_add(to, b->name);
    for (int k = 0; k < named_axes(r); k++) {
        gy_text_printf(to, "[%lld", (long long)at.first[k]);
        if (ranges)
            gy_text_printf(to, ":%lld", (long long)at.last[k]);
        gy_text_add(to, "]");
    }
}

static bool fail_tiles(gantry_graph *g, const gy_buffer *b, const gantry_region *r, bool ranges, const char *what)
{
    gy_text text = { 0 };
    add_named(&text, b, r, ranges);
    gy_text_printf(&text, " is out of range: \"%s\" has ", b->name);
    for (int k = 0; k < b->rank && b->tiles[0]; k++)
        gy_text_printf(&text, "%s%lld", k ? " x " : "", (long long)b->tiles[k]);
    gy_graph_mistake(g, GANTRY_E_GRAPH, "%s tiles%s", text.failed ? "tiles are out of range" : text.at, what);
    gy_text_free(&text);
    return false;
}

static bool fail_not_tiled(gantry_graph *g, const gy_buffer *b, const gantry_region *r)
{
    gy_text text = { 0 };
    add_named(&text, b, r, false);
    gy_graph_mistake(g, GANTRY_E_GRAPH, "buffer \"%s\" is not cut into tiles, so %s names none; cut it first", b->name,
                     text.failed ? b->name : text.at);
    gy_text_free(&text);
    return false;
}

static bool check_tiles(gantry_graph *g, const gy_buffer *b, const gantry_region *r)
{
    if (b->tiles[0] == 0)
        return fail_not_tiled(g, b, r);
    if (named_axes(r) > b->rank)
        return fail_tiles(g, b, r, false, ", and as many axes");
    gy_tile_spans at;
    gy_region_spans(&at, b, r);
    for (int k = 0; k < b->rank; k++) {
        if (at.first[k] < 0 || at.last[k] > b->tiles[k] || at.first[k] > at.last[k])
            return fail_tiles(g, b, r, true, "");
        if (k >= named_axes(r) && b->tiles[k] > 1)
            return fail_tiles(g, b, r, false, ", and each axis that is cut is named");
    }
    return true;
}

static uint16_t cut_off(int64_t rows)
{
    return rows < GY_CUT_MOST ? (uint16_t)rows : GY_CUT_MOST;
}

/* Rows before and after, cut at the ends of the buffer. An empty region stays empty, since its halo has no use. */
static bool add_halo(gantry_graph *g, const gy_buffer *b, const gantry_region *r, gy_access *out)
{
    if (b->tiles[0] && (r->before || r->after)) {
        out->buffer = gy_build_halo(g, r);
        return out->buffer != GY_NONE;
    }
    if (r->before < 0 || r->after < 0) {
        gy_graph_mistake(g, GANTRY_E_GRAPH,
                         "the halo of \"%s\" is %lld rows before and %lld after; neither may be negative", b->name,
                         (long long)r->before, (long long)r->after);
        return false;
    }
    if (out->first == out->last)
        return true;
    int64_t before = r->before < out->first ? r->before : out->first;
    int64_t after = r->after < b->rows - out->last ? r->after : b->rows - out->last;
    if (before > INT32_MAX || after > INT32_MAX) {
        gy_graph_mistake(g, GANTRY_E_GRAPH, "the halo of \"%s\" is %lld rows; at most 2147483647 are allowed", b->name,
                         (long long)(before > after ? before : after));
        return false;
    }
    out->first -= before;
    out->last += after;
    out->before = (int32_t)before;
    out->after = (int32_t)after;
    if (b->split_auto && out->part >= 0) {
        out->cut_before = cut_off(r->before - before);
        out->cut_after = cut_off(r->after - after);
    }
    return true;
}

bool gy_region_resolve(gantry_graph *graph, const gantry_region *region, gy_access *out)
{
    gy_buffer *b = gy_build_buffer(graph, region->buffer);
    if (!b)
        return false;
    int most = region->kind == GANTRY_TILES_BY_AXIS ? GANTRY_TILE_AXES : 1;
    if (region->ndim < 1 || region->ndim > most) {
        gy_graph_mistake(graph, GANTRY_E_UNSUPPORTED, "a region of \"%s\" has ndim %d; it must be %s", b->name,
                         (int)region->ndim, most > 1 ? "1 to 4" : "1");
        return false;
    }
    b->used_ = true;
    gy_access a = { .buffer = region->buffer.id, .last = b->rows, .part = -1, .part_last = -1 };
    bool ok = true;
    switch (region->kind) {
    case GANTRY_ALL:
        break;
    case GANTRY_PARTS:
        ok = resolve_parts(graph, b, region, &a);
        break;
    case GANTRY_ROWS:
        ok = resolve_rows(graph, b, region, &a);
        break;
    case GANTRY_TILES:
    case GANTRY_TILES_BY_AXIS:
        ok = check_tiles(graph, b, region);
        break;
    default:
        gy_graph_mistake(graph, GANTRY_E_INVALID, "a region of \"%s\" is of unknown kind %d", b->name,
                         (int)region->kind);
        ok = false;
    }
    if (!ok || !add_halo(graph, b, region, &a))
        return false;
    *out = a;
    return true;
}
