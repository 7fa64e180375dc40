/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/norm.cuh"

#define KERNEL(name, type, wide, kept, ...)                                                                            \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__)                                                          \
        name(double eps, const type *x, const type *gain, const type *bias, type *y, int64_t rows, int64_t width)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_norm_forward<true, wide>(eps, x, gain, bias, y, rows, width, kept);                                         \
    }
#define READ(name, LONG, type, wide) KERNEL(name, type, wide, gy_row_kept<LONG>(), GY_ROW_BOUNDS(LONG, type))
#define HELD(name, PACKS, type, wide)                                                                                  \
    KERNEL(name, type, wide, (gy_row_held<PACKS, type>()), GY_HELD_ROW_BOUNDS(PACKS))
GY_ROW_KERNELS(layernorm, READ)
GY_HELD_ROW_KERNELS(layernorm, HELD)
