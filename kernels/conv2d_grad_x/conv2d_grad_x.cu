/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are channels of x, columns its pixels, terms elements of the window over all channels of y: those whose window lies on the
 * pixel. */
#include "kernels/conv2d/conv2d.cuh"

template <typename Wide, typename T>
static __device__ void gradient(const gy_conv &c, uint32_t across, const T *w, const T *dy, T *dx)
{
    const int32_t window = c.window_height * c.window_width, pixels = c.height * c.width, made = c.high * c.wide;
    gy_conv_product<Wide>(
        c.channels, c.images * pixels, 0, c.results * window, across,
        [&](int32_t i, int32_t k) {
            return gy_element<Wide>::load(w[(k / window * c.channels + i) * window + k % window]);
        },
        [&](int32_t k, int32_t j) {
            const int32_t at = j % pixels, in = k % window;
            const int32_t r = at / c.width + c.pad - in / c.window_width, q = at % c.width + c.pad - in % c.window_width;
            const bool there = r >= 0 && q >= 0 && r % c.stride == 0 && q % c.stride == 0 && r / c.stride < c.high &&
                               q / c.stride < c.wide;
            const int32_t from = (j / pixels * c.results + k / window) * made + r / c.stride * c.wide + q / c.stride;
            return there ? gy_element<Wide>::load(dy[from]) : (Wide)0;
        },
        [&](int32_t i, int32_t j, Wide sum) {
            dx[(j / pixels * c.channels + i) * pixels + j % pixels] = gy_element<Wide>::template store<T>(sum);
        });
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_CONV_THREADS)                                                      \
        conv2d_grad_x_##suffix(gy_conv c, uint32_t across, const type *w, const type *dy, type *dx)                    \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gradient<wide>(c, across, w, dy, dx);                                                                          \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
