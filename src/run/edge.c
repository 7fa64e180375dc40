/* SPDX-License-Identifier: Apache-2.0 */
#include "run/edge.h"

#include <string.h>

/* The axis that a line goes along: those behind it are not cut, so elements that follow each other along it lie
 * together with all that they have along those. */
static int axis_of_lines(const gy_buffer *b)
{
    int axis = b->rank - 1;
    while (axis > 0 && b->tiles[axis] == 1)
        axis--;
    return axis;
}

int64_t gy_tile_lines(const gy_buffer *b, int64_t tile)
{
    const int64_t *shape = gy_tile_shape(b, tile);
    int64_t lines = 1;
    for (int k = 0; k < axis_of_lines(b); k++)
        lines *= shape[k];
    return lines;
}

gy_tile_line gy_tile_line_of(const gy_buffer *b, int64_t tile, int64_t line)
{
    const int64_t *shape = gy_tile_shape(b, tile);
    int64_t index[GANTRY_TILE_AXES], stride = 1;
    int along = axis_of_lines(b);
    gy_tile_index(b, tile, index);
    for (int k = along + 1; k < b->rank; k++)
        stride *= b->shape[k];
    gy_tile_line found = { gy_tile_bound(b, along, index[along]) * stride, shape[along] * stride };
    for (int k = along - 1; k >= 0; k--) {
        stride *= b->shape[k + 1];
        found.first += (gy_tile_bound(b, k, index[k]) + line % shape[k]) * stride;
        line /= shape[k];
    }
    return found;
}

/* Calls memcpy for each line of each tile: into the packed form, or out of it. */
static void move_tiles(char *packed, char *array, const gy_buffer *b, bool pack)
{
    int64_t size = (int64_t)gantry_dtype_size(b->dtype);
    for (int64_t tile = 0; tile < b->rows; tile++) {
        char *inside = packed + b->tile_offset[tile];
        int64_t lines = b->tile_offset[tile] == b->tile_offset[tile + 1] ? 0 : gy_tile_lines(b, tile);
        for (int64_t i = 0; i < lines; i++) {
            gy_tile_line line = gy_tile_line_of(b, tile, i);
            char *outside = array + line.first * size;
            size_t bytes = (size_t)(line.count * size);
            memcpy(pack ? inside : outside, pack ? outside : inside, bytes);
            inside += bytes;
        }
    }
}

/* move_tiles only reads the side it copies from; the casts let one loop serve both ways. */
void gy_tiles_pack(void *packed, const void *array, const gy_buffer *buffer)
{
    move_tiles(packed, (char *)(uintptr_t)array, buffer, true);
}

void gy_tiles_unpack(void *array, const void *packed, const gy_buffer *buffer)
{
    move_tiles((char *)(uintptr_t)packed, array, buffer, false);
}
