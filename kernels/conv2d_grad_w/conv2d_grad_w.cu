/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are channels of y, columns elements of the window over all channels of x, terms pixels of y of all images: one order of
 * sums, and few blocks. */
#include "kernels/conv2d/conv2d.cuh"

template <typename Wide, typename T>
static __device__ void gradient(const gy_conv &c, uint32_t across, const T *x, const T *dy, T *dw)
{
    const int32_t window = c.window_height * c.window_width, columns = c.channels * window, pixels = c.high * c.wide;
    gy_conv_product<Wide>(
        c.results, columns, c.images * pixels, across,
        [&](int32_t i, int32_t k) {
            return gy_element<Wide>::load(dy[(k / pixels * c.results + i) * pixels + k % pixels]);
        },
        [&](int32_t k, int32_t j) {
            const int32_t at = k % pixels, in = j % window;
            return gy_conv_pixel<Wide>(c, x, k / pixels, j / window, at / c.wide * c.stride + in / c.window_width - c.pad,
                                       at % c.wide * c.stride + in % c.window_width - c.pad);
        },
        [&](int32_t i, int32_t j, Wide sum) {
            T *to = dw + i * columns + j;
            *to = gy_element<Wide>::template store<T>(sum + gy_element<Wide>::load(*to));
        });
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_CONV_THREADS)                                                      \
        conv2d_grad_w_##suffix(gy_conv c, uint32_t across, const type *x, const type *dy, type *dw)                    \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gradient<wide>(c, across, x, dy, dw);                                                                          \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
