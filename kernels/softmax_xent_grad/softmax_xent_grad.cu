/* SPDX-License-Identifier: Apache-2.0 */
/* A row is read twice, the second time mostly from a cache. A label outside of the row is nobody's, as on the host. */
#include "kernels/begin.cuh"
#include "kernels/softmax.cuh"

template <bool PACKED, typename Wide, typename T>
static __device__ void gradient(Wide scale, const T *__restrict__ logits, const int32_t *__restrict__ labels,
                                T *__restrict__ grad, int64_t count, int64_t width)
{
    typedef gy_element<Wide> e;
    GY_FOR_EACH_ROW (r, count) {
        const T *x = logits + r * width;
        T *y = grad + r * width;
        const gy_softmax<Wide> s = gy_softmax_of<PACKED, Wide>(x, width);
        const int32_t label = labels[r];
        const Wide inverse = (Wide)(1 / s.sum);
        gy_each_pack<PACKED>(x, width, [&](int64_t c, const gy_pack<T> &v, int many) {
            gy_pack<T> to;
#pragma unroll
            for (int j = 0; j < gy_pack<T>::COUNT; j++) {
                const Wide p = gy_exp((Wide)e::load(v.at[j]) - s.largest) * inverse;
                to.at[j] = e::template store<T>(scale * (p - (label == c + j ? (Wide)1 : (Wide)0)));
            }
            gy_store_pack<PACKED>(y + c, to, many);
        });
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void __launch_bounds__(GY_LANES *GY_ROW_WARPS)                                               \
        softmax_xent_grad_##suffix(double scale, const type *logits, const int32_t *labels, type *grad, int64_t count, \
                                   int64_t width)                                                                      \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        if (gy_row_is_packed(width, logits) && gy_row_is_packed(width, grad))                                          \
            gradient<true>((wide)scale, logits, labels, grad, count, width);                                           \
        else                                                                                                           \
            gradient<false>((wide)scale, logits, labels, grad, count, width);                                          \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
