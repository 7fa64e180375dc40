/* SPDX-License-Identifier: Apache-2.0 */
#include "run/edge.h"

#include <string.h>

gy_tile_span gy_tile_span_of(const gy_buffer *b, int64_t tile)
{
    int64_t i = tile / b->tiles[1], j = tile % b->tiles[1];
    return (gy_tile_span){ .first = gy_part_bound(b->shape[0], b->tiles[0], i),
                           .last = gy_part_bound(b->shape[0], b->tiles[0], i + 1),
                           .first2 = gy_part_bound(b->shape[1], b->tiles[1], j),
                           .last2 = gy_part_bound(b->shape[1], b->tiles[1], j + 1) };
}

/* Calls memcpy for each row of each tile: into the packed form, or out of it. */
static void move_tiles(char *packed, char *array, const gy_buffer *b, bool pack)
{
    int64_t size = (int64_t)gantry_dtype_size(b->dtype);
    for (int64_t tile = 0; tile < b->rows; tile++) {
        gy_tile_span at = gy_tile_span_of(b, tile);
        size_t bytes = (size_t)((at.last2 - at.first2) * size);
        char *inside = packed + b->tile_offset[tile];
        for (int64_t row = at.first; bytes > 0 && row < at.last; row++, inside += bytes) {
            char *outside = array + (row * b->shape[1] + at.first2) * size;
            memcpy(pack ? inside : outside, pack ? outside : inside, bytes);
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
