/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials are taken in float for all but f64, of differences in double, which are then rounded; the host takes them
 * in double. So an element differs by |scale x - largest| + 4 units of 2^-24 of itself, and its sum by as much. */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"
#include "kernels/softmax.cuh"

template <typename Wide> static __device__ inline double power(double x) { return (double)gy_exp((Wide)x); }

template <typename Wide, typename T>
static __device__ void softmax_row(double scale, const T *__restrict__ x, T *__restrict__ y, int64_t stop, int64_t width)
{
    double largest = -INFINITY, sum = 0;
    gy_each_column(x, stop, [&](int64_t, T v) { largest = fmax(largest, scale * (double)gy_element<Wide>::load(v)); });
    for (int by = GY_LANES / 2; by > 0; by /= 2)
        largest = fmax(largest, __shfl_xor_sync(~0u, largest, by));
    gy_each_column(x, stop,
                   [&](int64_t, T v) { sum += power<Wide>(scale * (double)gy_element<Wide>::load(v) - largest); });
    sum = gy_lanes_sum(sum);
    gy_each_column(x, width, [&](int64_t c, T element) {
        double v = c < stop ? power<Wide>(scale * (double)gy_element<Wide>::load(element) - largest) / sum : 0;
        y[c] = gy_element<Wide>::template store<T>((Wide)v);
    });
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        softmax_##suffix(double scale, int64_t causal, int64_t first, const type *x, type *y, int64_t rows, int64_t width)\
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        GY_FOR_EACH_ROW (r, rows) {                                                                                    \
            int64_t stop = causal ? (first + r) % width + 1 : width;                                                   \
            softmax_row<wide>(scale, x + r * width, y + r * width, stop, width);                                       \
        }                                                                                                              \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
