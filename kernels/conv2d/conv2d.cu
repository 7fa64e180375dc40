/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are channels of y, columns its pixels, terms elements of the window over all channels of x. */
#include "kernels/conv2d/conv2d.cuh"

template <typename Wide, typename T>
static __device__ void forward(const gy_conv &c, uint32_t across, const T *x, const T *w, T *y)
{
    const int32_t window = c.window_height * c.window_width, terms = c.channels * window, pixels = c.high * c.wide;
    gy_conv_product<Wide>(
        c.results, c.images * pixels, 0, terms, across,
        [&](int32_t i, int32_t k) { return gy_element<Wide>::load(w[i * terms + k]); },
        [&](int32_t k, int32_t j) {
            const int32_t at = j % pixels, in = k % window;
            return gy_conv_pixel<Wide>(c, x, j / pixels, k / window, at / c.wide * c.stride + in / c.window_width - c.pad,
                                       at % c.wide * c.stride + in % c.window_width - c.pad);
        },
        [&](int32_t i, int32_t j, Wide sum) {
            T *to = &y[(j / pixels * c.results + i) * pixels + j % pixels];
            *to = gy_element<Wide>::template store<T>(c.adds ? sum + gy_element<Wide>::load(*to) : sum);
        });
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_CONV_THREADS)                                                      \
        conv2d_##suffix(gy_conv c, uint32_t across, const type *x, const type *w, type *y)                             \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        forward<wide>(c, across, x, w, y);                                                                             \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
