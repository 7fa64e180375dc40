/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/halo.h"

int64_t gy_halo_side(const gy_buffer *buffer, int axis, int64_t index, int side)
{
    if (!buffer->halo)
        return 0;
    if (side == 0)
        return index > 0 ? buffer->halo->before[axis] : 0;
    return index < buffer->tiles[axis] - 1 ? buffer->halo->after[axis] : 0;
}

/* The piece from direction `way`, a number to the base of 3 with a digit an axis: before, along, after. False: none. */
static bool piece_from(const gy_buffer *b, const int64_t *index, int way, gy_halo_piece *out)
{
    int64_t from[GANTRY_TILE_AXES] = { 0 };
    int centre = 0;
    out->count = 1;
    for (int k = b->rank - 1; k >= 0; k--, way /= 3) {
        int step = way % 3 - 1;
        int64_t own = gy_tile_bound(b, k, index[k] + 1) - gy_tile_bound(b, k, index[k]);
        out->count *= step ? gy_halo_side(b, k, index[k], step > 0) : own;
        from[k] = index[k] + step;
        centre += step == 0;
    }
    if (centre == b->rank || out->count == 0)
        return false;
    out->tile = gy_tile_number(b, from);
    return true;
}

int gy_halo_pieces(const gy_buffer *buffer, int64_t tile, gy_halo_piece piece[GY_HALO_PIECES])
{
    int64_t index[GANTRY_TILE_AXES], at = 0;
    int ways = 1, count = 0;
    gy_tile_index(buffer, tile, index);
    for (int k = 0; k < buffer->rank; k++)
        ways *= 3;
    for (int way = 0; way < ways; way++) {
        if (!piece_from(buffer, index, way, &piece[count]))
            continue;
        piece[count].first = at;
        at += piece[count++].count;
    }
    return count;
}
