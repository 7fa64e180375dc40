/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention_grad/attention_grad.cuh"

#define WIDTHS(suffix, type, wide, narrow, side)                                                                       \
    GY_GRAD_KERNEL(suffix, type, wide, narrow, 64)                                                                     \
    GY_GRAD_KERNEL(suffix, type, wide, narrow, 128)                                                                    \
    GY_GRAD_KERNEL(suffix, type, wide, side, 256)

WIDTHS(f16, __half, float, GY_ATTENTION_MMA, 64)
WIDTHS(bf16, __nv_bfloat16, float, GY_ATTENTION_MMA, 64)
WIDTHS(f32, float, float, GY_ATTENTION_MMA, 64)
WIDTHS(f64, double, double, 32, 32)
