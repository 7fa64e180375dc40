/* SPDX-License-Identifier: Apache-2.0 */
/* The host's operations in its order, so its bits. */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"

template <typename Wide, typename T>
static __device__ void gradient_of_row(double scale, const T *__restrict__ y, const T *__restrict__ dy,
                                       T *__restrict__ dx, int64_t width)
{
    typedef gy_element<Wide> e;
    double sum = 0;
    gy_each_column(y, width, [&](int64_t c, T v) { sum += (double)e::load(v) * (double)e::load(dy[c]); });
    sum = gy_lanes_sum(sum);
    gy_each_column(y, width, [&](int64_t c, T v) {
        dx[c] = e::template store<T>((Wide)(scale * (double)e::load(v) * ((double)e::load(dy[c]) - sum)));
    });
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        softmax_grad_##suffix(double scale, const type *y, const type *dy, type *dx, int64_t rows, int64_t width)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        GY_FOR_EACH_ROW (r, rows)                                                                                      \
            gradient_of_row<wide>(scale, y + r * width, dy + r * width, dx + r * width, width);                        \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
