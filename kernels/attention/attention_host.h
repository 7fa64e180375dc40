/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that attention and its gradient share on CPUs, where blocks of queries go through products of matrices. */
#ifndef GY_KERNELS_ATTENTION_HOST_H
#define GY_KERNELS_ATTENTION_HOST_H

#include "kernels/attention/attention.h"

enum { GY_ATTENTION_BLOCK = 64 }; /* queries */

/* Keys that row r of a head sees, of `length`; the most that one of so many rows sees. */
int64_t gy_attention_seen(const gy_attention *a, int64_t r, int64_t length);
int64_t gy_attention_seen_by_any(const gy_attention *a, int64_t first, int64_t rows, int64_t length);

/* Elements from number `first` on as they are computed with: where they lie, or in `room`. */
void *gy_attention_widened(const gantry_arg *x, int64_t first, int64_t count, float *room);
/* Back to f16 or bf16; with `from` NULL they are where they lie. */
void gy_attention_narrow(const gantry_arg *y, int64_t first, int64_t count, const float *from);

/* A row of scores, f32 or f64, of which the first `stop` are seen, becomes their softmax; the others become 0. Returns
 * the logarithm of the sum of their exponentials; -infinity: there are none. */
double gy_attention_soften(gantry_dtype dtype, void *scores, int64_t row, int64_t stop, int64_t count);
/* The same where that logarithm is known. */
void gy_attention_weigh(gantry_dtype dtype, void *scores, int64_t row, int64_t stop, int64_t count, double logarithm);

#endif
