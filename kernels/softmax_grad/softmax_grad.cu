/* SPDX-License-Identifier: Apache-2.0 */
/* The host's operations in its order, so its bits. */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"

/* Of a lane, and of `width` columns. */
template <bool PACKED, typename Wide, typename T>
static __device__ inline double products(const T *__restrict__ a, const T *__restrict__ b, int64_t width)
{
    typedef gy_element<Wide> e;
    double sum = 0;
    gy_each_pack<PACKED>(a, width, [&](int64_t c, const gy_pack<T> &v, int count) {
        const gy_pack<T> p = gy_load_pack<PACKED>(b + c, count);
#pragma unroll
        for (int j = 0; j < gy_pack<T>::COUNT; j++)
            sum += j < count ? (double)e::load(v.at[j]) * (double)e::load(p.at[j]) : 0.0;
    });
    return sum;
}

/* Where the sums of products that are taken off come from: rows of a and of b, of `depth` columns, of which the first
 * `period` of each `step` are meant; 1 of 1: all. */
template <typename T> struct pairs {
    const T *a, *b;
    int64_t depth, period, step;
};

/* dx may be dy: a thread reads an element for the last time before it writes it, and nobody else reads it. */
template <bool PACKED, typename Wide, typename T>
static __device__ inline void rows_back(double scale, const T *__restrict__ y, const T *__restrict__ dy,
                                        T *__restrict__ dx, int64_t rows, int64_t width, const pairs<T> &of)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = y + r * width, *d = dy + r * width;
        const int64_t at = (r / of.period * of.step + r % of.period) * of.depth;
        const double sum = gy_lanes_sum(products<PACKED, Wide>(of.a + at, of.b + at, of.depth));
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
            rows_back<true, wide>(scale, y, dy, dx, rows, width, pairs<type>{ y, dy, width, 1, 1 });                   \
        else                                                                                                           \
            rows_back<false, wide>(scale, y, dy, dx, rows, width, pairs<type>{ y, dy, width, 1, 1 });                  \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
#undef KERNEL

/* Of attention, whose weights are y: a and b are its result and the slopes of that, from the first of the queries on
 * that are meant: the same `period` of each head, `step` rows apart. */
#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        softmax_grad_of_##suffix(double scale, const type *y, const type *dy, type *dx, int64_t rows, int64_t width,   \
                                 const type *a, const type *b, int64_t d, int64_t period, int64_t step)                \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if (gy_row_is_packed(width, y) && gy_row_is_packed(width, dy) && gy_row_is_packed(d, a) &&                     \
            gy_row_is_packed(d, b))                                                                                    \
            rows_back<true, wide>(scale, y, dy, dx, rows, width, pairs<type>{ a, b, d, period, step });                \
        else                                                                                                           \
            rows_back<false, wide>(scale, y, dy, dx, rows, width, pairs<type>{ a, b, d, period, step });               \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
