/* SPDX-License-Identifier: Apache-2.0 */
/* The edge between users' arrays (C order) and the form in every memory (packed: tile after tile). */
#ifndef GY_RUN_EDGE_H
#define GY_RUN_EDGE_H

#include "graph/graph.h"

/* Elements of the whole array, in C order, that lie together and are one line of a tile. */
typedef struct gy_tile_line {
    int64_t first, count;
} gy_tile_line;

/* How many lines a tile has: elements lie together along its last axis, and along the one before it where the last is
 * not cut, and so on. */
int64_t gy_tile_lines(const gy_buffer *buffer, int64_t tile);
/* Its line number `line`; in the packed form lines lie one behind the other. */
gy_tile_line gy_tile_line_of(const gy_buffer *buffer, int64_t tile, int64_t line);
/* Whole buffers; the two may not overlap. The buffer is tiled. */
void gy_tiles_pack(void *packed, const void *array, const gy_buffer *buffer);
void gy_tiles_unpack(void *array, const void *packed, const gy_buffer *buffer);

#endif
