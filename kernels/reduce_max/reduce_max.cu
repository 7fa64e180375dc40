/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/begin.cuh"
#include "kernels/reduce.cuh"

/* Compared in their own type, f16 and bf16 as float, small integers as int. */
#define TYPES(DO)                                                                                                      \
    DO(f16, __half, float, gy_element<float>::load, gy_element<float>::store<__half>)                                  \
    DO(bf16, __nv_bfloat16, float, gy_element<float>::load, gy_element<float>::store<__nv_bfloat16>)                   \
    DO(f32, float, float, , )                                                                                          \
    DO(f64, double, double, , )                                                                                        \
    DO(i8, int8_t, int32_t, , (int8_t))                                                                                \
    DO(u8, uint8_t, int32_t, , (uint8_t))                                                                              \
    DO(i32, int32_t, int32_t, , )                                                                                      \
    DO(u32, uint32_t, uint32_t, , )                                                                                    \
    DO(i64, int64_t, int64_t, , )                                                                                      \
    DO(u64, uint64_t, uint64_t, , )

/* NaN is passed on. */
struct larger {
    template <typename W> __device__ W operator()(W a, W b) const { return b > a || b != b ? b : a; }
};

#define KERNEL(suffix, type, own, LOAD, STORE)                                                                         \
    extern "C" __global__ void reduce_max_##suffix(const type *x, void *partial, int64_t n, int64_t chunk,             \
                                                   int aligned)                                                        \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        gy_reduce_chunk<1>(                                                                                            \
            x, x, (own *)partial, n, chunk, aligned, (own)LOAD(x[blockIdx.x * chunk]),                                 \
            [](own a, type v, type) { return larger()(a, (own)LOAD(v)); }, larger());                                  \
    }                                                                                                                  \
    extern "C" __global__ void reduce_max_finish_##suffix(const void *partial, int64_t count, type *out)               \
    {                                                                                                                  \
        gy_begin();                                                                                                    \
        const own most = gy_reduce_partials((const own *)partial, count, (own)LOAD(*out), larger());                   \
        if (threadIdx.x == 0)                                                                                          \
            *out = STORE(most);                                                                                        \
    }
TYPES(KERNEL)
