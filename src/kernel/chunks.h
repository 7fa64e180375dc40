/* SPDX-License-Identifier: Apache-2.0 */
/**
 * How a long sum is cut, so that its order follows from the number and size of the elements alone: by the host versions
 * (kernels/reduce.h) and by those of CUDA (kernels/reduce.cuh).
 *
 * Rows are GY_CHUNK_ROW bytes, chunks whole rows, at least GY_CHUNK_ROWS of them, at most GY_CHUNKS chunks in all. In a
 * chunk each column is added from the first row to the last; then neighbouring columns, then neighbouring pairs of
 * them, and so on. Chunk i goes to sum i % GY_CHUNK_SUMS in its turn, and these are added as columns are.
 */
#ifndef GY_KERNEL_CHUNKS_H
#define GY_KERNEL_CHUNKS_H

#include <stdint.h>

enum { GY_CHUNK_ROW = 4096, GY_CHUNK_ROWS = 16, GY_CHUNKS = 2048, GY_CHUNK_SUMS = 256 };

/* Scratch of a kernel that keeps 8 bytes for each chunk of `x`, as an expression of a manifest. */
#define GY_CHUNK_SCRATCH "8 * min(2048, ceil_div(x.bytes, 65536))"

/* Elements of a chunk; the last one may be shorter. */
static inline int64_t gy_chunk_size(int64_t elements, int64_t element_bytes)
{
    int64_t columns = GY_CHUNK_ROW / element_bytes, rows = (elements + columns - 1) / columns;
    int64_t most = (rows + GY_CHUNKS - 1) / GY_CHUNKS;
    return (most > GY_CHUNK_ROWS ? most : GY_CHUNK_ROWS) * columns;
}

#endif
