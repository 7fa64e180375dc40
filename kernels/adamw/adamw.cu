/* SPDX-License-Identifier: Apache-2.0 */
/* The host's operations in its order, so its bits. */
#include "kernels/adam.h"
#include "kernels/begin.cuh"
#include "kernels/element.cuh"

static __device__ inline float root(float x) { return sqrtf(x); }
static __device__ inline double root(double x) { return sqrt(x); }

template <typename Wide, typename G>
static __device__ void step(const gy_adam &a, Wide *w, const G *g, Wide *m, Wide *v, int64_t n)
{
    GY_FOR_EACH (i, n) {
        Wide d = gy_element<Wide>::load(g[i]);
        Wide mean = (Wide)a.beta1 * m[i] + (Wide)a.rest1 * d, square = (Wide)a.beta2 * v[i] + (Wide)a.rest2 * d * d;
        Wide by = mean / (Wide)a.bias1 / (root(square / (Wide)a.bias2) + (Wide)a.eps);
        m[i] = mean;
        v[i] = square;
        w[i] = w[i] - (Wide)a.rate * (by + (Wide)a.decay * w[i]);
    }
}

#define KERNEL(suffix, type, wide)                                                                                     \
    extern "C" __global__ void adamw_##suffix(gy_adam a, wide *w, const type *g, wide *m, wide *v, int64_t n)          \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        step(a, w, g, m, v, n);                                                                                        \
    }
GY_CUDA_FLOAT_TYPES(KERNEL)
