/* SPDX-License-Identifier: Apache-2.0 */
/* The host's operations in its order, so its bits. */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"

template <bool PACKED, typename Wide, typename T>
static __device__ inline void rows_back(double scale, const T *__restrict__ y, const T *__restrict__ dy,
                                        T *__restrict__ dx, int64_t rows, int64_t width)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = y + r * width, *d = dy + r * width;
        double sum = 0;
        gy_each_pack<PACKED>(row, width, [&](int64_t c, const gy_pack<T> &v, int count) {
            const gy_pack<T> p = gy_load_pack<PACKED>(d + c, count);
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++)
                sum += j < count ? (double)e::load(v.at[j]) * (double)e::load(p.at[j]) : 0.0;
        });
        sum = gy_lanes_sum(sum);
        gy_each_pack<PACKED>(row, width, [&](int64_t c, const gy_pack<T> &v, int count) {
            const gy_pack<T> p = gy_load_pack<PACKED>(d + c, count);
            gy_pack<T> to;
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++)
                to.at[j] = e::template store<T>(
                    (Wide)(scale * (double)e::load(v.at[j]) * ((double)e::load(p.at[j]) - sum)));
            gy_store_pack<PACKED>(dx + r * width + c, to, count);
        });
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        softmax_grad_##suffix(double scale, const type *y, const type *dy, type *dx, int64_t rows, int64_t width)      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if (gy_row_is_packed(width, y) && gy_row_is_packed(width, dy) && gy_row_is_packed(width, dx))                  \
            rows_back<true, wide>(scale, y, dy, dx, rows, width);                                                      \
        else                                                                                                           \
            rows_back<false, wide>(scale, y, dy, dx, rows, width);                                                     \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
