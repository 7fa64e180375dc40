/* SPDX-License-Identifier: Apache-2.0 */
/* layernorm, rmsnorm and their gradients: y = (x - mean) * inverse * gain, where rmsnorm has a mean of 0. */
#ifndef GY_KERNELS_NORM_H
#define GY_KERNELS_NORM_H

#include "kernels/rows.h"
#include <stdbool.h>

/* Of a row: the mean that is taken off, and 1 / sqrt(mean of squares + eps). */
typedef struct gy_norm {
    double mean, inverse;
} gy_norm;

/* Host versions; bias and dbias: NULL for rmsnorm. */
gantry_status gy_norm_forward(const gantry_launch *l, const gantry_arg *bias, const gantry_arg *y);
gantry_status gy_norm_backward(const gantry_launch *l, const gantry_arg *dbias);

/* check(): gain has as many elements as a row of x along its last axis, or along all but the first; y is as large as x,
 * and arguments from `first` to `last` have an element for each column of x. */
gantry_status gy_check_norm(const gantry_launch *l, int y, int first, int last, char *text, size_t size);

#endif
