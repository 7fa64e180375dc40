/* SPDX-License-Identifier: Apache-2.0 */
/* The edge between users' arrays (C order) and the form in every memory (packed: tile after tile). */
#ifndef GY_RUN_EDGE_H
#define GY_RUN_EDGE_H

#include "graph/graph.h"

/* Rows [first, last) and columns [first2, last2) of the whole array that a tile covers. */
typedef struct gy_tile_span {
    int64_t first, last, first2, last2;
} gy_tile_span;

gy_tile_span gy_tile_span_of(const gy_buffer *buffer, int64_t tile);
/* Whole buffers; the two may not overlap. The buffer is tiled. */
void gy_tiles_pack(void *packed, const void *array, const gy_buffer *buffer);
void gy_tiles_unpack(void *array, const void *packed, const gy_buffer *buffer);

#endif
