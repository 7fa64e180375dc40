/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of a region, and the text by which the graph format names a region. */
#include "graph/graph.h"
#include <string.h>

static int64_t part_size(int64_t n, int64_t p, int64_t i)
{
    return gy_part_bound(n, p, i + 1) - gy_part_bound(n, p, i);
}

void gy_tile_index(const gy_buffer *buffer, int64_t tile, int64_t index[GANTRY_TILE_AXES])
{
    for (int k = GANTRY_TILE_AXES - 1; k > 0; k--) {
        index[k] = tile % buffer->tiles[k];
        tile /= buffer->tiles[k];
    }
    index[0] = tile;
}

int64_t gy_tile_number(const gy_buffer *buffer, const int64_t index[GANTRY_TILE_AXES])
{
    int64_t tile = index[0];
    for (int k = 1; k < GANTRY_TILE_AXES; k++)
        tile = tile * buffer->tiles[k] + index[k];
    return tile;
}

int64_t gy_tile_bound(const gy_buffer *buffer, int axis, int64_t index)
{
    return gy_part_bound(buffer->shape[axis], buffer->tiles[axis], index);
}

/* Along each axis tiles differ by at most one, the smaller first; with a halo also by what they have before and after.
 */
const int64_t *gy_tile_shape(const gy_buffer *buffer, int64_t tile)
{
    int64_t index[GANTRY_TILE_AXES];
    size_t shape = 0;
    gy_tile_index(buffer, tile, index);
    for (int k = 0; k < buffer->rank; k++) {
        int64_t n = buffer->shape[k], p = buffer->tiles[k];
        shape = 2 * shape + (part_size(n, p, index[k]) > n / p);
        if (buffer->halo)
            shape = 4 * shape + (index[k] > 0 ? 2 : 0) + (index[k] < p - 1);
    }
    return buffer->tile_shape + shape * (size_t)buffer->rank;
}

bool gy_tiles_alike(const gy_buffer *a, int64_t tile_of_a, const gy_buffer *b, int64_t tile_of_b)
{
    return a->rank == b->rank &&
           memcmp(gy_tile_shape(a, tile_of_a), gy_tile_shape(b, tile_of_b), (size_t)a->rank * sizeof(int64_t)) == 0;
}

/* "[3]", "[1:4]". */
static void add_range(gy_text *to, int64_t first, int64_t last)
{
    if (last == first + 1)
        gy_text_printf(to, "[%lld]", (long long)first);
    else
        gy_text_printf(to, "[%lld:%lld]", (long long)first, (long long)last);
}

/* The box of tiles from `first` up to `last`, row by row. */
static void add_tiles(gy_text *to, const gy_buffer *b, int64_t first, int64_t last)
{
    int64_t low[GANTRY_TILE_AXES], high[GANTRY_TILE_AXES];
    gy_tile_index(b, first, low);
    gy_tile_index(b, last - 1, high);
    for (int k = 0; k < b->rank; k++)
        if (first == last)
            gy_text_add(to, "[0:0]");
        else
            add_range(to, low[k], high[k] + 1);
}

void gy_access_text(gy_text *to, const gantry_graph *graph, const gy_access *access)
{
    const gy_buffer *b = &graph->buffers.at[access->buffer];
    int64_t first = access->first + access->before, last = access->last - access->after;
    gy_text_add(to, b->name);
    if (b->tiles[0]) {
        if (access->is_list || access->part >= 0)
            add_tiles(to, b, access->first, access->last);
        return;
    }
    if (access->part >= 0)
        add_range(to, access->part, access->part_last);
    else if (first != 0 || last != b->rows)
        gy_text_printf(to, "{%lld:%lld}", (long long)first, (long long)last);
    long long before = (long long)access->before + access->cut_before;
    long long after = (long long)access->after + access->cut_after;
    if (before != 0 && before == after)
        gy_text_printf(to, "~%lld", before);
    else if (before || after)
        gy_text_printf(to, "~%lld:%lld", before, after);
}

void gy_rows_text(gy_text *to, const gantry_graph *graph, uint32_t buffer, int64_t first, int64_t last)
{
    bool tiled = graph->buffers.at[buffer].tiles[0] != 0;
    gy_access rows = { .buffer = buffer, .first = first, .last = tiled ? first + 1 : last, .part = tiled ? 0 : -1 };
    gy_access_text(to, graph, &rows);
}

uint32_t gy_access_list_text(gy_text *to, const gantry_graph *graph, const gy_access *access, uint32_t count)
{
    uint32_t used = 1;
    while (access->is_list && used < count && access[used].is_list && access[used].arg == access->arg)
        used++;
    if (used == 1) {
        gy_access_text(to, graph, access);
        return 1;
    }
    const gy_buffer *b = &graph->buffers.at[access->buffer];
    gy_text_add(to, b->name);
    add_tiles(to, b, access->first, access[used - 1].last);
    return used;
}
