/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are channels of y, columns elements of the window over all channels of x, terms pixels of y of all images. These are many
 * and elements few, so blocks have pieces of `each` terms, whose sums a second function adds up: one order of sums.
 */
#include "kernels/conv2d/conv2d.cuh"
#include "kernels/conv2d_grad_w/pixels.cuh"

/* sums: one matrix for each piece; NULL: there is one piece, which is added to dw. */
template <typename Wide, int HIGH, typename T>
static __device__ void gradient(const gy_conv &c, uint32_t across, int32_t each, const T *x, const T *dy, T *dw, Wide *sums)
{
    const int32_t window = c.window_height * c.window_width, columns = c.channels * window, pixels = c.high * c.wide;
    const int32_t terms = c.images * pixels, piece = (int32_t)blockIdx.y, first = piece * each;
    gy_conv_product<Wide, HIGH>(
        c.results, columns, first, terms - first < each ? terms : first + each, across,
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
            if (sums)
                sums[(piece * c.results + i) * columns + j] = sum;
            else
                *to = gy_element<Wide>::template store<T>(sum + gy_element<Wide>::load(*to));
        });
}

/* A block has a line of elements, and its threads pieces of each; these meet in one order. */
template <typename Wide, typename T>
static __device__ void add_up(int32_t elements, int32_t pieces, const Wide *sums, T *dw)
{
    enum { LINE = GY_CONV_LINE, LANES = GY_CONV_THREADS / LINE };
    __shared__ Wide room[LANES][LINE];
    const int x = threadIdx.x % LINE, lane = threadIdx.x / LINE;
    const int32_t i = (int32_t)blockIdx.x * LINE + x;
    Wide sum = 0;
#pragma unroll 8
    for (int32_t piece = lane; piece < pieces && i < elements; piece += LANES)
        sum += sums[piece * elements + i];
    room[lane][x] = sum;
    __syncthreads();
    if (lane > 0 || i >= elements)
        return;
    for (int k = 1; k < LANES; k++)
        sum += room[k][x];
    dw[i] = gy_element<Wide>::template store<T>(sum + gy_element<Wide>::load(dw[i]));
}

#define PRODUCT(name, high, type, wide)                                                                                \
    extern "C" __global__ void __launch_bounds__(GY_CONV_THREADS)                                                      \
        name(gy_conv c, uint32_t across, int32_t each, const type *x, const type *dy, type *dw, wide *sums)            \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gradient<wide, high>(c, across, each, x, dy, dw, sums);                                                        \
    }
#define KERNELS(suffix, type, wide)                                                                                    \
    PRODUCT(conv2d_grad_w_##suffix, GY_CONV_EACH, type, wide)                                                          \
    PRODUCT(conv2d_grad_w_low_##suffix, 1, type, wide)                                                                 \
    extern "C" __global__ void __launch_bounds__(GY_CONV_THREADS)                                                      \
        conv2d_grad_w_sum_##suffix(int32_t elements, int32_t pieces, const wide *sums, type *dw)                       \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        add_up<wide>(elements, pieces, sums, dw);                                                                      \
    }
GY_CUDA_FLOAT_TYPES(KERNELS)
