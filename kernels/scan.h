/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a running sum is cut, so that its order follows from the number of elements alone: by the host version and by
 * that of CUDA (kernels/scan.cuh).
 *
 * A row is 32 lanes of 4 neighbours; a chunk is whole rows. The lanes of a chunk add up what they have in its rows, and
 * these sums are added in halves: that is the sum of a chunk. Sums of chunks are scanned as one chunk is, so each chunk
 * knows its start. In a row a lane adds its neighbours, what is before it among the lanes is found in 5 steps, and
 * start, lanes before and neighbours before are added in this order. Floats are added in double.
 */
#ifndef GY_KERNELS_SCAN_H
#define GY_KERNELS_SCAN_H

#include <stdint.h>

enum { GY_SCAN_LANES = 32, GY_SCAN_PACK = 4, GY_SCAN_ROW = 128, GY_SCAN_ROWS = 8, GY_SCAN_CHUNKS = 4096 };

/* Scratch of a scan of `x`, as an expression of a manifest: 8 bytes a chunk. */
#define GY_SCAN_SCRATCH "8 * min(4096, ceil_div(x.size, 1024))"

/* Elements of a chunk; the last one may be shorter. */
static inline int64_t gy_scan_chunk(int64_t elements)
{
    int64_t rows = (elements + GY_SCAN_ROW - 1) / GY_SCAN_ROW, most = (rows + GY_SCAN_CHUNKS - 1) / GY_SCAN_CHUNKS;
    return (most > GY_SCAN_ROWS ? most : (int64_t)GY_SCAN_ROWS) * GY_SCAN_ROW;
}

#endif
