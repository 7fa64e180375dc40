/* SPDX-License-Identifier: Apache-2.0 */
/* An angle serves all heads of a row. Powers, sines and cosines are in double on both sides, each right to 2 units or
 * better, so results differ by about position * 2^-50 of the largest element before they are rounded. */
#include "kernels/begin.cuh"
#include "kernels/rows.cuh"

/* Numbers that say how a row is turned. */
struct turning {
    int64_t dim, first, length, positions;
    double base, sign;
};

template <typename Wide, typename T>
static __device__ void turn_row(const turning &t, int64_t position, const T *__restrict__ x, T *__restrict__ y,
                                int64_t width)
{
    typedef gy_element<Wide> e;
    int64_t half = t.dim / 2;
    for (int64_t i = threadIdx.x; i < half; i += blockDim.x) {
        double angle = (double)position * pow(t.base, -2 * (double)i / (double)t.dim);
        double c = cos(angle), s = t.sign * sin(angle);
        for (int64_t a = i; a < width; a += t.dim) {
            double u = (double)e::load(x[a]), v = (double)e::load(x[a + half]);
            y[a] = e::template store<T>((Wide)(u * c - v * s));
            y[a + half] = e::template store<T>((Wide)(v * c + u * s));
        }
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        rope_##suffix(turning t, const type *x, type *y, int64_t rows, int64_t width)                                  \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        GY_FOR_EACH_ROW (r, rows) {                                                                                    \
            int64_t position = t.first + r % t.positions;                                                              \
            position = t.length > 0 ? position % t.length : position;                                                  \
            turn_row<wide>(t, position, x + r * width, y + r * width, width);                                          \
        }                                                                                                              \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
