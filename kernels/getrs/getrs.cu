/* SPDX-License-Identifier: Apache-2.0 */
/* Three launches: the exchanges of rows, the lower factor, the upper one. A block solves for 32 columns of b, square by square in
 * the order of the host's plain version. */
#include "kernels/begin.cuh"
#include "kernels/pivot.cuh"
#include "kernels/triangle.cuh"

/* The rows of x from 0 to `width`, a thread a column; the lower triangle has ones on its diagonal. */
template <bool UPPER, typename T>
static __device__ inline void solve_square(const gy_square<T> &s, gy_square<T> &x, int width)
{
    const int lane = threadIdx.x;
    for (int step = 0; step < width; step++) {
        const int i = UPPER ? width - 1 - step : step;
        T value = x.at[i][lane];
        for (int before = 0; before < step; before++) {
            const int k = UPPER ? width - 1 - before : before;
            value -= s.at[i][k] * x.at[k][lane];
        }
        x.at[i][lane] = UPPER ? value / s.at[i][i] : value;
    }
}

/* c -= s x for the rows of c; `width` terms, the first ones first, or the last. */
template <bool UPPER, typename T>
static __device__ inline void take_away(const gy_square<T> &s, const gy_square<T> &x, T *c, int64_t ld, int64_t rows,
                                        int64_t columns, int width)
{
    const int lane = threadIdx.x;
    for (int i = threadIdx.y; i < GY_SQUARE; i += GY_SQUARE_LINES) {
        if (i >= rows || lane >= columns)
            continue;
        T value = c[i * ld + lane];
        for (int step = 0; step < width; step++) {
            const int k = UPPER ? width - 1 - step : step;
            value -= s.at[i][k] * x.at[k][lane];
        }
        c[i * ld + lane] = value;
    }
}

template <bool UPPER, typename T> static __device__ void solve(const T *a, int64_t n, T *all, int64_t ld)
{
    __shared__ gy_square<T> s, x;
    T *b = all + (int64_t)blockIdx.x * GY_SQUARE;
    const int64_t columns = ld - (int64_t)blockIdx.x * GY_SQUARE, squares = (n + GY_SQUARE - 1) / GY_SQUARE;
    const int lane = threadIdx.x;
    for (int64_t step = 0; step < squares; step++) {
        const int64_t at = UPPER ? squares - 1 - step : step, j = at * GY_SQUARE;
        const int width = n - j < GY_SQUARE ? (int)(n - j) : GY_SQUARE;
        __syncthreads(); /* the squares before have been read, and b has been written */
        gy_load_square(s, a + j * n + j, n, width, width);
        gy_load_square(x, b + j * ld, ld, width, columns);
        __syncthreads();
        if (threadIdx.y == 0)
            solve_square<UPPER>(s, x, width);
        __syncthreads();
        for (int i = threadIdx.y; i < width; i += GY_SQUARE_LINES)
            if (lane < columns)
                b[(j + i) * ld + lane] = x.at[i][lane];
        for (int64_t other = UPPER ? 0 : at + 1; other < (UPPER ? at : squares); other++) {
            const int64_t q = other * GY_SQUARE;
            __syncthreads();
            gy_load_square(s, a + q * n + j, n, n - q, width);
            __syncthreads();
            take_away<UPPER>(s, x, b + q * ld, ld, n - q, columns, width);
        }
    }
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void getrs_exchange_##suffix(type *b, int64_t n, int64_t columns, const int32_t *pivots,     \
                                                       int32_t *status)                                                \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_exchange_rows(b, columns, n, columns, pivots, 0, n, 0, 0, status);                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        getrs_lower_##suffix(const type *a, int64_t n, type *b, int64_t columns)                                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        solve<false>(a, n, b, columns);                                                                                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(GY_SQUARE_THREADS)                                                    \
        getrs_upper_##suffix(const type *a, int64_t n, type *b, int64_t columns)                                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        solve<true>(a, n, b, columns);                                                                                 \
    }
KERNEL(f32, float)
KERNEL(f64, double)
