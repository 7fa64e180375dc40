/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

/* y[r][c] = f(x[r][c], b[c]). A thread keeps its columns of b and goes down the rows, 4 of them in flight. */
template <typename P, typename F>
static __device__ void over_rows(const P *x, const P *b, P *y, int64_t rows, int64_t width, const F &f)
{
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
    for (int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; c < width; c += (int64_t)gridDim.x * blockDim.x) {
        const P bias = gy_load(&b[c]);
        int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
        for (; r + 3 * step < rows; r += 4 * step) {
            P a[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                a[k] = gy_load(&x[(r + k * step) * width + c]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                y[(r + k * step) * width + c] = f(a[k], bias);
        }
        for (; r < rows; r += step)
            y[r * width + c] = f(gy_load(&x[r * width + c]), bias);
    }
}

template <typename T, typename Wide> struct sum {
    __device__ T operator()(T x, T y) const
    {
        return gy_element<Wide>::template store<T>(gy_element<Wide>::load(x) + gy_element<Wide>::load(y));
    }
};

/* bias_add_wide_DTYPE: `width` is in packs, to which everything is aligned. */
#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void bias_add_##suffix(const type *x, const type *b, type *y, int64_t rows, int64_t width)   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        over_rows(x, b, y, rows, width, sum<type, wide>());                                                            \
    }                                                                                                                  \
    extern "C" __global__ void bias_add_wide_##suffix(const gy_pack<type> *x, const gy_pack<type> *b,                  \
                                                      gy_pack<type> *y, int64_t rows, int64_t width)                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        over_rows(x, b, y, rows, width, gy_each<type, sum<type, wide>>());                                             \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
