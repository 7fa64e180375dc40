/* SPDX-License-Identifier: Apache-2.0 */
/* Code of layernorm, rmsnorm and their gradients: the operations of norm.c in its order, so that the bits are the same.
 * A row is read again for each step, mostly from a cache. */
#ifndef GY_KERNELS_NORM_CUH
#define GY_KERNELS_NORM_CUH

#include "kernels/fetch_ahead.cuh"
#include "kernels/rows.cuh"

struct gy_norm {
    double mean, inverse;
};

template <typename Wide, typename T> static __device__ inline double gy_wide(T x)
{
    return (double)gy_element<Wide>::load(x);
}

/* The gain, where it is so short that the first block has all of it. */
template <typename T> static __device__ inline void gy_norm_fetch(const T *gain, int64_t width)
{
    enum { SECTOR = 32 / sizeof(T) };
    const int64_t at = (int64_t)(threadIdx.y * blockDim.x + threadIdx.x) * SECTOR;
    if (blockIdx.x == 0 && at < width)
        gy_fetch_ahead(gain + at);
}

static __device__ inline float gy_root(float x) { return sqrtf(x); }
static __device__ inline double gy_root(double x) { return sqrt(x); }

template <bool CENTRED, bool PACKED, typename Wide, typename T, typename Kept = gy_row_kept<false>>
static __device__ inline void gy_norm_of(const T *x, int64_t width, double eps, Wide *mean, Wide *inverse,
                                         const Kept &kept = Kept())
{
    double sum = 0; /* the only one: norm.c says why */
    Wide squares = 0, middle = 0;
    if (CENTRED) {
        const auto add = [&](int64_t, const gy_pack<T> &v, int count) {
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++)
                sum += j < count ? gy_wide<Wide>(v.at[j]) : 0.0;
        };
        gy_each_pack<PACKED>(x, width, add, kept);
        middle = (Wide)(gy_lanes_sum(sum) / (double)width);
    }
    const auto square = [&](int64_t, const gy_pack<T> &v, int count) {
#pragma unroll
        for (int j = 0; j < gy_pack<T>::COUNT; j++) {
            const Wide apart = j < count ? (Wide)gy_element<Wide>::load(v.at[j]) - middle : (Wide)0;
            squares += apart * apart;
        }
    };
    gy_each_pack<PACKED, CENTRED>(x, width, square, kept);
    *mean = middle;
    *inverse = (Wide)1 / gy_root(gy_lanes_sum(squares) / (Wide)width + (Wide)eps);
}

template <bool CENTRED, bool PACKED, typename Wide, typename T, typename Kept>
static __device__ inline void gy_norm_rows(double eps, const T *__restrict__ x, const T *__restrict__ gain,
                                           const T *__restrict__ bias, T *__restrict__ y, int64_t rows, int64_t width,
                                           const Kept &kept)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = x + r * width;
        Wide mean, inverse;
        gy_norm_of<CENTRED, PACKED>(row, width, eps, &mean, &inverse, kept);
        const auto write = [&](int64_t c, const gy_pack<T> &v, int count) {
            const gy_pack<T> g = gy_load_pack<PACKED>(gain + c, count);
            const gy_pack<T> b = CENTRED ? gy_load_pack<PACKED>(bias + c, count) : g;
            gy_pack<T> to;
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++) {
                const Wide u = ((Wide)e::load(v.at[j]) - mean) * inverse * (Wide)e::load(g.at[j]);
                to.at[j] = e::template store<T>(u + (CENTRED ? (Wide)e::load(b.at[j]) : (Wide)0));
            }
            gy_store_pack<PACKED>(y + r * width + c, to, count);
        };
        gy_each_pack<PACKED, true>(row, width, write, kept);
    }
}

/* `bias` is read only where a mean is taken off. */
template <bool CENTRED, typename Wide, typename T, typename Kept>
static __device__ void gy_norm_forward(double eps, const T *x, const T *gain, const T *bias, T *y, int64_t rows,
                                       int64_t width, const Kept &kept)
{
    if (gy_row_is_packed(width, x) && gy_row_is_packed(width, gain) && gy_row_is_packed(width, y) &&
        (!CENTRED || gy_row_is_packed(width, bias)))
        gy_norm_rows<CENTRED, true, Wide>(eps, x, gain, bias, y, rows, width, kept);
    else
        gy_norm_rows<CENTRED, false, Wide>(eps, x, gain, bias, y, rows, width, gy_row_unpacked(kept));
}

