/* SPDX-License-Identifier: Apache-2.0 */
/* Contributions of several memories, for collectives: to[i] = ((from[0][i] (+) from[1][i]) (+) from[2][i]) ..., with the
 * order and arithmetic of src/run/reduce.c. `to` may be one of them. Sources may be memory of peers. */
#include "kernels/element.cuh"

enum { MOST_SOURCES = 64 }; /* launch_combine.c has the same struct */
struct sources {
    const void *at[MOST_SOURCES];
    int64_t count;
};

/* DO(suffix, type, own, wide): combined in `own`; sums and products in `wide`, where they wrap. */
#define TYPES(DO)                                                                                                      \
    DO(f16, __half, float, float)                                                                                      \
    DO(bf16, __nv_bfloat16, float, float)                                                                              \
    DO(f32, float, float, float)                                                                                       \
    DO(f64, double, double, double)                                                                                    \
    DO(i8, int8_t, int8_t, uint32_t)                                                                                   \
    DO(u8, uint8_t, uint8_t, uint32_t)                                                                                 \
    DO(i32, int32_t, int32_t, uint32_t)                                                                                \
    DO(u32, uint32_t, uint32_t, uint32_t)                                                                              \
    DO(i64, int64_t, int64_t, uint64_t)                                                                                \
    DO(u64, uint64_t, uint64_t, uint64_t)

template <typename Own, typename Wide> struct with_sum {
    __device__ Own operator()(Own a, Own b) const { return (Own)((Wide)a + (Wide)b); }
};
template <typename Own, typename Wide> struct with_prod {
    __device__ Own operator()(Own a, Own b) const { return (Own)((Wide)a * (Wide)b); }
};
template <typename Own, typename Wide> struct with_min {
    __device__ Own operator()(Own a, Own b) const { return a != a || a < b ? a : b; }
};
template <typename Own, typename Wide> struct with_max {
    __device__ Own operator()(Own a, Own b) const { return a != a || a > b ? a : b; }
};

/* As gy_stream: in packs from `head` on, one by one before and behind them. */
template <typename T, typename Own, typename F>
static __device__ void combine(const sources &from, T *to, int64_t n, int64_t head, const F &f)
{
    const int count = gy_pack<T>::COUNT;
    const int64_t packs = (n - head) / count;
    GY_FOR_EACH (i, packs) {
        gy_pack<T> pack = gy_load((const gy_pack<T> *)((const T *)from.at[0] + head) + i);
        Own so_far[count];
#pragma unroll
        for (int j = 0; j < count; j++)
            so_far[j] = gy_element<Own>::load(pack.at[j]);
#pragma unroll 2
        for (int64_t s = 1; s < from.count; s++) {
            const gy_pack<T> next = gy_load((const gy_pack<T> *)((const T *)from.at[s] + head) + i);
#pragma unroll
            for (int j = 0; j < count; j++)
                so_far[j] = f(so_far[j], gy_element<Own>::load(next.at[j]));
        }
#pragma unroll
        for (int j = 0; j < count; j++)
            pack.at[j] = gy_element<Own>::template store<T>(so_far[j]);
        ((gy_pack<T> *)(to + head))[i] = pack;
    }
    GY_FOR_EACH (k, n - packs * count) {
        const int64_t at = k < head ? k : k + packs * count;
        Own so_far = gy_element<Own>::load(((const T *)from.at[0])[at]);
#pragma unroll 1
        for (int64_t s = 1; s < from.count; s++)
            so_far = f(so_far, gy_element<Own>::load(((const T *)from.at[s])[at]));
        to[at] = gy_element<Own>::template store<T>(so_far);
    }
}

#define KERNEL(name, suffix, type, own, wide)                                                                          \
    extern "C" __global__ void combine_##name##_##suffix(const __grid_constant__ sources from, type *to, int64_t n,    \
                                                         int64_t head)                                                 \
    {                                                                                                                  \
        combine<type, own>(from, to, n, head, with_##name<own, wide>());                                               \
    }
#define KERNELS(suffix, type, own, wide)                                                                               \
    KERNEL(sum, suffix, type, own, wide)                                                                               \
    KERNEL(min, suffix, type, own, wide)                                                                               \
    KERNEL(max, suffix, type, own, wide)                                                                               \
    KERNEL(prod, suffix, type, own, wide)
TYPES(KERNELS)
