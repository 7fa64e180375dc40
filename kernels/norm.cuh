/* SPDX-License-Identifier: Apache-2.0 */
/* Code of layernorm, rmsnorm and their gradients: the operations of norm.c in its order, so that the bits are the same.
 * A row is read again for each step, mostly from a cache. */
#ifndef GY_KERNELS_NORM_CUH
#define GY_KERNELS_NORM_CUH

#include "kernels/rows.cuh"

struct gy_norm {
    double mean, inverse;
};

template <typename Wide, typename T> static __device__ inline double gy_wide(T x)
{
    return (double)gy_element<Wide>::load(x);
}

template <bool CENTRED, typename Wide, typename T>
static __device__ inline gy_norm gy_norm_of(const T *x, int64_t width, double eps)
{
    gy_norm n = { 0, 0 };
    double sum = 0, squares = 0;
    if (CENTRED) {
        gy_each_column(x, width, [&](int64_t, T v) { sum += gy_wide<Wide>(v); });
        n.mean = gy_lanes_sum(sum) / (double)width;
    }
    gy_each_column(x, width, [&](int64_t, T element) {
        double v = gy_wide<Wide>(element) - n.mean;
        squares += v * v;
    });
    n.inverse = 1 / sqrt(gy_lanes_sum(squares) / (double)width + eps);
    return n;
}

/* `bias` is read only where a mean is taken off. */
template <bool CENTRED, typename Wide, typename T>
static __device__ void gy_norm_forward(double eps, const T *__restrict__ x, const T *__restrict__ gain,
                                       const T *__restrict__ bias, T *__restrict__ y, int64_t rows, int64_t width)
{
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = x + r * width;
        gy_norm n = gy_norm_of<CENTRED, Wide>(row, width, eps);
        gy_each_column(row, width, [&](int64_t c, T element) {
            double v = (gy_wide<Wide>(element) - n.mean) * n.inverse * gy_wide<Wide>(gain[c]);
            v += CENTRED ? gy_wide<Wide>(bias[c]) : 0.0;
            y[r * width + c] = gy_element<Wide>::template store<T>((Wide)v);
        });
    }
}

/* dx, and what the columns want of each row. */
template <bool CENTRED, typename Wide, typename T>
static __device__ void gy_norm_backward(double eps, const T *__restrict__ x, const T *__restrict__ gain,
                                        const T *__restrict__ dy, T *__restrict__ dx, gy_norm *__restrict__ norm,
                                        int64_t rows, int64_t width)
{
    GY_FOR_EACH_ROW (r, rows) {
        const T *row = x + r * width, *d = dy + r * width;
        gy_norm n = gy_norm_of<CENTRED, Wide>(row, width, eps);
        double sum = 0, product = 0;
        gy_each_column(d, width, [&](int64_t c, T element) {
            double v = gy_wide<Wide>(element) * gy_wide<Wide>(gain[c]);
            sum += v;
            product += v * ((gy_wide<Wide>(row[c]) - n.mean) * n.inverse);
        });
        double mean = CENTRED ? gy_lanes_sum(sum) / (double)width : 0, along = gy_lanes_sum(product) / (double)width;
        gy_each_column(d, width, [&](int64_t c, T element) {
            double u = (gy_wide<Wide>(row[c]) - n.mean) * n.inverse, v = gy_wide<Wide>(element) * gy_wide<Wide>(gain[c]);
            dx[r * width + c] = gy_element<Wide>::template store<T>((Wide)(n.inverse * (v - mean - u * along)));
        });
        if (threadIdx.x == 0)
            norm[r] = n;
    }
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
