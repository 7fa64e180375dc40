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

/* Weights and gradients of scores for products of cuBLAS: where there are no tensor cores nobody launches these. */
#ifdef GY_MMA
#define WEIGH(width, a, across, x, p) gy_grad_weigh_by_mma<width>(a, across, x, p)
#else
#define WEIGH(width, a, across, x, p) (void)a, (void)across, (void)x, (void)p
#endif
#define KERNEL(width)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_GRAD_BOUNDS(float, GY_ATTENTION_MMA, width))                         \
        attention_grad_weights_##width##_f32(gy_attention a, uint32_t across, gy_grad_arrays<float> x,                   \
                                             gy_grad_portion<float> p)                                                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        WEIGH(width, a, across, x, p);                                                                                 \
    }
KERNEL(64)
KERNEL(128)
