/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GY_KERNELS_ATTENTION_GRAD_H
#define GY_KERNELS_ATTENTION_GRAD_H

#include "kernels/attention/attention.h"

/* Arguments behind those of attention. */
enum {
    GY_ATTENTION_GRAD_Y = GY_ATTENTION_V + 1,
    GY_ATTENTION_GRAD_DY,
    GY_ATTENTION_GRAD_DQ,
    GY_ATTENTION_GRAD_DK,
    GY_ATTENTION_GRAD_DV,
    GY_ATTENTION_GRAD_LSE, /* may not be given */
    GY_ATTENTION_GRAD_DIM  /* and `length` behind it */
};

/* Widths that tensor cores take floats of, in two parts. */
enum { GY_GRAD_SPLIT_WIDEST = 128 };

/* grad_shape.cuh has the same. */
enum { GY_GRAD_KEYS = 512 };
typedef struct gy_grad_portion {
    int64_t head, row, rows, keys;
    void *weights, *slopes;
} gy_grad_portion;

/* For products by a library, in f32, where the kernel's image splits floats: of all queries the logarithm and the sum
 * of y dy, to `sums`, two floats for each; then for queries of `heads` heads the weights of keys and the gradients of
 * scores. The launch's handle is that of gy_plain_attention_grad; how its arguments lie is as `a` says. */
gantry_status gy_plain_attention_grad_sums(const gantry_launch *l, const gy_attention *a, void *sums);
gantry_status gy_plain_attention_grad_weigh(const gantry_launch *l, const gy_attention *a, void *sums, int64_t heads,
                                            const gy_grad_portion *p);

#endif
