/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers that A[i][j]~1 stands for: tiles with their halo, and what goes between tiles. */
#include "graph/build/build_state.h"
#include "graph/halo.h"
#include <string.h>

/* ---- a buffer of tiles with a halo ---- */

static bool fail_width(gantry_graph *g, const gy_buffer *b, int axis, int64_t width, int64_t most)
{
    gy_graph_mistake(
        g, GANTRY_E_GRAPH,
        "the halo of a tile of \"%s\" is %lld elements along axis %d; 0 to %lld are allowed, what every tile has "
        "there: take a narrower halo or fewer tiles",
        b->name, (long long)width, axis, (long long)most);
    return false;
}

/* Neighbours have all that is wanted, so that no piece comes from further away. Along an axis that is not cut there are
 * none. */
static bool check_widths(gantry_graph *g, const gy_buffer *b, gy_halo *halo)
{
    for (int k = 0; k < GANTRY_TILE_AXES; k++) {
        int64_t least = k < b->rank ? b->shape[k] / b->tiles[k] : 0;
        least = least < GY_HALO_MOST ? least : GY_HALO_MOST;
        for (int side = 0; side < 2; side++) {
            int64_t *width = side ? &halo->after[k] : &halo->before[k];
            if (k < b->rank && (*width < 0 || (b->tiles[k] > 1 && *width > least)))
                return fail_width(g, b, k, *width, b->tiles[k] > 1 ? least : GY_HALO_MOST);
            *width = b->tiles[k] > 1 ? *width : 0;
        }
    }
    if (b->bytes >> 55 == 0)
        return true;
    gy_graph_mistake(g, GANTRY_E_GRAPH,
                     "\"%s\" has %llu bytes, too many for tiles with a halo; at most 2^55 are allowed", b->name,
                     (unsigned long long)b->bytes);
    return false;
}

/* Gives a tiled buffer that was just made its halo. */
static bool set_halo(gantry_graph *g, gy_buffer *b, const gy_halo *halo)
{
    gy_halo *mine = gy_arena_alloc(&g->arena, sizeof *mine);
    if (!mine) {
        gy_build_nomem(g);
        return false;
    }
    *mine = *halo;
    b->halo = mine;
    return gy_build_measure_tiles(g, b);
}

void gy_buffer_halo(gantry_graph *graph, gantry_buffer buffer, const int64_t *before, const int64_t *after)
{
    gy_buffer *b = gy_building(graph) ? gy_build_buffer(graph, buffer) : NULL;
    if (!b)
        return;
    gy_halo halo = { .source = GY_NONE, .edges = GY_NONE };
    memcpy(halo.before, before, sizeof halo.before);
    memcpy(halo.after, after, sizeof halo.after);
    if (b->tiles[0] == 0 || b->used_)
        gy_graph_mistake(graph, GANTRY_E_GRAPH, "buffer \"%s\" has a halo and %s", b->name,
                         b->used_ ? "was used before; say it before its first use" : "is not cut into tiles; cut it");
    else if (check_widths(graph, b, &halo))
        set_halo(graph, b, &halo);
}

/* ---- A[i][j]~1 ---- */

/* "1"; "1-0_2-2" where sides or axes differ. */
static void add_widths(gy_text *to, const gy_halo *halo, int rank)
{
    bool even = true;
    for (int k = 0; k < rank; k++)
        even = even && halo->before[k] == halo->before[0] && halo->after[k] == halo->before[0];
    for (int k = 0; k < (even ? 1 : rank); k++) {
        gy_text_printf(to, "%s%lld", k ? "_" : "", (long long)halo->before[k]);
        if (!even)
            gy_text_printf(to, "-%lld", (long long)halo->after[k]);
    }
}

/* A new temporary buffer "NAME.WHAT1". */
static uint32_t add_temporary(gantry_graph *g, uint32_t of, const char *what, const gy_halo *halo, int rank,
                              const int64_t *shape)
{
    const gy_buffer *source = &g->buffers.at[of];
    gy_text suffix = { 0 };
    gy_text_add(&suffix, what);
    add_widths(&suffix, halo, source->rank);
    gantry_buffer made = { GANTRY_NONE, 0 };
    if (suffix.failed)
        gy_build_nomem(g);
    else
        made = gy_build_beside(g, of, suffix.at, source->dtype, rank, shape);
    gy_text_free(&suffix);
    return made.id;
}

