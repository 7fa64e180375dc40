/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that attention and its gradient share on CPUs, where blocks of queries go through products of matrices. */
#ifndef GY_KERNELS_ATTENTION_HOST_H
#define GY_KERNELS_ATTENTION_HOST_H

#include "kernels/attention/attention.h"

enum { GY_ATTENTION_BLOCK = 64 }; /* queries */

/* Keys that row r of a head sees, of `length`; the most that one of so many rows sees. */
int64_t gy_attention_seen(const gy_attention *a, int64_t r, int64_t length);
int64_t gy_attention_seen_by_any(const gy_attention *a, int64_t first, int64_t rows, int64_t length);

/* Rows of the queries that share a head of keys, or of the keys. */
typedef struct gy_attention_rows {
    int64_t head, first, count;
    bool are_keys;
} gy_attention_rows;

/* Have elements to be copied to be computed with: to other types, or since rows of a head do not follow each other? */
bool gy_attention_wants_room(const gy_attention *a, gantry_dtype dtype);
/* Rows as they are computed with: where they lie, or in `room`. */
void *gy_attention_take(const gy_attention *a, const gantry_arg *x, gy_attention_rows rows, void *room);
/* Where results of these rows are made: in `room`, or where they are to lie. */
void *gy_attention_target(const gy_attention *a, const gantry_arg *y, gy_attention_rows rows, void *room);
/* They are brought from there to where they lie; with `from` NULL they are there. */
void gy_attention_put(const gy_attention *a, const gantry_arg *y, gy_attention_rows rows, const void *from);

/* A row of scores, f32 or f64, of which the first `stop` are seen, becomes their softmax; the others become 0. Returns
 * the logarithm of the sum of their exponentials; -infinity: there are none. */
double gy_attention_soften(gantry_dtype dtype, void *scores, int64_t row, int64_t stop, int64_t count);
/* The same where that logarithm is known. */
void gy_attention_weigh(gantry_dtype dtype, void *scores, int64_t row, int64_t stop, int64_t count, double logarithm);

#endif
