/* SPDX-License-Identifier: Apache-2.0 */
/* How rows are cut so that each chunk knows, from the counts of those before it, where its rows go. */
#ifndef GY_KERNELS_SELECT_H
#define GY_KERNELS_SELECT_H

#include <stdint.h>

enum { GY_SELECT_TILE = 2048, GY_SELECT_CHUNKS = 4096 };

/* As an expression of a manifest: 8 bytes a chunk, and the number of all. */
#define GY_SELECT_SCRATCH "8 * min(4096, ceil_div(mask.size, 2048)) + 8"

/* Rows of a chunk: whole tiles; the last one may be shorter. */
static inline int64_t gy_select_chunk(int64_t rows)
{
    int64_t tiles = (rows + GY_SELECT_TILE - 1) / GY_SELECT_TILE;
    int64_t most = (tiles + GY_SELECT_CHUNKS - 1) / GY_SELECT_CHUNKS;
    return (most > 1 ? most : 1) * GY_SELECT_TILE;
}

#endif
