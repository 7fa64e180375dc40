/* SPDX-License-Identifier: Apache-2.0 */
/* A row is read twice, the second time mostly from a cache. A label outside of the row is nobody's, as on the host. */
#include "kernels/begin.cuh"
#include "kernels/softmax.cuh"

template <typename T>
static __device__ void gradient(double scale, const T *__restrict__ logits, const int32_t *__restrict__ labels,
                                T *__restrict__ grad, int64_t count, int64_t width)
{
    int64_t groups = (int64_t)gridDim.x * blockDim.y;
    for (int64_t r = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; r < count; r += groups) {
        const T *x = logits + r * width;
        T *y = grad + r * width;
        gy_softmax<T> s = gy_softmax_of(x, width);
        int32_t label = labels[r];
        T inverse = (T)(1 / s.sum), factor = (T)scale;
#pragma unroll 4
        for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
            y[c] = factor * (gy_exp(x[c] - s.largest) * inverse - (label == c ? (T)1 : (T)0));
    }
}

#define KERNEL(suffix, type)                                                                                           \
    extern "C" __global__ void __launch_bounds__(GY_SOFTMAX_THREADS)                                                   \
        softmax_xent_grad_##suffix(double scale, const type *logits, const int32_t *labels, type *grad, int64_t count, \
                                   int64_t width)                                                                      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gradient(scale, logits, labels, grad, count, width);                                                           \
    }
KERNEL(f32, float)
KERNEL(f64, double)
