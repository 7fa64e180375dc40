/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two launches, so that sums are taken in an order that does not depend on which block is first: each group of threads
 * (those of one threadIdx.y of a block) adds up the losses of its rows, then one block adds up the groups.
 */
#include "kernels/begin.cuh"
#include "kernels/softmax.cuh"

enum { THREADS = GY_LANES * GY_ROW_WARPS };

/* Row r is that of group r % groups; a block has blockDim.y groups. */
template <bool PACKED, typename Wide, typename T>
static __device__ void rows(const T *logits, const int32_t *labels, double *partial, int64_t count, int64_t width,
                            int32_t groups, int32_t *status)
{
    int32_t group = (int32_t)(blockIdx.x * blockDim.y + threadIdx.y);
    double total = 0;
    if (group >= groups)
        return;
    for (int64_t r = group; r < count; r += groups) {
        int32_t label = labels[r];
        if (label < 0 || label >= width) {
            if (threadIdx.x == 0)
                atomicCAS(status, 0, label < 0 ? label : label + 1);
            continue;
        }
        gy_softmax<Wide> s = gy_softmax_of<PACKED, Wide>(logits + r * width, width);
        total += log(s.sum) + (double)s.largest - (double)gy_element<Wide>::load(logits[r * width + label]);
    }
    if (threadIdx.x == 0)
        partial[group] = total;
}

template <typename Wide>
static __device__ void total(double scale, const double *partial, int32_t groups, Wide *loss)
{
    double sum = 0;
    for (int32_t i = threadIdx.x; i < groups; i += THREADS)
        sum += partial[i];
    sum = gy_lanes_sum(sum);
    if (threadIdx.x == 0)
        *loss += (Wide)(scale * sum);
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        softmax_xent_rows_##suffix(const type *logits, const int32_t *labels, double *partial, int64_t count,          \
                                   int64_t width, int32_t groups, int32_t *status)                                     \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if (gy_row_is_packed(width, logits))                                                                           \
            rows<true, wide>(logits, labels, partial, count, width, groups, status);                                   \
        else                                                                                                           \
            rows<false, wide>(logits, labels, partial, count, width, groups, status);                                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        softmax_xent_total_##suffix(double scale, const double *partial, int32_t groups, wide *loss)                   \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        total(scale, partial, groups, loss);                                                                           \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
