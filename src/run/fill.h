/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The values of first contents and of fill nodes. Element e of a buffer (its index in C order in the whole
 * array) depends on e alone, never on who computes it or how the buffer is cut.
 *
 *   value    a
 *   iota     a + b e                                     (integers: a and b are whole; modulo 2^bits)
 *   uniform  a + (b - a) u                               (floating: rounded to the dtype; integers: rounded down)
 *   normal   a + b sqrt(-2 ln(v)) cos(2 pi w)            (Box and Muller 1958, the cosine half; floating dtypes only)
 *   spd      n x n: row i, column j: U(min(i,j) n + max(i,j)), plus n on the diagonal, U = uniform on [0, 1):
 *            symmetric, and diagonally dominant with a positive diagonal, hence positive definite
 *
 * Random words are Philox4x32-10 blocks (philox.h), x0..x3:
 *   uniform, dtypes of up to 4 bytes: word e % 4 of block e / 4;                            u = word / 2^32
 *   uniform, f64 i64 u64: words 2(e % 2) (low) and 2(e % 2) + 1 (high) of block e / 2;      u = (pair >> 11) / 2^53
 *   normal,  dtypes of up to 4 bytes: the same two words of block e / 2;  v = (low + 1) / 2^32, w = high / 2^32
 *   normal,  f64 i64 u64: block e;  v = ((pair of x0 x1) >> 11) + 1) / 2^53, w = ((pair of x2 x3) >> 11) / 2^53
 * Everything is computed in doubles and rounded once. ln, sqrt and cos are those of the host's libm.
 */
#ifndef GY_RUN_FILL_H
#define GY_RUN_FILL_H

#include "graph/graph.h"

/* Elements [first, first + count) into `to`. VALUE, UNIFORM, NORMAL or IOTA. */
void gy_fill_elements(void *to, gantry_dtype dtype, const gy_init *what, uint64_t first, uint64_t count);
/* Rows [first, last) of a buffer (tiles of a tiled one) in packed form. The above, and SPD. */
void gy_fill_rows(void *to, const gy_buffer *buffer, const gy_init *what, int64_t first, int64_t last);
/* The same where `to` is the whole buffer, whose other rows stay as they are; many by several threads, with the same
 * result. */
void gy_fill_buffer(void *to, const gy_buffer *buffer, const gy_init *what, int64_t first, int64_t last);

#endif