/* dx, and what the columns want of each row. */
template <bool CENTRED, bool PACKED, typename Wide, typename T>
static __device__ inline void gy_norm_rows_back(double eps, const T *__restrict__ x, const T *__restrict__ gain,
                                                const T *__restrict__ dy, T *__restrict__ dx, gy_norm *__restrict__ norm,
                                                int64_t rows, int64_t width)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = x + r * width, *d = dy + r * width;
        Wide middle, inverse, sum = 0, product = 0;
        gy_norm_of<CENTRED, PACKED>(row, width, eps, &middle, &inverse);
        gy_each_pack<PACKED>(d, width, [&](int64_t c, const gy_pack<T> &p, int count) {
            const gy_pack<T> q = gy_load_pack<PACKED>(row + c, count), g = gy_load_pack<PACKED>(gain + c, count);
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++) {
                const Wide v = j < count ? (Wide)e::load(p.at[j]) * (Wide)e::load(g.at[j]) : (Wide)0;
                sum += v;
                product += v * (((Wide)e::load(q.at[j]) - middle) * inverse);
            }
        });
        const Wide mean = CENTRED ? gy_lanes_sum(sum) / (Wide)width : (Wide)0;
        const Wide along = gy_lanes_sum(product) / (Wide)width;
        gy_each_pack<PACKED>(d, width, [&](int64_t c, const gy_pack<T> &p, int count) {
            const gy_pack<T> q = gy_load_pack<PACKED>(row + c, count), g = gy_load_pack<PACKED>(gain + c, count);
            gy_pack<T> to;
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++) {
                const Wide u = ((Wide)e::load(q.at[j]) - middle) * inverse;
                const Wide v = (Wide)e::load(p.at[j]) * (Wide)e::load(g.at[j]);
                to.at[j] = e::template store<T>(inverse * (v - mean - u * along));
            }
            gy_store_pack<PACKED>(dx + r * width + c, to, count);
        });
        if (threadIdx.x == 0)
            norm[r] = { (double)middle, (double)inverse };
    }
}

template <bool CENTRED, typename Wide, typename T>
static __device__ void gy_norm_backward(double eps, const T *x, const T *gain, const T *dy, T *dx, gy_norm *norm,
                                        int64_t rows, int64_t width)
{
    if (gy_row_is_packed(width, x) && gy_row_is_packed(width, gain) && gy_row_is_packed(width, dy) &&
        gy_row_is_packed(width, dx))
        gy_norm_rows_back<CENTRED, true, Wide>(eps, x, gain, dy, dx, norm, rows, width);
    else
        gy_norm_rows_back<CENTRED, false, Wide>(eps, x, gain, dy, dx, norm, rows, width);
}

/* Adds the sum of all lanes of rows to what the element holds. All threads of the block come here. */
template <typename Wide, typename T>
static __device__ inline void gy_column_add(double (*room)[GY_LANES], double mine, T *to, bool exists)
{
    room[threadIdx.y][threadIdx.x] = mine;
    for (unsigned half = GY_LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            room[threadIdx.y][threadIdx.x] += room[threadIdx.y + half][threadIdx.x];
    }
    if (exists && threadIdx.y == 0)
        *to = gy_element<Wide>::template store<T>(gy_element<Wide>::load(*to) + (Wide)room[0][threadIdx.x]);
    __syncthreads();
}

/* dgain, and dbias where a mean was taken off. */
template <bool CENTRED, typename Wide, typename T>
static __device__ void gy_norm_columns(const T *__restrict__ x, const T *__restrict__ dy,
                                       const gy_norm *__restrict__ norm, T *dgain, T *dbias, int64_t rows, int64_t width)
{
    __shared__ double room[GY_LANES][GY_LANES];
    int64_t c = (int64_t)blockIdx.x * GY_LANES + threadIdx.x;
    double gain = 0, bias = 0;
    for (int64_t r = threadIdx.y; r < rows && c < width; r += GY_LANES) {
        double d = gy_wide<Wide>(dy[r * width + c]);
        gain += d * ((gy_wide<Wide>(x[r * width + c]) - norm[r].mean) * norm[r].inverse);
        bias += d;
    }
    gy_column_add<Wide>(room, gain, dgain + c, c < width);
    if (CENTRED)
        gy_column_add<Wide>(room, bias, dbias + c, c < width);
}

#endif
