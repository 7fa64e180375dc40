/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/halo.h"

#include <string.h>

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

/* ---- how its pieces lie in memory ---- */

static bool is_library(const gantry_kernel *kernel, const char *name)
{
    return strcmp(kernel->name, name) == 0 && kernel == gantry_kernel_find(name);
}

bool gy_halo_moves(const gantry_kernel *kernel)
{
    return is_library(kernel, "halo_pack") || is_library(kernel, "halo_unpack");
}

/* Elements of a tile that the one in a direction along an axis wants: 0 before the tile, 1 beside it, 2 behind. */
static double wanted(const gantry_launch *l, int axis, int step)
{
    const gantry_arg *x = &l->arg[0];
    int64_t first = x->axis[axis].first, end = first + x->shape[axis];
    if (step == 1)
        return (double)x->shape[axis];
    if (step == 0)
        return first > 0 ? l->arg[2 + 2 * axis].number : 0;
    return end < x->whole[axis] ? l->arg[1 + 2 * axis].number : 0;
}

/* Along the last axis on which a piece is not all of the tile begins a new place for each element of the axes before.
 */
static double packed_together(const gantry_launch *l)
{
    double elements = 0, places = 0;
    int rank = l->arg[0].rank, ways = 1;
    for (int k = 0; k < rank; k++)
        ways *= 3;
    for (int way = 0; way < ways; way++) {
        double count = 1, together = 1;
        bool ends = false;
        for (int k = rank - 1, rest = way; k >= 0; k--, rest /= 3) {
            count *= wanted(l, k, rest % 3);
            together *= ends ? 1 : wanted(l, k, rest % 3);
            ends = ends || rest % 3 != 1;
        }
        if (!ends || count <= 0)
            continue;
        elements += count;
        places += count / together;
    }
    return places > 0 ? elements / places : 0;
}

double gy_halo_contiguous(const gantry_kernel *kernel, const gantry_launch *l)
{
    double elements = 0;
    if (is_library(kernel, "halo_pack") && l->arg[0].whole)
        elements = packed_together(l);
    else if (is_library(kernel, "halo_unpack"))
        elements = (double)l->arg[2].shape[l->arg[2].rank - 1];
    return elements > 0 ? elements * (double)gantry_dtype_size(l->arg[0].dtype) : 0;
}
