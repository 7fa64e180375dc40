/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that softmax_xent and its gradient share. */
#ifndef GY_KERNELS_SOFTMAX_H
#define GY_KERNELS_SOFTMAX_H

#include "kernels/rows.h"

enum { GY_SOFTMAX_AT_ONCE = 256 }; /* elements that the host converts at a time */

/* Largest of a row and the sum of exp(x - largest). */
typedef struct gy_softmax {
    double largest, sum;
} gy_softmax;
gy_softmax gy_softmax_of(const gantry_arg *logits, int64_t row);
/* check(): logits (argument 1) are a matrix, labels (argument 2) one a row. */
gantry_status gy_check_logits(const gantry_launch *l, char *text, size_t size);

#endif
