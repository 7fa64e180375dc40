/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tiles with a halo. A[i][j]~1 is the tile and what lies around it, as one box: along each axis so many elements before
 * and after, where the array has them. A buffer of its own holds these boxes, one a tile, so that a kernel gets it in
 * one piece. What comes from the tiles around lies in another buffer of one axis, the edges, in pieces: those for one
 * tile are together, in the order of their directions. So neighbours send what is wanted and no more, and what one
 * sends to one lies together as a rule.
 */
#ifndef GY_GRAPH_HALO_H
#define GY_GRAPH_HALO_H

#include "graph/graph.h"

enum { GY_HALO_PIECES = 80, GY_HALO_MOST = UINT16_MAX - 1 };

struct gy_halo {
    int64_t before[GANTRY_TILE_AXES],
        after[GANTRY_TILE_AXES]; /* elements along each axis; 0 along one that is not cut */
    uint32_t source, edges; /* whose tiles are meant, and the buffer of what goes between them; GY_NONE where a graph
                               has such a buffer without A[i][j]~1 */
    const int64_t *edge;    /* where in `edges` the pieces for each tile begin, and the end; NULL without a source */
};

/* Elements that a tile gets from one of those around it. */
typedef struct gy_halo_piece {
    int64_t tile;         /* which gives it */
    int64_t first, count; /* elements of the edges */
} gy_halo_piece;

/* The pieces that a tile of a buffer with a halo gets, in the order of their directions: those before it along axis 0
 * first, and within these those before it along axis 1, and so on. `first` counts from 0. Returns how many there are.
 */
int gy_halo_pieces(const gy_buffer *buffer, int64_t tile, gy_halo_piece piece[GY_HALO_PIECES]);
/* How many elements along an axis tile `index` of it has before (side 0) and after (side 1) its own. */
int64_t gy_halo_side(const gy_buffer *buffer, int axis, int64_t index, int side);

/* Bytes that lie together in the tile of a launch of the library's halo_pack or halo_unpack, in the mean of all places
 * that it moves; 0: another kernel. */
double gy_halo_contiguous(const gantry_kernel *kernel, const gantry_launch *launch);
/* True if it is one of these. */
bool gy_halo_moves(const gantry_kernel *kernel);

#endif
