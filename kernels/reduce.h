/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums that do not depend on chance: in an order that follows from the size alone (kernel/chunks.h), in double for f16,
 * bf16 and f32 (so the error does not grow with the length) and in 64 wrapping bits for integers.
 */
#ifndef GY_KERNELS_REDUCE_H
#define GY_KERNELS_REDUCE_H

#include "kernel/chunks.h"
#include "kernels/manifest.h"

/* Widest types: what partial results are kept in. */
typedef struct gy_number {
    double real;
    uint64_t integer;
} gy_number;

static inline int gy_is_float(gantry_dtype d)
{
    return d == GANTRY_F16 || d == GANTRY_BF16 || d == GANTRY_F32 || d == GANTRY_F64;
}

/* The value of one element, and its storing, in the wide form that belongs to the dtype. */
gy_number gy_number_load(const void *data, gantry_dtype dtype, int64_t i);
void gy_number_store(void *data, gantry_dtype dtype, int64_t i, gy_number value);

/* Adds up the rows of a launch, in the order of kernel/chunks.h; the first argument says how many elements of what
 * size. add(): column[i] += element first + i, for a row. */
typedef void (*gy_add_row)(double *column, const gantry_launch *l, int64_t first, int64_t count);
double gy_sum_rows(const gantry_launch *l, gy_add_row add);

/* check(): `out` is one element of x's dtype, or of a wider one of the same kind (integers: i64 or u64; floats: f32,
 * f64). */
gantry_status gy_check_accumulator(const gantry_launch *l, int x, int out, char *text, size_t size);

#endif
