/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QR factors in columns, which is how cuSOLVER has matrices: element (i, j) of m rows is at i + j * m. The matrix is turned into
 * columns and back, and r is taken from them, whoever makes the reflections in between; where cuSOLVER is not, two functions here do,
 * a launch each for a reflection and for what it does to the columns behind it. Names are those of qr_plain.c.
 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"
#include "kernels/qr/tall.cuh"
#include "kernels/rows.cuh"
#include "kernels/triangle.cuh"

enum { THREADS = GY_LANES * GY_ROW_WARPS };

/* to[j][i] = from[i][j], `across` squares in a row of blocks. Row i of `from` is turned where sign[i] is -1; NULL: none is. */
template <typename T>
static __device__ void turn(const T *from, T *to, int64_t rows, int64_t columns, const T *sign, uint32_t across)
{
    __shared__ gy_square<T> square;
    const int64_t row = (int64_t)(blockIdx.x / across) * GY_SQUARE, column = (int64_t)(blockIdx.x % across) * GY_SQUARE;
    const int lane = threadIdx.x;
    gy_load_square(square, from + row * columns + column, columns, rows - row, columns - column);
    __syncthreads();
    for (int j = threadIdx.y; j < GY_SQUARE; j += GY_SQUARE_LINES)
        if (column + j < columns && row + lane < rows)
            to[(column + j) * rows + row + lane] = sign ? sign[row + lane] * square.at[lane][j] : square.at[lane][j];
}

/* The upper triangle of the columns becomes r, whose diagonal is made not negative, and zeros in its place. */
template <typename T> static __device__ void upper(T *a, int64_t m, T *r, T *sign, int64_t n)
{
    GY_FOR_EACH (e, n * n) {
        const int64_t i = e / n, j = e % n;
        const T turned = a[i + i * m] < 0 ? (T)-1 : (T)1;
        r[e] = j < i ? (T)0 : turned * a[i + j * m];
        if (j > i)
            a[i + j * m] = 0;
        if (j == i)
            sign[i] = turned;
    }
}

/* Column k from row k on becomes the vector of reflection k, and its first element what that leaves. One block. */
template <typename T> static __device__ void reflect(T *a, int64_t m, int64_t k, T *tau)
{
    T *x = a + k * m;
    const double first = (double)x[k];
    double largest = 0, sum = 0;
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += THREADS)
        largest = fmax(largest, fabs((double)x[i]));
    largest = gy_lanes_join(largest, [](double p, double q) { return fmax(p, q); });
    if (largest == 0) {
        if (threadIdx.x == 0)
            tau[k] = 0;
        return;
    }
    largest = fmax(largest, fabs(first));
    for (int64_t i = k + threadIdx.x; i < m; i += THREADS)
        sum += (double)x[i] / largest * ((double)x[i] / largest);
    const double left = -copysign(largest * sqrt(gy_lanes_sum(sum)), first);
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += THREADS)
        x[i] = (T)((double)x[i] / (first - left));
    if (threadIdx.x == 0) {
        x[k] = (T)left;
        tau[k] = (T)((left - first) / left);
    }
}

/* Column k of Q, once the columns behind it are made. One block. */
template <typename T> static __device__ void unfold(T *a, int64_t m, int64_t k, const T *tau)
{
    T *x = a + k * m;
    const T factor = tau[k];
    for (int64_t i = k + threadIdx.x; i < m; i += THREADS)
        x[i] = i == k ? 1 - factor : -factor * x[i];
}

/* Multiplies a column behind k by reflection k, a block each. */
template <typename T> static __device__ void apply(T *a, int64_t m, int64_t k, const T *tau)
{
    const T *v = a + k * m;
    T *x = a + (k + 1 + (int64_t)blockIdx.x) * m;
    const T factor = tau[k], head = x[k];
    T sum = 0;
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += THREADS)
        sum += v[i] * x[i];
    sum = gy_lanes_sum(sum) + head;
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += THREADS)
        x[i] -= factor * v[i] * sum;
    if (threadIdx.x == 0)
        x[k] = head - factor * sum;
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        qr_turn_##suffix(const type *from, type *to, int64_t rows, int64_t columns, const type *sign, uint32_t across) \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        turn(from, to, rows, columns, sign, across);                                                                   \
    }                                                                                                                  \
    extern "C" __global__ void qr_upper_##suffix(type *a, int64_t m, type *r, type *sign, int64_t n)                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        upper(a, m, r, sign, n);                                                                                       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        qr_reflect_##suffix(type *a, int64_t m, int64_t k, type *tau, int32_t is_back)                                 \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if (is_back)                                                                                                   \
            unfold(a, m, k, tau);                                                                                      \
        else                                                                                                           \
            reflect(a, m, k, tau);                                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) qr_apply_##suffix(type *a, int64_t m, int64_t k, const type *tau)\
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        apply(a, m, k, tau);                                                                                           \
    }
KERNEL(f32, float)
KERNEL(f64, double)
#undef KERNEL

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(GY_TALL_THREADS)                                                      \
        qr_fold_##suffix(const type *from, int64_t m, int32_t n, type *v, type *tau, type *r, type *sign)              \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        __shared__ gy_tall_room<type> room;                                                                            \
        const gy_tall_result<type> to = { v, tau, r, sign };                                                           \
        if (GY_TALL_COLUMNS_OF(n) == 1)                                                                                \
            gy_tall_fold_block<type, 1>(from, m, n, to, room);                                                         \
        else if (GY_TALL_COLUMNS_OF(n) == 2)                                                                           \
            gy_tall_fold_block<type, 2>(from, m, n, to, room);                                                         \
        else                                                                                                           \
            gy_tall_fold_block<type, 4>(from, m, n, to, room);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_TALL_THREADS)                                                      \
        qr_unfold_##suffix(const type *c, const type *v, const type *tau, const type *sign, int64_t m, int32_t n,      \
                           type *to)                                                                                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        __shared__ gy_tall_room<type> room;                                                                            \
        if (GY_TALL_COLUMNS_OF(n) == 1)                                                                                \
            gy_tall_unfold_block<type, 1>(c, v, tau, sign, m, n, to, room);                                            \
        else if (GY_TALL_COLUMNS_OF(n) == 2)                                                                           \
            gy_tall_unfold_block<type, 2>(c, v, tau, sign, m, n, to, room);                                            \
        else                                                                                                           \
            gy_tall_unfold_block<type, 4>(c, v, tau, sign, m, n, to, room);                                            \
    }
KERNEL(f32, float)
KERNEL(f64, double)
