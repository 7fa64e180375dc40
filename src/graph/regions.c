/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of a region, and the texts by which people and the graph format name regions. */
#include "graph/graph.h"
#include <string.h>

static int64_t part_size(int64_t n, int64_t p, int64_t i)
{
    return gy_part_bound(n, p, i + 1) - gy_part_bound(n, p, i);
}

static void tile_index(const int64_t tiles[GANTRY_TILE_AXES], int64_t tile, int64_t index[GANTRY_TILE_AXES])
{
    for (int k = GANTRY_TILE_AXES - 1; k > 0; k--) {
        index[k] = tile % tiles[k];
        tile /= tiles[k];
    }
    index[0] = tile;
}

void gy_tile_index(const gy_buffer *buffer, int64_t tile, int64_t index[GANTRY_TILE_AXES])
{
    tile_index(buffer->tiles, tile, index);
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

/* "[1][2:4]": the tiles of a box, from the first to the last one's index along each axis. */
static void add_box(gy_text *to, const int64_t *low, const int64_t *high, int axes)
{
    for (int k = 0; k < axes; k++)
        add_range(to, low[k], high[k] + 1);
}

/* The box of tiles whose first is `first` and whose last is before `last`. */
static void add_tiles(gy_text *to, const gy_buffer *b, int64_t first, int64_t last)
{
    int64_t low[GANTRY_TILE_AXES], high[GANTRY_TILE_AXES];
    gy_tile_index(b, first, low);
    gy_tile_index(b, last - (first < last), high);
    if (first < last)
        add_box(to, low, high, b->rank);
    else
        for (int k = 0; k < b->rank; k++)
            gy_text_add(to, "[0:0]");
}

/* Tiles that follow each other, in row-major order: "[1][2:4]" where they are a box, else "[0][3]..[2][0]", the first
 * and the last. There is one at least. */
static void add_run(gy_text *to, const gy_named_rows *n, int64_t first, int64_t last)
{
    int64_t low[GANTRY_TILE_AXES], high[GANTRY_TILE_AXES], box = 1;
    tile_index(n->tiles, first, low);
    tile_index(n->tiles, last - 1, high);
    for (int k = 0; k < n->axes; k++)
        box *= high[k] + 1 - low[k];
    bool is_box = box == last - first;
    add_box(to, low, is_box ? high : low, n->axes);
    if (is_box)
        return;
    gy_text_add(to, "..");
    add_box(to, high, high, n->axes);
}

/* The first bound that is not below `row`. */
static int64_t find_bound(const gy_named_rows *n, int64_t row)
{
    int64_t low = 0, high = n->parts;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (n->part_first[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The parts that begin at row `first` and end at `last`; false if there are none. Of parts that begin there it is the
 * last, which has rows. */
static bool find_parts(const gy_named_rows *n, int64_t first, int64_t last, int64_t *part, int64_t *part_last)
{
    if (first >= last || n->parts == 0)
        return false;
    *part = find_bound(n, first + 1) - 1;
    *part_last = find_bound(n, last);
    return n->part_first[*part] == first && n->part_first[*part_last] == last;
}

void gy_named_rows_text(gy_text *to, const gy_named_rows *n, int64_t first, int64_t last)
{
    int64_t part, part_last;
    gy_text_add(to, n->name);
    if (n->generation > 0)
        gy_text_printf(to, "@%u", n->generation);
    if (first == 0 && last == n->rows)
        return;
    if (n->axes > 0 && first < last)
        add_run(to, n, first, last);
    else if (find_parts(n, first, last, &part, &part_last))
        add_range(to, part, part_last);
    else
        gy_text_printf(to, "{%lld:%lld}", (long long)first, (long long)last);
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
    const gy_buffer *b = &graph->buffers.at[buffer];
    gy_named_rows names = { .name = b->name,
                            .rows = b->rows,
                            .axes = b->tiles[0] ? b->rank : 0,
                            .tiles = b->tiles,
                            .parts = b->parts,
                            .part_first = b->part_first };
    gy_named_rows_text(to, &names, first, last);
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