/* Where the pieces of each tile begin; the elements of all of them are the last entry. */
static int64_t *count_edges(gantry_graph *g, const gy_buffer *b)
{
    int64_t *edge = gy_arena_calloc(&g->arena, (size_t)b->rows + 1, sizeof *edge);
    if (!edge)
        gy_build_nomem(g);
    for (int64_t t = 0; edge && t < b->rows; t++) {
        gy_halo_piece piece[GY_HALO_PIECES];
        int count = gy_halo_pieces(b, t, piece);
        edge[t + 1] = edge[t] + (count ? piece[count - 1].first + piece[count - 1].count : 0);
    }
    return edge;
}

static uint32_t make_halo(gantry_graph *g, uint32_t source, gy_halo *halo)
{
    const gy_buffer *b = &g->buffers.at[source];
    int rank = b->rank;
    int64_t shape[GANTRY_TILE_AXES], tiles[GANTRY_TILE_AXES];
    memcpy(shape, b->shape, (size_t)rank * sizeof *shape);
    memcpy(tiles, b->tiles, sizeof tiles);
    uint32_t made = add_temporary(g, source, "halo", halo, rank, shape);
    if (made == GANTRY_NONE)
        return GY_NONE;
    (gantry_buffer_tiles_by_axis)(g, (gantry_buffer){ made, g->number }, rank, tiles);
    if (g->error.status || !set_halo(g, &g->buffers.at[made], halo))
        return GY_NONE;
    int64_t *edge = count_edges(g, &g->buffers.at[made]);
    if (!edge)
        return GY_NONE;
    halo->edges = add_temporary(g, source, "edges", halo, 1, &edge[g->buffers.at[made].rows]);
    if (halo->edges == GANTRY_NONE)
        return GY_NONE;
    gy_buffer *boxes = &g->buffers.at[made];
    halo->edge = edge;
    *(gy_halo *)(uintptr_t)boxes->halo = *halo; /* which set_halo has just made */
    boxes->used_ = g->buffers.at[halo->edges].used_ = true;
    g->build_->halos++;
    return made;
}

static bool is_none(const gy_halo *halo)
{
    bool none = true;
    for (int k = 0; k < GANTRY_TILE_AXES; k++)
        none = none && halo->before[k] == 0 && halo->after[k] == 0;
    return none;
}

/* As the region has them: see GANTRY_TILES_BY_AXIS. */
static gy_halo named_halo(const gantry_region *r, uint32_t source)
{
    gy_halo halo = { .source = source, .edges = GY_NONE };
    for (int k = 0; k < GANTRY_TILE_AXES; k++) {
        bool packed = r->kind == GANTRY_TILES_BY_AXIS;
        halo.before[k] = packed ? (int64_t)((uint64_t)r->before >> 16 * k & UINT16_MAX) : r->before;
        halo.after[k] = packed ? (int64_t)((uint64_t)r->after >> 16 * k & UINT16_MAX) : r->after;
    }
    return halo;
}

uint32_t gy_build_halo(gantry_graph *graph, const gantry_region *region)
{
    uint32_t source = region->buffer.id;
    const gy_buffer *b = &graph->buffers.at[source];
    gy_halo halo = named_halo(region, source);
    if (region->kind == GANTRY_ALL || gy_region_tiles(b, region) != 1 || b->halo) {
        if (b->halo)
            gy_graph_mistake(graph, GANTRY_E_GRAPH,
                             "a halo around a tile of \"%s\", whose tiles have one; leave it out", b->name);
        else
            gy_graph_mistake(graph, GANTRY_E_GRAPH,
                             "a halo around several tiles of \"%s\"; name one tile, as %s[0]%s~1", b->name, b->name,
                             b->rank > 1 ? "[0]" : "");
        return GY_NONE;
    }
    if (!check_widths(graph, b, &halo))
        return GY_NONE;
    if (is_none(&halo))
        return source;
    for (uint32_t i = source + 1; i < graph->buffers.count; i++) {
        const gy_halo *other = graph->buffers.at[i].halo;
        if (other && other->source == source && memcmp(other->before, halo.before, sizeof halo.before) == 0 &&
            memcmp(other->after, halo.after, sizeof halo.after) == 0)
            return i;
    }
    return make_halo(graph, source, &halo);
}
